"""Which SQLite this Python was built with."""

from __future__ import annotations

import sqlite3
from typing import Final

SQLITE_VERSION: Final[tuple[int, ...]] = sqlite3.sqlite_version_info
