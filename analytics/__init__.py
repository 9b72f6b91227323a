"""The analytics worker: whole-graph measures and history over DuckDB."""
