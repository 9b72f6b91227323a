"""What `.gitignore`, `.ignore` and `.cortexignore` hide below an ingested folder.

As git has it: the last line that fits decides, a deeper file before a higher one, and what
lies in a hidden folder stays hidden. `.cortexignore` overrules `.ignore`, and that
`.gitignore`. Where the folder lies in a repository, the files above it count, up to the
repository's root. Cost: each pattern's regular expression once a path.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from pathspec import GitIgnoreSpec, RegexPattern

IGNORE_FILES: Final = (".cortexignore", ".ignore", ".gitignore")  # the stronger first


@dataclass(frozen=True, slots=True)
class Line:
    """One pattern; `hides` is False after a "!"."""

    pattern: re.Pattern[str]
    hides: bool

    def fits(self, path: str, folder: bool) -> bool:
        """Whether it names this very path.

        The library's expression also fits what lies below a folder that it names, with the
        "/" after that folder as its group. The walk has judged the folders above by then,
        and the last line that fits them may be another: without this, `!docs/` would show
        what `*.md` hides in docs.
        """
        found = self.pattern.search(path)
        if found is not None and found.lastindex is None:
            return True
        if not folder:
            return False
        text = path + "/"
        ends = (self.pattern.search(text, start) for start in (0, len(path)))
        return any(end and end.lastindex and end.end() == len(text) for end in ends)


@dataclass(frozen=True, slots=True)
class Rules:
    """The ignore files of one folder, after those of the folders above it."""

    folder: Path
    lines: Mapping[str, tuple[Line, ...]]
    above: Rules | None = None

    def hides(self, path: Path, *, folder: bool) -> str | None:
        """The name of the ignore file that hides this path below the folder, or None."""
        for name in IGNORE_FILES:
            rules: Rules | None = self
            while rules is not None:
                if name in rules.lines:
                    relative = path.relative_to(rules.folder).as_posix()
                    for line in rules.lines[name]:
                        if line.fits(relative, folder):
                            return name if line.hides else None
                rules = rules.above
        return None

    def within(self, folder: Path, names: Collection[str] = IGNORE_FILES) -> Rules:
        """The rules for what lies in a folder at or below this one, where `names` lie.

        Raises OSError for an ignore file that cannot be read.
        """
        present = [name for name in IGNORE_FILES if name in names]
        lines = {name: found for name in present if (found := _read(folder / name))}
        return Rules(folder, lines, self) if lines else self


def rules_for(root: Path) -> Rules:
    """The rules from above an ingested folder, up to the root of its repository.

    Where they hide the folder itself they are left out: someone named it.
    """
    above = _up_to_repository(root)
    rules = Rules(above[0], {})
    for folder, inner in pairwise(above):
        rules = rules.within(folder)
        if rules.hides(inner, folder=True):
            return Rules(root, {})
    return rules


def _up_to_repository(root: Path) -> list[Path]:
    """The folders from the root of the repository down to `root`; `root` alone outside one."""
    folders = [root]
    for folder in (root, *root.parents):
        if folder is not root:
            folders.insert(0, folder)
        if os.path.lexists(folder / ".git"):
            return folders
    return [root]


def _read(path: Path) -> tuple[Line, ...]:
    """The patterns of an ignore file, the last one first: it decides."""
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, IsADirectoryError):
        return ()
    texts = os.fsdecode(raw).split("\n")
    return tuple(line for text in reversed(texts) for line in _line(text.removesuffix("\r")))


def _line(text: str) -> Iterator[Line]:
    try:
        patterns = GitIgnoreSpec.from_lines([text]).patterns
    except ValueError:
        return  # git, too, passes over a line that is no pattern, such as a single "!"
    for pattern in patterns:
        if isinstance(pattern, RegexPattern) and pattern.regex and pattern.include is not None:
            yield Line(pattern.regex, pattern.include)
