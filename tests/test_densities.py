"""How common a word is, and for how long that is remembered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from cortex.config import load_settings
from cortex.domain.taxonomy import NodeType
from cortex.domain.values import NodeId, WorkspaceId, new_id
from cortex.memory import Memory, open_memory
from cortex.services.similar import find_similar
from cortex.store.densities import RARE, Densities, Word

W = WorkspaceId("w")
LONG = "The harbour freezes in January, and whoever sails then pays for the ice to be broken"


@pytest.fixture(autouse=True)
def _nothing_is_embedded(memory: Memory) -> None:
    memory.indexing.close()


@pytest.fixture
def another(tmp_path: Path) -> Iterator[Memory]:
    """Another file, open in the same process."""
    with closing(open_memory(load_settings(home=tmp_path / "b", workspace=W, env={}))) as made:
        made.indexing.close()
        yield made


def fill(memory: Memory, count: int, text: str) -> None:
    with memory.engine.write() as transaction:
        for _ in range(count):
            transaction.nodes.insert(
                NodeId(new_id()), NodeType.FACT, W, None, {"text": text}, transaction.at
            )


def word(memory: Memory, token: str) -> tuple[Word, int]:
    """The word, and how often the index was asked for it."""
    with memory.engine.database.read() as snapshot:
        connection = snapshot.keywords._connection
        asked: list[str] = []
        densities = Densities(connection)
        connection.set_trace_callback(asked.append)
        found = densities.word(token)
        connection.set_trace_callback(None)
        return found, sum("MATCH" in statement for statement in asked)


def named(memory: Memory, text: str) -> list[str]:
    with memory.engine.database.read() as snapshot:
        return [found["title"] for found in find_similar(snapshot, W, {"text": text})]


def test_a_word_in_few_rows_comes_with_them_and_is_asked_each_time(memory: Memory) -> None:
    fill(memory, RARE, "quorum")
    for _ in range(2):
        found, asked = word(memory, "quorum")
        assert asked == 1
        assert found.rows is not None
        assert len(found.rows) == RARE


def test_a_common_word_is_asked_again_when_the_index_has_grown_by_a_quarter(
    memory: Memory,
) -> None:
    fill(memory, 100, "quorum")
    first, asked = word(memory, "quorum")
    assert (first.rows, asked) == (None, 1)
    fill(memory, 10, "other")
    assert word(memory, "quorum") == (first, 0)
    fill(memory, 40, "other")
    later, asked = word(memory, "quorum")
    assert asked == 1
    assert later.density < first.density


def test_what_was_common_in_one_file_is_not_taken_for_common_in_another(
    memory: Memory, another: Memory
) -> None:
    fill(memory, 100, LONG)
    assert word(memory, "januari")[0].rows is None
    fill(another, 1, LONG)
    fill(another, 200, "something else is said here")
    assert named(another, LONG.replace("whoever", "who")) == [LONG[:79] + "…"]


def test_words_that_were_common_when_nearly_all_is_deleted_hide_nothing(memory: Memory) -> None:
    fill(memory, 100, LONG)
    assert word(memory, "januari")[0].rows is None
    with memory.engine.database.read() as snapshot:
        keys = [key for (key,) in snapshot.nodes._connection.execute("SELECT rowkey FROM nodes")]
    with memory.engine.write() as transaction:
        transaction.nodes.delete(keys[:-1])
    assert len(named(memory, LONG.replace("whoever", "who"))) == 1
