"""The flat JSON Schema of a function's parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

KIND: Final = "x-kind"  # how a raw value is read where its type alone does not say; not published

_PLAIN: Final = frozenset({"string", "integer", "number", "boolean", "array", "object"})
_NESTED: Final = frozenset({"$ref", "$defs", "anyOf", "oneOf", "allOf", "prefixItems"})
_DUE: Final = inspect.Parameter.empty


@dataclass(frozen=True)
class Parameters:
    """A tool's parameters, the memory left out: the model that checks, a schema each."""

    model: type[BaseModel]
    schemas: Mapping[str, Mapping[str, Any]]
    required: tuple[str, ...]


def parameters_of(function: Callable[..., Any]) -> Parameters:
    """Read a tool function's signature, all but its first parameter.

    Raises TypeError where a parameter has no annotation, or would not have one plain type.
    """
    name = getattr(function, "__name__", repr(function))
    declared = list(inspect.signature(function).parameters.values())[1:]
    hints = _hints(function, [parameter.name for parameter in declared])
    fields: dict[str, Any] = {}
    for parameter in declared:
        if parameter.name not in hints:
            raise TypeError(f"{name}: {parameter.name} has no annotation")
        default = ... if parameter.default is _DUE else parameter.default
        about = _description(hints[parameter.name])
        default = Field(default, description=about) if about else default
        fields[parameter.name] = (hints[parameter.name], default)
    model = create_model(
        name,
        __config__=ConfigDict(extra="forbid", protected_namespaces=()),
        **fields,
    )
    properties = model.model_json_schema().get("properties", {})
    schemas = {key: _flat(f"{name}: {key}", schema) for key, schema in properties.items()}
    required = tuple(p.name for p in declared if p.default is _DUE)
    return Parameters(model, schemas, required)


def public_schema(parameters: Parameters) -> dict[str, Any]:
    """The schema as `tools/list` shows it."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            name: {key: value for key, value in about.items() if key != KIND}
            for name, about in parameters.schemas.items()
        },
        "additionalProperties": False,
    }
    if parameters.required:
        schema["required"] = list(parameters.required)
    return schema


def _hints(function: Callable[..., Any], names: list[str]) -> dict[str, Any]:
    """Annotations of the named parameters alone.

    The memory's type is imported for the type checker only, so that a tool's file costs no
    import of the engine; evaluating every annotation would fail on it.
    """
    annotations = {
        name: note for name, note in inspect.get_annotations(function).items() if name in names
    }
    return get_type_hints(
        SimpleNamespace(__annotations__=annotations),
        globalns=getattr(function, "__globals__", {}),
        include_extras=True,
    )


def _description(hint: Any) -> str | None:
    """A bare text in `Annotated[Text, "what to look for"]` is the parameter's description."""
    if get_origin(hint) is not Annotated:
        return None
    return next((note for note in reversed(get_args(hint)[1:]) if isinstance(note, str)), None)


def _flat(where: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """One parameter's schema without titles, without null, without an empty default."""
    merged = dict(schema)
    options = [option for option in merged.pop("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        merged = {**options[0], **merged}
    merged.pop("title", None)
    if merged.get("default", 0) in (None, "", [], {}):
        del merged["default"]
    for key in ("items", "additionalProperties"):
        if isinstance(inner := merged.get(key), dict):
            merged[key] = {name: value for name, value in inner.items() if name != "title"}
    plain = merged.get("type") in _PLAIN and not _NESTED & (merged.keys() | _inner(merged))
    if not plain or len(options) > 1:
        raise TypeError(f"{where} must have one plain JSON type; it came out as {dict(schema)}")
    order = ("type", "description", "enum", "minimum", "maximum", "default")
    return {key: merged[key] for key in order if key in merged} | merged


def _inner(schema: Mapping[str, Any]) -> set[str]:
    items = schema.get("items", {})
    return set(items) if isinstance(items, dict) else set()
