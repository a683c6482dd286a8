"""MCP: tools and resources with which agents and their programs use a scheduler, over stdio and HTTP.

Each tool calls what the HTTP API calls, with the rights of its caller. The SDK (`pip install 'wakeful[mcp]'`) is loaded
when somebody connects.
"""
