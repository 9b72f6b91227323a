"""A client of the soak: writes its own nodes, reads everybody's, and keeps a ledger."""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Final

import anyio
from mcp.shared.exceptions import MCPError

from tests.harness import result, text_of
from tests.soak.ledger import Ledger
from tests.soak.seats import Seat

_PATIENCE: Final = 60.0  # seconds after which a call counts as hung
_WORDS: Final = (
    "gate", "river", "token", "graph", "cache", "window", "ledger", "harbour", "signal", "meadow",
)  # fmt: skip
OPERATIONS: Final = {
    "add": 9, "edit": 5, "link": 4, "supersede": 2, "delete": 2, "focus": 2,
    "read": 4, "traverse": 3, "search": 3, "meaning": 3, "desktop": 2, "timeline": 2, "measure": 2,
}  # fmt: skip
_WORKER_KILLED: Final = "the analytics worker ended twice (exit code -9)"
_OF_OWN: Final = ("edit", "link", "supersede", "delete", "focus", "traverse")


class Tally:
    """What all clients saw together."""

    def __init__(self) -> None:
        self.times: defaultdict[str, list[float]] = defaultdict(list)
        self.errors: Counter[str] = Counter()
        self.said: list[str] = []
        self.lost = 0
        self.unexpected = 0
        self.stale: list[str] = []
        self.seen: list[str] = []
        """Nodes that were acknowledged and are never deleted: any server must show them."""


class SoakClient:
    """One task with its own nodes, on the connection of its seat."""

    def __init__(self, number: int, seats: list[Seat], folder: Path, seed: int, tally: Tally):
        self._number = number
        self._seats = seats
        self._dice = random.Random(f"{seed}-{number}")
        self._tally = tally
        self.path = folder / f"client-{number}.jsonl"
        self._ledger = Ledger(self.path)
        self._own: list[str] = []
        self._count = 0

    async def run(self, stop: anyio.Event) -> None:
        seat = self._seats[self._number % len(self._seats)]
        while not stop.is_set():
            op = self._dice.choices(list(OPERATIONS), list(OPERATIONS.values()))[0]
            if op in _OF_OWN and len(self._own) < 3:
                op = "add"
            await getattr(self, f"_{op}")(seat)
        self._ledger.close()

    async def _call(self, seat: Seat, op: str, tool: str, **arguments: Any) -> Any:
        """The structured answer; None where the connection was lost or the call refused."""
        client, turn = await seat.client()
        begun = time.perf_counter()
        try:
            with anyio.fail_after(_PATIENCE):
                done = await result(client, tool, **arguments)
        except MCPError as error:
            self._lose(seat, turn, error)
            return None
        except TimeoutError:
            self._tally.errors["hung"] += 1
            seat.lost(turn)
            return None
        if done.is_error:
            self._refuse(text_of(done))
            return None
        self._tally.times[op].append(1000 * (time.perf_counter() - begun))
        return done.structured_content

    def _lose(self, seat: Seat, turn: int, error: MCPError) -> None:
        self._tally.lost += 1
        if not seat.lost(turn):
            self._tally.unexpected += 1
            self._tally.said.append(str(error))

    def _refuse(self, text: str) -> None:
        if _WORKER_KILLED in text:  # in one request twice: it says so, and to call again
            self._tally.lost += 1
            return
        kind = "locked" if "locked" in text else text.split(":")[0]
        self._tally.errors[kind] += 1
        self._tally.said.append(text[:300])

    def _text(self) -> str:
        self._count += 1
        words = " ".join(self._dice.choices(_WORDS, k=6))
        return f"client{self._number}note{self._count} {words}"

    # ── writing ───────────────────────────────────────────────────────────────────────────

    async def _add(self, seat: Seat) -> None:
        text = self._text()
        key = text.split()[0]
        number = self._ledger.ask("add", text=text)
        request = {"type": "fact", "text": text, "idempotency_key": key}
        done = await self._call(seat, "add", "graph_add_node", **request)
        if done is None and self._dice.random() < 0.7:
            # As a host would: the same request again, and it must not be done twice.
            done = await self._call(seat, "add", "graph_add_node", **request)
        if done is not None:
            self._ledger.acknowledge(number, id=done["id"])
            self._own.append(done["id"])

    async def _edit(self, seat: Seat) -> None:
        node, text = self._dice.choice(self._own), self._text()
        number = self._ledger.ask("edit", id=node, text=text)
        if await self._call(seat, "edit", "graph_update_node", node_id=node, text=text):
            self._ledger.acknowledge(number)

    async def _link(self, seat: Seat) -> None:
        source, target = self._dice.sample(self._own, 2)
        number = self._ledger.ask("link", source=source, target=target)
        ends = {"from_id": source, "to_id": target, "type": "supports"}
        if await self._call(seat, "link", "graph_add_relation", **ends):
            self._ledger.acknowledge(number)

    async def _supersede(self, seat: Seat) -> None:
        node, text = self._own.pop(self._dice.randrange(len(self._own))), self._text()
        number = self._ledger.ask("supersede", id=node, text=text)
        asked = {"old_id": node, "new_data": {"text": text}}
        done = await self._call(seat, "supersede", "graph_supersede", **asked)
        if done is not None:
            self._ledger.acknowledge(number, id=done["new_id"])
            self._tally.seen.append(done["new_id"])  # nobody's own: it stays as it is

    async def _delete(self, seat: Seat) -> None:
        node = self._own.pop(self._dice.randrange(len(self._own)))
        number = self._ledger.ask("delete", id=node)
        if await self._call(seat, "delete", "graph_delete_node", node_id=node):
            self._ledger.acknowledge(number)

    async def _focus(self, seat: Seat) -> None:
        await self._call(seat, "focus", "desktop_focus", node_id=self._dice.choice(self._own))

    # ── reading ───────────────────────────────────────────────────────────────────────────

    async def _read(self, seat: Seat) -> None:
        """What any client was told is there, any server shows at its next call."""
        if not self._tally.seen:
            return
        node = self._dice.choice(self._tally.seen[-20:])
        other = self._dice.choice(self._seats)
        before = self._tally.errors["not_found"]
        await self._call(other, "read", "graph_get_node", node_id=node, depth=1)
        if self._tally.errors["not_found"] > before:
            self._tally.stale.append(node)

    async def _traverse(self, seat: Seat) -> None:
        start = self._dice.choice(self._own)
        await self._call(seat, "traverse", "graph_traverse", start_id=start, direction="both")

    async def _search(self, seat: Seat) -> None:
        query = " ".join(self._dice.choices(_WORDS, k=3))
        await self._call(seat, "search", "graph_search", query=query, top_k=5)

    async def _meaning(self, seat: Seat) -> None:
        query = " ".join(self._dice.choices(_WORDS, k=3))
        await self._call(seat, "meaning", "vector_search", query=query, top_k=5)

    async def _desktop(self, seat: Seat) -> None:
        await self._call(seat, "desktop", "desktop_open")

    async def _timeline(self, seat: Seat) -> None:
        await self._call(seat, "timeline", "session_timeline", limit=10)

    async def _measure(self, seat: Seat) -> None:
        """The worker's, which is a process of its own."""
        await self._call(seat, "measure", "graph_centrality", limit=5)
