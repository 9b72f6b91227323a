"""Strategies: a tool's arguments as its schema allows them, and as it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

HUGE = 1 << 20


@dataclass(frozen=True)
class Call:
    """One request: a tool with its arguments, or with `uri` a resource to read."""

    tool: str = ""
    arguments: Any = None
    uri: str = ""


_BITS = (
    "", " ", "\n", "\x00", "\ud800", "\udfff\ud800", "é", "日本語", "🦓", "\u202e", "ﬀ", "\ufffd",
    "'", '"', "\\", "%", "--", ";", "NEAR(", "*", "AND", "OR", "a:b", "POL-358", "src/auth/jwt.py",
    "../..", "%2e%2e/", "file:///etc/passwd", "{", "[", "]}", "null", "-1", "1e999", "NaN", "true",
    "0x1", "2026-05-14", "2026-13-40", "9999-12-31T23:59:59Z", "<script>", "${x}", "zebra", "token",
)  # fmt: skip
_LARGE = {
    "beyond": lambda: "x" * (HUGE + 1),
    "lists": lambda: "[" * 5_000,
    "objects": lambda: '{"a":' * 300 + "1" + "}" * 300,
}
_EDGES = (0, 1, -1, 2**31, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308)

_short = st.lists(st.sampled_from(_BITS) | st.text(max_size=20), max_size=6).map("".join)
_long = st.builds(
    lambda bit, times: (bit or "x")[:2] * times, st.sampled_from(_BITS), st.integers(1, 20_000)
)
_large = st.sampled_from(tuple(_LARGE)).map(lambda name: _LARGE[name]())
TEXTS: st.SearchStrategy[str] = st.integers(0, 19).flatmap(
    lambda at: _large if at == 19 else _long if at > 16 else _short
)
"""From nothing to beyond the limit; most are short."""

_PLAIN = (
    st.none()
    | st.booleans()
    | st.sampled_from(_EDGES)
    | st.integers()
    | st.floats(width=32)
    | TEXTS
)
ANYTHING: st.SearchStrategy[Any] = st.recursive(
    _PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_short, inner, max_size=3),
    max_leaves=6,
)
"""Any JSON value, numbers at the edges included."""


def _fitting(name: str, schema: Mapping[str, Any], ids: Sequence[str]) -> st.SearchStrategy[Any]:
    """Values that the schema allows, so that calls come through to the engine."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if name == "workspace_id":
        return st.sampled_from(("w", "other", ""))
    if name.endswith("_id"):
        return st.sampled_from([*ids, *(each[:8] for each in ids), "ffffffff"])
    match schema.get("type"):
        case "integer":
            low = schema.get("minimum", 0)
            return st.integers(low, max(low, min(schema.get("maximum", 100), 100)))
        case "number":
            return st.floats(0, 1)
        case "boolean":
            return st.booleans()
        case "array":
            return st.lists(st.sampled_from(_BITS), max_size=4)
        case "object":
            keys = st.sampled_from(("text", "title", "kind", "k"))
            return st.dictionaries(keys, TEXTS, max_size=3)
    return TEXTS


def arguments(schema: Mapping[str, Any], ids: Sequence[str]) -> st.SearchStrategy[Any]:
    """Arguments of one tool: mostly of the right shape, each field wrong now and then."""
    properties = schema.get("properties", {})
    required = set(schema.get("required", ()))

    def value(name: str) -> st.SearchStrategy[Any]:
        good = _fitting(name, properties[name], ids)
        return st.integers(0, 9).flatmap(lambda at: ANYTHING if at == 9 else good)

    right = st.fixed_dictionaries(
        {name: value(name) for name in properties if name in required},
        optional={name: value(name) for name in properties if name not in required},
    )
    names = st.sampled_from([*properties, "nodeid", "\x00"])
    partial = st.dictionaries(names, ANYTHING, max_size=4)
    return st.integers(0, 9).flatmap(
        lambda at: ANYTHING if at == 9 else partial if at == 8 else right
    )


def uris(ids: Sequence[str]) -> st.SearchStrategy[str]:
    """Addresses of resources, encoded, broken and foreign."""
    kinds = st.sampled_from(
        (
            "cortex://node/",
            "cortex://graph/",
            "cortex://desktop/",
            "cortex://search/",
            "file:///",
            "",
        )
    )
    ends = TEXTS.map(lambda text: text[:5_000]) | st.sampled_from(
        (*ids, "../../etc/passwd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%00", "%ff%fe", "a/b?c#d")
    )
    return st.builds(str.__add__, kinds, ends)


def calls(tools: Sequence[Mapping[str, Any]], ids: Sequence[str]) -> st.SearchStrategy[Call]:
    """One call of one of these tools, or a read of a resource."""
    each = [
        arguments(tool["inputSchema"], ids).map(lambda given, name=tool["name"]: Call(name, given))
        for tool in tools
    ]
    strange = st.builds(Call, TEXTS, ANYTHING)
    return st.one_of(*each, uris(ids).map(lambda uri: Call(uri=uri)), strange)
