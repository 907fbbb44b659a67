"""How each answer is shown to a person; with `--json` it is shown as it came."""

import json
from collections.abc import Callable
from typing import Any, cast

from scout.cli.attention_shapes import ATTENTION
from scout.cli.insight_shapes import INSIGHT
from scout.cli.observation_shapes import OBSERVATION
from scout.cli.pause_shapes import PAUSE
from scout.cli.session_shapes import SESSION_COLUMNS, SESSIONS
from scout.cli.text import age, fields, first_line, note, out, out_text, paint, table
from scout.cli.work_shapes import WORK, WORK_COLUMNS
from scout.model.wire import SYNONYMS

__all__ = ["COLUMNS", "SAME", "event_line", "flight_row", "show"]

# Operation → the columns of its list: a head, and the field, with how it is read before a colon.
COLUMNS: dict[str, tuple[tuple[str, str], ...]] = {
    **SESSION_COLUMNS,
    **WORK_COLUMNS,
    "who": (
        ("address", "address"),
        ("status", "status"),
        ("harness", "config.harness"),
        ("project", "projectRoot"),
    ),
    "flight.list": (
        ("flight", "id"),
        ("state", "state"),
        ("phase", "phase"),
        ("to", "targetAddress"),
        ("began", "age:createdAt"),
        ("asked", "line:body"),
    ),
    "message.list": (
        ("message", "id"),
        ("from", "senderAddress"),
        ("when", "age:createdAt"),
        ("says", "line:body"),
    ),
    "latest": (
        ("conversation", "conversationId"),
        ("name", "name"),
        ("unread", "unread"),
        ("newest", "line:message.body"),
    ),
    "search": (("found", "id"), ("when", "age:at"), ("words", "line:snippet")),
    "delivery.list": (
        ("delivery", "id"),
        ("state", "state"),
        ("attempts", "attempts"),
        ("since", "age:createdAt"),
        ("why", "line:reason"),
    ),
    "conversation.list": (("conversation", "id"), ("kind", "kind"), ("name", "name"), ("unread", "unread")),
    "channel.list": (("channel", "name"), ("unread", "unread"), ("id", "id")),
    "alias.list": (("alias", "name"), ("means", "means"), ("state", "state")),
    "card.list": (
        ("card", "id"),
        ("name", "name"),
        ("state", "state"),
        ("uses", "uses"),
        ("until", "expiresAt"),
    ),
    "token.list": (
        ("token", "id"),
        ("kind", "kind"),
        ("for", "address"),
        ("label", "label"),
        ("state", "state"),
    ),
    "grant.list": (("grant", "id"), ("action", "action"), ("state", "state"), ("why", "line:reason")),
    "node.list": (("node", "name"), ("id", "id")),
}

_EMPTY = {
    "who": "no agents yet; try: scout agent register NAME --project .",
    "inbox": "nothing waits for you",
    "flight.list": "no flights",
    "question.list": "no questions",
    "work.list": "no work",
    "search": "nothing found",
}
_EVENTS = frozenset({"log", "feed"})
SAME = frozenset(SYNONYMS.values())  # the seeds' names for what is there already


def show(operation: str, answer: Any, as_json: bool = False) -> None:
    """The answer of an operation."""
    if as_json:
        out(json.dumps(answer))
        return
    special = _SPECIAL.get(operation)
    if special is not None:
        special(answer)
    elif operation in _EVENTS:
        _show_events(answer)
    elif isinstance(answer, dict) and "items" in answer:
        _show_items(operation, cast(dict[str, Any], answer))
    else:
        show_record("", answer)


def _show_items(operation: str, page: dict[str, Any]) -> None:
    items: list[dict[str, Any]] = page["items"]
    columns = COLUMNS.get(operation) or _any_columns(items)
    if items:
        out(
            table(
                [head for head, _ in columns],
                [[_cell(item, field) for _, field in columns] for item in items],
            )
        )
    else:
        out(_EMPTY.get(operation, "none"))
    if page.get("next"):
        note(f"more: --cursor {page['next']}")


def _any_columns(items: list[dict[str, Any]]) -> tuple[tuple[str, str], ...]:
    flat = [name for name, value in (items[0] if items else {}).items() if _is_flat(name, value)]
    return tuple((name, name) for name in flat[:6])


def _is_flat(name: str, value: object) -> bool:
    return name not in SAME and not isinstance(value, dict | list)


def _cell(item: dict[str, Any], field: str) -> object:
    how, _, path = field.rpartition(":")
    value: Any = item
    for name in path.split("."):
        value = cast(dict[str, Any], value).get(name) if isinstance(value, dict) else None
    if how == "age":
        return age(value)
    return first_line(str(value or ""), 60) if how == "line" else value


def show_record(title: str, record: Any) -> None:
    """A record as fields: nothing empty, nothing twice, inner records as one line of JSON."""
    told = cast(dict[str, Any], record) if isinstance(record, dict) else {"answer": record}
    shown = {
        name: json.dumps(value) if isinstance(value, dict | list) else value
        for name, value in told.items()
        if value not in (None, "", [], {}) and name not in SAME
    }
    out(fields(title or str(told.get("address") or told.get("id") or ""), shown))


# ------------------------------------------------------------------------------------ special ones


def _show_agent(agent: dict[str, Any]) -> None:
    config: dict[str, Any] = agent.get("config") or {}
    shown = {
        "status": agent["status"],
        "canonical": agent["canonical"],
        "path": agent["path"],
        "birthBranch": agent.get("birthBranch"),
        "id": agent["id"],
        "project": agent.get("projectRoot"),
        "harness": config.get("harness"),
        "wakes": config.get("wakePolicy"),
        "role": agent.get("toolRole"),
        "open flights": agent.get("openFlights"),
        "unread": agent.get("unread"),
        "aliases": ", ".join(agent.get("aliases") or ()) or None,
    }
    out(fields(str(agent["address"]), {name: value for name, value in shown.items() if value is not None}))
    for endpoint in agent.get("endpoints") or ():
        seen = age(endpoint.get("lastSeenAt"))
        out(f"  endpoint {endpoint['id']}  {endpoint.get('harness')}  {endpoint['state']}  last seen {seen}")
    for session in agent.get("sessions") or ():
        out(f"  session {session['id']}  {session.get('harness')}  {session['state']}")


def _show_registered(told: dict[str, Any]) -> None:
    word = "registered" if told["created"] else "already registered"
    out(f"{paint(word, 'green')} {told['address']}  ({told['canonical']}, {told['path']})")
    if told.get("token"):
        out(f"token  {told['token']}")
        note("the token is shown this once; give it to the agent as SCOUT_TOKEN")


def _show_minted(told: dict[str, Any]) -> None:
    out(f"{paint('made', 'green')} {told['token']['id']} ({told['token']['kind']})")
    out(f"secret  {told['secret']}")
    note("the secret is shown this once")


def _show_resolved(told: dict[str, Any]) -> None:
    names = (
        "address",
        "canonical",
        "minimal",
        "path",
        "birthBranch",
        "agentId",
        "endpointId",
        "sessionId",
        "harness",
        "rule",
    )
    out(fields("", {name: told.get(name) for name in (*names, "action") if told.get(name) is not None}))


def _show_flight(flight: dict[str, Any]) -> None:
    names = (
        "state",
        "phase",
        "reason",
        "targetAddress",
        "requesterAddress",
        "attempt",
        "createdAt",
        "finishedAt",
    )
    shown = {name: flight.get(name) for name in names if flight.get(name) is not None}
    shown["asked"] = first_line(str(flight.get("body") or ""))
    out(fields(str(flight["id"]), shown))
    if flight.get("output") is not None:
        out("")
        out_text(str(flight["output"]))
    if error := cast(dict[str, Any] | None, flight.get("error")):
        out("")
        out(f"{paint(str(error['code']), 'red')}: {error['message']}")


def _show_ask(receipt: dict[str, Any]) -> None:
    to = receipt.get("address") or receipt["target"]
    out(f"{paint('asked', 'green')} {to}: {receipt['flightId']} ({receipt['state']}, {receipt['phase']})")
    note(f"the answer: scout wait {receipt['flightId']}")


def _show_claimed(told: dict[str, Any]) -> None:
    from scout.cli.verbs import show_items

    show_items(told["items"])


def _show_settled(told: dict[str, Any]) -> None:
    for delivery in told["items"]:
        out(f"{delivery['id']}  {delivery['state']}")


def _show_message(message: dict[str, Any]) -> None:
    head = {
        name: message.get(name) for name in ("sender", "kind", "conversationId", "createdAt", "inReplyTo")
    }
    out(fields(str(message["id"]), {name: value for name, value in head.items() if value is not None}))
    for one in message.get("deliveries") or ():
        told = f"  delivery {one['deliveryId']}  {one['target']}  {one['state']}  {one.get('reason', '')}"
        out(told.rstrip())
    out("")
    out_text(str(message.get("body") or "") if not message.get("redactedAt") else "(redacted)")


def _show_events(page: dict[str, Any]) -> None:
    for event in page["items"]:
        out(event_line(event))
    if page.get("next"):
        note(f"more: --after {page['items'][-1]['seq']}")


def event_line(event: dict[str, Any]) -> str:
    """One fact of the log on one line."""
    payload: dict[str, Any] = event.get("payload") or {}
    told: dict[str, Any] = payload.get("record") or payload
    what = [str(told[name]) for name in ("id", "state", "phase", "reason") if told.get(name)]
    body = first_line(str(told.get("body") or told.get("title") or ""), 60)
    words = " ".join([*what, *([f"“{body}”"] if body else [])])
    number, kind = paint(str(event.get("seq")), "dim"), paint(str(event["type"]), "cyan")
    return f"{number}  {event.get('time')}  {kind}  {words}"


def flight_row(flight: dict[str, Any]) -> str:
    """A flight in a short list."""
    state = flight["state"]
    colour = {"completed": "green", "failed": "red", "cancelled": "dim"}.get(state, "yellow")
    when = age(flight.get("finishedAt") or flight.get("createdAt"))
    asked = first_line(str(flight.get("body") or ""), 48)
    return f"  {paint(f'{state:<9}', colour)}  {flight['targetAddress']}  “{asked}”  {when}  {flight['id']}"


def _show_channel(channel: dict[str, Any]) -> None:
    """Its name, its rules, who takes part and who is responsible."""
    members: list[dict[str, Any]] = channel.get("members") or []
    soft = ", soft mentions wake" if channel.get("softMentions") == "wake" else ""
    rules = f"{channel['unread']} unread{', quiet' if channel.get('quiet') else ''}{soft}"
    count = f"{len(members)} member{'s' if len(members) != 1 else ''}"
    out(f"channel {channel['name']}: {count}, {rules}  ({channel['id']})")
    for member in members:
        roles = ", ".join(member.get("roles") or ())
        out(f"  {member['address']}{f'  {roles}' if roles else ''}")


def _show_alias(alias: dict[str, Any]) -> None:
    broken = f"  ({alias['state']}: {alias['reason']})" if alias["state"] != "active" else ""
    out(f"@{alias['name']} means {alias['means']}{broken}")


def _show_card(card: dict[str, Any]) -> None:
    most = card["maxUses"]
    uses = f"{card['uses']} of {most} uses" if most is not None else f"{card['uses']} uses"
    until = f", until {card['expiresAt']}" if card.get("expiresAt") else ""
    out(f"card {card['id']}: {card['state']}, {uses}{until}")
    if card["state"] == "active":
        note(f"to use it: scout send {card['id']} TEXT")


_CHANNELS = ("create", "show", "join", "leave", "policy", "archive")

_SPECIAL: dict[str, Callable[[Any], None]] = {
    **ATTENTION,
    **INSIGHT,
    **OBSERVATION,
    **PAUSE,
    **SESSIONS,
    **WORK,
    **{f"channel.{move}": _show_channel for move in _CHANNELS},
    **{f"alias.{move}": _show_alias for move in ("set", "show", "remove", "repair")},
    **{f"card.{move}": _show_card for move in ("create", "show", "revoke")},
    "show": _show_agent,
    "agent.config": _show_agent,
    "agent.retire": _show_agent,
    "agent.revive": _show_agent,
    "agent.register": _show_registered,
    "token.create": _show_minted,
    "token.rotate": _show_minted,
    "resolve": _show_resolved,
    "flight.get": _show_flight,
    "flight.start": _show_flight,
    "flight.block": _show_flight,
    "flight.resume": _show_flight,
    "flight.complete": _show_flight,
    "flight.fail": _show_flight,
    "flight.cancel": _show_flight,
    "flight.retry": _show_ask,
    "inbox": _show_claimed,
    "inbox.claim": _show_claimed,
    "inbox.ack": _show_settled,
    "inbox.nack": _show_settled,
    "inbox.renew": _show_settled,
    "message.show": _show_message,
    "redact": _show_message,
}
