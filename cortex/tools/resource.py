"""Resources: a URI template and the function that reads what it names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Generic, TypeVar
from urllib.parse import unquote

from cortex.domain.values import clean

M = TypeVar("M")

_VARIABLE: Final = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class ResourceSpec(Generic[M]):
    """One kind of resource, such as `cortex://node/{node_id}`; without a variable, one resource.

    A variable within the template ends at the next "/", the last one takes all that is left:
    a query may hold "/", "?" and "..", for nothing here is a path. Values come decoded.
    """

    uri_template: str
    name: str
    title: str
    description: str
    read: Callable[[M, Mapping[str, str]], str] = field(repr=False)
    mime_type: str = "text/plain"

    @cached_property
    def concrete(self) -> bool:
        """Whether it is one resource, listed as such."""
        return _VARIABLE.search(self.uri_template) is None

    @cached_property
    def literals(self) -> int:
        """How many characters are fixed: of two that match, the one with more is meant."""
        return len(_VARIABLE.sub("", self.uri_template))

    def match(self, uri: str) -> dict[str, str] | None:
        """The variables' values in this URI, or None when it is another's."""
        found = self._pattern.fullmatch(uri)
        if found is None:
            return None
        return {
            name: clean(unquote(value, errors="replace"))
            for name, value in found.groupdict().items()
        }

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        parts = _VARIABLE.split(self.uri_template)  # literal, name, literal, name, …, literal
        last = len(parts) - 2 if len(parts) > 1 and not parts[-1] else -1
        pieces = [
            re.escape(part)
            if place % 2 == 0
            else f"(?P<{part}>{'.+' if place == last else '[^/]+'})"
            for place, part in enumerate(parts)
        ]
        return re.compile("".join(pieces), re.DOTALL)


def find(
    resources: Sequence[ResourceSpec[M]], uri: str
) -> tuple[ResourceSpec[M], dict[str, str]] | None:
    """The resource that a URI names, with its variables; None when no template matches."""
    for spec in sorted(resources, key=lambda spec: -spec.literals):
        values = spec.match(uri)
        if values is not None:
            return spec, values
    return None
