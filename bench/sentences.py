"""One line as an agent would note it, drawn at random."""

from __future__ import annotations

import random
from typing import Final

_WHO: Final = ("the importer", "the login page", "our parser", "the nightly job", "the cache")
VERBS: Final = ("keeps", "loses", "rewrites", "retries", "validates", "skips", "batches", "locks")
_WHAT: Final = (
    "expired tokens",
    "the session cookie",
    "duplicate rows",
    "the retry budget",
    "large uploads",
    "time zones",
    "the write-ahead log",
    "stale embeddings",
    "its configuration",
    "unicode paths",
)
_WHY: Final = (
    "because the clock of the container drifts",
    "since the upgrade to version {n}",
    "when {n} clients connect at once",
    "unless the flag MEM-{n} is set",
    "as agreed in the review of ticket AB-{n}",
    "after a timeout of {n} ms",
    "so that a restart loses nothing",
)
_DO: Final = (
    "build", "check", "close", "find", "load", "merge", "open", "parse", "read", "send", "split",
    "write",
)  # fmt: skip
_THING: Final = (
    "account", "batch", "cache", "chunk", "client", "cookie", "cursor", "file", "header", "index",
    "invoice", "key", "ledger", "message", "node", "order", "page", "query", "record", "schema",
    "session", "table", "token", "upload",
)  # fmt: skip


def sentence(rng: random.Random) -> str:
    """One line as an agent would note it."""
    words = (rng.choice(_WHO), rng.choice(VERBS), rng.choice(_WHAT), rng.choice(_WHY))
    text = " ".join(words).replace("{n}", str(rng.randrange(10, 9999)))
    return text[0].upper() + text[1:] + "."


def note(rng: random.Random) -> str:
    """A line that names a place in the code, as notes of a project do; few share one.

    Without a word that is rare, every search would be the worst case of keyword search.
    """
    name = "_".join((rng.choice(_DO), rng.choice(_THING), rng.choice(_THING)))
    return f"{sentence(rng)[:-1]}, in {name}."
