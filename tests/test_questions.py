"""Questions: typed instead of a command, and about a file that they name."""

from __future__ import annotations

from pathlib import Path

import pytest

from cortex.cli.app import command_names
from cortex.cli.questions import with_search
from cortex.memory import Memory
from cortex.services.fields import Fields
from tests.harness import call, connected
from tests.local import ask, start_cortex

PATH = "src/auth/jwt.py"


def add(memory: Memory, text: str, *files: str, kind: str = "fact") -> str:
    return memory.adding.add_node(kind, Fields(text=text), files=files).id


@pytest.fixture
def linked(memory: Memory) -> list[str]:
    """What is known of the file; beside it, a note that says its path as well."""
    add(memory, "What do we know about src/auth/jwt.py? That question comes up every week")
    add(memory, "Other things we know", "src/other/jwt_test.py")
    return [
        add(memory, "Keys rotate on Mondays", f"{PATH}:12"),
        add(memory, "Sign with RS256", PATH, kind="decision"),
    ]


def found(memory: Memory, query: str) -> list[str]:
    return [hit["id"] for hit in ask(memory, "graph_search", query=query)["hits"]]


@pytest.mark.parametrize(
    "query",
    [
        "What do we know about src/auth/jwt.py?",
        "what do we know about `jwt.py`",
        "auth/jwt.py:12",
        "Is ./src/auth/jwt.py, by chance, known?",
        r"what of src\auth\jwt.py",
        "file://src/auth/jwt.py",
    ],
)
def test_a_path_or_its_unique_end_leads_first_to_what_is_known_of_the_file(
    memory: Memory, linked: list[str], query: str
) -> None:
    hits = found(memory, query)
    assert set(hits[:2]) == set(linked)
    scores = [hit["score"] for hit in ask(memory, "graph_search", query=query)["hits"]]
    assert scores == sorted(scores, reverse=True)
    assert 0 <= scores[-1] <= scores[0] <= 1


def test_a_whole_path_outside_the_words_of_the_project_is_told_by_its_place(
    memory: Memory, linked: list[str]
) -> None:
    assert set(found(memory, f"{Path.cwd() / PATH}")[:2]) <= {*linked, *found(memory, PATH)}


def test_what_replaced_stale_knowledge_of_the_file_stands_for_it(
    memory: Memory, linked: list[str]
) -> None:
    new = memory.mutation.supersede(linked[1], Fields(text="Sign with ES256")).new_id
    hits = found(memory, "about jwt.py")
    assert set(hits[:2]) == {linked[0], new}
    assert linked[1] not in hits


def test_an_end_that_two_files_share_names_neither(memory: Memory) -> None:
    add(memory, "The one", "a/util.py")
    add(memory, "The other", "b/util.py")
    answer = memory.search.graph_search("util.py")
    assert "file" not in answer.ranks


@pytest.mark.parametrize(
    "query", ["how are keys rotated", "and/or 3.11 e.g. https://x.y/z", "Makefile", ""]
)
def test_a_question_without_a_known_path_is_answered_as_before(
    memory: Memory, linked: list[str], query: str
) -> None:
    answer = memory.search.graph_search(query)
    assert set(answer.ranks) == {"semantic", "keyword"}
    if answer.hits:
        assert set(answer.hits[0].scores) <= {"semantic", "keyword"}


def test_a_capitalised_name_is_a_file_where_the_root_has_it(memory: Memory) -> None:
    fact = add(memory, "Targets are phony", "Makefile")
    add(memory, "The Makefile is long, the Makefile is old")
    assert found(memory, "What of the Makefile?")[0] == fact


@pytest.mark.anyio
async def test_over_the_protocol_the_file_comes_first_as_well(home: Path) -> None:
    async with connected(home) as client:
        await call(client, "graph_add_node", type="note", text="jwt.py jwt.py everywhere")
        made = await call(
            client, "graph_add_node", type="fact", text="Keys rotate", files=[f"{PATH}:3"]
        )
        answer = await call(client, "graph_search", query="what about jwt.py?")
    assert answer["hits"][0]["id"] == made["id"]
    assert (answer["files"][0]["path"], answer["files"][0]["line"]) == (PATH, 3)


def test_an_argument_that_is_no_command_is_searched_for(memory: Memory, linked: list[str]) -> None:
    question = "What do we know about src/auth/jwt.py?"
    with start_cortex(memory.settings.home, question, "-w", "w") as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert linked[0][:8] in out


@pytest.mark.parametrize(
    ("typed", "searched"),
    [
        (["what", "is", "jwt"], True),
        (["jwt"], True),
        (["src/auth/jwt.py"], True),
        (["где проверяется токен?"], True),
        (["status of the tokens"], True),
        (["status"], False),
        (["staus"], False),
        (["Search"], False),
        (["--version"], False),
        ([], False),
    ],
)
def test_a_question_is_told_from_a_command_and_from_a_slip(
    typed: list[str], searched: bool
) -> None:
    assert with_search(typed, command_names()) == (["search", *typed] if searched else typed)


def test_a_slip_is_refused_with_the_command_that_was_meant(home: Path) -> None:
    with start_cortex(home, "staus") as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "Did you mean 'status'?" in err


def test_a_path_is_looked_up_by_index_not_by_a_scan(memory: Memory) -> None:
    from cortex.store import keywords, nodes

    with memory.engine.database.read() as snapshot:
        connection = snapshot.nodes._connection
        bound = {"workspace": "w", "path": "a.py", "query": '"a"', "limit": 1}
        plans = [
            str(connection.execute(f"EXPLAIN QUERY PLAN {statement}", bound).fetchall())
            for statement in (nodes._BY_PATH, keywords._PATHS)
        ]
    assert "nodes_by_path" in plans[0]
    assert "INTEGER PRIMARY KEY" in plans[1]
