"""Memory and pace of embedding with the offline model, for texts poor and rich in tokens.

Each text is embedded by a process of its own, whose resident memory is told before, at its peak and
after. Run: python -m bench.embedding [--seed S] (Linux).
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.sentences import sentence
from bench.timing import header
from cortex.domain.chunking import chunk
from cortex.vectors.embedder import Embedder
from cortex.vectors.models import resolve_model

_SIGNS: Final = (
    "記憶とは過去の出来事を覚えておき必要なときに思い出す心の働きであり東京の図書館で静かに本を読む"
    "人々は昨日の会議で決まった方針を確認した"
)
_AT_ONCE: Final = 16  # as many chunks as indexing hands over at most


def japanese(seed: int) -> list[str]:
    """The chunks of a text of 40,000 characters, each a token or more."""
    dice = random.Random(seed)
    text = "".join(dice.choice(_SIGNS) for _ in range(40_000))
    return [piece.text for piece in chunk(text, "")]


def english(seed: int) -> list[str]:
    """200 texts of 600 characters."""
    dice = random.Random(seed)
    return [" ".join(sentence(dice) for _ in range(20))[:600] for _ in range(200)]


TEXTS: Final = {"40,000 Japanese characters": japanese, "200 English chunks": english}


def child(what: str, seed: int) -> None:
    """Embed one kind of text; what it took, as JSON."""
    texts = TEXTS[what](seed)
    with tempfile.TemporaryDirectory() as folder:
        embedder = Embedder(resolve_model("offline"), cache_dir=Path(folder), idle_seconds=600.0)
        embedder.warm()
        before = _resident("VmRSS")
        wall, cpu = time.perf_counter(), time.process_time()
        for begin in range(0, len(texts), _AT_ONCE):
            embedder.embed_passages(texts[begin : begin + _AT_ONCE])
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        after, peak = _resident("VmRSS"), _resident("VmHWM")
        told = {"chunks": len(texts), "wall": len(texts) / wall, "cpu": len(texts) / cpu}
        print(json.dumps(told | {"before": before, "peak": peak, "after": after}))
        embedder.close()


def _resident(field: str) -> int:
    """MB of this process."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) * 1024 // 1_000_000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child", choices=tuple(TEXTS))
    given = parser.parse_args()
    if given.child:
        child(given.child, given.seed)
        return
    print(f"seed {given.seed}; {header()}")
    print("| texts | chunks | a second, CPU | wall | MB before | peak | after |")
    print("|---|---|---|---|---|---|---|")
    for what in TEXTS:
        command = [sys.executable, "-m", "bench.embedding", "--child", what]
        command += ["--seed", str(given.seed)]
        told = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        print(f"| {what} | {told['chunks']} | {told['cpu']:.1f} | {told['wall']:.1f} "
              f"| {told['before']} | {told['peak']} | {told['after']} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
