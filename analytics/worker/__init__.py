"""The process that answers windows, aggregates and rollups with DuckDB, beside the writers."""
