"""A tool's schema and the reading of its arguments, as models send them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cortex.domain.errors import InvalidError
from cortex.domain.taxonomy import NodeType, RelationType
from cortex.server.frames import Lines, TooLong
from cortex.tools.arguments import (
    Data,
    Depth,
    Flag,
    Items,
    Limit,
    NodeKind,
    NodeRef,
    RelationKinds,
    Text,
    Texts,
    Weight,
    Workspace,
)
from cortex.tools.registry import Answer, ToolSpec, select, tool
from cortex.tools.resource import ResourceSpec, find

if TYPE_CHECKING:
    from cortex.memory import Memory


@tool(title="Traverse", sets=("roo", "core"), writes=False)
def traverse(
    memory: Memory,
    start_id: NodeRef,
    relation: RelationKinds = (),
    depth: Depth = 3,
    direction: Literal["out", "in", "both"] = "out",
    limit: Limit = 50,
    type: NodeKind = NodeType.NOTE,
    text: Text = "",
    tags: Annotated[Texts, "labels"] = (),
    data: Data | None = None,
    subtasks: Items = (),
    weight: Weight = 1.0,
    pinned: Flag = False,
    workspace_id: Workspace | None = None,
) -> Answer:
    """Follow relations
    from a node.

    Use it after a search.
    """
    given = {name: value for name, value in locals().items() if name != "memory"}
    return Answer("ok", given)


@tool(title="Write", sets=("roo",), writes=True, destructive=True)
def write(memory: Memory, subtasks: Items, tags: Texts) -> Answer:
    """Write."""
    return Answer("ok", {"subtasks": subtasks, "tags": tags})


def got(name: str, value: Any) -> Any:
    return traverse.call(None, {"start_id": "a", name: value}).structured[name]  # type: ignore[arg-type]


def refusal(arguments: dict[str, Any], spec: ToolSpec[Any] = traverse) -> str:
    with pytest.raises(InvalidError) as caught:
        spec.call(None, arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Schema


def test_a_schema_has_one_plain_type_a_property_and_nothing_to_resolve() -> None:
    schema = traverse.input_schema
    text = json.dumps(schema)
    for word in ("$ref", "$defs", "anyOf", "oneOf", "allOf", "prefixItems", '"title"', "x-kind"):
        assert word not in text
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["start_id"]
    assert "memory" not in schema["properties"]
    types = {name: about["type"] for name, about in schema["properties"].items()}
    assert types == {
        "start_id": "string",
        "relation": "string",
        "depth": "integer",
        "direction": "string",
        "limit": "integer",
        "type": "string",
        "text": "string",
        "tags": "array",
        "data": "object",
        "subtasks": "array",
        "weight": "number",
        "pinned": "boolean",
        "workspace_id": "string",
    }


def test_a_schema_shows_bounds_defaults_options_and_words() -> None:
    shown = traverse.input_schema["properties"]
    assert shown["depth"] == {
        "type": "integer",
        "description": "hops",
        "minimum": 1,
        "maximum": 10,
        "default": 3,
    }
    assert shown["direction"]["enum"] == ["out", "in", "both"]
    assert shown["type"]["enum"] == list(NodeType)
    assert shown["type"]["default"] == "note"
    assert shown["tags"] == {"type": "array", "description": "labels", "items": {"type": "string"}}


def test_a_description_is_the_docstring_without_its_line_breaks() -> None:
    assert traverse.description == "Follow relations from a node.\nUse it after a search."


def test_a_parameter_of_two_types_is_refused_when_the_tool_is_made() -> None:
    @tool(title="Bad", sets=("roo",), writes=False)
    def bad(memory: object, value: int | str) -> Answer:
        """Bad."""
        return Answer("ok")

    with pytest.raises(TypeError, match="bad: value must have one plain JSON type"):
        _ = bad.input_schema


# Reading


@pytest.mark.parametrize("name", [*traverse.input_schema["properties"]])
@pytest.mark.parametrize("empty", ["", None])
def test_empty_text_and_null_are_as_if_absent(name: str, empty: Any) -> None:
    if name == "start_id":
        assert "needs start_id" in refusal({"start_id": empty})
    else:
        default = traverse.call(None, {"start_id": "a"}).structured[name]  # type: ignore[arg-type]
        assert got(name, empty) == default


@pytest.mark.parametrize(
    ("name", "sent", "read"),
    [
        ("depth", "3", 3),
        ("depth", 3.0, 3),
        ("weight", "0.5", 0.5),
        ("pinned", "TRUE", True),
        ("pinned", "false", False),
        ("tags", "a, b", ("a", "b")),
        ("tags", "a", ("a",)),
        ("tags", '["a, b", "c"]', ("a, b", "c")),
        ("tags", ["a, b"], ("a, b",)),
        ("tags", ["a", "", None], ("a",)),
        ("data", '{"a": {"b": 1}}', {"a": {"b": 1}}),
        ("data", {}, {}),
        ("subtasks", '["a", {"title": "b"}]', ("a", {"title": "b"})),
        ("subtasks", ["a, b", '{"title": "c"}'], ("a, b", {"title": "c"})),
        ("subtasks", {"title": "b"}, ({"title": "b"},)),
        ("direction", " Both ", "both"),
        ("type", " Decision ", NodeType.DECISION),
        ("relation", "Depends-On, blocks", (RelationType.DEPENDS_ON, RelationType.BLOCKS)),
        ("text", "a\ud800\x00b", "a\ufffd\ufffdb"),
        ("text", '{"a": 1}', '{"a": 1}'),
        ("data", {"\ud800": ["\x00"]}, {"\ufffd": ["\ufffd"]}),
        ("workspace_id", " shop ", "shop"),
    ],
)
def test_what_can_mean_one_thing_only_is_read(name: str, sent: Any, read: Any) -> None:
    assert got(name, sent) == read


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("depth", -1),
        ("depth", 0),
        ("depth", "three"),
        ("depth", 2.5),
        ("depth", True),
        ("depth", [3]),
        ("weight", "nan"),
        ("weight", float("inf")),
        ("weight", 10**400),
        ("pinned", "yes"),
        ("pinned", 1),
        ("text", 5),
        ("text", ["a"]),
        ("tags", "[a, b]"),
        ("tags", '{"a": 1}'),
        ("tags", ["a", 1]),
        ("tags", [["a"]]),
        ("data", "a=1"),
        ("data", "[1]"),
        ("data", '{"a": NaN}'),
        ("data", '{"a":' * 100 + "1" + "}" * 100),
        ("data", '{"a":' * 100_000),
        ("data", {"a": [[]] * 3, "b": json.loads("[" * 80 + "]" * 80)}),
        ("subtasks", "write it, then test it"),
        ("subtasks", "[a, b]"),
        ("subtasks", ["a", " "]),
        ("subtasks", ["a", {}]),
        ("subtasks", ["{a"]),
        ("subtasks", [1]),
        ("direction", "up"),
        ("type", "foo"),
        ("relation", "contains, foo"),
        ("start_id", "a\ud800"),
        ("start_id", "a\x00b"),
        ("workspace_id", "a\nb"),
        ("workspace_id", "a" * 201),
    ],
)
def test_what_could_mean_two_things_or_none_is_refused_by_name(name: str, sent: Any) -> None:
    line = refusal({"start_id": "a", name: sent})
    assert line.startswith(f"invalid: {name}")
    assert "Valid: " in line
    assert len(line) < 600


def test_a_number_above_its_maximum_is_clamped_and_said() -> None:
    answer = traverse.call(None, {"start_id": "a", "limit": 10**9, "weight": 2})  # type: ignore[arg-type]
    assert (answer.structured["limit"], answer.structured["weight"]) == (200, 1.0)
    assert answer.structured["notes"] == [
        "limit 1000000000 was clamped to 200",
        "weight 2.0 was clamped to 1",
    ]
    assert answer.text.startswith("ok\nnote: limit 1000000000 was clamped to 200\nnote: ")


def test_an_unknown_argument_is_refused_with_the_accepted_ones_and_the_nearest() -> None:
    line = refusal({"startid": "a"})
    assert "no argument 'startid'" in line
    assert "Valid: start_id, relation, depth" in line
    assert line.endswith("Did you mean 'start_id'.")


def test_each_missing_argument_is_named() -> None:
    assert "write needs subtasks and tags" in refusal({}, write)


@pytest.mark.parametrize("empty", [[], "[]", [""], ","])
def test_a_required_list_is_never_empty(empty: Any) -> None:
    assert refusal({"subtasks": ["a"], "tags": empty}, write).startswith("invalid: tags")


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda c: st.lists(c) | st.dictionaries(st.text(), c),
    )
)
def test_any_json_value_is_read_or_refused_in_one_line(value: Any) -> None:
    lines = []
    for name in traverse.input_schema["properties"]:
        try:
            lines.append(traverse.call(None, {"start_id": "a", name: value}).text)  # type: ignore[arg-type]
        except InvalidError as error:
            lines.append(str(error))
    assert not [line for line in lines if "\n" in line and "\nnote: " not in line]


# Selection


def test_tools_are_chosen_by_set_or_name_in_their_own_order() -> None:
    tools: tuple[ToolSpec[Any], ...] = (traverse, write)
    assert select(tools, "roo", read_only=False) == (traverse, write)
    assert select(tools, "write, core", read_only=False) == (traverse, write)
    assert select(tools, "all", read_only=True) == (traverse,)


def test_an_unknown_set_is_refused_with_the_valid_ones() -> None:
    with pytest.raises(InvalidError, match=r"'rooo'\. Valid: all, core, roo"):
        select((traverse,), "rooo", read_only=False)


def test_a_selection_that_leaves_nothing_is_refused() -> None:
    for names, read_only in (("", False), ("write", True)):
        with pytest.raises(InvalidError):
            select((traverse, write), names, read_only)


# Resources


def spec(template: str) -> ResourceSpec[None]:
    return ResourceSpec(template, template, template, template, lambda _, values: str(values))


@pytest.mark.parametrize(
    ("uri", "template", "values"),
    [
        ("cortex://node/a", "cortex://node/{id}", {"id": "a"}),
        ("cortex://node/a/history", "cortex://node/{id}/history", {"id": "a"}),
        ("cortex://node/a%2Fb/history", "cortex://node/{id}/history", {"id": "a/b"}),
        ("cortex://search/a/../b?c#d", "cortex://search/{query}", {"query": "a/../b?c#d"}),
        ("cortex://search/%2Fetc%2F..", "cortex://search/{query}", {"query": "/etc/.."}),
        ("cortex://search/%ff%ED%A0%80", "cortex://search/{query}", {"query": "\ufffd" * 4}),
        ("cortex://status", "cortex://status", {}),
    ],
)
def test_a_uri_finds_the_most_fixed_template_and_decodes_its_values(
    uri: str, template: str, values: dict[str, str]
) -> None:
    templates = ("node/{id}", "node/{id}/history", "search/{query}", "status")
    found = find([spec(f"cortex://{name}") for name in templates], uri)
    assert found is not None
    assert (found[0].uri_template, found[1]) == (template, values)


@pytest.mark.parametrize("uri", ["cortex://node/", "cortex://status/", "xcortex://node/a", ""])
def test_a_uri_of_no_template_is_not_found(uri: str) -> None:
    assert find([spec("cortex://node/{id}"), spec("cortex://status")], uri) is None


# Lines


@given(st.lists(st.binary(max_size=12), max_size=12))
def test_lines_do_not_depend_on_how_the_bytes_were_cut(chunks: list[bytes]) -> None:
    cut, whole = Lines(1000), Lines(1000)
    lines = [line for chunk in chunks for line in cut.feed(chunk)] + list(cut.end())
    data = b"".join(chunks)
    assert lines == [*whole.feed(data), *whole.end()]
    assert lines == (data.split(b"\n") if data.rpartition(b"\n")[2] else data.split(b"\n")[:-1])


def test_a_line_over_the_limit_keeps_its_two_ends_and_the_next_is_whole() -> None:
    lines = Lines(4)
    got = [line for chunk in (b"ab", b"cde", b"f\ngh\n") for line in lines.feed(chunk)]
    assert got[0] == TooLong(6, b"ab", b"abcdef")
    assert got[1] == b"gh"
