"""Where MCP is served: one URL for whoever holds a token, and one per agent."""

import re
from typing import NamedTuple
from urllib.parse import quote

from scout.base.outside import text_of

# Matched on the path as it was sent: an encoded slash stays inside its segment.
PATHS = re.compile(rb"/mcp|/agents/(?P<role>[^/]+)/(?P<name>[^/]+)/mcp")


class Named(NamedTuple):
    """The role and the agent that a URL names."""

    role: str
    name: str


def named(raw_path: bytes) -> Named | None:
    """What a URL names; None for the one that leaves it to the token."""
    found = PATHS.fullmatch(raw_path)
    if found is None or found["role"] is None:
        return None
    return Named(text_of(found["role"], "role"), text_of(found["name"], "name"))


def path_of(role: str, name: str) -> str:
    """An agent's own URL, below the daemon's."""
    return f"/agents/{role}/{quote(name, safe='@')}/mcp"
