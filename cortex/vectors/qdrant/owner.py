"""Which collection is this memory's.

One collection holds one memory's vectors of one model, as its reserved identity says. Its
name is the configured one where that is free or ours; where it holds another model's or
another memory's, a search is refused until `cortex reindex` has filled a collection of its
own beside it, whose name ends in 8 hex digits of model and memory. Nothing is dropped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from cortex.domain.errors import ConflictError
from cortex.vectors.models import Fingerprint
from cortex.vectors.qdrant.client import Server
from cortex.vectors.qdrant.errors import ConflictedError, MissingError
from cortex.vectors.qdrant.values import Described


class Owner:
    """`memory` gives the id of the memory, None while it never pushed anything."""

    def __init__(
        self,
        server: Server,
        collection: str,
        fingerprint: Fingerprint,
        memory: Callable[[], str | None],
    ) -> None:
        self._server = server
        self._collection = collection
        self._fingerprint = fingerprint
        self._memory = memory

    def find(self) -> str:
        """The collection that is ours.

        Raises MissingError when there is none, ConflictedError when there is only one that
        holds something else, with the command that makes ours.
        """
        own = self._own_name()
        if self._ours(self._server.describe(own)):
            return own
        found = self._server.describe(self._collection)
        if found is None or self._unfinished(found):
            raise MissingError(
                f"Qdrant at {self._server.place} has no collection {self._collection} yet",
                "",
                "It is made and filled in the background; call again in a moment",
            )
        if self._ours(found):
            return self._collection
        raise ConflictedError(
            f"collection {self._collection} at {self._server.place} holds "
            f"{self._content(found)}, not this memory's vectors of {self._fingerprint}",
            "Valid: one memory and one model a collection",
            f"Run `cortex reindex`, which fills {own} beside it and drops nothing, or set "
            "CORTEX_QDRANT_COLLECTION to another name",
        )

    def make(self, *, beside: bool = False) -> str:
        """The same, made where there is none; `beside` another's, under its own name."""
        try:
            return self.find()
        except MissingError:
            return self._create(self._collection)
        except ConflictedError:
            if not beside:
                raise
            return self._create(self._own_name())

    def _own_name(self) -> str:
        whose = f"{self._fingerprint.text}\0{self._memory()}"
        return f"{self._collection}_{hashlib.sha256(whose.encode()).hexdigest()[:8]}"

    def _identity(self) -> dict[str, Any]:
        return {"memory": self._memory(), "fingerprint": self._fingerprint.text}

    def _ours(self, found: Described | None) -> bool:
        if (
            found is None
            or found.dimension != self._fingerprint.dimension
            or found.identity is None
        ):
            return False
        identity = self._identity()
        return all(found.identity.get(key) == value for key, value in identity.items())

    def _unfinished(self, found: Described) -> bool:
        """Whether whoever made it died before saying whose it is."""
        empty = found.identity is None and not found.points
        return empty and found.dimension == self._fingerprint.dimension

    def _content(self, found: Described) -> str:
        if found.identity is None or "fingerprint" not in found.identity:
            return "points that cortex did not write"
        theirs = Fingerprint.parse(str(found.identity["fingerprint"]))
        whose = "" if found.identity.get("memory") == self._memory() else "another memory's "
        return f"{whose}vectors of {theirs}"

    def _create(self, name: str) -> str:
        found = self._server.describe(name)
        if found is not None and not self._unfinished(found):
            raise ConflictError(
                f"collection {name} at {self._server.place} holds {self._content(found)}",
                "",
                "Set CORTEX_QDRANT_COLLECTION to another name",
            )
        self._server.create(name, self._fingerprint.dimension)
        self._server.reserve(name, {"identity": self._identity()})
        return name
