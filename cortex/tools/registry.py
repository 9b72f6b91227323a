"""Tools: a typed function made into a name, a flat schema, hints, and a call."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar

from cortex.domain.errors import InvalidError
from cortex.tools.reading import Reader
from cortex.tools.schema import Parameters, parameters_of, public_schema

M = TypeVar("M")
P = ParamSpec("P")

ALL: Final = "all"


class Written(list[dict[str, Any]]):
    """JSON objects, and the JSON text of the whole list, which was made to measure it.

    Not to be changed any more: the text is what is sent.
    """

    def __init__(self, items: Sequence[dict[str, Any]], written: bytes) -> None:
        super().__init__(items)
        self.written = written


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool says: `text` for the model, `structured` for a program; each is complete."""

    text: str
    structured: dict[str, Any] = field(default_factory=dict)

    def noting(self, notes: Sequence[str]) -> Answer:
        """The same answer that also says what was done to its arguments."""
        if not notes:
            return self
        said = [*self.structured.get("notes", ()), *notes]
        lines = "".join(f"\nnote: {note}" for note in notes)
        return Answer(self.text + lines, {**self.structured, "notes": said})


@dataclass(frozen=True, slots=True)
class Hints:
    """The four hints of the protocol; `open_world` is false, for memory is a closed place."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool = False


@dataclass(frozen=True)
class ToolSpec(Generic[M]):
    """A tool as the server offers it; `function` takes the memory, then its arguments by name.

    The model behind the schema is built when it is first asked for (about 1 ms), so a tool
    that is left out costs nothing.
    """

    name: str
    title: str
    description: str
    sets: frozenset[str]
    writes: bool
    hints: Hints
    function: Callable[..., Answer] = field(repr=False)

    @cached_property
    def parameters(self) -> Parameters:
        return parameters_of(self.function)

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """A flat JSON Schema: one plain type a property, nothing to resolve."""
        return public_schema(self.parameters)

    def call(self, memory: M, arguments: Mapping[str, Any]) -> Answer:
        """Read the arguments, run, and note what was clamped. Raises InvalidError."""
        reader = Reader(self.name, self.parameters)
        values = reader.read(arguments)
        return self.function(memory, **values).noting(reader.notes)


def tool(
    *,
    title: str,
    sets: Collection[str],
    writes: bool,
    destructive: bool = False,
    idempotent: bool = False,
) -> Callable[[Callable[Concatenate[M, P], Answer]], ToolSpec[M]]:
    """Make a tool of `def name(memory: M, argument: Text, …) -> Answer`.

    The function's name is the tool's, its docstring the description, its signature the
    schema; the first parameter is the memory and may be typed by a name that exists for the
    type checker alone. A reading tool is idempotent whatever was said.
    """
    if isinstance(sets, str):
        raise TypeError(f"sets={sets!r} would be its letters; write sets=({sets!r},)")

    def decorate(function: Callable[Concatenate[M, P], Answer]) -> ToolSpec[M]:
        name = function.__name__
        description = inspect.getdoc(function)
        if not description:
            raise TypeError(f"{name} has no docstring, which is its description")
        return ToolSpec(
            name=name,
            title=title,
            description=_paragraphs(description),
            sets=frozenset(sets),
            writes=writes,
            hints=Hints(
                read_only=not writes,
                destructive=writes and destructive,
                idempotent=idempotent or not writes,
            ),
            function=function,
        )

    return decorate


def select(tools: Sequence[ToolSpec[M]], names: str, read_only: bool) -> tuple[ToolSpec[M], ...]:
    """The tools that `names` asks for, in their own order, each once.

    `names` is a comma-separated list of set names, tool names, or "all". With `read_only`
    the writing ones are left out, whatever was asked. Raises InvalidError for a name that
    is neither, and when nothing would be left.
    """
    sets = sorted(frozenset[str]().union(*(spec.sets for spec in tools)))
    valid = f"Valid: {ALL}, {', '.join(sets)}, or the names of single tools"
    asked = [name.strip().lower() for name in names.split(",") if name.strip()]
    known = [ALL, *sets, *(spec.name for spec in tools)]
    for name in asked:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            raise InvalidError(
                f"No set of tools and no tool is called {name!r}",
                valid,
                f"Did you mean {near[0]!r}" if near else "Name one of these",
            )
    wanted = {ALL, *asked} if ALL in asked else set(asked)
    chosen = tuple(
        spec
        for spec in tools
        if (ALL in wanted or spec.name in wanted or spec.sets & wanted)
        and not (read_only and spec.writes)
    )
    if not chosen:
        raise InvalidError(f"No tool is left of {names!r}", valid, "Name at least one")
    return chosen


def _paragraphs(text: str) -> str:
    """Each paragraph on one line: line breaks in a docstring are the editor's, not the reader's."""
    return "\n".join(" ".join(part.split()) for part in text.split("\n\n") if part.strip())
