"""R@5, R@10, MRR and nDCG@10 of a way to search, averaged over a set's questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log2

from bench.retrieval.building import Built
from bench.retrieval.sets import RetrievalSet
from cortex.memory import Memory
from cortex.services.retrieval.found import Found
from cortex.services.retrieval.ranking import Fusion
from cortex.services.retrieval.signals import NO_SIGNALS, Signals

TOP = 10
Way = Callable[[Memory, str, str], Sequence[str]]
"""Node ids, best first, for a question to a workspace."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Each in [0, 1]."""

    r5: float
    r10: float
    mrr: float
    ndcg: float

    @property
    def row(self) -> list[float]:
        """In per cent, to one place."""
        return [round(100 * each, 1) for each in (self.r5, self.r10, self.mrr, self.ndcg)]


def _ids(found: Found) -> list[str]:
    return [hit.node.id for hit in found.hits]


def _rank(fusion: Fusion | None = None, signals: Signals | None = None, *names: str) -> Way:
    perspectives = names or ("semantic", "keyword", "temporal")

    def search(memory: Memory, question: str, workspace: str) -> list[str]:
        return _ids(
            memory.search.rank(
                question, top_k=TOP, workspace=workspace, perspectives=perspectives,
                fusion=fusion, signals=signals,
            )
        )  # fmt: skip

    return search


def _recall(memory: Memory, question: str, workspace: str) -> list[str]:
    found = memory.fabric.recall(question, TOP, workspace=workspace)
    return [result.node.id for result in found.results]


_BOTH = ("semantic", "keyword")
COLUMNS: Mapping[str, Way] = {
    "keyword": _rank(None, None, "keyword"),
    "semantic": _rank(None, None, "semantic"),
    "rrf 60": _rank(Fusion("rrf", 60.0), NO_SIGNALS, *_BOTH),
    "convex .5": _rank(Fusion("convex", plain=True), NO_SIGNALS, *_BOTH),
    "default": _rank(),
    "recall": _recall,
}
ABLATIONS: Mapping[str, Way] = {
    "default": _rank(),
    "without names": _rank(None, Signals(names=False)),
    "without neighbours": _rank(None, Signals(neighbours=False)),
    "without containers": _rank(None, Signals(containers=False)),
    "without merging": _rank(None, Signals(repeats=False)),
    "without time": _rank(None, Signals(), *_BOTH),
    "without signals": _rank(None, NO_SIGNALS),
    "with rrf 60": _rank(Fusion("rrf", 60.0)),
    "with rrf 10": _rank(Fusion("rrf", 10.0)),
}


def measure(given: RetrievalSet, built: Built, way: Way) -> Scores:
    """The averages over all questions; a question is asked at its corpus's last moment."""
    totals = [0.0] * 4
    for question in given.questions:
        built.clock.at = built.last[question.corpus]
        ids = way(built.memory, question.text, question.corpus)
        answers = [built.ids.get(node) in question.gold for node in ids[:TOP]]
        for place, value in enumerate(_scores(answers, len(question.gold))):
            totals[place] += value
    count = max(len(given.questions), 1)
    return Scores(*(total / count for total in totals))


def _scores(answers: Sequence[bool], gold: int) -> tuple[float, float, float, float]:
    first = next((1 / place for place, right in enumerate(answers, 1) if right), 0.0)
    gained = sum(1 / log2(place + 1) for place, right in enumerate(answers, 1) if right)
    best = sum(1 / log2(place + 1) for place in range(1, min(gold, TOP) + 1))
    return sum(answers[:5]) / gold, sum(answers) / gold, first, gained / best
