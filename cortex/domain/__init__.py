"""Values and rules of the memory graph; the standard library only."""
