"""Settings, from arguments and environment; and which workspace a caller means."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from platformdirs import user_data_path

from cortex.domain.endpoints import EndpointSettings, is_source, parse_source
from cortex.domain.errors import InvalidError
from cortex.domain.qdrant_settings import QdrantSettings
from cortex.domain.values import WorkspaceId, workspace_name
from cortex.domain.wave_settings import WaveSettings

FILE_NAME: Final = "cortex.db"
RATE: Final = 1000.0
DEFAULT_WORKSPACE: Final = WorkspaceId("default")
Scope = Literal["all", "workspace"]
FusionKind = Literal["convex", "rrf"]
SEARCH_WEIGHTS: Final[Mapping[str, float]] = MappingProxyType(
    {"semantic": 0.5, "keyword": 0.5, "temporal": 0.25}
)
RECALL_WEIGHTS: Final[Mapping[str, float]] = MappingProxyType(
    {"recency": 0.3, "relevance": 0.5, "authority": 0.2}
)


@dataclass(frozen=True, slots=True)
class Settings:
    """What one process works with.

    `project` is the folder with `.git` in which it was started; files inside it are told
    from there, others by their whole path.

    Seconds unless said otherwise. `model` is None for the file's own model, or the offline
    one in a new file; `endpoints` chooses it where nothing else does.
    `search_wait` is how long a search waits for vectors that its own
    workspace still owes.
    `no_secrets` refuses texts that look like keys; `rate` is how many calls a second one
    connection may make for long, 0 for any number.
    `recall_weights` are exponents of the score, `recall_half_life` is in hours.
    """

    home: Path
    workspace: WorkspaceId = DEFAULT_WORKSPACE
    project: Path | None = None
    search_scope: Scope = "all"
    model: str | None = None
    endpoints: EndpointSettings = field(default_factory=EndpointSettings)
    read_only: bool = False
    no_secrets: bool = False
    rate: float = RATE
    archive_days: float = 7.0
    keep_newest: int = 100
    hot_focuses: int = 5
    search_wait: float = 2.0
    search_fusion: FusionKind = "convex"
    search_rrf_k: float = 60.0
    search_weights: Mapping[str, float] = field(default_factory=lambda: SEARCH_WEIGHTS)
    recall_weights: Mapping[str, float] = field(default_factory=lambda: RECALL_WEIGHTS)
    recall_half_life: float = 8760.0
    model_idle: float = 900.0
    qdrant: QdrantSettings | None = None
    waves: WaveSettings = field(default_factory=WaveSettings)
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


def _flag(env: Mapping[str, str], name: str) -> bool:
    text = env.get(name, "").strip().lower()
    if text not in ("", "0", "1", "false", "true", "no", "yes", "off", "on"):
        raise InvalidError(f"{name}={text!r} is neither yes nor no", "Valid: 1, 0", "Correct it")
    return text in ("1", "true", "yes", "on")


def _weights(
    env: Mapping[str, str], name: str, default: Mapping[str, float]
) -> Mapping[str, float]:
    """Weights by name: those given, as "semantic=0.5,keyword=0.5", the others as `default`."""
    weights = dict(default)
    text = env.get(name, "").strip()
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        perspective, _, number = (piece.strip() for piece in part.partition("="))
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if perspective not in weights or not 0 <= value <= 1000:
            raise InvalidError(
                f"{name}={text!r}: {part!r} is not a weight",
                f"Valid: name=number, 0 to 1000, of {', '.join(weights)}, by commas",
                f"Correct or unset {name}, for example "
                + ",".join(f"{each}={weight:g}" for each, weight in default.items()),
            )
        weights[perspective] = value
    if not any(weights.values()):
        raise InvalidError(
            f"{name}={text!r} leaves nothing a weight",
            "Valid: one of them above 0",
            f"Correct or unset {name}",
        )
    return MappingProxyType(weights)


def load_settings(
    *,
    home: Path | None = None,
    workspace: str | None = None,
    search_scope: str | None = None,
    model: str | None = None,
    read_only: bool = False,
    no_secrets: bool = False,
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
    fusion = env.get("CORTEX_SEARCH_FUSION", "").strip().lower() or "convex"
    if fusion not in ("convex", "rrf"):
        raise InvalidError(
            f"CORTEX_SEARCH_FUSION={fusion!r} is unknown",
            "Valid: convex, rrf",
            "Choose one of these, or unset it",
        )
    endpoints = EndpointSettings.read(env)
    chosen = model or env.get("CORTEX_MODEL") or endpoints.source
    place = home or Path(env.get("CORTEX_HOME") or user_data_path("cortex", appauthor=False))
    return Settings(
        home=place.expanduser().absolute(),
        workspace=workspace_name(name),
        project=root,
        search_scope="all" if scope == "all" else "workspace",
        model=parse_source(chosen).source if chosen and is_source(chosen) else chosen,
        endpoints=endpoints,
        read_only=read_only,
        no_secrets=no_secrets or _flag(env, "CORTEX_NO_SECRETS"),
        rate=_number(env, "CORTEX_RATE", RATE),
        archive_days=_number(env, "CORTEX_ARCHIVE_DAYS", 7.0),
        search_wait=_number(env, "CORTEX_SEARCH_WAIT", 2.0),
        search_fusion="convex" if fusion == "convex" else "rrf",
        search_rrf_k=_number(env, "CORTEX_SEARCH_RRF_K", 60.0),
        search_weights=_weights(env, "CORTEX_SEARCH_WEIGHTS", SEARCH_WEIGHTS),
        recall_weights=_weights(env, "CORTEX_RECALL_WEIGHTS", RECALL_WEIGHTS),
        recall_half_life=_number(env, "CORTEX_RECALL_HALF_LIFE", 8760.0),
        model_idle=_number(env, "CORTEX_MODEL_IDLE", 900.0),
        qdrant=QdrantSettings.read(env),
        waves=WaveSettings.read(env),
    )
