"""Settings, from arguments and environment; and which workspace a caller means."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from platformdirs import user_data_path

from cortex.domain.errors import InvalidError
from cortex.domain.values import WorkspaceId, workspace_name

FILE_NAME: Final = "cortex.db"
DEFAULT_WORKSPACE: Final = WorkspaceId("default")
Scope = Literal["all", "workspace"]


@dataclass(frozen=True, slots=True)
class Settings:
    """What one process works with.

    `project` is the folder with `.git` in which it was started; files inside it are told
    from there, others by their whole path.

    Seconds unless said otherwise. `model` is None for the file's own model, or the offline
    one in a new file. `search_wait` is how long a search waits for vectors that its own
    workspace still owes.
    """

    home: Path
    workspace: WorkspaceId = DEFAULT_WORKSPACE
    project: Path | None = None
    search_scope: Scope = "all"
    model: str | None = None
    read_only: bool = False
    archive_days: float = 7.0
    keep_newest: int = 100
    hot_focuses: int = 5
    search_wait: float = 2.0
    model_idle: float = 900.0
    graph_budget: int = 1 << 30

    @property
    def database(self) -> Path:
        return self.home / FILE_NAME

    @property
    def models(self) -> Path:
        """Where models are cached and assembled."""
        return self.home / "models"


def project_root(cwd: Path) -> Path | None:
    """The nearest folder from `cwd` up that holds `.git`; never the home folder or `/`."""
    home = Path.home()
    for folder in (cwd, *cwd.parents):
        if folder in (home, Path(folder.anchor)):
            return None
        if (folder / ".git").exists():
            return folder
    return None


def _number(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name, "").strip()
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise InvalidError(
            f"{name}={text!r} is not a number", "Valid: 0 or more", f"Correct or unset {name}"
        )
    return value


def load_settings(
    *,
    home: Path | None = None,
    workspace: str | None = None,
    search_scope: str | None = None,
    model: str | None = None,
    read_only: bool = False,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Settings:
    """Arguments first, then the environment, then what the working directory says.

    Raises InvalidError for a value that cannot be meant.
    """
    env = os.environ if env is None else env
    cwd = Path.cwd() if cwd is None else cwd
    root = project_root(cwd)
    name = workspace or env.get("CORTEX_WORKSPACE_ID", "")
    if not name.strip():
        # In a container every project is /workspace: the name says nothing.
        name = DEFAULT_WORKSPACE if root in (None, Path("/workspace")) else root.name
    scope = search_scope or env.get("CORTEX_SEARCH_SCOPE") or "all"
    if scope not in ("all", "workspace"):
        raise InvalidError(
            f"search scope {scope!r} is unknown", "Valid: all, workspace", "Choose one of these"
        )
    place = home or Path(env.get("CORTEX_HOME") or user_data_path("cortex", appauthor=False))
    return Settings(
        home=place.expanduser().absolute(),
        workspace=workspace_name(name),
        project=root,
        search_scope="all" if scope == "all" else "workspace",
        model=model or env.get("CORTEX_MODEL") or None,
        read_only=read_only,
        archive_days=_number(env, "CORTEX_ARCHIVE_DAYS", 7.0),
        search_wait=_number(env, "CORTEX_SEARCH_WAIT", 2.0),
        model_idle=_number(env, "CORTEX_MODEL_IDLE", 900.0),
    )
