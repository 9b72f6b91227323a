"""Keeps the keyword index and the outbox equal to the nodes, by following the log.

Runs at the end of every write transaction, over all changes since it last ran: those of
the transaction itself, and those that a foreign shell made before it. One path serves
both, so that no writer can forget what it owes (invariants 1 and 2).
"""

from __future__ import annotations

from typing import Final

from cortex.domain.taxonomy import VECTORISED
from cortex.domain.values import Node, text_hash
from cortex.store.changes import Changes
from cortex.store.embeddings import Embeddings, Outbox
from cortex.store.keywords import Keywords
from cortex.store.meta import DERIVED_SEQ, Meta
from cortex.store.nodes import Nodes

_BATCH: Final = 1000


def derive(
    meta: Meta,
    changes: Changes,
    nodes: Nodes,
    keywords: Keywords,
    embeddings: Embeddings,
    outbox: Outbox,
) -> None:
    """Bring the keyword index and the outbox up to the log's end."""
    since = int(meta.find(DERIVED_SEQ) or 0)
    last = changes.last()
    if last is None or last[0] <= since:
        return
    touched = changes.touched_nodes(since)
    for start in range(0, len(touched), _BATCH):  # an import touches more than memory holds
        keys = touched[start : start + _BATCH]
        present = {node.key: node for node in nodes.by_keys(keys)}
        for key in keys:
            node = present.get(key)
            if node is None:
                keywords.drop(key)
                outbox.forgive(key)
            else:
                keywords.put(node)
                owe(outbox, embeddings, node)
    meta.set(DERIVED_SEQ, str(last[0]))


def has_vector(node: Node) -> bool:
    """Whether the node is to be found by meaning: by its type, and by words to embed."""
    title = node.data.get("title")
    return node.type in VECTORISED and bool(node.text or (isinstance(title, str) and title))


def owe(outbox: Outbox, embeddings: Embeddings, node: Node) -> None:
    """Note what the node's text owes to the vector index: nothing, or its present form."""
    if has_vector(node):
        title = node.data.get("title")
        head = title if isinstance(title, str) else ""
        outbox.owe(node.key, node.workspace_id, text_hash(head, node.text))
    else:
        outbox.forgive(node.key)
        embeddings.drop_node(node.key)
