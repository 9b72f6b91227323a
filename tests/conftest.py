"""Fixtures that every test may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cortex.config import load_settings
from cortex.memory import Memory, open_memory


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own CORTEX_… variables do not reach the tests; their data does."""
    for name in list(os.environ):
        if name.startswith("CORTEX_") and not name.startswith("CORTEX_TEST_"):
            monkeypatch.delenv(name)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def memory(home: Path) -> Iterator[Memory]:
    """A memory in this process, on the real file and the real offline model."""
    opened = open_memory(load_settings(home=home, workspace="w", env={}))
    yield opened
    opened.close()
