"""The MCP face: transport, registration, error mapping.

`cortex.server.wire` needs the standard library alone, so that stdin and stdout can be claimed
before anything else is imported.
"""
