"""Checks of the caches: the graph and the vector index, built here and compared with the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from cortex.domain.errors import CortexError, UnavailableError
from cortex.domain.taxonomy import NodeType, RelationType, Status
from cortex.domain.values import WorkspaceId
from cortex.graph.workspace import WorkspaceGraph
from cortex.services.doctor.derived import stored_fingerprint
from cortex.services.doctor.findings import BY_FIX, Case, Finding, fine, found, skipped
from cortex.services.meaning.points import catch_up
from cortex.services.meaning.semantic import model_key
from cortex.services.meaning.vector_files import vector_files
from cortex.store.database import Snapshot
from cortex.vectors.embedded import EmbeddedIndex

_TRIES: Final = 3


def check_graph(case: Case) -> Finding:
    """Ids, ends, types, states and weights of each workspace's graph are the tables'."""
    wrong: list[str] = []
    count = 0
    with case.engine.database.read() as snapshot:
        places = snapshot.nodes.workspaces()
    for done, place in enumerate(places):
        with case.engine.database.read() as snapshot:
            graph = WorkspaceGraph(place)
            graph.catch_up(snapshot)
            wrong += differences(snapshot, graph)
            count += graph.size()
        case.step(done + 1, len(places))
    if wrong:
        said = "the graph in memory is not the store"
        return found("graph", wrong, said, "restart cortex, and report this: it builds it wrong")
    return fine("graph", count, "cache = store, built here")


def differences(snapshot: Snapshot, graph: WorkspaceGraph) -> Iterator[str]:
    """Where a graph of the snapshot says otherwise than its tables; nothing where it does not."""
    place = graph.workspace
    key_of: dict[str, int] = {}
    nodes = set()
    for key, node, kind, status in snapshot.derived_audit.nodes_of(place):
        key_of[node] = key
        nodes.add((key, NodeType(kind), Status(status)))
    for key, kind_, state in sorted(graph.nodes() ^ nodes):
        yield f"node {key} of {place}: {kind_}, {state} on one side alone"
    edges: Counter[tuple[int, int, int, RelationType, bool]] = Counter()
    weights: dict[int, float] = {}
    for key, near, far, name, weight, derived in snapshot.derived_audit.relations_of(place):
        if near in key_of and far in key_of:  # else told by the workspaces or foreign keys
            edges[key, key_of[near], key_of[far], RelationType(name), bool(derived)] += 1
            weights[key] = weight
    there = graph.edges()
    for key, *_ in sorted((there - edges) + (edges - there)):
        yield f"relation {key} of {place} on one side alone"
    for key, weight in weights.items():
        if graph.weight(key) != weight:
            yield f"relation {key} of {place}: weight {graph.weight(key)}, stored {weight}"


def check_index(case: Case) -> Finding:
    """The vector index holds the nodes that have vectors: built here, or asked of the server."""
    fingerprint = stored_fingerprint(case)
    if fingerprint is None:
        return skipped("vector index", "no text is embedded yet")
    with case.engine.database.read() as snapshot:
        places = snapshot.nodes.workspaces()
    wrong: list[str] = []
    count = 0
    try:
        for done, place in enumerate(places):
            if case.semantic.pushing is None:
                held, missing, extra = _embedded(
                    case, place, model_key(fingerprint), fingerprint.dimension
                )
            else:
                held, missing, extra = _served(case, place)
            count += held
            wrong += [f"{node} of {place} is missing" for node in sorted(missing)]
            wrong += [f"{node} of {place} is no longer a node" for node in sorted(extra)]
            case.step(done + 1, len(places))
    except CortexError as error:
        if case.semantic.pushing is None:
            said = "the index cannot be built"
            return found("vector index", [error.message], said, "cortex reindex")
        return skipped("vector index", error.message)
    backend = "embedded" if case.semantic.pushing is None else "qdrant"
    if wrong:
        mend = "cortex reindex" if case.semantic.pushing is None else BY_FIX
        return found("vector index", wrong, f"{backend} index and store differ", mend)
    return fine("vector index", count, f"{backend} = store")


def _embedded(
    case: Case, place: WorkspaceId, model: str, dimension: int
) -> tuple[int, frozenset[str], frozenset[str]]:
    """From its file, where it has one, as a server would take it."""
    files = replace(vector_files(case.engine, model, dimension), read_only=True)
    index = EmbeddedIndex(dimension, files)
    with case.engine.database.read() as snapshot:
        catch_up(snapshot, index, model, dimension, place)
        here = snapshot.vectored.ids(place, model)
    there = index.ids(place)
    if not index.file_is_whole(place):
        raise UnavailableError(f"the file of the vectors of {place} is damaged")
    return len(here), here - there, there - here


def _served(case: Case, place: WorkspaceId) -> tuple[int, frozenset[str], frozenset[str]]:
    """Others may write meanwhile, and are pushed a moment later: what differs is asked again."""
    assert case.semantic.pushing is not None
    for _ in range(_TRIES):
        case.semantic.wait(place, case.settings.search_wait)
        parity = case.semantic.pushing.parity(place)
        if not parity.missing and not parity.extra:
            break
    fingerprint = stored_fingerprint(case)
    with case.engine.database.read() as snapshot:
        model = "" if fingerprint is None else model_key(fingerprint)
        held = len(snapshot.vectored.ids(place, model))
    return held, frozenset(parity.missing), frozenset(parity.extra)
