"""Scout over MCP: one URL per agent, with short tools that guide to the right operation."""
