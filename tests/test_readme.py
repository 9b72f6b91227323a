"""The README's examples, run as they stand there."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cortex.domain.taxonomy import NodeType, RelationType
from cortex.tools.catalogue import TOOLS
from cortex.tools.resources import RESOURCES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(folder)}
    return subprocess.run(
        arguments,
        cwd=folder,
        env={**env, "CORTEX_HOME": str(folder / "data")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_python_example_runs(tmp_path: Path) -> None:
    [example] = blocks("python")
    done = run([sys.executable, "-c", example], tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_first_success_finds_the_file_and_line(tmp_path: Path) -> None:
    project = tmp_path / "my-project"
    project.mkdir()
    (project / "auth.md").write_text(
        "# Auth\n\n## Tokens\n\nThe token is checked in the gateway.\n"
    )
    [commands] = [block for block in blocks("sh") if block.startswith("cortex ingest")]
    for line in commands.splitlines():
        words = shlex.split(line.replace("~", str(tmp_path)), comments=True)
        done = run([sys.executable, "-m", *words], tmp_path)
        assert done.returncode == 0, done.stderr
    shown = "".join(done.stdout.split())
    assert "checkedinthegateway" in shown
    assert "my-project/auth.md:3" in shown


def test_the_host_configuration_is_json_that_starts_the_server() -> None:
    [text] = blocks("json")
    server = json.loads(text)["mcpServers"]["cortex"]
    assert server["args"] == ["serve", "--workspace", "my-project"]


def test_the_table_of_tools_is_the_catalogue() -> None:
    table = re.findall(r"^\| `([a-z_]+)` \|", README, re.M)
    assert sorted(table) == sorted(tool.name for tool in TOOLS)


def test_every_type_relation_and_resource_is_named() -> None:
    words = set(re.findall(r"[a-z_]+", README))
    assert {kind.value for kind in NodeType} <= words
    assert {kind.value for kind in RelationType} <= words
    assert all(resource.uri_template in README for resource in RESOURCES)


@pytest.mark.parametrize(
    "command",
    [
        "serve",
        "demo",
        "ingest",
        "import",
        "search",
        "recall",
        "entities",
        "open",
        "status",
        "reindex",
        "config",
        "rules",
        "show",
        "edit",
        "pin",
        "archive",
        "restore-node",
        "delete",
        "relate",
        "history",
        "timeline",
        "churn",
        "lineage",
        "idle",
        "workspace",
        "models",
        "health",
        "diff",
        "impact",
        "path",
        "undo",
        "compact",
        "dream",
        "observe",
        "doctor",
    ],
)
def test_every_command_explains_itself(command: str, tmp_path: Path) -> None:
    done = run([sys.executable, "-m", "cortex", command, "--help"], tmp_path)
    assert done.returncode == 0
    assert "Usage: cortex" in done.stdout
    assert f"`cortex {command}" in README
