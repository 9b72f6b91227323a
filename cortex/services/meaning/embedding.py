"""Nodes to vectors: a batch goes through the model together where that pays.

An endpoint is asked once for up to 32 texts of several nodes. A model in this process takes a
node at a time: what its int8 layers give for a text depends a little on the texts beside it,
and the same node is to have the same vectors whenever it is embedded.

One text that the model refuses does not hold up the others: where a group fails and the
model still embeds a plain word, each of its nodes is tried alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from cortex.domain.chunking import chunk
from cortex.domain.errors import CortexError
from cortex.domain.values import Node
from cortex.vectors.embedder import Embedder

Rows = NDArray[np.float32]
_Texts = tuple[Node, list[str]]  # a node with the texts of its chunks


def iter_embedded(
    embedder: Embedder, nodes: Sequence[Node]
) -> Iterator[tuple[Node, Rows | CortexError]]:
    """Each node with the vectors of its chunks, shape (chunks, dimension), or with the error
    that its text alone causes; in the order given.

    Raises CortexError where the model itself is out: what came before stands.
    """
    for group in _groups(embedder, nodes):
        yield from _tried(embedder, group)


def _tried(
    embedder: Embedder, group: Sequence[_Texts]
) -> Iterator[tuple[Node, Rows | CortexError]]:
    try:
        done = _embed(embedder, group)
    except CortexError as error:
        embedder.warm()  # raises where the model is out
        if len(group) == 1:
            yield group[0][0], error
        else:
            for one in group:
                yield from _tried(embedder, [one])
        return
    yield from done


def _embed(embedder: Embedder, group: Sequence[_Texts]) -> list[tuple[Node, Rows]]:
    rows = embedder.embed_passages([text for _, texts in group for text in texts])
    ends = np.cumsum([len(texts) for _, texts in group])
    parts = np.split(rows, ends[:-1])
    return [(node, part) for (node, _), part in zip(group, parts, strict=True)]


def _groups(embedder: Embedder, nodes: Sequence[Node]) -> Iterator[list[_Texts]]:
    """The nodes with their chunks, as many together as the model takes at once."""
    most = embedder.batch if embedder.spec.endpoint is not None else 0
    group: list[_Texts] = []
    size = 0
    for node in nodes:
        texts = _texts(node)
        if group and size + len(texts) > most:
            yield group
            group, size = [], 0
        group.append((node, texts))
        size += len(texts)
    if group:
        yield group


def _texts(node: Node) -> list[str]:
    title = node.data.get("title")
    pieces = chunk(node.text, title if isinstance(title, str) else "")
    return [piece.text for piece in pieces]
