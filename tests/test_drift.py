"""Knowledge whose file changed is unverified in every view, until the file is read again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cortex.config import load_settings
from cortex.memory import Memory, open_memory
from cortex.services.fields import Fields
from cortex.tools.catalogue import TOOLS
from cortex.tools.registry import Answer
from cortex.tools.resource import find
from cortex.tools.resources import RESOURCES
from tests.local import ask, run_cortex

GUIDE = "# Guide\n\nThe zebra crosses at the old bridge.\n"
QUESTION = "zebra at the bridge"


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    made = tmp_path / "docs"
    made.mkdir()
    (made / "guide.md").write_text(GUIDE)
    (made / "other.md").write_text("# Other\n\nPenguins march on ice.\n")
    return made


@pytest.fixture
def known(memory: Memory, docs: Path) -> str:
    """The id of the piece that was read of the guide."""
    memory.ingest.ingest(docs)
    memory.indexing.wait(None, 60)
    return memory.search.keyword_search("zebra").hits[0].node.id


def answer(memory: Memory, name: str, **arguments: Any) -> Answer:
    return next(each for each in TOOLS if each.name == name).call(memory, arguments)


def resource(memory: Memory, uri: str) -> Answer:
    found = find(RESOURCES, uri)
    assert found
    text = found[0].read(memory, found[1])
    return Answer(text, json.loads(text))


def marked(value: Any) -> Iterator[str]:
    """The ids of all objects that say they are unverified, at any depth."""
    if isinstance(value, dict):
        if value.get("unverified") is True:
            yield value["id"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from marked(item)


def parent(memory: Memory, node: str) -> str:
    above = memory.reading.whole(node).parent_id
    assert above
    return above


VIEWS: dict[str, Callable[[Memory, str], Answer]] = {
    "get": lambda memory, node: answer(memory, "graph_get_node", node_id=node),
    "get nearby": lambda memory, node: answer(
        memory, "graph_get_node", node_id=parent(memory, parent(memory, node))
    ),
    "focus": lambda memory, node: answer(memory, "desktop_focus", node_id=node),
    "open, cold": lambda memory, _: answer(memory, "desktop_open"),
    "history": lambda memory, _: answer(memory, "desktop_history"),
    "graph_search": lambda memory, _: answer(memory, "graph_search", query=QUESTION),
    "vector_search": lambda memory, _: answer(memory, "vector_search", query=QUESTION),
    "traverse": lambda memory, node: answer(
        memory, "graph_traverse", start_id=parent(memory, parent(memory, node)), relation="contains"
    ),
    "walk": lambda memory, node: answer(memory, "graph_walk", start_id=node),
    "temporal_walk": lambda memory, _: answer(memory, "temporal_walk"),
    "timeline": lambda memory, _: answer(memory, "session_timeline"),
    "resource node": lambda memory, node: resource(memory, f"cortex://node/{node}"),
    "resource graph": lambda memory, _: resource(memory, "cortex://graph/w"),
    "resource desktop": lambda memory, _: resource(memory, "cortex://desktop/w"),
    "resource search": lambda memory, _: resource(memory, "cortex://search/zebra%20bridge"),
}


@pytest.mark.parametrize("view", VIEWS)
def test_knowledge_of_a_changed_file_is_marked_in_the_view(
    memory: Memory, docs: Path, known: str, view: str
) -> None:
    if view == "history":
        answer(memory, "desktop_focus", node_id=known)
    assert known not in set(marked(VIEWS[view](memory, known).structured))
    (docs / "guide.md").write_text(GUIDE + "\nNot any more.\n")
    shown = VIEWS[view](memory, known)
    marks = set(marked(shown.structured))
    assert known in marks
    assert not {node for node in marks if "Penguins" in memory.reading.whole(node).text}
    assert "unverified" in shown.text


def test_a_hot_node_of_a_changed_file_is_marked(memory: Memory, docs: Path, known: str) -> None:
    memory.mutation.update(known, Fields(pinned=True))
    (docs / "guide.md").write_text("# Guide\n")
    [hot] = ask(memory, "desktop_open")["hot"]
    assert (hot["id"], hot["unverified"]) == (known, True)


def test_what_an_agent_noted_of_a_file_is_marked_as_well(home: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "auth.py").write_text("LIMIT = 1\n")
    with closing(open_memory(load_settings(home=home, env={}, cwd=tmp_path))) as memory:
        fact = memory.adding.add_node("fact", Fields(text="The limit is one"), files=["auth.py"])
        assert ask(memory, "graph_get_node", node_id=fact.id)["warnings"] == []
        (tmp_path / "auth.py").write_text("LIMIT = 10\n")
        found = ask(memory, "graph_get_node", node_id=fact.id)
    assert found["warnings"] == ["unverified: file auth.py is changed since noted"]
    assert found["node"]["unverified"] is True


@pytest.mark.parametrize("mend", ["ingest", "same bytes", "same bytes, new time"])
def test_the_mark_goes_when_the_file_is_read_again_or_is_as_it_was(
    memory: Memory, docs: Path, known: str, mend: str
) -> None:
    guide = docs / "guide.md"
    times = guide.stat().st_mtime_ns
    guide.write_text(GUIDE + "\nMore.\n")
    assert known in memory.engine.drift.of([known])
    if mend == "ingest":
        memory.ingest.ingest(docs)
    else:
        guide.write_text(GUIDE)
        os.utime(guide, ns=(times, times) if mend == "same bytes" else (5, 5))
    assert memory.engine.drift.of([known]) == {}


def test_a_missing_file_says_so_and_one_that_cannot_be_read_does_too(
    memory: Memory, docs: Path, known: str
) -> None:
    def warned() -> str:
        return "".join(ask(memory, "graph_get_node", node_id=known)["warnings"])

    (docs / "guide.md").rename(docs / "aside.md")
    assert "is missing since noted" in warned()
    (docs / "guide.md").symlink_to("guide.md")  # a circle: the system will not say
    assert "is unreadable since noted" in warned()
    found = ask(memory, "graph_search", query=QUESTION)
    assert {place["freshness"] for place in found["files"] if "guide" in place["path"]} == {
        "unreadable"
    }


def test_a_file_whose_folder_became_a_file_is_missing(
    memory: Memory, tmp_path: Path, docs: Path, known: str
) -> None:
    docs.rename(tmp_path / "aside")
    docs.write_text("now a file")
    [states] = memory.engine.drift.of([known]).values()
    assert set(states.values()) == {"missing"}


def test_bytes_are_read_once_for_each_size_and_time(memory: Memory, docs: Path, known: str) -> None:
    guide = docs / "guide.md"
    os.utime(guide, ns=(5, 5))
    assert memory.engine.drift.of([known]) == {}
    # Other bytes under the very size and time that were hashed: only a second read would tell.
    guide.write_text(GUIDE.replace("zebra", "tiger"))
    os.utime(guide, ns=(5, 5))
    assert memory.engine.drift.of([known]) == {}
    os.utime(guide, ns=(6, 6))
    assert known in memory.engine.drift.of([known])


def test_a_fileref_itself_is_marked(memory: Memory, docs: Path, known: str) -> None:
    file = parent(memory, known)
    (docs / "guide.md").unlink()
    assert set(memory.engine.drift.of([file, known])) == {file, known}


def test_the_command_line_marks_a_hit(home: Path, docs: Path) -> None:
    run_cortex(home, "ingest", str(docs), "--workspace", "w")
    (docs / "guide.md").write_text("# Guide\n")
    shown = run_cortex(home, "search", "-w", "w", "zebra", COLUMNS="200")
    assert "active unverified" in shown


def test_show_on_the_command_line_says_that_the_file_changed(home: Path) -> None:
    project = home.parent / "project"
    project.mkdir()
    source = project / "notes.md"
    source.write_text("# Notes\n\nTokens expire after a day.\n")
    run_cortex(home, "ingest", str(project), "-w", "w")
    source.write_text("# Notes\n\nTokens expire after an hour, since yesterday.\n")
    found = json.loads(run_cortex(home, "search", "tokens expire", "-w", "w", "--json"))
    shown = run_cortex(home, "show", found["hits"][0]["id"], "-w", "w")
    assert "unverified" in shown
