"""Scout inside Claude Code, Codex and other hosts: setup, hooks and the MCP relay."""
