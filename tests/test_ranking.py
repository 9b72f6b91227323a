"""Fusing, scaling, correcting for length: laws, and values known by hand."""

from __future__ import annotations

from math import log
from pathlib import Path
from statistics import mean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.config import load_settings
from cortex.domain.errors import InvalidError
from cortex.domain.values import WorkspaceId
from cortex.memory import Memory
from cortex.services.fields import Fields
from cortex.services.retrieval.certainty import (
    best_of,
    corrected,
    keyword_certainty,
    semantic_certainty,
)
from cortex.services.retrieval.ranking import Fusion, between, chances, ordered, ranks_of, scaled
from cortex.store.bm25 import Collection, Row, read_averages, scored
from cortex.store.bm25 import corrected as corrected_rows
from cortex.vectors.index import Spread

SCORES = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(0, 100), max_size=8)
SPREAD = Spread(0.2, 0.1, 100)


@given(SCORES)
def test_scaled_scores_lie_between_nothing_and_one_and_keep_their_order(
    scores: dict[str, float],
) -> None:
    for scale in (scaled, between, chances):
        found = scale(scores)
        assert found.keys() == scores.keys()
        assert all(0 <= each <= 1 for each in found.values())
        pairs = [(scores[one], scores[other], one, other) for one in scores for other in scores]
        assert all(found[one] <= found[other] for low, high, one, other in pairs if low <= high)


@given(SCORES, SCORES, st.floats(0.01, 100), st.floats(0.01, 100))
def test_a_convex_sum_lies_between_nothing_and_one(
    first: dict[str, float], second: dict[str, float], one: float, other: float
) -> None:
    fusion = Fusion("convex", weights={"semantic": one, "keyword": other})
    shares = fusion.shares(["semantic", "keyword"], {"semantic": 3.0})
    scores = fusion.fused({"semantic": scaled(first), "keyword": scaled(second)}, shares)
    assert sum(shares.values()) == pytest.approx(1)
    assert all(0 <= score <= 1 + 1e-9 for score in scores.values())


def test_reciprocal_ranks_are_those_of_the_paper_over_the_greatest() -> None:
    fusion = Fusion("rrf", 60, {"semantic": 1.0, "keyword": 1.0})
    rankings = {"semantic": {"a": 0.9, "b": 0.8}, "keyword": {"b": 7.0, "c": 1.0}}
    scores = fusion.fused(rankings, fusion.shares(list(rankings), {}))
    assert scores["b"] == pytest.approx((1 / 62 + 1 / 61) / 2 * 61)
    assert scores["a"] == pytest.approx(1 / 61 / 2 * 61)


def test_equal_scores_stand_by_id() -> None:
    assert [key for key, _ in ordered({"b": 1.0, "a": 1.0, "c": 2.0})] == ["c", "a", "b"]
    assert ranks_of({"b": 1.0, "a": 1.0, "c": 2.0}) == {"c": 1, "a": 2, "b": 3}


def test_a_perspective_of_weight_zero_has_no_share() -> None:
    fusion = Fusion("convex", weights={"semantic": 0.0, "keyword": 2.0})
    assert fusion.shares(["semantic", "keyword"], {"semantic": 9.0}) == {"keyword": 1.0}


def test_certainty_moves_the_shares_of_text_and_leaves_those_of_time() -> None:
    fusion = Fusion("convex", weights={"semantic": 1.0, "keyword": 1.0, "temporal": 2.0})
    shares = fusion.shares(["temporal", "keyword", "semantic"], {"semantic": 3.0, "keyword": 2.0})
    assert shares == pytest.approx({"semantic": 0.3, "keyword": 0.2, "temporal": 0.5})


@pytest.mark.parametrize("certain", [1e-6, 1e6])
def test_however_certain_the_other_is_a_perspective_keeps_three_tenths(certain: float) -> None:
    shares = Fusion().shares(["semantic", "keyword"], {"semantic": certain, "keyword": 1.0})
    assert min(shares.values()) == pytest.approx(0.3)
    assert sum(shares.values()) == pytest.approx(1)


def test_three_tenths_are_of_certainty_and_weights_stand_above_it() -> None:
    fusion = Fusion(weights={"semantic": 9.0, "keyword": 1.0})
    shares = fusion.shares(["semantic", "keyword"], {"semantic": 2.0, "keyword": 2.0})
    assert shares == pytest.approx({"semantic": 0.9, "keyword": 0.1})


def test_a_chance_falls_faster_than_the_score_and_from_ten_on_to_nothing() -> None:
    few = chances({"a": 4.0, "b": 1.0})
    assert few == {"a": 1.0, "b": 0.125}
    many = chances({f"{score:02}": float(score) for score in range(10, 21)})
    assert (many["10"], many["20"]) == (0.0, 1.0)
    assert many["15"] == pytest.approx(0.5**1.5)


@pytest.mark.parametrize("fusion", [Fusion("rrf"), Fusion("convex", plain=True)])
def test_ranks_and_a_plain_sum_ask_for_no_certainty(fusion: Fusion) -> None:
    shares = fusion.shares(["semantic", "keyword"], {"semantic": 3.0})
    assert shares == {"semantic": 0.5, "keyword": 0.5}


def test_the_best_of_many_draws_lies_where_the_tables_say() -> None:
    # Expected normal order statistics, Harter 1961: 0.5642, 1.5388, 2.5076.
    expected = {1: 0.0, 2: 0.5642, 10: 1.5388, 100: 2.5076}
    assert {n: best_of(n) for n in expected} == pytest.approx(expected, abs=0.03)


def test_a_text_of_one_chunk_keeps_its_cosine_and_a_long_one_pays_for_its_chances() -> None:
    assert corrected(0.6, 1, SPREAD) == 0.6
    assert corrected(0.6, 40, SPREAD) < corrected(0.6, 4, SPREAD) < 0.6
    assert corrected(0.6, 40, None) == 0.6


def test_the_semantic_perspective_is_as_certain_as_its_best_stands_beyond_chance() -> None:
    by_chance = semantic_certainty(0.2 + 0.1 * best_of(100), SPREAD)
    beyond = semantic_certainty(0.2 + 0.2 * best_of(100), SPREAD)
    assert by_chance is not None
    assert beyond == pytest.approx(2**2.5 * by_chance, rel=0.01)


def test_with_few_candidates_no_perspective_is_certain() -> None:
    assert semantic_certainty(0.9, Spread(0.2, 0.1, 9)) is None
    assert semantic_certainty(0.9, None) is None
    assert keyword_certainty([5.0] * 9) is None


def test_words_that_ten_memories_say_alike_make_the_keyword_perspective_less_certain() -> None:
    alike, apart = keyword_certainty([5.0] * 20), keyword_certainty([5.0, *[1.0] * 20])
    assert alike is not None
    assert apart is not None
    assert alike < apart


def test_a_row_is_scored_by_the_formula_of_bm25() -> None:
    rows = [Row(1, "port", "ssh port opened"), Row(2, "", "a b c d")]
    scores = scored(rows, {"port": 1, "ssh": 1, "none": 0}, Collection(2, 1, 7))
    average, times = (2 * 1 + 7) / 2, {"port": 3.0, "ssh": 1.0}
    k1, b = 0.6 + 0.6 * average / 100, 0.3 + 0.45 * average / 100
    ground = k1 * (1 - b + b * 5 / average)
    idf = log(1 + 1.5 / 1.5)
    wanted = sum(idf * each * (k1 + 1) / (each + ground) for each in times.values())
    assert scores == {1: pytest.approx(wanted), 2: 0.0}


def test_rows_are_corrected_by_their_deviation_times_the_harmonic_number() -> None:
    scores = [4.0, 2.0, 3.0, 0.0]
    found = corrected_rows({1: 4.0, 2: 3.0, 3: 0.5}, {1: 1, 2: 3, 3: 2000}, scores)
    assert found[1] == 4.0
    assert found[2] == pytest.approx(3.0 - pstdev(scores[:3]) * (1 / 2 + 1 / 3))
    assert found[3] == 0.0005
    assert mean(scores) > 0


def test_the_averages_of_the_index_are_those_of_its_rows(memory: Memory) -> None:
    for number in range(200):
        memory.adding.add_node("note", Fields(f"title {number}", "four words are here"))
    with memory.engine.database.read() as snapshot:
        found = snapshot.keywords.collection()
        rows = snapshot.nodes.count(WorkspaceId("w"))
    assert (found.rows, found.bodies) == (rows, 800)
    assert found.titles >= 400


def test_an_index_without_rows_has_averages_of_nothing() -> None:
    assert read_averages(b"") == Collection(0, 0, 0)
    assert Collection(0, 0, 0).length == 1.0


# The settings


def fused_by(**env: str) -> Fusion:
    return Fusion.of(load_settings(env={f"CORTEX_SEARCH_{key}": env[key] for key in env}))


def test_the_fusion_is_the_one_that_is_configured() -> None:
    fusion = fused_by(FUSION="rrf", RRF_K="10", WEIGHTS="semantic=0.7, keyword=0.3")
    assert (fusion.kind, fusion.k) == ("rrf", 10.0)
    assert dict(fusion.weights) == {"semantic": 0.7, "keyword": 0.3, "temporal": 0.25}


def test_unset_the_fusion_is_convex_with_equal_weights() -> None:
    fusion = fused_by()
    assert fusion.kind == "convex"
    assert fusion.weights["semantic"] == fusion.weights["keyword"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FUSION", "sum"),
        ("RRF_K", "-1"),
        ("WEIGHTS", "semantic"),
        ("WEIGHTS", "meaning=1"),
        ("WEIGHTS", "semantic=-1"),
        ("WEIGHTS", "semantic=nan"),
        ("WEIGHTS", "semantic=0,keyword=0,temporal=0"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused_by_its_name(name: str, value: str) -> None:
    with pytest.raises(InvalidError, match=f"CORTEX_SEARCH_{name}"):
        fused_by(**{name: value})


def test_the_weights_decide_which_perspective_leads(memory: Memory, home: Path) -> None:
    memory.adding.add_node("fact", Fields(text="Bearer credentials lapse after a day"))
    memory.adding.add_node("fact", Fields(text="The word token is a common word"))
    question = "when do access tokens expire"
    told = [
        memory.search.rank(question, fusion=Fusion("convex", weights={name: 1.0})).hits[0].node.text
        for name in ("semantic", "keyword")
    ]
    assert told[1] == "The word token is a common word"
    assert memory.search.rank(question, perspectives=["keyword"]).hits[0].node.text == told[1]
