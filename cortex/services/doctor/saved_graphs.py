"""The check of saved graphs: each file is whole, of this memory, and says what the store says.

A file is read before the transaction begins, so that one which a live server puts there
meanwhile is not from the future. Cost: what loading takes, and a pass over the tables.
Corner: files that the log no longer leads on from, as after a compaction, or of another
version, are not used, and replaced when their graph is saved next: no fault.
"""

from __future__ import annotations

from enum import Enum, auto
from pathlib import Path
from typing import Final

from cortex.domain.values import WorkspaceId
from cortex.graph.saved import Head, Outdated, Unfit, read_columns, read_head
from cortex.graph.shelf import Shelf, can_follow
from cortex.graph.workspace import UNBUILT, WorkspaceGraph
from cortex.services.doctor.caches import differences
from cortex.services.doctor.findings import BY_FIX, Case, Finding, State, fine, found
from cortex.store.database import Snapshot

_CHECK: Final = "saved graphs"


class _Use(Enum):
    COMPARED = auto()
    UNUSED = auto()


def check_saved_graphs(case: Case) -> Finding:
    """The files of graphs beside the database: readable, of a workspace that is here, true."""
    shelf = Shelf(case.engine.database.path, writable=False)
    files = shelf.files()
    wrong: dict[Path, str] = {}
    left: dict[Path, str] = {}
    used = unused = 0
    for done, path in enumerate(files):
        try:
            with path.open("rb") as file:
                head = read_head(file)
                read_columns(file, head)
            with case.engine.database.read() as snapshot:
                if head.workspace not in snapshot.nodes.workspaces():
                    left[path] = f"{path.name}: there is no workspace {head.workspace!r}"
                    continue
                if fault := _fault(snapshot, shelf, path, head):
                    wrong[path] = f"{path.name}, of {head.workspace}: {fault}"
                    continue
                use = _compare(snapshot, shelf, head)
        except FileNotFoundError:  # replaced or removed by a live server
            continue
        except Outdated:
            use = _Use.UNUSED
        except (Unfit, OSError) as error:
            wrong[path] = f"{path.name}: {error}"
            continue
        if isinstance(use, str):
            wrong[path] = f"{path.name}, of {head.workspace}: {use}"
        used += use is _Use.COMPARED
        unused += use is _Use.UNUSED
        case.step(done + 1, len(files))
    if wrong or left:
        said = "derived: --fix deletes them, and the graphs are built from the store"
        state = State.FAULT if wrong else State.WARNING
        both = wrong | left
        return found(_CHECK, both.values(), said, BY_FIX, rows=list(both), state=state)
    return fine(_CHECK, used, f"file and log = store, {unused} not in use")


def _fault(snapshot: Snapshot, shelf: Shelf, path: Path, head: Head) -> str:
    """Why a file that is whole cannot be one that this memory wrote; "" where it can."""
    if shelf.path(WorkspaceId(head.workspace)) != path:
        return "it is named as another workspace's"
    generation = snapshot.generation()
    if head.epoch != generation.epoch or head.seq < generation.floor:
        return ""
    end = max(generation.seq, generation.floor)
    if head.seq > end:
        return f"it is from change {head.seq}, and the log ends with {end}"
    if head.seq > generation.floor and snapshot.changes.moment(head.seq) != head.moment:
        return f"change {head.seq} of the log is another than it was saved after"
    return ""


def _compare(snapshot: Snapshot, shelf: Shelf, head: Head) -> _Use | str:
    """Whether file and log lead to what the tables say; else where they do not."""
    if not can_follow(head.epoch, head.seq, head.size(), snapshot.generation()):
        return _Use.UNUSED
    graph = WorkspaceGraph(WorkspaceId(head.workspace), shelf)
    graph.catch_up(snapshot)
    if graph.saved_at == UNBUILT:  # too much came since
        return _Use.UNUSED
    wrong = list(differences(snapshot, graph))
    if not wrong:
        return _Use.COMPARED
    return wrong[0] if len(wrong) == 1 else f"{wrong[0]}, and {len(wrong) - 1} more"
