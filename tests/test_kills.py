"""The soak in short: servers under load, killed at random with everything beside them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.soak.running import soak

SECONDS = float(os.environ.get("SOAK_SECONDS", "40"))
SEED = 20261130


@pytest.mark.anyio
async def test_kills_lose_no_acknowledged_write_and_leave_no_fault(tmp_path: Path) -> None:
    outcome = await soak(tmp_path, SECONDS, kills=8, seed=SEED)
    assert outcome.faults == []
    assert outcome.kills.total() >= 8
    assert outcome.acknowledged > 0
