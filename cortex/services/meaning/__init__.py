"""Vectors kept equal to the store: embedding what is owed, the index in memory or in Qdrant."""
