"""Vectors: the embedder, and the index that answers by meaning (derived)."""
