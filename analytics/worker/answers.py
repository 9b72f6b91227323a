"""Which function answers which query."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from analytics import queries as q
from analytics.queries import Query
from analytics.worker.activity import activity_by_type, buckets, churn
from analytics.worker.events import events
from analytics.worker.idleness import idle, idle_times
from analytics.worker.mirror import View
from analytics.worker.order import chronological, counts, lineage, names, workspaces

Rows = Iterable[tuple[Any, ...]]


def answer_rows(view: View, query: Query[Any]) -> Rows | Callable[[], Rows]:
    """The rows of the query's answer, or what computes them from a graph that is read already.

    To be called once the view is closed: a transaction that lasts as long as a measure would
    hold up the writers' checkpoint.
    """
    match query:
        case q.Events():
            return events(view, query)
        case q.Chronological():
            return chronological(view, query)
        case q.Buckets():
            return buckets(view, query)
        case q.ActivityByType():
            return activity_by_type(view, query)
        case q.Churn():
            return churn(view, query)
        case q.Lineage():
            return lineage(view, query)
        case q.Idle():
            return idle(view, query)
        case q.IdleTimes():
            return idle_times(view, query)
        case q.Counts():
            return counts(view, query)
        case q.Names():
            return names(view, query)
        case q.Workspaces():
            return workspaces(view, query)
        case q.Centrality() | q.Communities() | q.Distribution():
            return _measured(view, query)
        case _:
            raise TypeError(f"no answer for {type(query).__name__}")


def _measured(
    view: View, query: q.Centrality | q.Communities | q.Distribution
) -> Callable[[], Rows]:
    """Measures bring scipy and networkit with them: half a second, when first asked for."""
    from analytics.worker.measured import centrality, communities, distribution

    match query:
        case q.Centrality():
            return centrality(view, query)
        case q.Communities():
            return communities(view, query)
        case q.Distribution():
            return distribution(view, query)
