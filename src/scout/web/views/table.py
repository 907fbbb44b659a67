"""The table of views: which function answers which path, and what the navigation shows."""

import re
from urllib.parse import unquote, urlencode

from scout.base.time import Time
from scout.web.layout import NavLink
from scout.web.views.agents import show_agent, show_agents
from scout.web.views.design import show_design
from scout.web.views.finish import show_finish
from scout.web.views.flight import show_flight
from scout.web.views.flights import show_flights
from scout.web.views.inbox import show_inbox
from scout.web.views.log import show_log
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

NAV = (
    NavLink("/", "Now", "now", "n"),
    NavLink("/inbox", "Inbox", "inbox", "i"),
    NavLink("/agents", "Agents", "agents", "a"),
    NavLink("/flights", "Flights", "flights", "f"),
    NavLink("/conversations", "Conversations", "conversation", "c"),
    NavLink("/work", "Work", "work", "w"),
    NavLink("/log", "Log", "log", "l"),
    NavLink("/sessions", "Sessions", "sessions", "s"),
    NavLink("/tree", "Tree", "tree", "t"),
    NavLink("/schedules", "Schedules", "schedules", "d"),
    NavLink("/usage", "Usage", "usage", "u"),
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
    "/schedules": show_schedules,
    "/schedules/*": show_schedule,
    "/usage": show_usage,
    "/work": show_work,
    "/work/*": show_work_item,
    "/design": show_design,
}

# Views that can be shown as they were at any moment.
PAST = frozenset({"/", "/inbox", "/agents", "/flights", "/work"})

_COMPILED = tuple((re.compile(path.replace("*", "([^/]+)")), view) for path, view in _VIEWS.items())


def keep_moment(at: Time) -> tuple[NavLink, ...]:
    """Return the navigation of a view of the past: views that can show it do so at the same moment."""
    query = f"?{urlencode({'at': str(at)})}"
    return tuple(link._replace(query=query) if link.path in PAST else link for link in NAV)


def list_paths() -> tuple[str, ...]:
    """Return the paths of all views as regular expressions."""
    return tuple(pattern.pattern for pattern, _ in _COMPILED)


def find_view(path: str) -> tuple[View, tuple[str, ...]]:
    """Return the view of a path that `list_paths` has, and the decoded segments it is about."""
    for pattern, view in _COMPILED:
        if found := pattern.fullmatch(path):
            return view, tuple(map(unquote, found.groups()))
    raise LookupError(path)
