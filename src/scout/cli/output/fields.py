"""Field tables: the fields shown of each result, their labels, and how they are read."""

from __future__ import annotations

import os

from scout.cli.connection.text import (
    format_age,
    format_fields,
    format_local_time,
    join_words,
    print_out,
    shorten_id,
)
from scout.client.http import to_object
from scout.policy.sentences import (
    add_node,
    describe_presence,
    describe_receipt,
    find_node,
    list_roles,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    # A label, and how to read the value: a function of the record, or `how:path`.
    Field = tuple[str, str | Callable[[dict[str, Any]], object]]


# -- reading -----------------------------------------------------------------------------------------


def read_field(record: dict[str, Any], how: str | Callable[[dict[str, Any]], object]) -> object:
    """Return the value of a field as it is shown; None if there is nothing to show.

    `how:path` names a reader below; `a|b` takes the first path that has a value; `a.b` enters a record.
    """
    if not isinstance(how, str):
        return how(record)
    reader, _, paths = how.rpartition(":")
    found = (_follow_path(record, path) for path in paths.split("|"))
    value = next((one for one in found if one not in (None, "", [], {})), None)
    return _READERS[reader](value) if reader and value is not None else value


def _follow_path(record: dict[str, Any], path: str) -> Any:
    *outer, last = path.split(".")
    for name in outer:
        record = to_object(record.get(name))
    return record.get(last)


def shorten_home(path: Any) -> str:
    """Return a path with `~` for the home folder."""
    home = os.path.expanduser("~")  # noqa: PTH111 (pathlib would be loaded for this)
    path = str(path)
    return f"~{path[len(home) :]}" if f"{path}/".startswith(f"{home}/") and home != "/" else path


def read_presence(agent: dict[str, Any]) -> object:
    """Return what an agent does, or `sleeping`, or the node to which it moved."""
    if agent.get("movedTo"):
        return f"moved to {agent['node']}"
    if agent.get("lifecycle") == "sleeping":
        return agent["lifecycle"]
    return describe_presence(str(agent.get("status")), agent.get("programState"))


def read_session_state(session: dict[str, Any]) -> object:
    """Return what the program of a live session does, else the state of the session."""
    return session.get("programState") or session.get("state")


_READERS: dict[str, Callable[[Any], object]] = {
    "age": format_age,
    "time": format_local_time,
    "line": join_words,
    "id": shorten_id,
    "path": shorten_home,
    "percent": lambda value: f"{value:g} %",
    "list": lambda value: ", ".join(map(str, value)),
    "pairs": lambda value: " ".join(f"{name}={one}" for name, one in value.items()),
}


def show_fields(title: object, record: dict[str, Any], table: tuple[Field, ...]) -> None:
    """Show a record under its title, one field per line; fields without a value are left out."""
    values = {label: read_field(record, how) for label, how in table}
    print_out(
        format_fields(str(title), {label: one for label, one in values.items() if one not in (None, "")})
    )


# -- one record --------------------------------------------------------------------------------------


def _read_model(session: dict[str, Any]) -> str | None:
    """Return the model in use, and the requested one if they differ."""
    wished, taken, seen = (session.get(f"model{name}") for name in ("Requested", "Resolved", "Observed"))
    real = seen or taken or wished
    return f"{real} (requested {wished})" if wished and wished != real else real


def _read_program(session: dict[str, Any]) -> str:
    pid = f" (pid {session['pid']})" if session.get("pid") else ""
    return f"running{pid}" if session["running"] else "not running"


def _read_tokens(session: dict[str, Any]) -> str | None:
    tokens = session["tokens"]
    guess = " (estimated)" if tokens["estimated"] else ""
    return f"{tokens['totalTokens']}{guess}" if tokens["totalTokens"] else None


def _read_progress(item: dict[str, Any]) -> str:
    progress: dict[str, Any] = item.get("progress") or {}
    steps = f"{progress.get('done')} of {progress['total']}" if progress.get("total") else ""
    percent = f"{progress['percent']:g} %" if progress.get("percent") is not None else ""
    return ", ".join(part for part in (steps, percent, progress.get("summary")) if part)


def _read_waiting(item: dict[str, Any]) -> str:
    waiting: dict[str, Any] = item.get("waitingOn") or {}
    until = f"until {format_local_time(waiting['until'])}" if waiting.get("until") else None
    return " ".join(str(part) for part in (waiting.get("kind"), waiting.get("ref"), until) if part)


def read_agent(agent: dict[str, Any]) -> str:
    """Return an agent's address; of an agent of another node, with the node."""
    return add_node(str(agent.get("address") or agent["minimal"]), find_node(agent))


def read_target(flight: dict[str, Any]) -> str:
    """Return the address of a flight's target, with its node if that is another one."""
    return add_node(str(flight["targetAddress"]), flight.get("targetNode"))


def _read_way(flight: dict[str, Any]) -> str:
    way = describe_receipt(flight.get("mesh"))
    return f"the ask {way}" if way else ""


def _read_requester(flight: dict[str, Any]) -> str:
    return add_node(str(flight["requesterAddress"]), flight.get("requesterNode"))


def _read_sender(message: dict[str, Any]) -> str:
    return add_node(str(message["senderAddress"]), message.get("senderNode"))


def _read_members(conversation: dict[str, Any]) -> str:
    """Return a channel's name, or the members of another conversation."""
    members = conversation.get("members") or ()
    return str(conversation.get("name") or ", ".join(read_member(one) for one in members))


def read_member(member: dict[str, Any]) -> str:
    """Return the address of a member of a conversation, with its node if that is another one."""
    return add_node(str(member.get("address")), member.get("node"))


def _read_queue(node: dict[str, Any]) -> str | None:
    """Return how much waits for a node, and since when the oldest of it; nothing for this one."""
    number = int(node.get("queued") or 0)
    if node.get("here") or not number:
        return None
    return f"{number}, oldest {format_age(node.get('queuedSince'))}"


def _read_work(question: dict[str, Any]) -> str:
    work: dict[str, Any] = question.get("workItem") or {}
    return "  ".join(str(work[name]) for name in ("id", "state", "title")) if work else ""


def _hide_default(name: str, default: str) -> Callable[[dict[str, Any]], object]:
    return lambda record: record[name] if record[name] != default else None


def _use_names(*names: str) -> tuple[Field, ...]:
    return tuple((name, name) for name in names)


def _read_origin(record: dict[str, Any]) -> str | None:
    """Return the system that a record was imported from, and its id there."""
    origin = record.get("importedFrom")
    return f"{origin['system']} {origin['id']}" if origin else None


AGENT: tuple[Field, ...] = (
    ("status", read_presence),
    ("node", find_node),
    ("sleeping since", "time:sleepingSince"),
    ("about", "description"),
    *_use_names("canonical", "path", "birthBranch", "id"),
    ("project", "projectRoot"),
    ("harness", "config.harness"),
    ("wakes", "config.wakePolicy"),
    ("role", "toolRole"),
    ("open flights", "openFlights"),
    ("unread", "unread"),
    ("aliases", "list:aliases"),
    ("imported from", _read_origin),
)
IDENTITY = _use_names(
    *("kind", "tokenId", "agentId", "alias", "canonical", "minimal", "path", "birthBranch", "role"),
    *("sessionId", "user", "project", "node", "url", "version"),
)
RESOLUTION = _use_names(
    *("address", "canonical", "minimal", "path", "birthBranch", "agentId", "endpointId", "sessionId"),
    *("harness", "rule", "action"),
)
FLIGHT: tuple[Field, ...] = (
    *_use_names("state", "phase", "reason"),
    ("to", read_target),
    ("from", _read_requester),
    ("on its way", _read_way),
    ("attempt", "attempt"),
    ("harness", "harnessObserved|harnessRequested"),
    ("model", _read_model),
    ("effort", "effort"),
    ("began", "time:createdAt"),
    ("finished", "time:finishedAt"),
    ("asked", "line:body"),
)
PUBLICATION: tuple[Field, ...] = (
    ("url", "url"),
    ("card", "cardUrl"),
    ("description", "description"),
    ("published", "time:publishedAt"),
)
MESSAGE: tuple[Field, ...] = (
    ("from", "sender"),
    ("kind", "kind"),
    ("conversation", "conversationId"),
    ("in reply to", "inReplyTo"),
    ("when", "time:createdAt"),
    ("imported from", _read_origin),
)
SESSION: tuple[Field, ...] = (
    ("state", lambda one: f"{read_session_state(one)}, {one['class']}"),
    ("agent", "address"),
    ("harness", "harness"),
    ("program", _read_program),
    ("native ids", "pairs:nativeIds"),
    ("folder", "cwd"),
    ("model", _read_model),
    ("effort", "effort"),
    ("permission", "permissionProfile"),
    ("forked from", "forkedFrom"),
    ("terminal", lambda one: f"open (pid {one['terminal']['pid']})" if one.get("terminal") else None),
    ("last event", "age:lastEventAt"),
    ("tokens", _read_tokens),
    ("flight", "flightId"),
    ("reason", "reason"),
)
QUESTION: tuple[Field, ...] = (
    ("state", "state"),
    ("asker", "askerAddress"),
    ("responder", "responderAddress"),
    ("since", "age:createdAt"),
    ("options", "list:options"),
    ("answer", "answer"),
    ("reason", "reason"),
    ("flight", "flightId"),
    ("work", _read_work),
    ("imported from", _read_origin),
)
WORK: tuple[Field, ...] = (
    ("state", "state"),
    ("owner", "ownerAddress"),
    ("next move", "nextMoveAddress"),
    ("requester", "requesterAddress"),
    ("waits for", _read_waiting),
    ("progress", _read_progress),
    ("priority", _hide_default("priority", "normal")),
    ("labels", "list:labels"),
    ("due", "time:dueAt"),
    ("reason", "reason"),
    ("acceptance", "acceptance"),
    ("imported from", _read_origin),
)
ATTENTION: tuple[Field, ...] = (
    ("kind", "kind"),
    ("state", "state"),
    ("from", "agentAddress"),
    ("risk", _hide_default("risk", "low")),
    ("since", "age:createdAt"),
    ("until", "expiresAt"),
    ("without an answer", "defaultAction"),
    ("answer", "answer"),
    ("reason", "reason"),
    ("decided by", "decidedByAddress"),
    ("allowed by", "allowanceId"),
    ("flight", "returnPath.flightId"),
    ("work", "returnPath.workItemId"),
)


def read_holder(grant: dict[str, Any]) -> object:
    """Return the agent that holds a grant, or the user whose agents do."""
    return grant.get("address") or (f"every agent of {grant['user']}" if grant.get("user") else None)


def read_scope(grant: dict[str, Any]) -> object:
    """Return what a grant is for."""
    scope = to_object(grant.get("scope"))
    if scope.get("conversationId"):
        return shorten_id(str(scope["conversationId"]))
    return scope.get("path") or scope.get("projectRoot") or f"everything of {scope.get('user')}"


# -- lists: texts come last --------------------------------------------------------------------------

# Agents of all nodes: where each is matters more than its harness, which the other node does not tell.
ALL_NODES: tuple[Field, ...] = (
    ("agent", "address"),
    ("node", "node"),
    ("status", read_presence),
    ("project", "path:projectRoot"),
    ("about", "line:description"),
)
COLUMNS: dict[str, tuple[Field, ...]] = {
    "user.list": (
        ("user", "name"),
        ("name", "displayName"),
        ("kind", lambda user: "operator" if user.get("operator") else user["kind"]),
        ("owner", "owner"),
        ("chats", "keys"),
        ("state", "state"),
    ),
    "user.keys": (
        ("account", "id:id"),
        ("user", "user"),
        ("connector", "connector"),
        ("name", "label|externalId"),
        ("last used", "age:lastUsedAt"),
        ("state", "state"),
    ),
    "binding.list": (
        ("binding", "id:id"),
        ("connector", "name"),
        ("chat", "externalId"),
        ("thread", "topicId"),
        ("leads to", "target"),
        ("state", "state"),
    ),
    "connector.list": (
        ("connector", "connector"),
        ("state", "state"),
        ("account", "account"),
        ("since", "age:since"),
        ("waiting", "waiting"),
        ("problem", "line:problem"),
    ),
    "connector.posts": (
        ("post", "id:id"),
        ("to", "user"),
        ("connector", "connector"),
        ("state", "state"),
        ("when", "age:createdAt"),
        ("problem", "line:problem"),
    ),
    "who": (
        ("agent", "address"),
        ("status", read_presence),
        ("harness", "config.harness"),
        ("project", "path:projectRoot"),
        ("about", "line:description"),
    ),
    "flight.list": (
        ("flight", "id:id"),
        ("state", "state"),
        ("to", read_target),
        ("began", "age:createdAt"),
        ("asked", "line:body"),
    ),
    "message.list": (
        ("message", "id:id"),
        ("from", _read_sender),
        ("when", "age:createdAt"),
        ("says", "line:body"),
    ),
    "latest": (
        ("with", "name"),
        ("unread", "unread"),
        ("when", "age:message.createdAt"),
        ("newest", "line:message.body"),
    ),
    "search": (("found", "id:id"), ("when", "age:at"), ("words", "line:snippet")),
    "delivery.list": (
        ("delivery", "id:id"),
        ("state", "state"),
        ("attempts", "attempts"),
        ("since", "age:createdAt"),
        ("why", "line:reason"),
    ),
    "conversation.list": (
        ("conversation", "id:id"),
        ("kind", "kind"),
        ("unread", "unread"),
        ("with", _read_members),
    ),
    "channel.list": (("channel", "name"), ("unread", "unread"), ("id", "id:id")),
    "alias.list": (("alias", "name"), ("means", "means"), ("state", "state")),
    "card.list": (
        ("card", "id:id"),
        ("state", "state"),
        ("uses", "uses"),
        ("until", "time:expiresAt"),
        ("name", "line:name"),
    ),
    "token.list": (
        ("token", "id:id"),
        ("kind", "kind"),
        ("state", "state"),
        ("for", "address"),
        ("label", "line:label"),
    ),
    "grant.list": (
        ("grant", "id:id"),
        ("holder", read_holder),
        ("may", "action"),
        ("of", read_scope),
        ("state", "state"),
        ("why", "line:reason"),
    ),
    "mesh.nodes": (
        ("node", "name"),
        ("state", "state"),
        ("agents", lambda node: node.get("agents", 0)),
        ("waiting", _read_queue),
        ("since", "age:since"),
        ("role", lambda node: ", ".join(list_roles(node)) or None),
        ("version", "version"),
    ),
    "node.list": (("node", "name"), ("id", "id:id")),
    "session.list": (
        ("session", "id:id"),
        ("agent", "address"),
        ("harness", "harness"),
        ("state", read_session_state),
        ("last", "age:lastEventAt"),
        ("folder", "path:cwd"),
    ),
    "question.list": (
        ("question", "id:id"),
        ("state", "state"),
        ("asker", "askerAddress"),
        ("responder", "responderAddress"),
        ("since", "age:createdAt"),
        ("asked", "line:body"),
    ),
    "work.list": (
        ("work", "id:id"),
        ("state", "state"),
        ("owner", "ownerAddress"),
        ("next move", "nextMoveAddress"),
        ("done", "percent:progress.percent"),
        ("title", "line:title"),
    ),
}

EMPTY = {
    "connector.list": "No chat is connected. Try: scout connector add telegram",
    "connector.posts": "Nothing was posted.",
    "binding.list": "No chat is bound. Try: scout binding add CONNECTOR CHAT --channel NAME",
    "grant.list": "No grants. Try: scout grant add --help",
    "user.keys": "No chat account is linked. Try: scout user link USER telegram",
    "who": "No agents yet. Try: scout agent register NAME --project .",
    "inbox": "Your inbox is empty.",
    "attention": "Nothing needs you.",
    "flight.list": "No flights.",
    "question.list": "No questions.",
    "work.list": "No work.",
    "session.list": "No sessions.",
    "channel.list": "No channels. Try: scout channel create NAME",
    "alias.list": "No aliases. Try: scout alias set NAME ADDRESS",
    "search": "Nothing found.",
}
