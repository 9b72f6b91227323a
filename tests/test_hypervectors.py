"""The algebra of hypervectors by its laws, and queries composed with it on graphs by hand."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cortex.domain.errors import AmbiguousError, InvalidError, NotFoundError
from cortex.domain.taxonomy import NodeType, RelationType
from cortex.domain.values import NodeId, WorkspaceId
from cortex.memory import Memory
from cortex.services.composition.triples import MOST_TRIPLES
from cortex.services.fields import Fields
from cortex.vectors.hypervectors import (
    CAPACITY,
    DIMENSIONS,
    THRESHOLD,
    CleanUp,
    Codebook,
    bind,
    expected_similarity,
    missing,
    pack,
    permute,
    similarity,
    triple,
    unpack,
)
from tests.harness import ROOT
from tests.local import ask, told

W = WorkspaceId("w")
BOOK = Codebook()
NAMES = st.text(max_size=12)
# Derandomized: of enough random names, one in a million would be like another by chance.
laws = settings(max_examples=25, deadline=None, derandomize=True)

# Laws


@laws
@given(NAMES, NAMES)
def test_bind_is_its_own_inverse(one: str, other: str) -> None:
    x, y = BOOK.item(one), BOOK.item(other)
    assert np.array_equal(bind(bind(x, y), y), x)


@laws
@given(NAMES, NAMES, NAMES)
def test_bind_has_no_order_and_no_brackets(one: str, two: str, three: str) -> None:
    x, y, z = BOOK.items([one, two, three])
    assert np.array_equal(bind(x, bind(y, z)), bind(z, y, x))


@laws
@given(NAMES, NAMES, st.integers(-DIMENSIONS, DIMENSIONS))
def test_permute_is_undone_by_the_opposite_and_passes_through_bind(
    one: str, other: str, places: int
) -> None:
    x, y = BOOK.item(one), BOOK.item(other)
    assert np.array_equal(permute(permute(x, places), -places), x)
    assert np.array_equal(permute(bind(x, y), places), bind(permute(x, places), permute(y, places)))


@laws
@given(NAMES, NAMES, NAMES)
def test_similarity_is_symmetric_and_binding_keeps_it(one: str, two: str, by: str) -> None:
    x, y, z = BOOK.items([one, two, by])
    assert similarity(x, x) == 1.0
    assert similarity(x, -x) == -1.0
    assert similarity(x, y) == similarity(y, x) == similarity(bind(x, z), bind(y, z))


@laws
@given(st.lists(NAMES, min_size=2, max_size=2, unique=True))
def test_unrelated_items_and_their_product_are_noise_to_each_other(names: list[str]) -> None:
    x, y = BOOK.items(names)
    assert abs(similarity(x, y)) < THRESHOLD
    assert abs(similarity(bind(x, y), x)) < THRESHOLD
    assert abs(similarity(permute(x), x)) < THRESHOLD


@laws
@given(st.lists(NAMES, min_size=1, max_size=9, unique=True), st.randoms(use_true_random=False))
def test_bundle_is_bipolar_whatever_the_order_of_its_parts(
    names: list[str], chance: random.Random
) -> None:
    bundle = BOOK.bundle(BOOK.items(names))
    assert set(np.unique(bundle)) <= {-1, 1}
    chance.shuffle(names)
    assert np.array_equal(bundle, BOOK.bundle(BOOK.items(names)))


@laws
@given(NAMES)
def test_packing_keeps_every_sign_in_an_eighth_of_the_bytes(name: str) -> None:
    x = BOOK.item(name)
    assert pack(x).nbytes == 1250
    assert np.array_equal(unpack(pack(x)), x)
    assert np.array_equal(pack(x), BOOK.packed([name])[0])


def test_two_bundles_of_unrelated_pairs_are_unrelated_in_spite_of_their_ties() -> None:
    pairs = [BOOK.bundle(BOOK.items([f"x{at}", f"y{at}"])) for at in range(40)]
    alike = [similarity(pairs[at], pairs[at + 1]) for at in range(39)]
    assert max(map(abs, alike)) < THRESHOLD


def test_a_bundle_of_nothing_and_a_triple_with_one_place_known_are_refused() -> None:
    with pytest.raises(ValueError, match="no parts"):
        BOOK.bundle(BOOK.items([]))
    with pytest.raises(ValueError, match="1 places"):
        missing(BOOK.items(["x"]), subject=BOOK.item("s"))


def test_clean_up_agrees_with_the_plain_dot_product() -> None:
    names = [f"item {at}" for at in range(50)]
    memory = CleanUp(names, BOOK.packed(names))
    noisy = BOOK.bundle(BOOK.items(names[:7]))
    plain = [similarity(noisy, BOOK.item(name)) for name in names]
    assert memory.similarities(noisy) == pytest.approx(plain, abs=1e-12)
    found = memory.recall(noisy)
    assert sorted(match.item for match in found) == sorted(names[:7])
    assert all(match.margin == pytest.approx(match.similarity - max(plain[7:])) for match in found)
    nearest = memory.nearest(noisy)
    assert nearest is not None
    assert nearest.item == found[0].item
    assert nearest.margin == pytest.approx(found[0].similarity - found[1].similarity)


def test_clean_up_answers_noise_with_nothing() -> None:
    names = [f"item {at}" for at in range(500)]
    memory = CleanUp(names, BOOK.packed(names))
    assert memory.recall(BOOK.item("none of them")) == []
    assert CleanUp([], BOOK.packed([])).nearest(BOOK.item("x")) is None


@pytest.mark.parametrize("parts", [1, 2, 3, 10, 51, CAPACITY])
def test_parts_of_a_bundle_are_as_similar_as_the_formula_says(parts: int) -> None:
    rows = BOOK.items([f"{parts} {at}" for at in range(parts)])
    bundle = BOOK.bundle(rows)
    measured = np.mean([similarity(bundle, row) for row in rows])
    assert measured == pytest.approx(expected_similarity(parts), abs=0.008)


# Capacity


def recalled(triples: int, rounds: int) -> float:
    """The share of triples whose object alone is recalled above the threshold, of 1,000."""
    nodes = [f"node {at}" for at in range(1000)]
    packed = BOOK.packed(nodes)
    memory, right = CleanUp(nodes, packed), 0
    for turn in range(rounds):
        verbs = BOOK.items([f"verb {turn} {at}" for at in range(triples)])
        chosen = np.random.default_rng(turn).permutation(1000)[:triples]
        subject = BOOK.item(f"subject {turn}")
        bundle = BOOK.bundle(triple(subject, verbs, unpack(packed[chosen])))
        for verb, at in zip(verbs, chosen, strict=True):
            found = memory.recall(missing(bundle, subject=subject, relation=verb))
            right += [match.item for match in found] == [nodes[at]]
    return right / (rounds * triples)


def test_a_bundle_recalls_at_least_99_percent_of_its_triples_at_the_stated_capacity() -> None:
    assert recalled(CAPACITY, 4) >= 0.99


def test_a_bundle_of_twice_its_capacity_recalls_less() -> None:
    assert recalled(2 * CAPACITY, 1) < 0.9


def test_the_codebook_is_the_same_in_every_process_and_another_with_another_seed() -> None:
    code = (
        "import hashlib; from cortex.vectors.hypervectors import *; book = Codebook(); "
        "print(hashlib.sha256(book.bundle(book.items(list('abcж'))).tobytes()).hexdigest())"
    )
    here = hashlib.sha256(BOOK.bundle(BOOK.items(list("abcж"))).tobytes()).hexdigest()
    for hash_seed in ("1", "2"):
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": hash_seed}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
        assert done.stdout.strip() == here, done.stderr
    assert here == "cbc935816cd38955801330b51d3642a558cce7edbdc0fc2942cd9b8c36cda38c"
    assert abs(similarity(Codebook(2).item("a"), BOOK.item("a"))) < THRESHOLD


# Queries, on graphs with answers known by hand


@pytest.fixture
def ids(memory: Memory) -> dict[str, str]:
    """Two teams: who works on what, what that uses, and what it is written in."""
    memory.indexing.close()
    made: dict[str, str] = {}
    for statement in (
        "billing-api uses postgres",
        "billing-api written-in python",
        "session-store uses redis",
        "session-store written-in go",
        "kai works-on billing-api",
        "mara works-on session-store",
    ):
        subject, verb, object_ = statement.split()
        for name in (subject, object_):
            if name not in made:
                made[name] = memory.adding.add_node("entity", Fields(title=name)).id
        say(memory, made[subject], verb, made[object_])
    return made


def say(memory: Memory, subject: str, verb: str, object_: str) -> str:
    """A verb of one's own, with its direction; the relation's id."""
    data = {"label": verb, "from": subject, "to": object_}
    return memory.linking.add_relation(subject, object_, "related_to", data=data).id


def titles(memory: Memory, **question: str) -> list[str]:
    return [each["title"] for each in ask(memory, "compose", **question)["answers"]]


def test_postgres_is_to_billing_api_as_redis_is_to_session_store(
    memory: Memory, ids: dict[str, str]
) -> None:
    found = ask(memory, "compose", a="postgres", b="billing-api", c="redis")
    [answer] = found["answers"]
    assert answer["title"] == "session-store"
    assert answer["confirmed"] is True
    assert answer["steps"] == ["<-uses-"]
    assert answer["similarity"] > found["threshold"] == 0.05
    assert found["patterns"][0]["confirmed"] is True


def test_an_answer_names_the_relation_that_confirms_it(memory: Memory, ids: dict[str, str]) -> None:
    relation = say(memory, ids["session-store"], "owned by", ids["mara"])
    found = ask(memory, "compose", a="session-store", relation="owned by")
    [answer] = found["answers"]
    assert answer["evidence"] == [relation]
    assert answer["id"] == ids["mara"]


def test_a_role_is_asked_from_either_end_but_not_against_its_direction(
    memory: Memory, ids: dict[str, str]
) -> None:
    assert titles(memory, a="billing-api", relation="uses") == ["postgres"]
    assert titles(memory, b="postgres", relation="uses") == ["billing-api"]
    assert titles(memory, a="postgres", relation="uses") == []


def test_two_nodes_are_asked_what_joins_them(memory: Memory, ids: dict[str, str]) -> None:
    found = ask(memory, "compose", a="kai", b="billing-api")
    assert [each["steps"] for each in found["patterns"]] == [["-works_on->"]]
    back = ask(memory, "compose", a="billing-api", b="kai")
    assert [each["steps"] for each in back["patterns"]] == [["<-works_on-"]]


def test_an_analogy_goes_over_one_node_between_where_no_relation_joins_its_pair(
    memory: Memory, ids: dict[str, str]
) -> None:
    found = ask(memory, "compose", a=ids["kai"], b=ids["python"], c=ids["mara"])
    assert [each["title"] for each in found["answers"]] == ["go"]
    assert found["answers"][0]["steps"] == ["-works_on->", "-written_in->"]
    assert len(found["answers"][0]["evidence"]) == 2


def test_several_verbs_are_walked_one_after_the_other_and_back(
    memory: Memory, ids: dict[str, str]
) -> None:
    assert titles(memory, a="kai", relation="works on, uses") == ["postgres"]
    assert titles(memory, b="postgres", relation="works-on,uses") == ["kai"]
    assert titles(memory, a="postgres", relation="<uses,<works_on") == ["kai"]


def test_what_the_graph_does_not_say_has_no_answer_and_a_reason(
    memory: Memory, ids: dict[str, str]
) -> None:
    assert "No relation joins a and b" in ask(memory, "compose", a="kai", b="redis")["why"]
    found = ask(memory, "compose", a="kai", relation="uses")
    assert found["answers"] == []
    assert "works_on" in found["why"]
    assert "no answer" in told(memory, "compose", a="kai", relation="uses")


def test_types_are_verbs_and_contradiction_is_said_both_ways(memory: Memory) -> None:
    memory.indexing.close()
    one, two = (memory.adding.add_node("fact", Fields(text=text)).id for text in ("one", "two"))
    memory.linking.add_relation(one, two, "contradicts")
    assert titles(memory, a=one, relation="contradicts") == ["two"]
    assert titles(memory, a=two, relation="contradicts") == ["one"]


def test_derived_links_say_nothing(memory: Memory) -> None:
    memory.indexing.close()
    one, two = (memory.adding.add_node("fact", Fields(text=text)).id for text in ("one", "two"))
    memory.linking.add_relation(one, two, "related_to", data={"derived": True})
    assert titles(memory, a=one, relation="related_to") == []


def test_a_superseded_answer_comes_last_and_says_that_it_is_stale(
    memory: Memory, ids: dict[str, str]
) -> None:
    ask(memory, "graph_update_node", node_id=ids["postgres"], status="stale")
    newer = memory.adding.add_node("entity", Fields(title="postgres 18")).id
    say(memory, ids["billing-api"], "uses", newer)
    found = ask(memory, "compose", a="billing-api", relation="uses")["answers"]
    assert [each["title"] for each in found] == ["postgres 18", "postgres"]
    assert found[1]["status"] == "stale"
    assert titles(memory, b="Postgres 18", relation="uses") == ["billing-api"]


def test_nodes_of_two_workspaces_are_no_question(memory: Memory, ids: dict[str, str]) -> None:
    there = memory.adding.add_node("entity", Fields(title="elsewhere"), workspace="other").id
    with pytest.raises(NotFoundError, match="workspace 'other'"):
        memory.composing.compose(ids["kai"], there)
    memory.linking.add_relation(ids["kai"], ids["go"], "related_to")
    assert memory.composing.compose(there, relation="related_to").workspace_id == "other"


def test_a_title_of_two_nodes_is_refused_and_so_is_one_of_none(
    memory: Memory, ids: dict[str, str]
) -> None:
    memory.adding.add_node("entity", Fields(title="Redis"))
    with pytest.raises(AmbiguousError, match=ids["redis"]):
        memory.composing.compose("redis", relation="uses")
    with pytest.raises(NotFoundError, match="a whole title"):
        memory.composing.compose("memcached", relation="uses")


@pytest.mark.parametrize("question", [{}, {"a": "kai"}, {"relation": "uses"}, {"c": "kai"}])
def test_a_question_that_is_none_is_told_the_forms(
    memory: Memory, ids: dict[str, str], question: dict[str, str]
) -> None:
    with pytest.raises(InvalidError, match="who\\?"):
        ask(memory, "compose", **question)


def test_a_node_with_more_relations_than_one_bundle_holds_recalls_them_all(memory: Memory) -> None:
    hub, *spokes = star(memory, 2 * CAPACITY + 50)
    found = memory.composing.compose(hub, relation="depends_on", limit=50)
    assert len(memory.composing.record(hub).bundles) == 3
    assert found.total >= 0.99 * len(spokes)
    assert all(each.pattern.confirmed for each in found.answers)


def test_beyond_a_thousand_triples_the_answer_says_that_it_is_cut(memory: Memory) -> None:
    hub, *_, last = star(memory, MOST_TRIPLES + 100)
    found = memory.composing.compose(hub, relation="depends_on")
    assert found.truncated
    assert titles(memory, b=last, relation="depends_on") == ["hub"]


def star(memory: Memory, spokes: int) -> list[str]:
    """A hub that depends on many tasks; the hub's id first."""
    memory.indexing.close()
    hub = memory.adding.add_node("task", Fields(title="hub")).id
    with memory.engine.write() as transaction:
        node = transaction.nodes.find(hub)
        assert node is not None
        made = [hub]
        for at in range(spokes):
            leaf = transaction.nodes.insert(
                NodeId(f"leaf-{at:05}"), NodeType.TASK, W, None, {"title": f"t{at}"}, transaction.at
            )
            transaction.relations.insert(
                W, node.id, leaf.id, RelationType.DEPENDS_ON, transaction.at
            )
            made.append(leaf.id)
    return made


def test_a_workspace_is_encoded_node_by_node(memory: Memory, ids: dict[str, str]) -> None:
    records = {each.node: each for each in memory.composing.iter_records(batch=3)}
    assert set(ids.values()) < set(records)
    book = memory.composing.book
    noisy = missing(
        records[NodeId(ids["kai"])].bundles,
        relation=book.item("verb:works_on"),
        object_=book.item(f"node:{ids['billing-api']}"),
    )
    names = [f"node:{each}" for each in ids.values()]
    nearest = CleanUp(names, book.packed(names)).nearest(noisy)
    assert nearest is not None
    assert nearest.item == f"node:{ids['kai']}"
