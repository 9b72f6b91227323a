"""The command line, for people and for hosts that start the server."""
