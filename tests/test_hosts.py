"""`cortex config`: entries in the hosts' own files, and nothing else of them touched."""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import json5
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client, StdioServerParameters

from cortex.cli.host_files import Entry, with_entry
from cortex.cli.host_formats import HOSTS, Host, Places, Platform, chosen
from cortex.cli.host_writing import write_text
from cortex.cli.hosts import executable
from cortex.domain.errors import ConflictError, InvalidError
from tests.harness import ROOT
from tests.shell import Shell, shell_of

NAMES = [host.name for host in HOSTS]
BY_NAME = {host.name: host for host in HOSTS}
ENTRY = Entry({"command": "C:\\bin\\cortex.exe", "args": ["serve", "-w", "ü"]}, {"timeout": 30})
SERVERS = ("mcpServers", "cortex")


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    return shell_of(tmp_path, monkeypatch, capsys)


def parsed(path: Path) -> dict[str, Any]:
    text = path.read_text("utf-8")
    value = tomllib.loads(text) if path.suffix == ".toml" else json5.loads(text)
    assert isinstance(value, dict)
    return value


def at(document: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        document = document[key]
    return document


def command_of(entry: dict[str, Any]) -> list[str]:
    command = entry["command"]
    return list(command) if isinstance(command, list) else [command, *entry["args"]]


# What is written


@pytest.mark.parametrize("name", NAMES)
def test_the_written_entry_starts_this_install_and_a_second_write_changes_nothing(
    name: str, shell: Shell
) -> None:
    first = shell.config(name, "--write", "--workspace", "w", "--home", "memory")
    path = Path(first["path"])
    home = str(shell.project / "memory")
    expected = [*executable(), "serve", "--workspace", "w", "--home", home]
    assert command_of(at(parsed(path), BY_NAME[name].keys)) == expected
    assert Path(expected[0]).is_absolute()
    before = path.read_bytes()
    second = shell.config(name, "--write", "--workspace", "w", "--home", "memory")
    assert (first["changed"], second["changed"], second["backup"]) == (True, False, None)
    assert path.read_bytes() == before
    assert list(path.parent.glob("*.bak-*")) == []


@pytest.mark.parametrize("name", NAMES)
def test_without_write_it_shows_the_path_and_the_entry_and_makes_nothing(
    name: str, shell: Shell
) -> None:
    answer = shell.config(name)
    shown = shell.run("config", name)
    assert shown.startswith(answer["path"])
    assert answer["content"].strip() in shown
    assert not Path(answer["path"]).exists()


@pytest.mark.anyio
async def test_the_command_of_a_written_file_is_a_server_that_answers(shell: Shell) -> None:
    path = shell.config("claude-code", "--write", "--home", str(shell.home / "memory"))["path"]
    command, *arguments = command_of(at(parsed(Path(path)), SERVERS))
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    async with Client(StdioServerParameters(command=command, args=arguments, env=env)) as client:
        assert "graph_search" in {tool.name for tool in (await client.list_tools()).tools}


def test_a_project_file_names_its_workspace_and_a_user_file_does_not_unless_asked(
    shell: Shell,
) -> None:
    files = {
        scope: parsed(Path(shell.config("cursor", "--write", *options)["path"]))
        for scope, options in (("project", ()), ("user", ("--global",)))
    }
    assert at(files["project"], SERVERS)["args"][-2:] == ["--workspace", "my-project"]
    assert "--workspace" not in at(files["user"], SERVERS)["args"]
    shell.run("config", "cursor", "--write", "--global", "-w", "shared")
    user = parsed(shell.home / ".cursor" / "mcp.json")
    assert at(user, SERVERS)["args"][-2:] == ["--workspace", "shared"]


def test_another_project_can_be_named(shell: Shell, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    path = shell.config("codex", "--project", str(other), "--write")["path"]
    assert path == str(other / ".codex" / "config.toml")
    entry = at(parsed(Path(path)), ("mcp_servers", "cortex"))
    assert entry["startup_timeout_sec"] == 30
    assert entry["args"][-1] == "other"


# What is left alone

COMMENTED = """{
    // my servers
    "mcpServers": {
        "zeta": {"command": "z", "args": [1.50, 1e3]}, // the first
        "alpha": {"url": "http://x/*no comment*/"}, /* the last */
        // and no more
    },
    "ключ": "\\u00e9", /* end */
}
"""


def test_comments_order_and_forms_of_a_commented_file_survive(shell: Shell) -> None:
    path = shell.project / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(COMMENTED, "utf-8")
    shell.run("config", "cursor", "--write")
    lines = path.read_text("utf-8").splitlines()
    kept = [line for line in lines if line in COMMENTED.splitlines()]
    assert kept[:-1] == COMMENTED.splitlines()[:6] + COMMENTED.splitlines()[6:-1]
    assert list(parsed(path)["mcpServers"]) == ["zeta", "alpha", "cortex"]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "",
        "{ // nothing yet\n}",
        '\ufeff{"mcpServers":{}}',
        '{"mcpServers": {"a": 1}, "b": [{"mcpServers": 2}]}',
        '{\r\n\t"z": 1,\r\n\t"mcpServers": {\r\n\t}\r\n}\r\n',
        "{mcpServers: {'a': {command: 'x',},}, last: +1,}",
        '{"mcpServers": {"cortex": {"command": "old", /* mine */ "timeout": 7, "x": null}}}',
        '{"a": "}{", "mcpServers": {"b": "\\"}"}} // "mcpServers": {',
    ],
)
def test_every_form_of_a_file_says_the_same_plus_the_entry(text: str) -> None:
    before: dict[str, Any] = json5.loads(text.lstrip("\ufeff")) if text.strip() else {}
    edited = with_entry(text, SERVERS, ENTRY, "json5")
    after = json5.loads(edited.lstrip("\ufeff"))
    old = before.get("mcpServers", {}).get("cortex", {})
    assert after.pop("mcpServers") == {
        **before.pop("mcpServers", {}),
        "cortex": {**ENTRY.whole(), **old, **ENTRY.fixed},
    }
    assert after == before
    assert with_entry(edited, SERVERS, ENTRY, "json5") == edited
    assert ("\r\n" in text) == ("\r\n" in edited)
    for comment in re.findall(r"/\*.*?\*/|//[^\n]*", text):
        assert comment in edited


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(
    st.dictionaries(st.text(), json_values, max_size=4),
    st.none() | st.dictionaries(st.text().filter(lambda key: key != "cortex"), json_values),
    st.sampled_from([None, 1, 2, "\t"]),
    st.booleans(),
)
def test_a_new_entry_only_adds_characters(
    document: dict[str, Any], servers: dict[str, Any] | None, indent: Any, ascii_only: bool
) -> None:
    if servers is not None:
        document["mcpServers"] = servers
    else:
        document.pop("mcpServers", None)
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    edited = with_entry(text, SERVERS, ENTRY, "json")
    assert json.loads(edited) == {
        **document,
        "mcpServers": {**(servers or {}), "cortex": ENTRY.whole()},
    }
    rest = iter(edited)
    assert all(character in rest for character in text)  # a subsequence


@pytest.mark.parametrize(
    "text",
    [
        "",
        'model = "m" # mine\n',
        '[mcp_servers.other]\ncommand = "x" # why\n\n[tui]\na = 1\n',
        "[mcp_servers]\n",
        "mcp_servers = {}\nb = 1\n",
        'mcp_servers = {a = {command = "x"}} # all\nb = 1\n',
        'mcp_servers.a.command = "x"\n',
        "[mcp_servers.a]\nx = 1\n[tui]\nb = 2\n[mcp_servers.b]\nx = 1\n",
        '[mcp_servers.cortex]\ncommand = "old" # keep\nenv = {A = "1"}\ntimeout = 7\n[tui]\n',
        "[mcp_servers.a]\r\nx = 1\r\n",
    ],
)
def test_every_form_of_a_toml_file_says_the_same_plus_the_entry(text: str) -> None:
    keys = ("mcp_servers", "cortex")
    before = tomllib.loads(text)
    edited = with_entry(text, keys, ENTRY, "toml")
    after = tomllib.loads(edited)
    old = before.get("mcp_servers", {}).get("cortex", {})
    servers = after.pop("mcp_servers")
    assert servers.pop("cortex") == {**ENTRY.whole(), **old, **ENTRY.fixed}
    others = before.pop("mcp_servers", {})
    others.pop("cortex", None)
    assert (after, servers) == (before, others)
    assert with_entry(edited, keys, ENTRY, "toml") == edited
    assert all(comment in edited for comment in re.findall(r"#.*", text))
    assert edited.count("\n") == edited.count("\r\n") or "\r\n" not in text


def test_what_the_owner_set_in_the_entry_stays_and_a_wrong_command_is_corrected(
    shell: Shell,
) -> None:
    path = shell.project / ".roo" / "mcp.json"
    path.parent.mkdir()
    own = {"env": {"A": "1"}, "command": "gone", "timeout": 300, "alwaysAllow": ["graph_search"]}
    path.write_text(json.dumps({"mcpServers": {"cortex": own}}))
    shell.run("config", "roo", "--write")
    entry = at(parsed(path), SERVERS)
    assert entry["command"] == executable()[0]
    assert {key: entry[key] for key in ("env", "timeout", "alwaysAllow")} == {
        key: own[key] for key in ("env", "timeout", "alwaysAllow")
    }


def test_a_copy_of_what_stood_there_is_kept_and_the_mode_too(shell: Shell) -> None:
    path = shell.home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text('model = "m"\n')
    path.chmod(0o600)
    backup = Path(shell.config("codex", "--write")["backup"])
    assert re.fullmatch(r"config\.toml\.bak-\d{14}", backup.name)
    assert backup.read_text() == 'model = "m"\n'
    assert {stat.S_IMODE(file.stat().st_mode) for file in (path, backup)} == {0o600}
    assert sorted(path.parent.iterdir()) == [path, backup]


def test_a_link_stays_a_link(shell: Shell) -> None:
    kept = shell.home / "dotfiles" / "mcp.json"
    kept.parent.mkdir()
    kept.write_text("{}")
    link = shell.home / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(kept)
    shell.run("config", "cursor", "--global", "--write")
    assert link.is_symlink()
    assert "cortex" in kept.read_text()


# What is refused


@pytest.mark.parametrize(
    ("name", "file", "text", "place"),
    [
        ("roo", ".roo/mcp.json", '{"mcpServers": {\n  "a": 1\n  "b": 2}}', (3, 3)),
        ("roo", ".roo/mcp.json", '{"mcpServers": {}} // plain JSON here', (1, 20)),
        ("cursor", ".cursor/mcp.json", '{\n  // fine\n  "a": [1, 2\n}', (4, 1)),
        ("codex", ".codex/config.toml", 'a = 1\nb = = "x"\n', (2, 5)),
        ("codex", ".codex/config.toml", "a = 1\na = 2\n", (2, None)),
        ("vscode", ".vscode/mcp.json", "[1]", (1, 1)),
    ],
)
def test_a_broken_file_is_refused_with_its_place_and_left_as_it_was(
    name: str, file: str, text: str, place: tuple[int, int | None], shell: Shell
) -> None:
    path = shell.project / file
    path.parent.mkdir()
    path.write_text(text)
    said = shell.run("config", name, "--project", str(shell.project), "--write", code=2)
    line, column = place
    assert f"line {line}, column {column or ''}" in said
    assert str(path) in said
    assert path.read_text() == text
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("inside", ["[]", "3", '{"cortex": 3, "mcpServers": null}'])
def test_an_entry_of_another_kind_is_replaced_only_where_it_is_ours(inside: str) -> None:
    text = f'{{"mcpServers": {inside}}}'
    if inside.startswith("{"):
        assert json.loads(with_entry(text, SERVERS, ENTRY, "json"))["mcpServers"] == {
            "cortex": ENTRY.whole(),
            "mcpServers": None,
        }
        return
    with pytest.raises(InvalidError, match="mcpServers is no object"):
        with_entry(text, SERVERS, ENTRY, "json")


def test_a_remote_server_of_this_name_is_not_replaced(shell: Shell) -> None:
    path = shell.project / ".mcp.json"
    text = '{"mcpServers": {"cortex": {"type": "http", "url": "http://127.0.0.1:8000/mcp"}}}'
    path.write_text(text)
    said = shell.run("config", "claude-code", "--write", code=1)
    assert "conflict" in said
    assert path.read_text() == text


def test_a_file_that_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"by": "its host"}')
    with pytest.raises(ConflictError):
        write_text(path, "{}", '{"mcpServers": {}}')
    assert path.read_text() == '{"by": "its host"}'
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("claude",), "Did you mean 'claude-code'"),
        (("emacs",), "openclaw, opencode"),
        (("cline", "--project", "."), "--global"),
        (("cursor", "--project", ".", "--global"), "exclude each other"),
        (("cursor", "--project", "nowhere"), "is no folder"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_can(
    arguments: tuple[str, ...], part: str, shell: Shell
) -> None:
    assert part in shell.run("config", *arguments, code=2)


# Where

WINDOWS = {"USERPROFILE": r"C:\Users\ann", "APPDATA": r"C:\Users\ann\AppData\Roaming"}
MAC = {"HOME": "/Users/ann"}
LINUX = {"HOME": "/home/ann"}
STORAGE = r"C:\Users\ann\AppData\Roaming\Code\User\globalStorage"
SETTINGS = r"settings\mcp_settings.json"


@pytest.mark.parametrize(
    ("name", "platform", "env", "path"),
    [
        ("zoo", "win32", WINDOWS, rf"{STORAGE}\zoocodeorganization.zoo-code\{SETTINGS}"),
        ("roo", "win32", WINDOWS, rf"{STORAGE}\rooveterinaryinc.roo-cline\{SETTINGS}"),
        ("vscode", "darwin", MAC, "/Users/ann/Library/Application Support/Code/User/mcp.json"),
        ("vscode", "win32", WINDOWS, r"C:\Users\ann\AppData\Roaming\Code\User\mcp.json"),
        ("vscode", "linux", LINUX | {"XDG_CONFIG_HOME": "/x"}, "/x/Code/User/mcp.json"),
        ("kilo", "win32", WINDOWS, r"C:\Users\ann\.config\kilo\kilo.jsonc"),
        ("opencode", "darwin", MAC, "/Users/ann/.config/opencode/opencode.json"),
        ("codex", "win32", WINDOWS, r"C:\Users\ann\.codex\config.toml"),
        ("codex", "linux", LINUX | {"CODEX_HOME": "/c"}, "/c/config.toml"),
        ("claude-code", "win32", WINDOWS, r"C:\Users\ann\.claude.json"),
        ("claude-code", "linux", LINUX | {"CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"),
        ("cline", "darwin", MAC, "/Users/ann/.cline/data/settings/cline_mcp_settings.json"),
        ("openclaw", "linux", LINUX | {"OPENCLAW_CONFIG_PATH": "/o.json"}, "/o.json"),
        ("openclaw", "win32", WINDOWS, r"C:\Users\ann\.openclaw\openclaw.json"),
        ("gemini", "win32", WINDOWS, r"C:\Users\ann\.gemini\settings.json"),
    ],
)  # fmt: skip
def test_the_users_file_lies_where_the_host_looks(
    name: str, platform: Platform, env: dict[str, str], path: str
) -> None:
    places = Places(platform, env)
    assert str(BY_NAME[name].files("user", places, places.home)[0]) == path


@pytest.mark.parametrize(
    ("name", "there", "used"),
    [
        ("zoo", [], ".zoo/mcp.json"),
        ("zoo", [".roo/rules/own.md"], ".roo/mcp.json"),
        ("zoo", [".roo/mcp.json", ".zoo/rules/own.md"], ".roo/mcp.json"),
        ("zoo", [".roo/mcp.json", ".zoo/mcp.json"], ".zoo/mcp.json"),
        ("kilo", [], ".kilo/kilo.jsonc"),
        ("kilo", ["kilo.json"], "kilo.json"),
        ("opencode", ["opencode.jsonc"], "opencode.jsonc"),
        ("opencode", [], "opencode.json"),
    ],
)
def test_a_file_or_folder_that_the_host_uses_already_is_preferred(
    name: str, there: list[str], used: str, tmp_path: Path
) -> None:
    for file in there:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    files = BY_NAME[name].files("project", Places("linux", LINUX), tmp_path)
    assert chosen(files, tmp_path) == tmp_path / used


def test_without_a_host_their_files_are_listed(shell: Shell) -> None:
    shown = shell.run("config")
    rows = json.loads(shell.run("config", "--json"))["hosts"]
    assert [row["host"] for row in rows] == NAMES
    assert all(row[row["default"]] in shown for row in rows)


@pytest.mark.parametrize("host", HOSTS, ids=NAMES)
def test_the_readme_names_the_hosts_usual_file(host: Host) -> None:
    table = next(line for line in readme_rows() if re.search(rf"\b{host.name}\b", line[:30]))
    places = Places("linux", {"HOME": "~"})
    shown = host.project[0] if host.default == "project" else str(host.user(places)[0])
    assert f"`{shown}`" in table
    rules = host.rules or [str(host.user_rules(places)[0])]
    assert f"`{rules[0]}`" in table


def readme_rows() -> list[str]:
    return [
        line
        for line in (ROOT / "README.md").read_text("utf-8").splitlines()
        if line.startswith("| ") and line.count("|") == 5
    ]
