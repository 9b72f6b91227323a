"""Sizes, depths and shapes: what is too much is refused, what is large is cut and says so."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cortex.config import load_settings
from cortex.domain.errors import CortexError, InvalidError, TooLargeError
from cortex.domain.taxonomy import NodeType, RelationType
from cortex.domain.values import MAX_TAGS, MAX_TEXT, NodeId
from cortex.memory import Memory, open_memory
from cortex.server.frames import TooLong, parse
from cortex.server.transport import MAX_HELD
from cortex.services.fields import Fields
from cortex.services.linking import link
from cortex.tools.catalogue import TOOLS
from cortex.tools.resource import find
from cortex.tools.resources import RESOURCES
from tests.harness import ROOT, wired
from tests.local import ask

# Sizes of what is written


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (Fields(text="x" * (MAX_TEXT + 1)), "1,048,576"),
        (Fields(text="é" * (MAX_TEXT // 2 + 1)), "1,048,576"),
        (Fields(title="x" * 501), "500"),
        (Fields(path="x" * 4_097), "4,096"),
        (Fields(text="x", data={"blob": "y" * MAX_TEXT}), "1,048,576"),
        (Fields(text="x", tags=[str(number) for number in range(MAX_TAGS + 1)]), "64 tags"),
        (Fields(text="x", tags=["t" * 101]), "100 characters"),
    ],
)
def test_what_is_too_large_is_refused_with_its_bound(
    memory: Memory, fields: Fields, said: str
) -> None:
    with pytest.raises(TooLargeError, match=said):
        memory.adding.add_node("fact", fields)
    assert memory.status()["workspaces"] == {}


def test_the_data_of_a_relation_is_bounded(memory: Memory) -> None:
    one, other = (memory.adding.add_node("fact", Fields(title=name)).id for name in "ab")
    with pytest.raises(TooLargeError, match="65,536"):
        memory.linking.add_relation(one, other, "supports", data={"label": "x" * 70_000})


def test_large_data_is_cut_in_lists_and_whole_in_the_resource(memory: Memory) -> None:
    data = {"kind": "k" * 200_000, "note": "small"}
    one = memory.adding.add_node("entity", Fields(title="a zebra", data=data)).id
    other = memory.adding.add_node("fact", Fields(title="b")).id
    memory.linking.add_relation(one, other, "supports", data={"label": "x" * 60_000})
    for name, arguments in (
        ("graph_get_node", {"node_id": other}),
        ("graph_traverse", {"start_id": other, "direction": "both"}),
        ("graph_search", {"query": "zebra"}),
        ("desktop_focus", {"node_id": other}),
    ):
        answer = ask(memory, name, **arguments)
        assert one in json.dumps(answer)
        assert len(json.dumps(answer)) < 24_000
    shown = ask(memory, "graph_get_node", node_id=one)["node"]
    assert (shown["data"]["note"], shown["data_chars"] > 200_000) == ("small", True)
    resource, values = find(RESOURCES, f"cortex://node/{one}") or pytest.fail("no such resource")
    assert json.loads(resource.read(memory, values))["node"]["data"] == data


def test_a_text_of_exactly_one_mebibyte_is_kept_to_the_byte(memory: Memory) -> None:
    text = ("é" * (MAX_TEXT // 2 - 1)) + "xy"
    node = memory.adding.add_node("fact", Fields(text=text)).id
    assert memory.reading.whole(node).text == text


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("graph_add_node", {"type": "fact", "text": "x", "data": "[" * 100_000}, "invalid"),
        ("graph_add_node", {"type": "fact", "text": "x", "data": '{"a":' * 70 + "1" + "}" * 70},
         "invalid"),
        ("graph_get_node", {"node_id": "x" * 100_000}, "not_found"),
        ("graph_search", {"query": "NEAR(" * 20_000}, None),
        ("graph_search", {"query": "what came after 9999-12-31"}, None),
        ("graph_search", {"query": "the last 99999 years"}, None),
        ("desktop_open", {"workspace_id": "w" * 201}, "invalid"),
        ("graph_add_node", {"type": "fact", "text": "x", "idempotency_key": "k" * 201}, "invalid"),
    ],
)  # fmt: skip
def test_an_argument_out_of_all_bounds_has_a_clear_answer(
    memory: Memory, name: str, arguments: dict[str, Any], code: str | None
) -> None:
    tool = next(each for each in TOOLS if each.name == name)
    if code is None:
        assert tool.call(memory, arguments).text
        return
    with pytest.raises(CortexError) as caught:
        tool.call(memory, arguments)
    assert caught.value.code == code
    assert len(str(caught.value)) < 1_000


def test_a_line_above_eight_mebibytes_is_named_by_its_size() -> None:
    reply = parse(TooLong(9 << 20, b'{"id":7,', b"}"))
    assert reply is not None
    assert "too_large" in str(reply)


def test_what_waits_for_its_answer_is_bounded_in_bytes(home: Path) -> None:
    text = "x" * (7 << 20)
    lines = MAX_HELD // len(text) + 3
    with wired(home) as wire:
        held = {"from_id": text, "to_id": text[:9], "type": "related_to"}
        for number in range(lines):
            params = {"name": "graph_add_relation", "arguments": held}
            request = {"jsonrpc": "2.0", "id": f"r{number}", "method": "tools/call"}
            wire.write(json.dumps({**request, "params": params}).encode())
        answers = [wire.reply() for _ in range(lines)]
        assert {answer["id"] for answer in answers} == {f"r{number}" for number in range(lines)}
        errors = {a["error"]["message"].partition(":")[0] for a in answers if "error" in a}
        assert errors <= {"busy"}
        assert wire.ask("ping")["result"] == {}


# Shapes of the graph


def grown(memory: Memory, count: int, relations: list[tuple[int, int]]) -> list[NodeId]:
    """So many facts, joined by leads_to as told, in two transactions."""
    made = []
    with memory.engine.write() as transaction:
        for number in range(count):
            made.append(NodeId(f"00000000-0000-4000-8000-{number:012d}"))
            data = {"title": f"fact {number}"}
            transaction.nodes.insert(
                made[-1], NodeType.FACT, memory.settings.workspace, None, data, transaction.at
            )
    with memory.engine.write() as transaction:
        for one, other in relations:
            transaction.relations.insert(
                memory.settings.workspace,
                made[one],
                made[other],
                RelationType.LEADS_TO,
                transaction.at,
            )
    return made


@pytest.fixture
def clique(memory: Memory) -> list[NodeId]:
    """Nine nodes, each leading to each other one: 72 relations, 10^5 paths of six steps."""
    return grown(memory, 9, list(itertools.permutations(range(9), 2)))


@pytest.fixture
def ring(memory: Memory) -> list[NodeId]:
    """Two hundred nodes in a circle."""
    return grown(memory, 200, [(each, (each + 1) % 200) for each in range(200)])


def test_a_clique_is_walked_node_by_node_and_not_path_by_path(
    memory: Memory, clique: list[NodeId]
) -> None:
    found = ask(memory, "graph_traverse", start_id=clique[0], depth=6, direction="both")
    assert (found["total"], len(found["nodes"]), found["truncated"]) == (8, 8, False)
    around = ask(memory, "graph_get_node", node_id=clique[0], depth=6)
    assert around["total"] == 8


def test_a_clique_above_the_limit_says_that_it_was_cut(
    memory: Memory, clique: list[NodeId]
) -> None:
    found = ask(memory, "graph_traverse", start_id=clique[0], depth=6, limit=3)
    assert (found["total"], len(found["nodes"]), found["truncated"]) == (8, 3, True)


def test_a_long_ring_ends_where_the_depth_does_and_a_walk_does_not_go_round(
    memory: Memory, ring: list[NodeId]
) -> None:
    found = ask(memory, "graph_traverse", start_id=ring[0], depth=10, limit=1000)
    assert [node["depth"] for node in found["nodes"]] == list(range(1, 11))
    path = ask(memory, "graph_walk", start_id=ring[0], steps=100)["path"]
    assert len({step["node"]["id"] for step in path}) == len(path)


@pytest.mark.parametrize("shape", ["clique", "ring"])
def test_paths_and_impact_end_in_a_circle(
    memory: Memory, shape: str, request: pytest.FixtureRequest
) -> None:
    nodes = request.getfixturevalue(shape)
    paths = ask(memory, "graph_path", from_id=nodes[0], to_id=nodes[-1], k=3)
    assert paths["paths"]
    assert ask(memory, "graph_impact", node_id=nodes[0])["generation"]


CHAIN = 20_000


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Memory, list[NodeId]]]:
    """A memory in which each node contains the next, 20,000 deep."""
    home = tmp_path_factory.mktemp("chain") / "home"
    with closing(open_memory(load_settings(home=home, workspace="w", env={}), once=True)) as memory:
        made = grown(memory, CHAIN, [])
        with memory.engine.write() as transaction:
            # From below: each relation then has no ancestors whose circle must be ruled out.
            for one, other in reversed(list(itertools.pairwise(made))):
                transaction.relations.insert(
                    memory.settings.workspace, one, other, RelationType.CONTAINS, transaction.at
                )
        yield memory, made


def test_a_chain_of_thousands_is_shown_in_part(chain: tuple[Memory, list[NodeId]]) -> None:
    memory, made = chain
    found = ask(memory, "graph_traverse", start_id=made[0], depth=10, limit=1000)
    assert len(found["nodes"]) == 10
    assert ask(memory, "graph_get_node", node_id=made[CHAIN // 2])["node"]["title"]
    assert len(json.dumps(ask(memory, "desktop_open"))) < 30_000


def test_no_circle_is_closed_over_a_chain_of_thousands(
    chain: tuple[Memory, list[NodeId]],
) -> None:
    memory, made = chain
    with memory.engine.write() as transaction:
        first, last = (transaction.nodes.by_ids([made[at]])[0] for at in (0, -1))
        with pytest.raises(InvalidError, match=r"cycle|contain"):
            link(transaction, last, first, RelationType.CONTAINS)


def test_a_cascade_down_a_chain_of_thousands_marks_every_node_and_lists_some(
    chain: tuple[Memory, list[NodeId]],
) -> None:
    memory, made = chain
    done = ask(
        memory, "graph_update_node", node_id=made[0], status="stale", cascade=True, dry_run=True
    )
    assert done["marked_total"] == CHAIN
    assert len(json.dumps(done)) < 24_000
    gone = ask(memory, "graph_delete_node", node_id=made[0], cascade=True, dry_run=True)
    assert (gone["deleted_total"], len(json.dumps(gone)) < 40_000) == (CHAIN, True)


FLAT = """
import gc, sys
from pathlib import Path
import psutil
from cortex.config import load_settings
from cortex.memory import open_memory
from cortex.tools.catalogue import TOOLS
memory = open_memory(load_settings(home=Path(sys.argv[1]), workspace="w", env={}), once=True)
call = {tool.name: tool.call for tool in TOOLS}
made = [
    call["graph_add_node"](memory, {"type": "fact", "text": f"zebra {n}"}).structured["id"]
    for n in range(200)
]
memory.indexing.wait(None, 60)
def round_():
    for node in made[:20]:
        call["graph_get_node"](memory, {"node_id": node})
        call["desktop_focus"](memory, {"node_id": node})
        call["graph_update_node"](memory, {"node_id": node, "pinned": True})
        call["graph_traverse"](memory, {"start_id": node, "depth": 6, "direction": "both"})
    for word in ("zebra", "zebra 7", "nothing"):
        call["graph_search"](memory, {"query": word})
        call["vector_search"](memory, {"query": word})
    call["desktop_open"](memory, {})
    call["session_timeline"](memory, {"limit": 200})
    gc.collect()
    return psutil.Process().memory_full_info().uss
for _ in range(4):
    before = round_()
for _ in range(5):
    after = round_()
memory.close()
print(before, after)
"""


def test_memory_is_flat_over_repeated_mixed_calls(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FLAT, str(home)],
        env={"PYTHONPATH": str(ROOT), "HOME": str(home.parent)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    before, after = map(int, done.stdout.split())
    assert after < before * 1.05
