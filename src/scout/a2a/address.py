"""The paths of A2A: each published agent has one base URL, made from its path.

JSON-RPC is posted to the base URL, with or without a slash at its end. The HTTP+JSON routes and the card are
below it. An agent may be called `tasks`: only the end of a path is read as a route.
"""

import re
from typing import NamedTuple

PATHS = re.compile(rb"/a2a/.+")
CARDS = re.compile(rb"/a2a(/.+)/\.well-known/agent-card\.json")

_TASK = rb"/tasks/[^/]+"
_PUSH = _TASK + rb"/pushNotificationConfigs"
_ROUTES = {
    "GET": re.compile(rb"(/a2a/.+)(/tasks|%b|%b|%b/[^/]+|/extendedAgentCard)" % (_TASK, _PUSH, _PUSH)),
    "POST": re.compile(rb"(/a2a/.+)(/message:(?:send|stream)|%b:(?:cancel|subscribe)|%b)" % (_TASK, _PUSH)),
    "DELETE": re.compile(rb"(/a2a/.+)(%b/[^/]+)" % _PUSH),
}


class A2aPath(NamedTuple):
    """The path of an agent, and the route below its base URL; `/` is JSON-RPC."""

    agent: str
    route: str


def parse_path(method: str, raw_path: bytes) -> A2aPath:
    """Return the agent and the route of a request."""
    pattern = _ROUTES.get(method)
    found = pattern.fullmatch(raw_path) if pattern is not None else None
    base, route = (found[1], found[2]) if found else (raw_path.rstrip(b"/"), b"/")
    return A2aPath(base.removeprefix(b"/a2a").decode("latin-1"), route.decode("latin-1"))
