"""`make hosts`: real hosts from npm read what `cortex config` writes; do they connect?

python tests/hosts/run.py [FOLDER]     FOLDER keeps the installed hosts for the next run

Each host gets a home of its own and nothing of this user's. What asks for a login or a model
is not run: `mcp list` and its like start the server and list its tools, except Codex's, which
only reads the file. Not a part of `make test`: it downloads about a gigabyte.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

NODE = "node@24"  # what the newest of them ask for, whatever this machine has
ARCH = {"x86_64": "x64", "AMD64": "x64", "aarch64": "arm64"}.get(platform.machine(), "arm64")


@dataclass(frozen=True)
class Real:
    """A host: its packages, its question, and the answer that means yes."""

    name: str
    packages: tuple[str, ...]
    ask: tuple[str, ...]
    yes: str
    options: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()


HOSTS = (
    # A project's file waits for approval in Claude Code, so the user's is written.
    Real(
        "claude-code",
        ("@anthropic-ai/claude-code",),
        ("claude", "mcp", "list"),
        r"cortex: .*Connected",
        ("--global",),
    ),
    Real("gemini", ("@google/gemini-cli",), ("gemini", "mcp", "list"), r"cortex: .*Connected"),
    Real("opencode", ("opencode-ai",), ("opencode", "mcp", "list"), r"cortex .*connected"),
    Real("codex", ("@openai/codex",), ("codex", "mcp", "list"), r"cortex .*enabled"),
    # Its install script wants builds for machines that are not this one.
    Real(
        "kilo",
        ("@kilocode/cli", f"@kilocode/cli-{sys.platform}-{ARCH}"),
        ("kilo", "mcp", "list"),
        r"cortex .*connected",
        flags=("--ignore-scripts",),
    ),
    Real(
        "openclaw",
        ("openclaw",),
        ("openclaw", "mcp", "probe", "cortex"),
        r"cortex: \d+ tools",
    ),
)


def installed(real: Real, folder: Path) -> Path | None:
    """The folder of the host's programs, or None when it does not install here.

    The node beside it, once there, runs the install scripts: some ask for a newer one.
    """
    newer = str(folder / "node" / "node_modules" / ".bin")
    env = {**os.environ, "PATH": os.pathsep.join([newer, os.environ["PATH"]])}
    place = folder / real.name
    programs = place / "node_modules" / ".bin"
    if not (programs / real.ask[0]).exists():
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text("{}")
        command = ["npm", "install", "--no-audit", "--no-fund", *real.flags, *real.packages]
        done = subprocess.run(
            command, cwd=place, env=env, capture_output=True, text=True, check=False
        )
        if done.returncode or not (programs / real.ask[0]).exists():
            print(done.stderr.strip()[-500:])
            return None
    return programs


def asked(real: Real, programs: Path, node: Path, scratch: Path) -> tuple[str, str]:
    """Write the entry with the product, ask the host; its verdict and what it said."""
    home, project = scratch / real.name, scratch / real.name / "project"
    (project / ".git").mkdir(parents=True)
    env = {
        "HOME": str(home),
        "PATH": os.pathsep.join([str(node), str(programs), "/usr/local/bin", "/usr/bin", "/bin"]),
        "NO_COLOR": "1",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    cortex = Path(sys.executable).with_name("cortex")
    subprocess.run(
        [cortex, "config", real.name, "--write", *real.options],
        cwd=project,
        env=env,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    done = subprocess.run(
        real.ask,
        cwd=project,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    return ("yes" if re.search(real.yes, said) else "NO"), said


def main() -> int:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else Path(temporary) / "hosts"
        node = installed(Real("node", (NODE,), ("node",), ""), folder)
        verdicts = {}
        for real in HOSTS:
            programs = installed(real, folder)
            if programs is None or node is None:
                verdicts[real.name] = "not installed"
                continue
            began = time.monotonic()
            verdict, said = asked(real, programs, node, Path(temporary))
            verdicts[real.name] = (
                f"{verdict}  ({' '.join(real.ask)}, {time.monotonic() - began:.1f} s)"
            )
            if verdict == "NO":
                print(said)
    for name, verdict in verdicts.items():
        print(f"{name:<12} {verdict}")
    return 1 if any(verdict.startswith("NO") for verdict in verdicts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
