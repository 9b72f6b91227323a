"""One text that breaks the model does not hold up the others."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from cortex.config import load_settings
from cortex.domain.errors import UnavailableError
from cortex.memory import Memory, open_memory
from cortex.vectors.embedder import Embedder
from cortex.vectors.models import resolve_model
from tests.local import ask


class PickyStandIn(Embedder):
    """The real offline model, but for texts that name plutonium: no real text breaks it."""

    out = False

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.out or any("plutonium" in text for text in texts):
            raise UnavailableError("the model cannot be run on this")
        return super().embed_passages(texts)


@pytest.fixture
def model(tmp_path: Path) -> PickyStandIn:
    return PickyStandIn(resolve_model(None), cache_dir=tmp_path / "cache", idle_seconds=600)


@pytest.fixture
def memory(home: Path, model: PickyStandIn) -> Iterator[Memory]:
    settings = load_settings(home=home, workspace="w", env={})
    with closing(open_memory(settings, embedder=model)) as made:
        yield made


def fact(memory: Memory, text: str) -> str:
    return str(ask(memory, "graph_add_node", type="fact", text=text)["id"])


def states(memory: Memory, nodes: Sequence[str], wanted: str) -> list[str]:
    """The index states, once they are what is wanted; else what they are after 20 s."""
    deadline = time.monotonic() + 20
    while True:
        found = [
            str(ask(memory, "graph_get_node", node_id=node, depth=0)["index"]) for node in nodes
        ]
        if set(found) == {wanted} or time.monotonic() > deadline:
            return found
        time.sleep(0.02)


def test_the_rest_of_its_batch_is_embedded_and_it_alone_has_failed(memory: Memory) -> None:
    nodes = [fact(memory, f"{'plutonium' if n == 4 else 'fact'} number {n}") for n in range(9)]
    bad = nodes.pop(4)
    assert states(memory, nodes, "ready") == ["ready"] * 8
    assert states(memory, [bad], "failed") == ["failed"]
    assert memory.indexing.problem is None


def test_searches_say_that_one_text_is_missing_and_are_not_degraded(memory: Memory) -> None:
    bad, good = fact(memory, "plutonium"), fact(memory, "the zeppelin lands at noon")
    assert states(memory, [good], "ready") == ["ready"]
    assert states(memory, [bad], "failed") == ["failed"]
    found = ask(memory, "vector_search", query="when does the airship arrive")
    assert (found["degraded"], found["pending"]) == (None, 1)
    assert [hit["id"] for hit in found["hits"]] == [good]


def test_a_model_that_is_out_stops_the_batch_with_one_attempt(
    memory: Memory, model: PickyStandIn
) -> None:
    model.out = True
    nodes = [fact(memory, "fact number 0")]
    assert states(memory, nodes, "failed") == ["failed"]
    assert memory.indexing.problem is not None
    nodes += [fact(memory, f"fact number {number}") for number in range(1, 5)]
    assert states(memory, nodes[2:], "pending") == ["pending"] * 3
    model.out = False
    ask(memory, "vector_search", query="fact")
    assert states(memory, nodes, "ready") == ["ready"] * 5
