"""Embeddings of the sets, kept between runs: embedding is most of what a run costs."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cortex.vectors.embedder import Embedder
from cortex.vectors.index import Vector
from cortex.vectors.models import resolve_model

_TABLE = "CREATE TABLE IF NOT EXISTS vectors(name TEXT PRIMARY KEY, vector BLOB NOT NULL)"
_FIND = "SELECT vector FROM vectors WHERE name = ?"
_PUT = "INSERT OR IGNORE INTO vectors VALUES (?, ?)"


class KeptEmbedder(Embedder):
    """The product's embedder; a text that was embedded before is read from a file."""

    def __init__(self, source: str, folder: Path) -> None:
        super().__init__(resolve_model(source), cache_dir=folder / "models", idle_seconds=3600.0)
        folder.mkdir(parents=True, exist_ok=True)
        self._kept = sqlite3.connect(
            folder / "vectors.db", check_same_thread=False, isolation_level=None, timeout=600
        )
        self._kept.execute(_TABLE)
        self._door = threading.Lock()

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        found: list[Vector] = []
        for text in texts:
            name = self._name("passage", text)
            known = self._find(name)
            if known is None:
                known = super().embed_passages([text])[0]
                self._put(name, known)
            found.append(known)
        return np.stack(found)

    def embed_query(self, text: str) -> Vector:
        name = self._name("query", text)
        known = self._find(name)
        if known is None:
            known = super().embed_query(text)
            self._put(name, known)
        return known

    def _name(self, kind: str, text: str) -> str:
        whole = f"{self.fingerprint.text}\0{kind}\0{text}".encode()
        return hashlib.sha256(whole).hexdigest()

    def _find(self, name: str) -> Vector | None:
        with self._door:
            row = self._kept.execute(_FIND, (name,)).fetchone()
        return None if row is None else np.frombuffer(row[0], np.float32)

    def _put(self, name: str, vector: Vector) -> None:
        with self._door:
            self._kept.execute(_PUT, (name, vector.astype(np.float32).tobytes()))
