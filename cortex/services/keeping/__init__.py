"""What keeps a memory safe: backups, exports and imports, undo, compaction."""
