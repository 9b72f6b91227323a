"""A write transaction that a dry run undoes: what it would do is what it does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cortex.services.engine import Engine
from cortex.store.database import Transaction


class _Rehearsed(Exception):
    """A dry run is over: no error, it undoes the transaction."""


@contextmanager
def rehearsal(engine: Engine, dry_run: bool) -> Iterator[Transaction]:
    """A write transaction; that of a dry run is undone at its end."""
    try:
        with engine.write() as transaction:
            yield transaction
            if dry_run:
                raise _Rehearsed
    except _Rehearsed:
        return
