"""The hosts that we know: where each keeps its servers and its rules, and in which form.

Paths are computed from (host, platform, environment) alone, so that the Windows forms are
tested on Linux. A host that keeps a file under more than one name lists them in order: the
first that exists is meant, else the first whose folder exists (a `.roo` without a `.zoo` says
that the project has not moved yet, and making a `.zoo` beside it would hide it), else the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Final, Literal

from cortex.cli.host_files import Entry, Syntax

Platform = Literal["linux", "darwin", "win32"]
Scope = Literal["project", "user"]

CURSOR_HEAD: Final = (
    "---\ndescription: How to use the long-term memory (cortex)\nalwaysApply: true\n---\n\n"
)


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of one user on one platform, as the environment names them."""

    platform: Platform
    env: Mapping[str, str]

    def path(self, text: str) -> PurePath:
        return PureWindowsPath(text) if self.platform == "win32" else PurePosixPath(text)

    @property
    def home(self) -> PurePath:
        name = "USERPROFILE" if self.platform == "win32" else "HOME"
        return self.path(self.env.get(name) or str(Path.home()))

    @property
    def config(self) -> PurePath:
        """`~/.config`, on every platform: what programs that follow XDG to the letter use."""
        return self.named("XDG_CONFIG_HOME", self.home / ".config")

    @property
    def code(self) -> PurePath:
        """The user folder of VS Code."""
        match self.platform:
            case "win32":
                roaming = self.named("APPDATA", self.home / "AppData" / "Roaming")
                return roaming / "Code" / "User"
            case "darwin":
                return self.home / "Library" / "Application Support" / "Code" / "User"
            case _:
                return self.config / "Code" / "User"

    def extension(self, name: str, file: str) -> PurePath:
        """A settings file of a VS Code extension."""
        return self.code / "globalStorage" / name / "settings" / file

    def named(self, variable: str, default: PurePath) -> PurePath:
        """The folder or file that a variable of a host names, else its default."""
        text = self.env.get(variable, "").strip()
        return self.path(text) if text else default


Found = Callable[[Places], Sequence[PurePath]]


@dataclass(frozen=True, slots=True)
class Host:
    """One host. `project` and `rules` are relative to the project's folder, `user` and
    `user_rules` absolute; an empty one means that the host has no such file."""

    name: str
    title: str
    syntax: Syntax
    keys: tuple[str, ...]
    entry: Callable[[Sequence[str]], Entry]
    default: Scope
    project: tuple[str, ...] = ()
    user: Found = lambda _: ()
    rules: tuple[str, ...] = ()
    user_rules: Found = lambda _: ()
    rules_head: str = ""
    then: str = "Restart the host, or reload its MCP servers"

    def files(self, scope: Scope, places: Places, project: PurePath) -> tuple[PurePath, ...]:
        """Where the servers stand, in order of preference."""
        if scope == "user":
            return tuple(self.user(places))
        return tuple(project / name for name in self.project)

    def rule_files(self, scope: Scope, places: Places, project: PurePath) -> tuple[PurePath, ...]:
        """Where the rules are read, in order of preference."""
        if scope == "user":
            return tuple(self.user_rules(places))
        return tuple(project / name for name in self.rules)


def chosen(files: Sequence[PurePath], project: Path) -> Path:
    """The one of these files that the host would use on this machine."""
    paths = [Path(file) for file in files]
    for path in paths:
        if path.is_file():
            return path
        if path.parent.is_file():  # `.clinerules` may be one file, the folder's older form
            return path.parent
    for path in paths:
        if path.parent != project and path.parent.is_dir():
            return path
    return paths[0]


def _plain(**defaults: object) -> Callable[[Sequence[str]], Entry]:
    """`command` and `args`: what most hosts read."""
    return lambda command: Entry({"command": command[0], "args": list(command[1:])}, defaults)


def _typed(**defaults: object) -> Callable[[Sequence[str]], Entry]:
    """The same for hosts that want the transport said."""
    return lambda command: Entry(
        {"type": "stdio", "command": command[0], "args": list(command[1:])}, defaults
    )


def _local(command: Sequence[str]) -> Entry:
    """The form of OpenCode and its kin; milliseconds until the tools must be listed."""
    return Entry({"type": "local", "command": list(command)}, {"enabled": True, "timeout": 30_000})


def _zoo_rules(places: Places) -> Sequence[PurePath]:
    return [places.home / folder / "rules" / "cortex.md" for folder in (".zoo", ".roo")]


_SERVERS: Final = ("mcpServers", "cortex")

HOSTS: Final = (
    Host(
        "zoo",
        "Zoo Code",
        "json",
        _SERVERS,
        _plain(timeout=120),  # seconds of a call
        "project",
        (".zoo/mcp.json", ".roo/mcp.json"),
        lambda places: [places.extension("zoocodeorganization.zoo-code", "mcp_settings.json")],
        (".zoo/rules/cortex.md", ".roo/rules/cortex.md"),
        _zoo_rules,
    ),
    Host(
        "roo",
        "Roo Code",
        "json",
        _SERVERS,
        _plain(timeout=120),
        "project",
        (".roo/mcp.json",),
        lambda places: [places.extension("rooveterinaryinc.roo-cline", "mcp_settings.json")],
        (".roo/rules/cortex.md",),
        lambda places: [places.home / ".roo" / "rules" / "cortex.md"],
    ),
    Host(
        "kilo",
        "Kilo Code",
        "jsonc",
        ("mcp", "cortex"),
        _local,
        "project",
        (".kilo/kilo.jsonc", ".kilo/kilo.json", "kilo.jsonc", "kilo.json"),
        lambda places: [places.config / "kilo" / name for name in ("kilo.jsonc", "kilo.json")],
        ("AGENTS.md",),
        lambda places: [places.config / "kilo" / "AGENTS.md"],
    ),
    Host(
        "cline",
        "Cline",
        "json",
        _SERVERS,
        _plain(disabled=False, timeout=60),
        "user",
        (),
        lambda places: [
            places.home / ".cline" / "data" / "settings" / "cline_mcp_settings.json",
            places.extension("saoudrizwan.claude-dev", "cline_mcp_settings.json"),
        ],
        (".clinerules/cortex.md", ".cline/rules/cortex.md"),
        lambda places: [places.home / ".cline" / "rules" / "cortex.md"],
    ),
    Host(
        "claude-code",
        "Claude Code",
        "json",
        _SERVERS,
        _typed(timeout=60_000),
        "project",
        (".mcp.json",),
        lambda places: [places.named("CLAUDE_CONFIG_DIR", places.home) / ".claude.json"],
        ("CLAUDE.md",),
        lambda places: [places.named("CLAUDE_CONFIG_DIR", places.home / ".claude") / "CLAUDE.md"],
        then="Start `claude` in the project; it asks once to approve a project's server",
    ),
    Host(
        "cursor",
        "Cursor",
        "jsonc",
        _SERVERS,
        _typed(),
        "project",
        (".cursor/mcp.json",),
        lambda places: [places.home / ".cursor" / "mcp.json"],
        (".cursor/rules/cortex.mdc",),
        rules_head=CURSOR_HEAD,
    ),
    Host(
        "vscode",
        "VS Code",
        "jsonc",
        ("servers", "cortex"),
        _typed(),
        "project",
        (".vscode/mcp.json",),
        lambda places: [places.code / "mcp.json"],
        (".github/copilot-instructions.md",),
        then="VS Code shows Start above the entry; it asks once whether you trust it",
    ),
    Host(
        "codex",
        "Codex",
        "toml",
        ("mcp_servers", "cortex"),
        _plain(startup_timeout_sec=30, tool_timeout_sec=60),  # its own start limit is 10
        "user",
        (".codex/config.toml",),
        lambda places: [places.named("CODEX_HOME", places.home / ".codex") / "config.toml"],
        ("AGENTS.md",),
        lambda places: [places.named("CODEX_HOME", places.home / ".codex") / "AGENTS.md"],
        then="`codex mcp list` shows it; a project's file counts in trusted projects alone",
    ),
    Host(
        "gemini",
        "Gemini CLI",
        "jsonc",
        _SERVERS,
        _plain(timeout=30_000),
        "project",
        (".gemini/settings.json",),
        lambda places: [places.home / ".gemini" / "settings.json"],
        ("GEMINI.md",),
        lambda places: [places.home / ".gemini" / "GEMINI.md"],
        then="`gemini mcp list` shows it; the folder must be trusted",
    ),
    Host(
        "openclaw",
        "OpenClaw",
        "json5",
        ("mcp", "servers", "cortex"),
        _plain(),
        "user",
        (),
        lambda places: [
            places.named(
                "OPENCLAW_CONFIG_PATH",
                places.named("OPENCLAW_STATE_DIR", places.home / ".openclaw") / "openclaw.json",
            )
        ],
        (),
        lambda places: [
            places.named("OPENCLAW_STATE_DIR", places.home / ".openclaw")
            / "workspace"
            / "AGENTS.md"
        ],
        then="`openclaw mcp doctor cortex --probe` connects to it",
    ),
    Host(
        "opencode",
        "OpenCode",
        "jsonc",
        ("mcp", "cortex"),
        _local,
        "project",
        ("opencode.json", "opencode.jsonc"),
        lambda places: [
            places.config / "opencode" / name for name in ("opencode.json", "opencode.jsonc")
        ],
        ("AGENTS.md",),
        lambda places: [places.config / "opencode" / "AGENTS.md"],
        then="`opencode mcp list` connects to it",
    ),
)
