"""The command line run in this process, in a project of a user with a home of his own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cortex.cli.app import run


class Shell:
    """`home` is the user's, `project` the folder with `.git` that is the working directory."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = folder
        self.project = folder / "my-project"
        (self.project / ".git").mkdir(parents=True)
        self._capsys = capsys

    def run(self, *arguments: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as left:
            run(arguments)
        shown = self._capsys.readouterr()
        assert left.value.code == code, shown.err
        return shown.out if code == 0 else shown.err

    def config(self, *arguments: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.run("config", *arguments, "--json"))
        return answer


def shell_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    """A shell whose home is `folder`; no variable of a host points elsewhere."""
    made = Shell(folder, capsys)
    monkeypatch.chdir(made.project)
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "OPENCLAW_STATE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("OPENCLAW_CONFIG_PATH", raising=False)
    return made
