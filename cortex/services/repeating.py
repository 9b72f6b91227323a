"""Idempotency keys: a write that is sent again is answered again, and done once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from cortex.domain.errors import ConflictError, InvalidError
from cortex.domain.values import WorkspaceId
from cortex.store.database import Transaction

Reply = TypeVar("Reply")


def once(
    transaction: Transaction,
    workspace: WorkspaceId,
    key: str | None,
    request: Mapping[str, Any],
    kind: type[Reply],
    do: Callable[[], Reply],
) -> Reply:
    """Do it and keep the reply under `key`; asked again, give that reply.

    The scope is the workspace; kept for 7 days. Another request under the same key raises
    ConflictError, and so does one whose doing was undone: neither its old reply nor doing it
    again would be what the caller expects. `kind` is a dataclass of JSON values.
    """
    if not key:
        return do()
    if len(key) > 200:
        raise InvalidError("idempotency_key is too long", "Valid: up to 200 characters")
    text = json.dumps([kind.__name__, request], sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    store = transaction.idempotency
    store.expire(transaction.at)
    found = store.find(workspace, key)
    if found is not None:
        if found[0] != digest:
            raise ConflictError(
                f"idempotency_key {key!r} was used for another request",
                "Valid: the same request again, or a new key",
                "Use a new key",
            )
        undone = transaction.undo_log.taken_back_by(found[2])
        if undone is not None:
            raise ConflictError(
                f"the request under idempotency_key {key!r} was done, and taken back by the undo "
                f"in transaction {undone}",
                "Valid: a new key, which does it again",
                "Ask whoever undid it, or use a new key",
            )
        return kind(**json.loads(found[1]))
    reply = do()
    store.keep(workspace, key, digest, json.dumps(asdict(reply)), transaction.at)  # type: ignore[call-overload]  # replies are dataclasses
    return reply
