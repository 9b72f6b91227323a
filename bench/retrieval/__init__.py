"""How well the product's own search finds what is labelled, on sets given by a path."""
