"""The mirror is built table by table, while others write: it ends as if it were built at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from analytics.worker.attached import Attached
from analytics.worker.mirror import Mirror, View
from tests.worker_world import Life

TABLES = {
    "nodes": "SELECT * FROM nodes ORDER BY ALL",
    "relations": "SELECT * FROM relations ORDER BY ALL",
    "changes": "SELECT * FROM changes ORDER BY ALL",
    "navigation": "SELECT * FROM navigation ORDER BY ALL",
    "focuses": "SELECT workspace, node, MAX(moment) FROM focuses GROUP BY ALL ORDER BY ALL",
    "unread": "SELECT * FROM unread ORDER BY ALL",
}


class Interrupted(Attached):
    """Something happens whenever a table was filled and packed."""

    def __init__(self, file: Path, happens: Callable[[], None]) -> None:
        super().__init__(file)
        self._happens = happens

    def pack(self) -> None:
        super().pack()
        self._happens()


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    made = Life(tmp_path, seed=8)
    made.live(60)
    yield made
    made.close()


def contents(view: View) -> dict[str, list[tuple[Any, ...]]]:
    return {name: view.rows(statement) for name, statement in TABLES.items()}


@pytest.mark.parametrize("folded", [0.0, 0.4], ids=["written", "written and compacted"])
def test_what_happens_while_the_mirror_is_built_is_in_its_first_answer(
    life: Life, folded: float
) -> None:
    steps: list[int] = []

    def happens() -> None:
        steps.append(1)
        life.live(4)
        if folded:
            life.compact(folded)

    with Mirror(Interrupted(life.file, happens)).snapshot() as view:
        first = contents(view)
    with Mirror(Attached(life.file)).snapshot() as view:
        assert contents(view) == first
    assert len(steps) == 4  # after the log, the history, the nodes, the relations
