"""Files read into pieces of knowledge, and written into the graph."""
