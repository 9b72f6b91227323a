"""Dreams, as an agent asks for them: the plan, or the plan made true.

Plan and apply compute the same; apply writes it in one transaction, which undo takes back.
Cost at 100,000 memories of 8 links each: `python -m bench.dream`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from cortex.domain.dreams import Change, Depth, Mode
from cortex.domain.errors import InvalidError
from cortex.domain.progress import PROGRESS
from cortex.services.dreaming.applying import write_plan
from cortex.services.dreaming.planning import TOTAL, Plan, plan_dream
from cortex.services.engine import Engine
from cortex.services.repeating import once

MODES: Final = ("plan", "apply")
DEPTHS: Final = ("lite", "deep")
_KEPT: Final = 200


@dataclass(frozen=True, slots=True)
class Dreamt:
    """What a dream changed, or with mode plan would change. All JSON values.

    `tx` is its transaction, None where nothing was written; `steps` counts the changes of each
    step; `changes` are in the order of the steps (the first 200 in a reply that was kept under
    a key), `total` counts all. `pairs` are the constructive and destructive ones with the worst
    of these; `order` is R of the memories' phases before and after, in [0, 1].
    """

    mode: str
    depth: str
    workspace_id: str
    tx: int | None
    memories: int
    replayed: int
    linked: int
    communities: int
    steps: dict[str, int]
    changes: list[dict[str, Any]]
    total: int
    pairs: dict[str, Any]
    order: dict[str, float]
    notes: list[str]


class Dreaming:
    """Plans dreams and applies them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def dream(
        self,
        mode: str = "plan",
        depth: str = "lite",
        *,
        workspace: str | None = None,
        key: str | None = None,
    ) -> Dreamt:
        """Consolidate a workspace. Raises InvalidError for an unknown mode or depth.

        A key counts for mode apply.
        """
        for name, given, valid in (("mode", mode, MODES), ("depth", depth, DEPTHS)):
            if given not in valid:
                raise InvalidError(
                    f"{name} {given!r} is unknown",
                    f"Valid: {', '.join(valid)}",
                    "Choose one of these",
                )
        place = self._engine.workspace(workspace)
        plan = plan_dream(self._engine, place, cast(Depth, depth))
        if mode == "plan" or not (plan.changes or key):
            return _told(plan, cast(Mode, mode), plan.changes, None)
        return self._apply(plan, key)

    def _apply(self, plan: Plan, key: str | None) -> Dreamt:
        told = PROGRESS.get()
        told(TOTAL - 0.5, TOTAL, f"writing {len(plan.changes)} changes")
        with self._engine.write() as transaction:

            def do() -> Dreamt:
                made = write_plan(transaction, plan)
                done = _told(plan, "apply", made, transaction.tx if made else None)
                if key:
                    del done.changes[_KEPT:]
                return done

            request = {"dream": plan.depth}
            done = once(transaction, plan.workspace, key, request, Dreamt, do)
        told(TOTAL, TOTAL, "done")
        return done


def _told(plan: Plan, mode: Mode, changes: Sequence[Change], tx: int | None) -> Dreamt:
    left = len(plan.changes) - len(changes)
    notes = list(plan.notes)
    if left:
        notes.append(f"{left} rows changed meanwhile and are left to the next dream")
    counts = dict.fromkeys(plan.counts(), 0)
    for change in changes:
        counts[change.step] += 1
    return Dreamt(
        mode,
        plan.depth,
        plan.workspace,
        tx,
        plan.memories,
        plan.replayed,
        plan.linked,
        plan.communities,
        counts,
        [change.json() for change in changes],
        len(changes),
        {
            "constructive": plan.constructive,
            "destructive": plan.destructive,
            "worst": [
                {
                    "nodes": [one, other],
                    "similarity": None if pair.contradicts else pair.similarity,
                    "interference": pair.interference,
                    "contradicts": pair.contradicts,
                }
                for pair, one, other in plan.worst
            ],
        },
        {"before": round(plan.order_before, 6), "after": round(plan.order_after, 6)},
        notes,
    )
