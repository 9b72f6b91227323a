"""cortex: long-term memory for AI agents, a typed graph in SQLite.

from cortex import load_settings, open_memory

memory = open_memory(load_settings(workspace="my-project"))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__", "load_settings", "open_memory"]

if TYPE_CHECKING:
    from cortex.config import load_settings
    from cortex.memory import open_memory


def __getattr__(name: str) -> Any:
    """Names are imported when they are used: a server answers before numpy is loaded."""
    if name == "open_memory":
        from cortex.memory import open_memory

        return open_memory
    if name == "load_settings":
        from cortex.config import load_settings

        return load_settings
    raise AttributeError(f"module 'cortex' has no attribute {name!r}")
