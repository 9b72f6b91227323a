"""The graph cache: typed adjacency in memory, derived from the store by following its log."""
