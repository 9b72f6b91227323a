"""demo placeholder"""

from pathlib import Path

from cortex.config import Settings


def run_demo(settings: Settings, path: Path | None) -> None:
    raise SystemExit(1)
