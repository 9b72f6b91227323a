"""Files that a question names: "what do we know about src/auth/jwt.py?"

A word that looks like a path (it has a slash, or a dot within) is looked up among the
workspace's filerefs, whole or by its unique end; a capitalised one (Makefile, LICENSE) as a
whole path alone. Cost: an index look-up a word, and one in the keyword index for at most
`_ENDS` words that look like a path. A question without such a word costs the look at it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cortex.domain.taxonomy import FILE_RELATIONS
from cortex.domain.values import Node, NodeId, WorkspaceId
from cortex.store.database import Snapshot

_WORD: Final = re.compile(r"[^\s\"'`<>()\[\]{},;|*]+")
_LINE: Final = re.compile(r":\d+(-\d+)?$")
_DOTTED: Final = re.compile(r"\w\.\w")
_WORDS: Final = 24
_ENDS: Final = 4
_ALIKE: Final = 200
_LINKED: Final = 500
# A file's own node comes after what is known of it, and before all else.
_ITSELF: Final = 0.55


def mentioned(
    snapshot: Snapshot, question: str, workspace: WorkspaceId, project: Path | None
) -> list[Node]:
    """The filerefs that the question names, in its order; an end that is not unique names none."""
    found: dict[NodeId, Node] = {}
    ends = 0
    for word in _candidates(question[:2000], project):
        files = snapshot.nodes.by_path(workspace, word)
        if not files and _is_path(word) and ends < _ENDS:
            ends += 1
            files = _ending(snapshot, workspace, word)
        found.update({file.id: file for file in files})
    return list(found.values())


def _ending(snapshot: Snapshot, workspace: WorkspaceId, end: str) -> list[Node]:
    """The one fileref whose path ends so; none where there are more."""
    keys = snapshot.keywords.paths(end, workspace, _ALIKE)
    if len(keys) == _ALIKE:
        return []  # there may be more than were looked at: too common to name one file
    files = snapshot.nodes.by_keys(keys)
    found = [file for file in files if str(file.data.get("path")).endswith(f"/{end}")]
    return found if len(found) == 1 else []


def knowledge_of(snapshot: Snapshot, files: list[Node]) -> dict[NodeId, float]:
    """What is known of the files, by the index relations: 1.0 each; the files themselves less."""
    scores = {file.id: _ITSELF for file in files}
    for file in files:
        for relation in snapshot.relations.incoming(file.id, FILE_RELATIONS, _LINKED):
            scores[relation.from_id] = 1.0
    return scores


def _candidates(question: str, project: Path | None) -> Iterator[str]:
    for match in list(_WORD.finditer(question))[:_WORDS]:
        word = match.group().removeprefix("file://").replace("\\", "/").rstrip(".:?!…")
        word = _LINE.sub("", word).removeprefix("./")
        if "://" in word or not (_is_path(word) or word[:1].isupper()):
            continue
        if project is not None and Path(word).is_absolute() and Path(word).is_relative_to(project):
            word = Path(word).relative_to(project).as_posix()
        yield word


def _is_path(word: str) -> bool:
    return "/" in word.strip("/") or _DOTTED.search(word) is not None
