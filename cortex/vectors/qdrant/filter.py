"""Conditions on points, in the form of Qdrant's REST interface (plain JSON values)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cortex.domain.values import Generation, NodeId, WorkspaceId
from cortex.vectors.index import VectorFilter

Json = dict[str, Any]


def within(workspaces: Sequence[WorkspaceId], where: VectorFilter | None = None) -> Json:
    """Points of these workspaces that pass the filter."""
    must: list[Json] = [_any("workspace_id", set(workspaces))]
    if where is None:
        return {"must": must}
    if where.types:
        must.append(_any("node_type", {kind.value for kind in where.types}))
    if where.layer is not None:
        must.append(_is("layer", where.layer.value))
    must.extend(_is("tags", tag) for tag in sorted(where.tags))
    if where.statuses:
        must.append(_any("status", {status.value for status in where.statuses}))
    if where.created_from is not None or where.created_to is not None:
        span = {"gte": where.created_from, "lte": where.created_to}
        must.append({"key": "created_at", "range": {k: v for k, v in span.items() if v}})
    return {"must": must}


def named(ids: Sequence[NodeId], workspace: WorkspaceId | None) -> Json:
    """Points of these ids; with a workspace, only those that are in it."""
    must: list[Json] = [{"has_id": list(ids)}]
    if workspace is not None:
        must.append(_is("workspace_id", workspace))
    return {"must": must}


def not_newer(version: Generation) -> Json:
    """Points of the same epoch up to this change, and those of any other epoch."""
    older = {"key": "seq", "range": {"lte": version.seq}}
    return {"should": [older, {"must_not": [_is("epoch", version.epoch)]}]}


def _is(key: str, value: str) -> Json:
    return {"key": key, "match": {"value": value}}


def _any(key: str, values: Iterable[str]) -> Json:
    return {"key": key, "match": {"any": sorted(values)}}
