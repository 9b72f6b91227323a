"""The product without a server: tools called in this process, and the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from cortex.memory import Memory
from cortex.tools.catalogue import TOOLS
from tests.harness import ROOT


def ask(memory: Memory, name: str, **arguments: Any) -> dict[str, Any]:
    """The structured content of a tool called on this memory."""
    tool = next(each for each in TOOLS if each.name == name)
    return dict(tool.call(memory, arguments).structured)


def told(memory: Memory, name: str, **arguments: Any) -> str:
    """The text of the same."""
    tool = next(each for each in TOOLS if each.name == name)
    return tool.call(memory, arguments).text


def start_cortex(home: Path, *arguments: str, **env: str) -> subprocess.Popen[str]:
    """`cortex …` as a person would run it on this data folder."""
    return subprocess.Popen(
        [sys.executable, "-m", "cortex", *arguments, "--home", str(home)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(home.parent), **env},
        cwd=home.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_cortex(home: Path, *arguments: str, **env: str) -> str:
    """What the command printed; it must succeed."""
    with start_cortex(home, *arguments, **env) as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out
