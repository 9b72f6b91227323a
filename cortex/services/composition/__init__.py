"""Questions composed of hypervectors."""
