"""The MCP URLs: one for every token holder, and one per agent."""

import re
from typing import NamedTuple
from urllib.parse import quote

from scout.base.outside import decode_text

# Matched on the raw path: an encoded slash stays inside its segment.
PATHS = re.compile(rb"/mcp|/agents/(?P<role>[^/]+)/(?P<name>[^/]+)/mcp")


class Named(NamedTuple):
    """The role and the agent that a URL names."""

    role: str
    name: str


def parse_path(raw_path: bytes) -> Named | None:
    """Return the role and agent in a URL; None for the shared URL, where the token decides."""
    found = PATHS.fullmatch(raw_path)
    if found is None or found["role"] is None:
        return None
    return Named(decode_text(found["role"], "role"), decode_text(found["name"], "name"))


def build_path(role: str, name: str) -> str:
    """Return the path of an agent's own MCP URL."""
    return f"/agents/{role}/{quote(name, safe='@')}/mcp"
