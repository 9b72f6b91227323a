"""SQLite, the truth: the schema, its transactions, one module per table."""
