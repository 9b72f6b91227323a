"""How far the memory may look at the disk: the project, and what a person had ingested.

Filerefs are written by agents and may come from anyone's file. So neither the path nor the
root that a node names opens anything: a path is asked about only where it lies, links
followed, inside the project of this process or inside a folder that a person named to
`cortex ingest` on this memory (kept in `meta`, which no tool writes).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from cortex.config import FILE_NAME, Settings
from cortex.store.database import Snapshot, Transaction
from cortex.store.meta import INGESTED_ROOTS


class Reach:
    """Files and folders that may be looked at, each with all below it; for one answer.

    It keeps where folders really are, so that many files of one folder cost it once.
    """

    def __init__(self, roots: Iterable[Path | str]) -> None:
        real = (os.path.realpath(root) for root in roots)
        self._roots = tuple(root for root in real if not _is_too_wide(root))
        self._folders: dict[str, str] = {}

    def allows(self, path: Path) -> bool:
        """Whether the absolute `path` lies inside, links followed, and is not our own file.

        Whoever opens and closes SQLite's file drops the locks that this process holds on it.
        """
        folder, name = os.path.split(path)
        if os.path.islink(path) or name in ("", ".", ".."):
            real = os.path.realpath(path)  # unlike Path.resolve it ends at a circle of links
        else:
            if folder not in self._folders:
                self._folders[folder] = os.path.realpath(folder)
            real = os.path.join(self._folders[folder], name)
        if os.path.basename(real).startswith(FILE_NAME):
            return False
        return any(real == root or real.startswith(f"{root}{os.sep}") for root in self._roots)


def _is_too_wide(root: str) -> bool:
    """The file system's root and a home folder are no project: hosts start servers there."""
    return root == os.path.dirname(root) or root == os.path.realpath(Path.home())


def project_of(settings: Settings) -> Path:
    """The folder that relative paths start from: the project, else where the process runs."""
    return settings.project or Path.cwd()


def reach_of(snapshot: Snapshot, settings: Settings) -> Reach:
    """How far this process may look, on behalf of what this memory holds."""
    return Reach((project_of(settings), *ingested_roots(snapshot)))


def ingested_roots(snapshot: Snapshot) -> tuple[str, ...]:
    """The files and folders that people named to `cortex ingest`, absolute, in order."""
    text = snapshot.meta.find(INGESTED_ROOTS)
    roots = json.loads(text) if text else []
    return tuple(root for root in roots if isinstance(root, str))


def note_ingested(transaction: Transaction, root: Path) -> None:
    """Remember that a person had this file or folder ingested."""
    roots = sorted({*ingested_roots(transaction), str(root)})
    transaction.meta.set(INGESTED_ROOTS, json.dumps(roots))


def forget_ingested(transaction: Transaction) -> None:
    """Forget what was ingested where the file came from: that was another person's word."""
    transaction.meta.set(INGESTED_ROOTS, "[]")
