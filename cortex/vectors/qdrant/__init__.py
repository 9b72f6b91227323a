"""The vector index in a Qdrant server."""
