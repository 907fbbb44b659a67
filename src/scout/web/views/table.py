"""The table of views: which function answers which path, and what the navigation shows."""

import re
from urllib.parse import unquote, urlencode

from scout.web.layout import NavLink
from scout.web.views.agents import show_agent, show_agents
from scout.web.views.design import show_design
from scout.web.views.finish import show_finish
from scout.web.views.flight import show_flight
from scout.web.views.flights import show_flights
from scout.web.views.inbox import show_inbox
from scout.web.views.log import show_log
from scout.web.views.mesh import show_mesh
from scout.web.views.now import show_now
from scout.web.views.request import View
from scout.web.views.schedules import show_schedule, show_schedules
from scout.web.views.session import show_session
from scout.web.views.sessions import show_sessions
from scout.web.views.talk import show_conversation, show_conversations
from scout.web.views.tree import show_tree
from scout.web.views.usage import show_usage
from scout.web.views.why import show_why
from scout.web.views.work import show_work
from scout.web.views.work_item import show_work_item

_FLEET, _MACHINE = "Fleet", "This machine"

NAV = (
    NavLink("/", "Now", "now", "n"),
    NavLink("/inbox", "Inbox", "inbox", "i"),
    NavLink("/agents", "Agents", "agents", "a", _FLEET),
    NavLink("/flights", "Flights", "flights", "f", _FLEET),
    NavLink("/conversations", "Conversations", "conversation", "c", _FLEET),
    NavLink("/work", "Work", "work", "w", _FLEET),
    NavLink("/log", "Log", "log", "l", _FLEET),
    NavLink("/sessions", "Sessions", "sessions", "s", _MACHINE),
    NavLink("/tree", "Tree", "tree", "t", _MACHINE),
    NavLink("/mesh", "Mesh", "mesh", "m", _MACHINE),
    NavLink("/schedules", "Schedules", "schedules", "d", _MACHINE),
    NavLink("/usage", "Usage", "usage", "u", _MACHINE),
)

# A path with `*` for any one segment, which the view receives decoded.
_VIEWS: dict[str, View] = {
    "/": show_now,
    "/inbox": show_inbox,
    "/agents": show_agents,
    "/agents/*": show_agent,
    "/flights": show_flights,
    "/flights/*": show_flight,
    "/conversations": show_conversations,
    "/conversations/*": show_conversation,
    "/log": show_log,
    "/why/*": show_why,
    "/sessions": show_sessions,
    "/sessions/*": show_session,
    "/tree": show_tree,
    "/tree/*": show_finish,
    "/mesh": show_mesh,
    "/schedules": show_schedules,
    "/schedules/*": show_schedule,
    "/usage": show_usage,
    "/work": show_work,
    "/work/*": show_work_item,
    "/design": show_design,
}

_COMPILED = tuple((re.compile(path.replace("*", "([^/]+)")), view) for path, view in _VIEWS.items())


def keep_moment(at: str) -> tuple[NavLink, ...]:
    """Return the navigation while a moment of the past is chosen: every view is asked for that moment."""
    return tuple(link._replace(query=f"?{urlencode({'at': at})}") for link in NAV)


def list_paths() -> tuple[str, ...]:
    """Return the paths of all views as regular expressions."""
    return tuple(pattern.pattern for pattern, _ in _COMPILED)


def find_view(path: str) -> tuple[View, tuple[str, ...]]:
    """Return the view of a path that `list_paths` has, and the decoded segments it is about."""
    for pattern, view in _COMPILED:
        if found := pattern.fullmatch(path):
            return view, tuple(map(unquote, found.groups()))
    raise LookupError(path)
