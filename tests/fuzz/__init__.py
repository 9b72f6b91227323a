"""Calls that no client should make, made from the schemas that the server lists."""
