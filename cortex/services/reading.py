"""Reading the graph: nodes with their surroundings, traversals, reasoning chains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Literal

from cortex.domain.errors import InvalidError, NotFoundError
from cortex.domain.taxonomy import NodeType, RelationType, parse_kind
from cortex.domain.values import Node, Relation, WorkspaceId
from cortex.graph.expansion import subgraph
from cortex.graph.proximity import degree
from cortex.graph.traversal import traverse
from cortex.graph.walking import walk
from cortex.graph.workspace import WorkspaceGraph
from cortex.services.engine import Engine
from cortex.services.history import History
from cortex.services.naming import Known, ask, ask_within
from cortex.services.resolving import resolve_node
from cortex.services.warnings import Warnings, warnings_of
from cortex.store.database import Snapshot
from cortex.store.embeddings import IndexState

MAX_DEPTH: Final = 10
AROUND: Final = 10
"""How many nodes are shown around one, unless more are asked for."""
MOST_SHOWN: Final = 120
"""No page shows more nodes: each takes 200 characters of JSON, or 24 of a line, at least."""
Direction = Literal["out", "in", "both"]
Course = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Nodes with what lies around them.

    `nodes` are the others, nearest first, with their distance; `relations` join nodes that
    are shown; `total` counts all others within the depth. `warnings` are what the store knows;
    that a file changed stands in `known`, as far as one page shows the nodes.
    """

    starts: tuple[Node, ...]
    nodes: tuple[tuple[Node, int], ...]
    relations: tuple[Relation, ...]
    total: int
    truncated: bool
    warnings: Warnings
    index: IndexState | None
    degree: int
    known: Known
    generation: int


@dataclass(frozen=True, slots=True)
class Traversed:
    """What a traversal reached, by depth, then creation, then id."""

    start: Node
    nodes: tuple[tuple[Node, int], ...]
    relations: tuple[Relation, ...]
    total: int
    truncated: bool
    known: Known
    generation: int


@dataclass(frozen=True, slots=True)
class Walked:
    """A chain: the start, then each step with the relation that led there; `notes` name the
    heads of what is superseded in it."""

    path: tuple[tuple[Relation | None, Node], ...]
    notes: tuple[str, ...]
    known: Known
    generation: int


@dataclass(frozen=True, slots=True)
class Overview:
    """The newest nodes of a workspace and the relations between them."""

    nodes: tuple[Node, ...]
    relations: tuple[Relation, ...]
    total: int
    relations_total: int
    truncated: bool
    generation: int


class Reading:
    """Answers from the graph cache, at the generation that each answer reports."""

    def __init__(self, engine: Engine, history: History) -> None:
        self._engine = engine
        self._history = history

    @contextmanager
    def _around(
        self, references: Sequence[str], workspace: str | None
    ) -> Iterator[tuple[Snapshot, WorkspaceGraph, tuple[Node, ...]]]:
        """A view of the graph that the first node named is in, and the nodes named."""
        first, *others = references
        place = self._engine.workspace(workspace)
        elsewhere: WorkspaceId | None = None
        with self._engine.graphs.view(self._engine.database, place) as (snapshot, graph):
            start = resolve_node(snapshot, first, place, strict=workspace is not None)
            if start.workspace_id == place:
                yield snapshot, graph, (start, *_named(snapshot, others, place))
                return
            elsewhere = start.workspace_id
        with self._engine.graphs.view(self._engine.database, elsewhere) as (snapshot, graph):
            start = resolve_node(snapshot, start.id, elsewhere, strict=True)
            yield snapshot, graph, (start, *_named(snapshot, others, elsewhere))

    def get(
        self,
        references: Sequence[str],
        *,
        depth: int = 2,
        limit: int = AROUND,
        offset: int = 0,
        workspace: str | None = None,
    ) -> Surroundings:
        """Nodes and what surrounds them, both ways, all types but derived relations.

        `limit` nodes beside the `offset` of the pages before, which come first. A session root
        is shown but not walked through: everything is two steps from everything there.
        """
        if not references:
            raise InvalidError("no node named", "Valid: one id or several", "Pass node_id")
        with self._around(references, workspace) as (snapshot, graph, starts):
            finish = surroundings(self._engine, snapshot, graph, starts, depth, limit, offset)
        self._history.opened([node.id for node in starts])
        return finish()

    def traverse(
        self,
        reference: str,
        relations: Sequence[str] = (),
        *,
        depth: int = 3,
        direction: Direction = "out",
        types: Sequence[str] = (),
        limit: int = 2 * AROUND,
        offset: int = 0,
        derived: bool = False,
        workspace: str | None = None,
    ) -> Traversed:
        """Breadth first over relations of the given types (all when none is given).

        `limit` nodes beside the `offset` of the pages before, which come first. `types`
        chooses which nodes are returned, not which are walked through.
        """
        wanted = frozenset(parse_kind(RelationType, name, "relation") for name in relations)
        kinds = frozenset(parse_kind(NodeType, name, "types") for name in types)
        with self._around([reference], workspace) as (snapshot, graph, (start,)):
            found = graph.kept.found(
                ("traverse", start.key, wanted, depth, direction, kinds, offset + limit, derived),
                offset + limit,
                lambda: traverse(
                    graph,
                    start.key,
                    relations=wanted or None,
                    depth=depth,
                    direction=direction,
                    node_types=kinds or None,
                    limit=offset + limit,
                    include_derived=derived,
                ),
            )
            depths = dict(found.nodes)
            nodes = graph.kept.nodes(snapshot, [key for key, _ in found.nodes])
            relations_found = tuple(graph.kept.relations(snapshot, found.relations))
            asked = ask_within(self._engine, snapshot, graph, shown((start,), nodes, offset))
            seq = snapshot.generation().seq
        self._history.traversed(start, sorted(wanted), found.total)
        return Traversed(
            start,
            tuple((node, depths[node.key]) for node in nodes),
            relations_found,
            found.total,
            found.truncated,
            asked.known(),
            seq,
        )

    def walk(
        self,
        reference: str,
        *,
        steps: int = 5,
        direction: Course = "forward",
        workspace: str | None = None,
    ) -> Walked:
        """The reasoning chain from a node: the strongest relation at each step."""
        with self._around([reference], workspace) as (snapshot, graph, (start,)):
            steps_taken = walk(graph, start.key, steps, direction)
            crossed = [key for key, _ in steps_taken if key is not None]
            relations = {each.key: each for each in graph.kept.relations(snapshot, crossed)}
            passed = [key for _, key in steps_taken]
            nodes = {node.key: node for node in graph.kept.nodes(snapshot, passed)}
            path = tuple(
                (None if relation is None else relations[relation], nodes[node])
                for relation, node in steps_taken
            )
            if not path or path[0][1].id != start.id:
                path = ((None, start), *path)
            along = [node for _, node in path]
            warnings = warnings_of(snapshot, along, graph)
            asked = ask_within(self._engine, snapshot, graph, along)
            seq = snapshot.generation().seq
        self._history.traversed(start, ["walk"], len(path) - 1)
        return Walked(path, warnings, asked.known(), seq)

    def known(self, ids: Sequence[str]) -> Known:
        """What an answer must know of these ids, which came from elsewhere."""
        if not ids:
            return Known()
        with self._engine.database.read() as snapshot:
            asked = ask(self._engine, snapshot, ids)
        return asked.known()

    def whole(self, reference: str, workspace: str | None = None) -> Node:
        """One node."""
        place = self._engine.workspace(workspace)
        with self._engine.database.read() as snapshot:
            return resolve_node(snapshot, reference, place, strict=workspace is not None)

    def overview(self, workspace: str, limit: int = 100) -> Overview:
        """The newest `limit` active nodes and what joins them. Raises NotFoundError."""
        place = self._engine.workspace(workspace)
        with self._engine.database.read() as snapshot:
            root = snapshot.nodes.root(place)
            nodes = snapshot.nodes.newest(place, limit)
            if root is None and not nodes:
                known = ", ".join(snapshot.nodes.workspaces()) or "none yet"
                raise NotFoundError(
                    f"no workspace {workspace!r}", f"Known: {known}", "Read one of these"
                )
            relations = snapshot.relations.within([node.id for node in nodes], limit * 2)
            total, joined = snapshot.nodes.count(place), snapshot.relations.count(place)
            return Overview(
                tuple(nodes),
                tuple(relations),
                total,
                joined,
                total > len(nodes) or joined > len(relations),
                snapshot.generation().seq,
            )


def surroundings(
    engine: Engine,
    snapshot: Snapshot,
    graph: WorkspaceGraph,
    starts: tuple[Node, ...],
    depth: int,
    limit: int,
    offset: int = 0,
) -> Callable[[], Surroundings]:
    """Nodes and what surrounds them, read from one moment.

    What is returned asks the disk, and is to be called when the transaction is over.
    """
    keys = tuple(node.key for node in starts)
    found = graph.kept.found(
        ("subgraph", keys, depth, offset + limit),
        offset + limit,
        lambda: subgraph(graph, keys, depth, offset + limit),
    )
    depths = dict(found.nodes)
    nodes = graph.kept.nodes(snapshot, [key for key, _ in found.nodes])
    relations = tuple(graph.kept.relations(snapshot, found.relations))
    warnings = warnings_of(snapshot, starts, graph)
    state = snapshot.outbox.state(starts[0].key)
    relations_of_it = degree(graph, starts[0].key)
    asked = ask_within(engine, snapshot, graph, shown(starts, nodes, offset))
    seq = snapshot.generation().seq

    def finish() -> Surroundings:
        return Surroundings(
            starts,
            tuple((node, depths[node.key]) for node in nodes),
            relations,
            found.total,
            found.truncated,
            warnings,
            state,
            relations_of_it,
            asked.known(),
            seq,
        )

    return finish


def shown(starts: Sequence[Node], nodes: Sequence[Node], offset: int = 0) -> list[Node]:
    """What the page from `offset` on can show."""
    return [*starts, *nodes[offset:][:MOST_SHOWN]]


def _named(snapshot: Snapshot, references: Sequence[str], place: WorkspaceId) -> Iterator[Node]:
    return (resolve_node(snapshot, reference, place, strict=True) for reference in references)
