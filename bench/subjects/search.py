"""Searches, a new question each time, its embedding included.

The generated texts share some sixty words beside the names that they mention; `python -m
bench.search` searches real ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.context import Context, each
from cortex.cli.timing import Figure, Target

_SEARCH = (Target(50),)  # below 100 is a must


def measure(context: Context) -> Iterator[Figure]:
    """By keyword, by meaning, and all perspectives with context and files."""
    runs = max(5, context.runs // 4)
    search = context.memory.search

    def ask(count: int) -> list[str]:
        return context.questions(count + 3)

    search.graph_search(ask(1)[0])  # the model and the vectors are loaded
    keyword, meaning, whole = ask(runs), ask(runs), ask(runs)
    yield context.engine(
        "search, keyword", lambda turn: search.keyword_search(keyword[turn]), runs=runs,
        targets=_SEARCH,
    )  # fmt: skip
    yield context.engine(
        "search, meaning", lambda turn: search.vector_search(meaning[turn]), runs=runs,
        targets=_SEARCH,
    )  # fmt: skip
    yield context.engine(
        "search", lambda turn: search.graph_search(whole[turn]), runs=runs,
        note="fused, with context and files", targets=_SEARCH,
    )  # fmt: skip
    yield context.stdio(
        "search, meaning", "vector_search", each("query", ask(runs)), runs=runs, targets=_SEARCH
    )
    yield context.stdio(
        "search", "graph_search", each("query", ask(runs)), runs=runs, targets=_SEARCH,
        note="fused, with context and files",
    )  # fmt: skip
    yield context.stdio(
        "recall", "recall", each("query", ask(runs)), runs=runs, targets=_SEARCH,
        note="with entities and relations",
    )  # fmt: skip
    for clients in (8, 32):
        yield context.together(
            "search", "graph_search", each("query", ask(4 * runs)), clients, runs=2 * runs,
            note="fused, with context and files",
        )  # fmt: skip
