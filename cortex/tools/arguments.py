"""The types that a tool's parameters are written in.

Plain `str`, `int`, `float`, `bool`, `tuple[str, ...]`, `dict[str, Any]` and `Literal` are read
by the same rules (`reading.py`); the names below add bounds, meaning, or the domain's lists.
A parameter's own words go beside its type: `query: Annotated[Text, "what to look for"]`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema

from cortex.domain.taxonomy import Layer, NodeType, RelationType, Status, parse_kind
from cortex.domain.values import WorkspaceId, workspace_name
from cortex.tools.schema import KIND

K = TypeVar("K", NodeType, RelationType, Status, Layer)


def _one(kinds: type[K]) -> Callable[[Any, ValidationInfo], K]:
    def parse(value: Any, info: ValidationInfo) -> K:
        return parse_kind(kinds, value, info.field_name or "type")

    return parse


def _each(kinds: type[K]) -> Callable[[Any, ValidationInfo], list[K]]:
    def parse(values: Any, info: ValidationInfo) -> list[K]:
        return [parse_kind(kinds, value, info.field_name or "types") for value in values]

    return parse


def _named(kinds: type[StrEnum], description: str) -> WithJsonSchema:
    """The schema of one member. Parsing is the domain's, which knows where own names go."""
    options = [str(kind) for kind in kinds]
    return WithJsonSchema(
        {"type": "string", "description": description, "enum": options, KIND: "string"}
    )


def _listed(description: str) -> WithJsonSchema:
    """The schema of several; the list of names is in the error, for it costs 100 tokens a tool."""
    return WithJsonSchema(
        {"type": "array", "description": description, "items": {"type": "string"}}
    )


Text = Annotated[str, Field()]
Texts = Annotated[tuple[str, ...], Field()]
Flag = Annotated[bool, Field()]
Data = Annotated[
    dict[str, Any],
    Field(description="further fields, any JSON object"),
]
Items = Annotated[
    tuple[str | dict[str, Any], ...],
    WithJsonSchema({"type": "array", "items": {"type": "string"}, KIND: "items"}),
]

Id = Annotated[str, Field(json_schema_extra={KIND: "id"})]
NodeRef = Annotated[Id, Field(description="node id, or 8+ characters of it")]
Workspace = Annotated[
    WorkspaceId,
    AfterValidator(workspace_name),
    WithJsonSchema(
        {"type": "string", "description": "default: this project's workspace", KIND: "id"}
    ),
]
Cursor = Annotated[Id, Field(description="next_cursor of the page before")]
Key = Annotated[Id, Field(description="repeat it to retry the same write safely", max_length=200)]

NodeKind = Annotated[NodeType, BeforeValidator(_one(NodeType)), _named(NodeType, "node type")]
NodeKinds = Annotated[
    tuple[NodeType, ...], BeforeValidator(_each(NodeType)), _listed("only these node types")
]
RelationKind = Annotated[
    RelationType, BeforeValidator(_one(RelationType)), _named(RelationType, "relation type")
]
NodeRefs = Annotated[
    tuple[str, ...],
    WithJsonSchema(
        {
            "type": "string",
            "description": "node id, 8+ characters of it, or a file's path; several: a,b",
            KIND: "array",
        }
    ),
]
RelationKinds = Annotated[
    tuple[RelationType, ...],
    BeforeValidator(_each(RelationType)),
    WithJsonSchema(
        {"type": "string", "description": "relation types, a,b; default all", KIND: "array"}
    ),
]
StatusKind = Annotated[Status, BeforeValidator(_one(Status)), _named(Status, "status")]
LayerKind = Annotated[Layer, BeforeValidator(_one(Layer)), _named(Layer, "vector layer")]

Depth = Annotated[int, Field(ge=1, le=10, description="hops")]
Limit = Annotated[int, Field(ge=1, le=200, description="at most so many")]
Weight = Annotated[float, Field(ge=0, le=1)]
FromTime = Annotated[Text, Field(description="ISO 8601 start, UTC unless said")]
ToTime = Annotated[Text, Field(description="ISO 8601 end; a date includes its day")]
