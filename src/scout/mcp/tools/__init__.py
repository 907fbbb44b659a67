"""The MCP tools: their table, their arguments and their results."""
