"""Search: perspectives rank, a fusion joins them, the graph lifts, the store has the last word."""
