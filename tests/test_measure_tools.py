"""Centralities and communities through the tools: the real worker, on a real memory."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from mcp import Client

from cortex.domain.errors import InvalidError
from cortex.memory import Memory
from tests.harness import call, connected, refused
from tests.local import ask


def two_stars(memory: Memory) -> tuple[str, str]:
    """Two hubs with five leaves each, joined by nothing but the session root."""
    hubs = []
    for name in ("tokens", "invoices"):
        hub = ask(memory, "graph_add_node", type="entity", title=name)["id"]
        for number in range(5 if name == "tokens" else 4):
            leaf = ask(memory, "graph_add_node", type="fact", text=f"{name} fact {number}")["id"]
            ask(memory, "graph_add_relation", from_id=leaf, to_id=hub, type="related_to")
        hubs.append(hub)
    return hubs[0], hubs[1]


def test_the_hub_of_the_larger_star_has_the_highest_degree(memory: Memory) -> None:
    tokens, invoices = two_stars(memory)
    found = ask(memory, "graph_centrality", measure="degree")
    assert [node["id"] for node in found["nodes"][:2]] == [tokens, invoices]
    assert found["exact"] is True
    assert found["total"] == 11, "the session root is left out"


def test_what_was_written_a_moment_ago_is_measured(memory: Memory) -> None:
    tokens, _ = two_stars(memory)
    before = ask(memory, "graph_centrality", measure="degree")
    for number in range(3):
        leaf = ask(memory, "graph_add_node", type="fact", text=f"late {number}")["id"]
        ask(memory, "graph_add_relation", from_id=leaf, to_id=tokens, type="related_to")
    after = ask(memory, "graph_centrality", measure="degree")
    assert after["nodes"][0]["score"] == before["nodes"][0]["score"] + 3
    assert after["generation"] == memory.generation()


def test_the_two_stars_are_two_communities(memory: Memory) -> None:
    tokens, invoices = two_stars(memory)
    found = ask(memory, "graph_communities")
    assert [group["size"] for group in found["communities"][:2]] == [6, 5]
    assert [group["members"][0]["id"] for group in found["communities"][:2]] == [tokens, invoices]


@pytest.mark.parametrize("measure", ["pagerank", "betweenness", "closeness", "harmonic", "core"])
def test_every_measure_names_its_source(memory: Memory, measure: str) -> None:
    two_stars(memory)
    assert ask(memory, "graph_centrality", measure=measure)["source"]


def test_an_empty_memory_has_nothing_to_measure(memory: Memory) -> None:
    assert ask(memory, "graph_centrality")["nodes"] == []
    assert ask(memory, "graph_communities")["communities"] == []


def test_an_unknown_measure_is_refused_with_the_known_ones(memory: Memory) -> None:
    with pytest.raises(InvalidError, match="pagerank"):
        ask(memory, "graph_centrality", measure="fame")


@pytest.mark.anyio
async def test_a_server_answers_while_the_worker_measures(home: Path) -> None:
    async with connected(home) as client:
        node = await call(client, "graph_add_node", type="fact", text="one")
        done: list[str] = []
        async with anyio.create_task_group() as group:
            group.start_soon(_measured, client, done)
            await call(client, "graph_get_node", node_id=node["id"])
            done.append("read")
        assert done == ["read", "measured"], "the worker was still starting"
        assert "pagerank" in await refused(client, "graph_centrality", measure="fame")


async def _measured(client: Client, done: list[str]) -> None:
    await call(client, "graph_centrality")
    done.append("measured")
