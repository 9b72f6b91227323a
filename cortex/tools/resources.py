"""Resources: the graph, a node, the desktop, and a search, as JSON by URI."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cortex.tools.desktop import desktop_open
from cortex.tools.graph import graph_get_node
from cortex.tools.render import further_data, names_of, node_json, relation_json
from cortex.tools.resource import ResourceSpec
from cortex.tools.vector import graph_search

if TYPE_CHECKING:
    from cortex.memory import Memory

_JSON: Final = "application/json"


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _graph(memory: Memory, values: Mapping[str, str]) -> str:
    overview = memory.reading.overview(values["workspace_id"])
    names = names_of(memory, [node.id for node in overview.nodes])
    return _dump(
        {
            "workspace_id": values["workspace_id"],
            "nodes": [node_json(node, cut=80, names=names) for node in overview.nodes],
            "relations": [relation_json(relation) for relation in overview.relations],
            "total": overview.total,
            "relations_total": overview.relations_total,
            "truncated": overview.truncated,
            "generation": overview.generation,
        }
    )


def _node(memory: Memory, values: Mapping[str, str]) -> str:
    structured = dict(graph_get_node.call(memory, {"node_id": [values["node_id"]]}).structured)
    node = memory.reading.whole(values["node_id"])
    whole: dict[str, Any] = {"text": node.text}
    if extra := further_data(node):
        whole["data"] = extra
    structured["node"] = {**structured["node"], **whole}
    return _dump(structured)


def _desktop(memory: Memory, values: Mapping[str, str]) -> str:
    return _dump(desktop_open.call(memory, {"workspace_id": values["workspace_id"]}).structured)


def _search(memory: Memory, values: Mapping[str, str]) -> str:
    return _dump(graph_search.call(memory, {"query": values["query"]}).structured)


RESOURCES: Final[tuple[ResourceSpec[Memory], ...]] = (
    ResourceSpec(
        "cortex://graph/{workspace_id}",
        "graph",
        "Session graph",
        "A workspace's nodes and relations, newest first, bounded",
        _graph,
        _JSON,
    ),
    ResourceSpec(
        "cortex://node/{node_id}",
        "node",
        "Node",
        "A node with its whole text and its surroundings",
        _node,
        _JSON,
    ),
    ResourceSpec(
        "cortex://desktop/{workspace_id}",
        "desktop",
        "Desktop",
        "The viewport, as desktop_open gives it",
        _desktop,
        _JSON,
    ),
    ResourceSpec(
        "cortex://search/{query}",
        "search",
        "Search",
        "Search results, as graph_search gives them",
        _search,
        _JSON,
    ),
)
