"""Codex: the program `codex`, held as an app-server."""
