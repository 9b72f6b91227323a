"""First memories from elsewhere: the reference memory server's file, and other databases."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cortex.domain.errors import InvalidError, NotFoundError
from cortex.domain.values import Node, Relation, WorkspaceId
from cortex.memory import Memory
from cortex.services.fields import Fields
from cortex.services.keeping.importing import Imported
from tests.local import ask, run_cortex, start_cortex
from tests.original_schema import node, relation, visit, write_original

W = WorkspaceId("w")
# As the reference server writes them: compact, entities first, no newline at the end.
ENTITIES = (
    ("Alice", "person", ["Prefers tabs over spaces", "Leads the auth team"]),
    ("Acme", "organization", ["Builds payment software"]),
    ("Use RS256", "decision", ["Keys can be rotated without sharing a secret"]),
    ("Auth rewrite", "task", []),
)
RELATIONS = (
    ("Alice", "Acme", "works_at"),
    ("Acme", "Alice", "employs"),
    ("Use RS256", "Auth rewrite", "depends on"),
    ("Auth rewrite", "Use RS256", "contains"),
)
Write = Callable[..., Path]


def entity(name: str, kind: str, observations: list[str]) -> dict[str, Any]:
    return {"name": name, "entityType": kind, "observations": observations}


def link(source: str, target: str, verb: str) -> dict[str, Any]:
    return {"from": source, "to": target, "relationType": verb}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a memory.jsonl of these entities and relations."""

    def written(
        entities: Any = ENTITIES, relations: Any = RELATIONS, lines: tuple[str, ...] = ()
    ) -> Path:
        items = [{"type": "entity", **entity(*each)} for each in entities]
        items += [{"type": "relation", **link(*each)} for each in relations]
        said = [json.dumps(item, ensure_ascii=False, separators=(",", ":")) for item in items]
        path = tmp_path / "memory.jsonl"
        path.write_text("\n".join([*said, *lines]), "utf-8")
        return path

    return written


def nodes(memory: Memory) -> dict[str, Node]:
    """Every node of the workspace by its title."""
    with memory.engine.database.read() as snapshot:
        return {each.title: each for each in snapshot.nodes.iter_all(W)}


def relations(memory: Memory) -> list[Relation]:
    with memory.engine.database.read() as snapshot:
        return list(snapshot.relations.iter_all(W))


def read(memory: Memory, path: Path, **options: Any) -> Imported:
    return memory.importing.import_memory(path, **options)


def test_an_entity_is_a_node_and_each_observation_a_fact_below_it(
    memory: Memory, write: Write
) -> None:
    report = read(memory, write())
    assert (report.entities, report.observations) == (4, 4)
    found = nodes(memory)
    assert (found["Alice"].type, found["Alice"].data["kind"]) == ("entity", "person")
    assert found["Use RS256"].type == "decision"
    assert found["Auth rewrite"].type == "task"
    fact = found["Alice: Prefers tabs over spaces"]
    assert (fact.type, fact.text) == ("fact", "Prefers tabs over spaces")
    assert fact.parent_id == found["Alice"].id


def test_an_observation_is_found_by_meaning(memory: Memory, write: Write) -> None:
    read(memory, write())
    memory.indexing.wait(None, 30)
    answer = ask(memory, "vector_search", query="which indentation is liked?")
    assert answer["hits"][0]["text"] == "Prefers tabs over spaces"


def test_a_relation_of_ours_is_ours_and_another_keeps_its_verb_and_direction(
    memory: Memory, write: Write
) -> None:
    report = read(memory, write())
    found = nodes(memory)
    alice, acme = found["Alice"].id, found["Acme"].id
    [related] = [each for each in relations(memory) if each.type == "related_to"]
    assert (related.from_id, related.to_id) == (min(alice, acme), max(alice, acme))
    assert related.data["labels"] == [
        {"label": "works_at", "from": alice, "to": acme},
        {"label": "employs", "from": acme, "to": alice},
    ]
    assert "depends_on" in {each.type for each in relations(memory)}
    assert found["Use RS256"].parent_id == found["Auth rewrite"].id
    assert (report.relations, report.labelled) == (4, 2)


def test_a_second_import_changes_nothing(memory: Memory, write: Write) -> None:
    twins = (*ENTITIES, ("Alice", "robot", ["Leads the auth team", "Is two"]))
    path = write(twins, (*RELATIONS, ("Alice", "Acme", "contradicts")))
    read(memory, path)
    before = memory.generation()
    report = read(memory, path)
    assert memory.generation() == before
    assert (report.entities, report.observations, report.relations) == (0, 0, 0)
    assert (report.updated, report.kept) == (0, 0)


def test_what_memory_learnt_since_survives_a_second_import(memory: Memory, write: Write) -> None:
    path = write()
    read(memory, path)
    fact = nodes(memory)["Alice: Leads the auth team"]
    memory.mutation.supersede(fact.id, Fields(text="Leads the billing team"))
    memory.mutation.update(nodes(memory)["Acme"].id, Fields(title="Acme Ltd"))
    before = memory.generation()
    read(memory, path)
    assert memory.generation() == before
    assert nodes(memory)["Alice: Leads the auth team"].status == "stale"


def test_an_added_observation_is_added_and_a_removed_one_kept_and_told(
    memory: Memory, write: Write
) -> None:
    read(memory, write())
    changed = (("Alice", "person", ["Leads the auth team", "Plays the cello"]), *ENTITIES[1:])
    report = read(memory, write(changed))
    assert (report.observations, report.kept) == (1, 1)
    assert any("Alice: 1 observations" in line for line in report.notes)
    assert {"Alice: Plays the cello", "Alice: Prefers tabs over spaces"} <= set(nodes(memory))


def test_a_kind_that_changed_in_the_file_is_updated(memory: Memory, write: Write) -> None:
    read(memory, write())
    report = read(memory, write((("Alice", "engineer", ENTITIES[0][2]), *ENTITIES[1:])))
    assert report.updated == 1
    assert nodes(memory)["Alice"].data["kind"] == "engineer"


@pytest.mark.parametrize(
    "broken",
    ['{"type":"entity","name":', "[1]", '{"type":"entity","entityType":"x","observations":[]}',
     '{"type":"entity","name":"x","entityType":"y","observations":[1]}',
     '{"type":"relation","from":"Alice","relationType":"knows"}'],
)  # fmt: skip
def test_a_broken_line_undoes_the_whole_import_and_is_named(
    memory: Memory, write: Write, broken: str
) -> None:
    path = write(lines=("", broken))
    with pytest.raises(InvalidError, match="line 10: "):
        read(memory, path)
    assert not nodes(memory)


def test_a_relation_to_nobody_is_told_and_the_rest_comes_in(memory: Memory, write: Write) -> None:
    report = read(memory, write(relations=(*RELATIONS, ("Alice", "Bob", "knows"))))
    assert report.dangling == 1
    assert report.notes == ["line 9: Alice knows Bob: no entity 'Bob'"]
    assert report.relations == 4


def test_a_relation_may_stand_before_its_entities(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "memory.jsonl"
    said = [{"type": "relation", **link("a", "b", "supports")}]
    said += [{"type": "entity", **entity(name, "fact", [])} for name in ("a", "b")]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(map(json.dumps, said)).encode())
    assert read(memory, path).relations == 1


@pytest.mark.parametrize("indent", [None, 2])
def test_the_one_object_form_gives_the_same_graph(
    memory: Memory, write: Write, tmp_path: Path, indent: int | None
) -> None:
    old = tmp_path / "memory.json"
    whole = {
        "entities": [entity(*each) for each in ENTITIES],
        "relations": [link(*each) for each in RELATIONS],
    }
    old.write_text(json.dumps(whole, indent=indent))
    read(memory, old)
    before = memory.generation()
    read(memory, write())
    assert memory.generation() == before


def test_what_breaks_a_rule_of_ours_becomes_a_label(memory: Memory, write: Write) -> None:
    ring = [("Auth rewrite", "Use RS256", "contains"), ("Use RS256", "Auth rewrite", "contains")]
    report = read(memory, write(relations=[*ring, ("Alice", "Use RS256", "contains")]))
    assert report.labelled == 2
    labels = [each.data["label"] for each in relations(memory) if each.type == "related_to"]
    assert labels == ["contains", "contains"]


def test_a_dry_run_tells_the_same_and_writes_nothing(memory: Memory, write: Write) -> None:
    path = write()
    told = read(memory, path, dry_run=True)
    assert not nodes(memory)
    done = read(memory, path)
    assert (told.entities, told.observations, told.relations) == (
        done.entities,
        done.observations,
        done.relations,
    )


def test_an_empty_file_holds_nothing_and_a_missing_one_is_named(
    memory: Memory, tmp_path: Path
) -> None:
    (tmp_path / "memory.jsonl").touch()
    assert read(memory, tmp_path / "memory.jsonl").entities == 0
    with pytest.raises(NotFoundError, match="gone"):
        read(memory, tmp_path / "gone.jsonl")


def test_a_large_file_is_read_in_bounded_memory_and_tells_how_far(
    memory: Memory, write: Write
) -> None:
    many = [(f"e{number}", "person", [f"observes {number} " * 20]) for number in range(2000)]
    path = write(many, ())
    told: list[tuple[int, int]] = []
    read(memory, path, progress=lambda done, total: told.append((done, total)))
    assert len(told) >= 8
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] == 2 * path.stat().st_size


def test_the_command_imports_embeds_and_says_so(home: Path, write: Write) -> None:
    path = write()
    rehearsed = run_cortex(home, "import", str(path), "-w", "w", "--dry-run")
    assert "would import 4 entities, 4 observations" in rehearsed
    assert not (home / "cortex.db").exists()
    report = json.loads(run_cortex(home, "import", str(path), "-w", "w", "--json"))
    assert (report["entities"], report["pending"]) == (4, 0)
    found = json.loads(run_cortex(home, "search", "-w", "w", "--json", "secret key rotation"))
    assert found["hits"][0]["title"].startswith("Use RS256")


def test_the_command_names_the_broken_line_and_exits_with_2(home: Path, write: Write) -> None:
    path = write(lines=("{",))
    with start_cortex(home, "import", str(path), "-w", "w") as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "memory.jsonl line 9: not JSON" in err


# ── databases ─────────────────────────────────────────────────────────────────────────────


def old_database(path: Path) -> Path:
    """Two workspaces of the original schema; `root` and `n1` are ids that others have too."""
    rows = [
        node("root", "session", data='{"title": "old"}'),
        node("n1", parent_id="root", data='{"text": "Tokens live a day"}'),
        node("n2", "decision", parent_id="n1", data='{"text": "Use RS256"}'),
        node("v1", workspace_id="v"),
    ]
    links = [relation("n1", "supports", "n2", id="r1"), relation("root", "contains", "n1")]
    return write_original(path, rows, links, [visit("n1"), visit("v1", workspace_id="v")])


def test_an_old_database_becomes_the_memory_where_there_is_none(home: Path, tmp_path: Path) -> None:
    old = old_database(tmp_path / "old.db")
    before = old.read_bytes()
    report = json.loads(run_cortex(home, "import", str(old), "--json"))
    assert report["copied"]
    assert (report["nodes"], report["workspaces"]) == (4, ["v", "w"])
    assert old.read_bytes() == before
    found = json.loads(run_cortex(home, "search", "-w", "w", "--json", "how long do tokens live"))
    assert found["hits"][0]["id"] == "n1"


def test_an_old_database_joins_the_memory_that_is_there(memory: Memory, tmp_path: Path) -> None:
    mine = memory.adding.add_node("fact", Fields(text="Mine"))
    report = memory.importing.merge_database(old_database(tmp_path / "old.db"))
    assert (report.nodes, report.relations, report.history) == (3, 3, 2)
    assert report.upgrade is not None
    assert report.upgrade["repairs"] == {"contains_added": 1}
    with memory.engine.database.read() as snapshot:
        root = snapshot.nodes.root(W)
        assert root is not None
        above = [snapshot.nodes.find(name) for name in ("n1", mine.id)]
        assert [each.parent_id for each in above if each] == [root.id, root.id]
        assert snapshot.nodes.workspaces() == ["v", "w"]


def test_a_database_joined_twice_changes_nothing(memory: Memory, tmp_path: Path) -> None:
    memory.adding.add_node("fact", Fields(text="Mine"))
    old = old_database(tmp_path / "old.db")
    memory.importing.merge_database(old)
    before = memory.generation()
    again = memory.importing.merge_database(old)
    assert memory.generation() == before
    assert (again.nodes, again.relations, again.history) == (0, 0, 0)


def test_an_id_that_means_another_node_here_gets_one_of_its_own(
    memory: Memory, tmp_path: Path
) -> None:
    memory.importing.merge_database(old_database(tmp_path / "old.db"))
    other = write_original(
        tmp_path / "other.db",
        [node("n1", created_at="2026-01-01", data='{"text": "Quite another"}'), node("n9")],
        [relation("n1", "supports", "n9", id="r1")],
    )
    for added in (2, 0):
        assert memory.importing.merge_database(other).nodes == added
    with memory.engine.database.read() as snapshot:
        found = {each.text: each for each in snapshot.nodes.iter_all(W)}
        assert found["Tokens live a day"].id == "n1"
        [link] = snapshot.relations.incoming(found["says n9"].id)
        assert link.from_id == found["Quite another"].id != "n1"


def test_one_workspace_of_a_database_may_be_named(memory: Memory, tmp_path: Path) -> None:
    old = old_database(tmp_path / "old.db")
    assert memory.importing.merge_database(old, workspace="v").nodes == 1
    with pytest.raises(NotFoundError, match="It has: v, w"):
        memory.importing.merge_database(old, workspace="x")


def test_a_memory_of_this_schema_can_be_joined_while_it_is_in_use(
    memory: Memory, home: Path, tmp_path: Path
) -> None:
    memory.adding.add_node("fact", Fields(text="Written a moment ago"))
    other = tmp_path / "other"
    report = json.loads(run_cortex(other, "import", str(home / "cortex.db"), "--json"))
    assert (report["copied"], report["nodes"]) == (True, 2)


def test_a_rehearsal_on_a_database_leaves_no_trace(home: Path, tmp_path: Path) -> None:
    old = old_database(tmp_path / "old.db")
    told = run_cortex(home, "import", str(old), "--dry-run")
    assert "would import 4 nodes, 3 relations; workspaces: v, w" in told
    assert not home.exists()


def test_a_database_of_another_program_is_refused(
    memory: Memory, home: Path, tmp_path: Path
) -> None:
    memory.engine.database.close()
    stranger = tmp_path / "stranger.db"
    shutil.copy(home / "cortex.db", stranger)
    with closing(sqlite3.connect(stranger)) as shell:
        shell.execute("PRAGMA application_id = 7")
    with start_cortex(tmp_path / "new", "import", str(stranger)) as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "another program" in err
    assert not (tmp_path / "new" / "cortex.db").exists()
