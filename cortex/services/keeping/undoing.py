"""Undo: whole transactions taken back by the log, and given back again.

Idea: the log holds each row before its change. A transaction may be taken back while every
row that it changed still is what it left, byte for byte; then each gets the image from
before, and in the same transaction it is checked that nothing else moved. Where a later
change stands in the way, nothing is done and it is named. An undo is a transaction of the
log like any other, so caches, keyword index and outbox follow it, and it can be taken back
(redo). Cost: a row a look-up and a write. What is not in the log does not come back: visits,
access counts; a node that returns is embedded anew.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from cortex.domain.errors import ConflictError, InvalidError, NotFoundError
from cortex.domain.values import WorkspaceId
from cortex.services.engine import Engine
from cortex.services.keeping.rehearsing import rehearsal
from cortex.services.keeping.reversal import take_back
from cortex.services.repeating import once
from cortex.store.database import Transaction
from cortex.store.nodes import node_of
from cortex.store.past import Reach
from cortex.store.undo import FOLLOWER, UPGRADE, Image, Key, Logged, Step, fields_of

MOST: Final = 1000
_SHOWN: Final = 1000
EVERYONE: Final = ""


@dataclass(frozen=True, slots=True)
class Undone:
    """What was taken back, newest first, or with `dry_run` would be.

    `tx` is the undo's own transaction, by which it is given back; `undone` holds tx, at,
    actor and changes of each; `nodes` id, type, title and op (removed, restored, reverted)
    of the first 1,000 of `nodes_total`, by key; `relations` is their number; `reach` says
    where the log begins.
    """

    tx: int | None
    workspace_id: str
    undone: list[dict[str, Any]]
    nodes: list[dict[str, Any]]
    nodes_total: int
    relations: int
    redo: bool
    dry_run: bool
    notes: list[str]
    reach: str


class Undoing:
    """Takes transactions back."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def client(self) -> str:
        """What the caller's own changes are signed with, whatever its connection."""
        return self._engine.actor.partition("#")[0]

    def undo(
        self,
        count: int = 1,
        *,
        tx: int | None = None,
        redo: bool = False,
        actor: str = EVERYONE,
        dry_run: bool = False,
        workspace: str | None = None,
        key: str | None = None,
    ) -> Undone:
        """Take back the last `count` transactions of a workspace, newest first, all or none.

        Those that were taken back already are passed over, and so are undos: a second undo
        goes further back. With `redo`, the last `count` undos are taken back instead. `tx`
        names one transaction: a change (undo) or an undo (redo). `actor` is a client ("cli")
        or one connection of it ("cli#…"). Raises NotFoundError where there is nothing to take
        back, ConflictError, which names them, where later changes stand in the way, and
        InvalidError for a transaction that the log no longer holds whole.
        """
        if not 1 <= count <= MOST:
            raise InvalidError(f"count {count} is out of range", f"Valid: 1 to {MOST}", "Change it")
        place = self._engine.workspace(workspace)
        request = {"count": count, "tx": tx, "redo": redo, "actor": actor}

        with rehearsal(self._engine, dry_run) as transaction:

            def do() -> Undone:
                asked = _Asked(transaction, place, actor, redo)
                steps = [asked.one(tx)] if tx is not None else asked.last(count)
                return _undo(transaction, asked, steps, count if tx is None else 1, dry_run)

            reply = do() if dry_run else once(transaction, place, key, request, Undone, do)
        return reply  # noqa: RET504 - only when the transaction is over


class _Asked:
    """Finds the transactions that a request means."""

    def __init__(
        self, transaction: Transaction, place: WorkspaceId, actor: str, redo: bool
    ) -> None:
        self.log = transaction.undo_log
        self.reach = transaction.past.reach()
        self.place = place
        self.redo = redo
        self._actor = actor

    def last(self, count: int) -> list[Step]:
        """The last ones that changed anything in the end; none is refused."""
        steps: list[Step] = []
        with closing(self._redoable() if self.redo else self._undoable()) as candidates:
            for logged in candidates:
                step = self.log.find(logged.tx)
                assert step is not None  # it was read from the log just now
                if self._has_effect(step):
                    steps.append(step)
                if len(steps) == count:
                    break
        if not steps:
            whose = f" by {self._actor}" if self._actor else ""
            raise NotFoundError(
                f"nothing{whose} is left to {'redo' if self.redo else 'undo'} in {self.place!r}",
                said(self.reach),
                "Name the workspace that you mean, or another actor; cortex timeline shows both",
            )
        return steps

    def _undoable(self) -> Generator[Logged, None, None]:
        for logged in self.log.newest_first(self.place, self.reach.floor):
            if self._is_meant(logged) and self._is_in_force(logged.tx):
                yield logged

    def _is_in_force(self, tx: int) -> bool:
        """Whether it is a change that stands: no undo, and not taken back."""
        return not self.log.took_back(tx) and self.log.taken_back_by(tx) is None

    def _redoable(self) -> Generator[Logged, None, None]:
        for tx in self.log.in_force():
            step = self.log.find(tx) if tx > self.reach.floor else None
            if step and self.place in step.workspaces and self._is_meant(step.logged):
                yield step.logged

    def _has_effect(self, step: Step) -> bool:
        """Whether it left anything otherwise than it found it."""
        return step.before != self.log.images_after(step)

    def _is_meant(self, logged: Logged) -> bool:
        name, client = self._actor, logged.actor.partition("#")[0]
        if name == EVERYONE:
            return client != FOLLOWER
        return name in (logged.actor, client)

    def one(self, tx: int) -> Step:
        """The transaction of this number; refused where it cannot be taken back."""
        if tx <= self.reach.floor:
            raise InvalidError(
                f"transaction {tx} is no longer in the log", said(self.reach), "Name a later one"
            )
        step = self.log.find(tx)
        if step is None or step.logged.tx <= self.reach.floor:
            raise NotFoundError(
                f"there is no transaction {tx}", said(self.reach), "A dry run of undo lists them"
            )
        if step.logged.actor == UPGRADE:
            raise InvalidError(
                f"transaction {tx} brought the original file over", "", "A copy of it lies beside"
            )
        if not self._has_effect(step):
            raise InvalidError(
                f"transaction {tx} left everything as it was", "", "There is nothing to take back"
            )
        by = self.log.taken_back_by(step.logged.tx)
        if by is not None:
            raise ConflictError(
                f"transaction {tx} was taken back already, by {by}",
                "Valid: one that is in force",
                f"Redo it by taking back {by}",
            )
        self.redo = bool(targets := self.log.took_back(step.logged.tx))
        if targets and self.log.took_back(targets[0]):
            again = ", ".join(str(each) for each in self.log.took_back(targets[0]))
            raise ConflictError(
                f"transaction {tx} gave back what undo {targets[0]} had taken",
                f"Valid: {again}",
                "Take these back themselves",
            )
        return step


def _undo(
    transaction: Transaction, asked: _Asked, steps: list[Step], count: int, dry_run: bool
) -> Undone:
    first: dict[Key, Image] = {}
    last: dict[Key, Image] = {}
    for step in steps:
        for key, image in take_back(transaction, asked.place, step).items():
            first.setdefault(key, image)
            last[key] = step.before[key]
        transaction.undo_log.record(transaction.tx, step.logged.tx)
    notes = []
    if len(steps) < count:
        notes.append(f"{len(steps)} of {count}: no more are left")
    moved = [key for key in sorted(first) if first[key] != last[key]]
    nodes = [key for key in moved if key[0] == "node"]
    waves = sum(1 for key in moved if key[0] == "wave")
    if waves:
        notes.append(f"waves: {waves}")
    return Undone(
        None if dry_run else transaction.tx,
        asked.place,
        [
            {
                "tx": step.logged.tx,
                "at": step.logged.at,
                "actor": step.logged.actor,
                "changes": step.changes,
            }
            for step in steps
        ],
        [_described(first[key], last[key]) for key in nodes[:_SHOWN]],
        len(nodes),
        len(moved) - len(nodes) - waves,
        asked.redo,
        dry_run,
        notes,
        said(asked.reach),
    )


def _described(first: Image, last: Image) -> dict[str, Any]:
    op = "restored" if first is None else "removed" if last is None else "reverted"
    fields: Mapping[str, Any] = fields_of(last or first or "{}")
    node = node_of(tuple(fields.values()))
    return {"id": node.id, "type": node.type.value, "title": node.title, "op": op}


def said(reach: Reach) -> str:
    """How far back the log goes, as a sentence of an error."""
    if reach.first_at is None:
        return "The log is empty"
    return f"The log begins with change {reach.floor + 1} at {reach.first_at}"
