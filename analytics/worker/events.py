"""The list of events, page by page.

Idea: the mirror finds the instant that the page reaches back to, then rank and key of its
events; their texts come from the file, by key, in the same snapshot. Cost: one pass over
the times of four tables, 1.8 million of them in some 25 ms (the newest page by an index
costs SQLite a fraction of a millisecond: this is for windows). Corner: at one instant,
events go by kind, then by the row's id or seq, as in `cortex.store.timeline`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from analytics.queries import Events
from analytics.worker import sources
from analytics.worker.instants import window
from analytics.worker.mirror import View
from cortex.domain.activity import EventRow

_IN_WINDOW: Final = """
  FROM events
 WHERE workspace = hash($workspace) AND moment BETWEEN $start AND $stop
"""
_BY_ACTOR: Final = """
   AND (actor = hash($actor)
        OR rank = 1 AND key IN (
           SELECT key FROM changes
            WHERE entity = 'node' AND op = 'insert' AND actor = hash($actor))
        OR rank = 4 AND key IN (
           SELECT key FROM changes
            WHERE entity = 'relation' AND op = 'insert' AND actor = hash($actor)))
"""
_REACH: Final = "SELECT MIN(moment) FROM (SELECT moment"
_REACH_END: Final = " ORDER BY moment DESC LIMIT $limit)"
_PAGE: Final = "SELECT rank, key"
_PAGE_END: Final = """
 ORDER BY moment DESC, rank DESC, word DESC, number DESC LIMIT $take OFFSET $skip
"""

_REACH_ALL: Final = _REACH + _IN_WINDOW + _REACH_END
_REACH_ACTOR: Final = _REACH + _IN_WINDOW + _BY_ACTOR + _REACH_END
_PAGE_ALL: Final = _PAGE + _IN_WINDOW + _PAGE_END
_PAGE_ACTOR: Final = _PAGE + _IN_WINDOW + _BY_ACTOR + _PAGE_END


def events(view: View, query: Events) -> Iterator[EventRow]:
    """A page of events, newest first."""
    bound = {"workspace": query.workspace, **window(query.start, query.stop)}
    if query.actor is not None:
        bound["actor"] = query.actor
    reach, page = (_REACH_ALL, _PAGE_ALL) if query.actor is None else (_REACH_ACTOR, _PAGE_ACTOR)
    ((first,),) = view.rows(reach, limit=query.take + query.skip, **bound)
    if first is None:
        return
    bound["start"] = first
    found = view.rows(page, take=query.take, skip=query.skip, **bound)
    for _, *cells in sorted(view.source(sources.EVENTS, json.dumps(found)), key=_position):
        yield EventRow(*cells)


def _position(row: tuple[Any, ...]) -> int:
    return int(row[0])
