"""Reading the arguments of one call into values, or the one line that says why not."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NoReturn

from pydantic import ValidationError

from cortex.domain.errors import InvalidError
from cortex.tools.raw import MAX_EXACT, READERS, Unreadable, quoted, short
from cortex.tools.schema import KIND, Parameters

_FORMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "string": "text",
        "id": "an id or a name, without control characters",
        "integer": 'a whole number such as 3 or "3"',
        "number": 'a number such as 0.5 or "0.5"',
        "boolean": "true or false",
        "array": 'a list of texts ["a", "b"], that list as a JSON string, or "a,b"',
        "object": 'an object {"key": "value"}, or that object as a JSON string',
        "items": 'a list of texts or objects ["a", {"title": "b"}], or that list as a JSON string',
    }
)


class Reader:
    """One call's arguments; `notes` collects what was changed on the way in."""

    def __init__(self, tool: str, parameters: Parameters) -> None:
        self.notes: list[str] = []
        self._tool = tool
        self._parameters = parameters

    def read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the arguments that were given; an absent one keeps its default.

        Raises InvalidError: for an unknown name first, then for what is missing, then for
        the first argument that cannot be read.
        """
        self._refuse_unknown(arguments)
        given = {name: value for name, value in arguments.items() if not self._absent(name, value)}
        missing = [name for name in self._parameters.required if name not in given]
        if missing:
            raise InvalidError(
                f"{self._tool} needs {' and '.join(missing)}",
                "Valid: " + "; ".join(f"{name} is {self._form(name)}" for name in missing),
                f"Call it again with {' and '.join(missing)}",
            )
        values = {name: self._value(name, value) for name, value in given.items()}
        try:
            model = self._parameters.model.model_validate(values)
        except ValidationError as error:
            self._refuse_checked(error)
        return {name: getattr(model, name) for name in given}

    def _refuse_unknown(self, arguments: Mapping[str, Any]) -> None:
        accepted = list(self._parameters.schemas)
        for name in arguments:
            if name not in self._parameters.schemas:
                near = difflib.get_close_matches(name.lower(), accepted, 1, 0.5)
                raise InvalidError(
                    f"{self._tool} has no argument {quoted(name)}",
                    f"Valid: {', '.join(accepted) or 'none'}",
                    f"Did you mean {near[0]!r}" if near else "Leave it out",
                )

    def _absent(self, name: str, value: Any) -> bool:
        """Empty text and null say "I have none"; so does a blank where a blank cannot be meant."""
        if value is None:
            return True
        if self._kind(name) == "string":
            # A required text that is empty was said: an empty question has an empty answer.
            return value == "" and name not in self._parameters.required
        return isinstance(value, str) and not value.strip()

    def _kind(self, name: str) -> str:
        schema = self._parameters.schemas[name]
        return str(schema.get(KIND) or schema["type"])

    def _value(self, name: str, value: Any) -> Any:
        schema = self._parameters.schemas[name]
        try:
            read = READERS[self._kind(name)](value)
        except Unreadable as error:
            self._refuse(name, error.wrong, error.place)
        match schema["type"]:
            case "integer" | "number":
                return self._in_range(name, read)
            case "array" if not read and name in self._parameters.required:
                self._refuse(name, "is an empty list")
            case "string" if "enum" in schema and KIND not in schema:
                return self._option(name, read)
        return read

    def _in_range(self, name: str, value: float) -> float:
        """The number, clamped to its maximum with a note; below its minimum it is refused."""
        schema = self._parameters.schemas[name]
        low = schema.get("minimum", -math.inf)
        high = schema.get("maximum", MAX_EXACT if schema["type"] == "integer" else math.inf)
        if value < low:
            self._refuse(name, f"{short(value)} is below {low}")
        if value > high:
            self.notes.append(f"{name} {short(value)} was clamped to {high}")
            return type(value)(high)
        return value

    def _option(self, name: str, value: str) -> str:
        """The option meant, whatever its case, spaces and hyphens."""
        meant = value.strip().lower().replace("-", "_").replace(" ", "_")
        options: list[str] = self._parameters.schemas[name]["enum"]
        for option in options:
            if meant == option.lower().replace("-", "_"):
                return option
        near = difflib.get_close_matches(meant, options, 1)
        raise InvalidError(
            f"{name} {quoted(value)} is unknown",
            f"Valid: {self._form(name)}",
            f"Did you mean {near[0]!r}" if near else "Use one of these",
        )

    def _form(self, name: str) -> str:
        """The accepted forms of an argument, in words."""
        schema = self._parameters.schemas[name]
        if "enum" in schema:
            return ", ".join(schema["enum"])
        low, high = schema.get("minimum"), schema.get("maximum")
        bounds = {
            (False, False): "",
            (True, False): f", {low} or more",
            (False, True): f", {high} or less",
            (True, True): f", from {low} to {high}",
        }[low is not None, high is not None]
        return _FORMS[self._kind(name)] + bounds

    def _refuse(self, name: str, wrong: str, place: str = "") -> NoReturn:
        raise InvalidError(
            f"{name}{place} {wrong}", f"Valid: {self._form(name)}", f"Correct {name}"
        ) from None

    def _refuse_checked(self, error: ValidationError) -> NoReturn:
        """A constraint of the model that reading does not know, such as a pattern, in one line."""
        first = error.errors(include_url=False, include_context=False)[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        message = first["msg"][:1].lower() + first["msg"][1:]
        if name in self._parameters.schemas:
            self._refuse(name, f"is not accepted: {message}")
        raise InvalidError(f"{self._tool}: {message}", "", "Correct the arguments") from None
