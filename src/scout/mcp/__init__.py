"""Scout over MCP: each agent's own door, with short tools that teach the right verb."""
