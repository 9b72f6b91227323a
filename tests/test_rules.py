"""`cortex rules`: a few lines for the agent, where its host reads them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cortex.cli.host_formats import HOSTS
from cortex.cli.rules import BEGIN, END, RULES, with_rules
from cortex.domain.errors import InvalidError
from cortex.tools.catalogue import TOOLS
from tests.shell import Shell, shell_of

NAMES = [host.name for host in HOSTS]


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    return shell_of(tmp_path, monkeypatch, capsys)


def test_the_rules_are_short_and_name_only_tools_that_exist() -> None:
    assert len(RULES) < 1500
    named = set(re.findall(r"`([a-z]+_[a-z_]+)`", RULES)) - {"parent_id"}
    assert named <= {tool.name for tool in TOOLS}
    assert {"desktop_open", "graph_search", "graph_add_node", "graph_supersede"} <= named


@pytest.mark.parametrize("name", NAMES)
def test_a_second_write_changes_nothing(name: str, shell: Shell) -> None:
    first = json.loads(shell.run("rules", name, "--write", "--json"))
    path = Path(first["path"])
    text = path.read_text("utf-8")
    assert RULES in text
    second = json.loads(shell.run("rules", name, "--write", "--json"))
    assert (first["changed"], second["changed"]) == (True, False)
    assert path.read_text("utf-8") == text


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("roo", ".roo/rules/cortex.md"),
        ("zoo", ".zoo/rules/cortex.md"),
        ("cline", ".clinerules/cortex.md"),
        ("claude-code", "CLAUDE.md"),
        ("cursor", ".cursor/rules/cortex.mdc"),
        ("vscode", ".github/copilot-instructions.md"),
        ("codex", "AGENTS.md"),
        ("gemini", "GEMINI.md"),
    ],
)
def test_they_go_to_the_file_that_the_host_reads(
    name: str,
    file: str,
    shell: Shell,
) -> None:
    shell.run("rules", name, "--write")
    assert (shell.project / file).is_file()


def test_what_stood_in_the_file_stays_and_older_rules_are_replaced(
    shell: Shell,
) -> None:
    path = shell.project / "CLAUDE.md"
    path.write_text(f"# Ours\n\n{BEGIN}\nold rules\n{END}\n\nBuild with make.\n")
    shell.run("rules", "claude-code", "--write")
    assert path.read_text() == f"# Ours\n\n{BEGIN}\n{RULES}{END}\n\nBuild with make.\n"
    [backup] = shell.project.glob("CLAUDE.md.bak-*")
    assert "old rules" in backup.read_text()


def test_they_are_put_after_what_the_file_says() -> None:
    assert with_rules("# Ours") == f"# Ours\n\n{BEGIN}\n{RULES}{END}\n"
    crlf = with_rules("# Ours\r\n")
    assert crlf.count("\n") == crlf.count("\r\n")


@pytest.mark.parametrize("text", [f"a\n{BEGIN}\nb", f"{END}\n", f"{BEGIN}{END}{BEGIN}{END}"])
def test_damaged_marks_are_refused(text: str) -> None:
    with pytest.raises(InvalidError, match="marks"):
        with_rules(text)


def test_cursor_reads_them_in_every_conversation(shell: Shell) -> None:
    shell.run("rules", "cursor", "--write")
    text = (shell.project / ".cursor" / "rules" / "cortex.mdc").read_text()
    head, front, _ = text.split("---\n", 2)
    assert head == ""
    assert "alwaysApply: true" in front


def test_a_single_file_of_cline_rules_takes_them_too(shell: Shell) -> None:
    path = shell.project / ".clinerules"
    path.write_text("Be brief.\n")
    shell.run("rules", "cline", "--write")
    assert path.read_text() == f"Be brief.\n\n{BEGIN}\n{RULES}{END}\n"


def test_without_write_they_are_shown_and_nothing_is_made(shell: Shell) -> None:
    assert RULES in shell.run("rules", "gemini")
    assert RULES in shell.run("rules")
    assert not (shell.project / "GEMINI.md").exists()


def test_the_users_own_rules_can_be_meant(shell: Shell) -> None:
    shell.run("rules", "claude-code", "--global", "--write")
    assert RULES in (shell.home / ".claude" / "CLAUDE.md").read_text()
    assert "--project" in shell.run("rules", "cursor", "--global", code=2)
