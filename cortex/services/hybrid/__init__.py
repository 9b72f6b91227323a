"""The hybrid memory of ADR-0004: what its tools ask for, on waves and neighbour links."""
