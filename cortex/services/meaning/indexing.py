"""Paying the debts of the outbox: texts to vectors, in the background, after the commit.

A batch is leased, embedded without any lock, and committed only for texts that are still
the same. A process that dies leaves its lease to run out; a failure is kept with its
reason and tried again later, also after a restart.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from cortex.domain.errors import BusyError, CortexError
from cortex.domain.instants import Instant, as_datetime, later
from cortex.domain.values import WorkspaceId, new_id
from cortex.services.engine import Engine
from cortex.services.meaning.embedding import iter_embedded
from cortex.services.meaning.semantic import Meaning, Semantic, model_key, packed
from cortex.services.meaning.yielding import Yielding
from cortex.store.database import Transaction
from cortex.store.derive import owe
from cortex.store.embeddings import Owed
from cortex.store.meta import EPOCH, FINGERPRINT, MODEL
from cortex.vectors.embedder import Embedder

_BATCH: Final = 16
_LEASE: Final = 30.0
_FIRST_RETRY: Final = 2.0
_LONGEST_RETRY: Final = 300.0
_POLL: Final = 30.0
_STEP: Final = 500

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What a reindex did: rows of the keyword index, nodes embedded, the model in force."""

    nodes: int
    embedded: int
    model: str
    migrated: bool


class Indexing:
    """Follows the outbox in one background thread of this process."""

    def __init__(self, engine: Engine, semantic: Semantic) -> None:
        self._engine = engine
        self._semantic = semantic
        self._wake = threading.Event()
        self._yielding = Yielding(engine.database.idle_seconds)
        self._stop = threading.Event()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._out = False
        self.problem: str | None = None

    def notify(self, *, old: bool = False) -> None:
        """There may be something to do, left by an `old` process; starts the thread at need."""
        self._yielding.owe(old=old)
        self._semantic.notify()
        if self._engine.settings.read_only or self._stop.is_set():
            return
        with self._starting:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="indexing", daemon=True)
                self._thread.start()
        self._wake.set()

    def wait(self, workspace: WorkspaceId | None, seconds: float) -> int:
        """Wait until the workspace owes nothing, at most so long; how many it still owes.

        What a server's index lacks of the vectors counts too, unless that cannot be told.
        """
        deadline = time.monotonic() + seconds
        while True:
            with self._engine.database.read() as snapshot:
                pending = snapshot.outbox.pending(workspace)
            left = deadline - time.monotonic()
            if pending:
                self._yielding.end()
            if not pending or self.problem or left <= 0:
                return pending + self._semantic.wait(workspace, max(left, 0.0))
            self.notify()
            self._stop.wait(0.02)

    def heal(self) -> None:
        """The model works again: let every failed text be tried now."""
        if self.problem is None or self._engine.settings.read_only:
            return
        try:
            with self._engine.database.write(self._engine.actor, wait=0.05) as transaction:
                transaction.outbox.retry_all()
        except BusyError:
            return  # they are tried again by themselves, a little later
        self.problem = None
        self._out = False
        self.notify()

    def resume(self) -> None:
        """Take up what an earlier process left owing."""
        with self._engine.database.read() as snapshot:
            due = snapshot.outbox.next_due()
        if due is not None:
            self.notify(old=True)
        self._semantic.notify()

    def _run(self) -> None:
        pause, failures = _POLL, 0
        while not self._stop.is_set():
            self._rest(pause)
            self._yielding.begin()
            try:
                while not self._stop.is_set() and self.step():
                    self._yielding.give_way()
                pause, failures = self._until_due(), 0
                self._out = False
            except BusyError:
                self._stop.wait(0.2)
                self._wake.set()
            except CortexError as error:
                # Kept where status and searches show it; tried again soon, then ever less.
                self.problem = error.message
                self._out = True
                pause = min(_FIRST_RETRY * 2**failures, _POLL)
                failures = min(failures + 1, 10)
            if not self._stop.is_set():
                self._let_go()

    def _rest(self, seconds: float) -> None:
        """Until there may be something to do. A model that is out is left alone for its time:
        each write would cost it an attempt, and one more text its turn."""
        deadline = time.monotonic() + seconds
        while True:
            woken = self._wake.wait(max(deadline - time.monotonic(), 0.0))
            self._wake.clear()
            if not woken or not self._out or self._stop.is_set():
                return

    def _until_due(self) -> float:
        """Seconds until the next debt can be tried, within [0.1, _POLL]."""
        with self._engine.database.read() as snapshot:
            due = snapshot.outbox.next_due()
        if not due:
            return _POLL
        left = as_datetime(Instant(due)) - as_datetime(self._engine.now())
        return min(max(left.total_seconds(), 0.1), _POLL)

    def _let_go(self) -> None:
        with self._engine.database.read() as snapshot:
            source = self._semantic.source(snapshot)
        self._semantic.embedder(source).release_if_idle(time.monotonic())

    def step(self) -> bool:
        """Lease and pay one batch; False when nothing is due."""
        now = self._engine.now()
        with self._engine.database.read() as snapshot:
            due = snapshot.outbox.next_due()
        if due is None or due >= now:
            return False
        meaning = self._semantic.meaning()
        until = later(now, seconds=_LEASE)
        with self._engine.database.write(self._engine.actor) as transaction:
            leased = transaction.outbox.lease(now, until, _BATCH)
            nodes = {node.key: node for node in transaction.nodes.by_keys([o.key for o in leased])}
        ready: list[tuple[Owed, list[bytes]]] = []
        owing = {owed.key: owed for owed in leased}
        present = [nodes[owed.key] for owed in leased if owed.key in nodes]
        done = 0
        try:
            for node, got in iter_embedded(meaning.embedder, present):
                if isinstance(got, CortexError):
                    self._fail(owing.pop(node.key), got)
                else:
                    ready.append((owing[node.key], packed(list(got))))
                done += 1
                if self._stop.is_set() or self._yielding.pressed():
                    break
        except CortexError as error:
            # An endpoint that is down says nothing of a text: all of them stay pending.
            if meaning.embedder.spec.endpoint is None:
                self._fail(owing[present[done].key], error)
            raise
        finally:
            self._pay(meaning, ready, list(owing.values()))
        return bool(leased)

    def _pay(
        self,
        meaning: Meaning,
        ready: Sequence[tuple[Owed, list[bytes]]],
        leased: Sequence[Owed],
    ) -> None:
        """Commit what is embedded; give back the rest of the lease."""
        with self._engine.database.write(self._engine.actor) as transaction:
            wanted = transaction.meta.find(FINGERPRINT) or meaning.fingerprint.text
            if wanted != meaning.fingerprint.text or (ready and not meaning.holds):
                ready = ()  # the file was migrated meanwhile, or the model's files replaced
            paid = {owed.key for owed, _ in ready}
            if ready:
                settle_model(transaction, meaning)
            for owed, vectors in ready:
                if transaction.outbox.settle(owed):
                    transaction.embeddings.put(owed.key, meaning.key, owed.text_hash, vectors)
            transaction.outbox.release([owed.key for owed in leased if owed.key not in paid])
        if ready:
            self._semantic.notify()
        if len(ready) == len(leased):
            self.problem = None

    def _fail(self, owed: Owed, error: CortexError) -> None:
        with self._engine.database.write(self._engine.actor) as transaction:
            state = transaction.outbox.state(owed.key)
            attempts = state.attempts if state else 0
            pause = min(_FIRST_RETRY * 2**attempts, _LONGEST_RETRY)
            retry = later(transaction.at, seconds=pause)
            transaction.outbox.fail(owed, error.message, retry)

    def reindex(self, model: str | None, progress: Progress) -> Reindexed:
        """Restore everything derived; with `model`, migrate the vectors to it.

        Works in batches beside other writers, and goes on where an earlier run stopped:
        what has its vector under the wanted model already is not embedded again.
        """
        self._engine.graphs.forget()
        nodes = self._rebuild_keywords(progress)
        with self._engine.database.read() as snapshot:
            source = model or self._semantic.source(snapshot)
            stored = snapshot.meta.find(FINGERPRINT)
        embedder = self._semantic.embedder(source, named=model is not None)
        embedder.warm()
        fingerprint = embedder.fingerprint
        embedded = 0
        while True:
            embedded += self._embed_lacking(embedder, model_key(fingerprint), progress)
            with self._engine.database.write(self._engine.actor) as transaction:
                if transaction.embeddings.lacking(model_key(fingerprint), 0, 1):
                    continue  # written meanwhile
                migrated = stored != fingerprint.text
                transaction.meta.set(FINGERPRINT, fingerprint.text)
                transaction.meta.set(MODEL, source)
                transaction.embeddings.drop_other_models(model_key(fingerprint))
                transaction.outbox.settle_all()
                if migrated:
                    transaction.meta.set(EPOCH, new_id())  # every cache of vectors rebuilds
            self._semantic.rebuild(progress)
            return Reindexed(nodes, embedded, str(fingerprint), migrated)

    def _rebuild_keywords(self, progress: Progress) -> int:
        done = 0
        with self._engine.database.read() as snapshot:
            places = snapshot.nodes.workspaces()
            total = sum(snapshot.nodes.count(place) for place in places)
        for place in places:
            after = 0
            while True:
                with self._engine.database.write(self._engine.actor) as transaction:
                    nodes = transaction.nodes.page(place, after, _STEP)
                    for node in nodes:
                        transaction.keywords.put(node)
                        owe(transaction.outbox, transaction.embeddings, node)
                done += len(nodes)
                progress(done, total)
                if len(nodes) < _STEP:
                    break
                after = nodes[-1].key
        with self._engine.database.write(self._engine.actor) as transaction:
            transaction.keywords.drop_orphans()
        return done

    def _embed_lacking(self, embedder: Embedder, key: str, progress: Progress) -> int:
        done, after = 0, 0
        while True:
            with self._engine.database.read() as snapshot:
                owed = snapshot.embeddings.lacking(key, after, _BATCH)
                nodes = {node.key: node for node in snapshot.nodes.by_keys([o.key for o in owed])}
                left = snapshot.embeddings.count_lacking(key, after)
            if not owed:
                return done
            owing = {item.key: item for item in owed if item.key in nodes}
            ready = []
            for node, got in iter_embedded(embedder, [nodes[key] for key in owing]):
                if isinstance(got, CortexError):
                    raise got
                ready.append((owing[node.key], packed(list(got))))
            with self._engine.database.write(self._engine.actor) as transaction:
                for item, vectors in ready:
                    if transaction.outbox.holds(item):
                        transaction.embeddings.put(item.key, key, item.text_hash, vectors)
            done += len(ready)
            after = owed[-1].key
            progress(done, done + left - len(owed))

    def close(self) -> None:
        """Stop after the text in hand; what is left stays in the outbox."""
        self._stop.set()
        self._wake.set()
        self._yielding.end()
        if self._thread is not None:
            self._thread.join(2.0)


def settle_model(transaction: Transaction, meaning: Meaning) -> None:
    """The first vector decides which model the file's vectors are of."""
    if transaction.meta.find(FINGERPRINT) is None:
        transaction.meta.set(FINGERPRINT, meaning.fingerprint.text)
        transaction.meta.set(MODEL, meaning.source)
