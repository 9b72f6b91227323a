"""Who says nearly the same as a text that is added."""

from __future__ import annotations

import random
from typing import Any

import pytest
from rapidfuzz import fuzz

from bench.sentences import sentence
from cortex.domain.taxonomy import NodeType
from cortex.domain.values import NodeId, WorkspaceId, new_id
from cortex.memory import Memory
from cortex.services.fields import Fields
from cortex.services.similar import find_similar

W = WorkspaceId("w")
LONG = (
    "The migration of the billing schema waits for the nightly export, because the export "
    "holds a snapshot of invoices for forty minutes; whoever starts it earlier finds half "
    "of the totals doubled and has to restore the ledger from the copy of the evening."
)


@pytest.fixture(autouse=True)
def _nothing_is_embedded(memory: Memory) -> None:
    memory.indexing.close()


def add(memory: Memory, text: str, **more: Any) -> str:
    return memory.adding.add_node("fact", Fields(text=text), **more).id


def similar(memory: Memory, text: str) -> list[str]:
    with memory.engine.database.read() as snapshot:
        return [found["id"] for found in find_similar(snapshot, W, {"text": text})]


def fill(memory: Memory, count: int, seed: int = 1) -> dict[str, str]:
    """Notes of a vocabulary so small that every word of it stands in very many of them."""
    rng = random.Random(seed)
    with memory.engine.write() as transaction:
        made: dict[str, str] = {}
        for _ in range(count):
            text = " ".join(sentence(rng) for _ in range(rng.randrange(1, 4)))
            node = transaction.nodes.insert(
                NodeId(new_id()), NodeType.FACT, W, None, {"text": text}, transaction.at
            )
            made[node.id] = text
    return made


@pytest.mark.parametrize("seed", range(8))
def test_a_text_with_three_words_changed_names_the_one_it_was(memory: Memory, seed: int) -> None:
    first = add(memory, LONG)
    fill(memory, 200)
    rng, words = random.Random(seed), LONG.split()
    for place in rng.sample(range(len(words)), 3):
        words[place] = rng.choice(["elsewhere", "", f"{words[place]} again"])
    assert similar(memory, " ".join(words)) == [first]


def test_of_two_texts_that_differ_in_a_number_alone_one_names_the_other(memory: Memory) -> None:
    fill(memory, 200)
    said = "The quorum of the replicated queue falls below {} when the west rack restarts"
    first = add(memory, said.format(7731))
    assert similar(memory, said.format(4402)) == [first]


def test_where_all_words_are_common_a_text_is_found_by_them_together(memory: Memory) -> None:
    made = fill(memory, 3_000)
    rng = random.Random(2)
    asked = rng.sample(sorted(made.values()), 60)
    named = [similar(memory, text) for text in asked]
    like = [fuzz.ratio(made[found[0]], text) for found, text in zip(named, asked, strict=True)]
    assert min(like) >= 85
    assert sum(each == 100 for each in like) >= 57


def test_an_archived_node_and_another_workspace_are_not_named(memory: Memory) -> None:
    gone = add(memory, LONG)
    memory.mutation.update(gone, Fields(), status="archived")
    add(memory, LONG, workspace="v")
    assert similar(memory, LONG) == []


def test_neither_a_text_without_a_word_nor_an_empty_memory_names_anything(memory: Memory) -> None:
    assert similar(memory, "anything at all") == []
    add(memory, "anything at all")
    for text in ("", " \n", "…!?"):
        assert similar(memory, text) == []


def test_a_text_of_one_word_names_its_like_and_not_what_holds_it(memory: Memory) -> None:
    first = add(memory, "postgres")
    add(memory, "postgres keeps the ledger and the invoices of every tenant")
    assert similar(memory, "postgres") == [first]


def test_a_long_text_is_found_by_any_passage_of_its_beginning(memory: Memory) -> None:
    rng = random.Random(4)
    long = " ".join(f"{sentence(rng)} Paragraph {number}." for number in range(24))
    first = add(memory, long)
    fill(memory, 300)
    assert similar(memory, long.replace("Paragraph 3.", "Chapter three.")) == [first]


def test_who_changes_an_identifier_changes_its_parts_and_names_the_one_it_was(
    memory: Memory,
) -> None:
    said = "Nightly jobs rewrite stale rows while clients open large files twice, in {}"
    first = add(memory, said.format("build_batch_key"))
    rng = random.Random(3)
    for _ in range(120):
        words = rng.sample(said.split()[:-2], 6)
        add(memory, f"{' '.join(words)} {rng.choice(['build', 'batch', 'key'])}")
    assert similar(memory, said.format("merge_chunk_row")) == [first]
