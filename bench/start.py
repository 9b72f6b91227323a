"""Times the start of the real server: initialize and tools/list over stdio.

CPU is the server process's own, read when the list has arrived; wall time is the client's.
Run: python -m bench.start [--runs N].
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import psutil

from bench.timing import header


def start(home: str) -> tuple[float, float, int]:
    """Wall seconds, CPU seconds, characters of the list."""
    began = time.perf_counter()
    server = subprocess.Popen(
        [sys.executable, "-m", "cortex", "serve", "--home", home, "--workspace", "bench"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdin is not None
    assert server.stdout is not None

    def say(message: dict[str, Any]) -> None:
        assert server.stdin is not None
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        server.stdin.flush()

    client = {"name": "bench", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    say({"id": 1, "method": "initialize", "params": params})
    server.stdout.readline()
    say({"method": "notifications/initialized"})
    say({"id": 2, "method": "tools/list"})
    listing = server.stdout.readline()
    wall = time.perf_counter() - began
    used = psutil.Process(server.pid).cpu_times()
    server.stdin.close()
    server.wait(10)
    return wall, used.user + used.system, len(listing)


def main() -> None:
    """Start it several times, print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        figures = [start(home) for _ in range(given.runs + 1)][1:]
    wall, cpu, size = (statistics.median(each) for each in zip(*figures, strict=True))
    print(header())
    print(
        f"initialize + tools/list: {cpu:.2f} s CPU, {wall:.2f} s wall (target: < 1 s CPU), "
        f"{size:.0f} characters ({size / 4:.0f} tokens; target: 6,000)"
    )


if __name__ == "__main__":
    main()
