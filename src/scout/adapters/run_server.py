"""The MCP server that Scout gives to a run, and the relays of `scout setup` that this run leaves alone."""

import re
from collections.abc import Mapping
from typing import Any

from scout.adapters.transcript import inner, items

# Never `scout`: that is what `scout setup` and people call their own, and hosts merge what has one name.
KEY = "scout_run"

_PLAIN = re.compile(r"[\w-]+", re.ASCII)


def relays_in(servers: Mapping[str, Any], host: str) -> tuple[str, ...]:
    """The names under which the MCP servers of a host's configuration call `scout mcp --host HOST`."""
    wanted = ["mcp", "--host", host]
    entries = dict(servers)
    return tuple(
        name
        for name in entries
        if _PLAIN.fullmatch(name) and items(inner(entries, name).get("args"))[-3:] == wanted
    )
