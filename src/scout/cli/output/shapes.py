"""How each answer is shown to a person; with `--json` it is shown as it came."""

from __future__ import annotations

import json
import os

from scout.cli.connection.text import (
    age,
    fields,
    first_line,
    local_time,
    note,
    one_line,
    out,
    out_text,
    paint,
    short_id,
    short_ids,
    table,
)
from scout.cli.output.columns import COLUMNS, EMPTY
from scout.cli.output.own_name import say_you

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from scout.cli.connection.call import DaemonCall

_IDENTITY = (
    "kind",
    "tokenId",
    "agentId",
    "alias",
    "canonical",
    "minimal",
    "path",
    "birthBranch",
    "role",
    "sessionId",
    "user",
    "project",
    "node",
    "url",
    "version",
)
_NAMES = ("whoami", "resolve", "show")  # they say what an agent or a person is called
# Whose answers are shown by another file: the first word of the operation, the file and its table.
_ELSEWHERE = {
    **dict.fromkeys(("attention", "need", "consult", "notify"), ("attention", "ATTENTION")),
    "allow": ("allowances", "ALLOWANCES"),
    **dict.fromkeys(("why", "brief", "usage"), ("insight", "INSIGHT")),
    **dict.fromkeys(("topology", "flight.diff", "session.tail"), ("observation", "OBSERVATION")),
    **dict.fromkeys(("session", "wake", "interrupt", "runtimes"), ("sessions", "SESSIONS")),
    **dict.fromkeys(("work", "question"), ("work", "WORK")),
    **dict.fromkeys(("pause", "resume"), ("pause", "PAUSE")),
}


def show(operation: str, answer: Any, as_json: bool = False, line: DaemonCall | None = None) -> None:
    """The answer of an operation. On a caller's line, the caller is `you`."""
    if as_json:
        out(json.dumps(answer))
        return
    if line is not None and operation not in _NAMES:
        answer = say_you(line, answer)
    if _is_object(answer) and "items" not in answer:
        from scout.cli.output.outcomes import BRIEF, show_outcome

        show_outcome(operation, answer)
        if operation in BRIEF:
            return
    special = _special(operation)
    if special is not None:
        special(answer)
    elif _is_object(answer) and "items" in answer:
        show_page(operation, answer)
    else:
        show_record("", answer)


def _is_object(value: Any) -> bool:
    return type(value) is dict


def _special(operation: str) -> Callable[[Any], None] | None:
    place = _ELSEWHERE.get(operation) or _ELSEWHERE.get(operation.partition(".")[0])
    if place is None:
        return _SPECIAL.get(operation)
    from importlib import import_module

    file, name = place
    return getattr(import_module(f"scout.cli.output.{file}"), name).get(operation)


def show_page(operation: str, page: dict[str, Any]) -> None:
    """A list as a table; how to see what comes after it."""
    items: list[dict[str, Any]] = page["items"]
    shape = COLUMNS.get(operation) or _any_columns(items)
    if items:
        short = short_ids(str(item["id"]) for item in items if item.get("id"))
        rows = [[_cell(item, field, short) for _, field in shape] for item in items]
        out(table([head for head, _ in shape], rows))
    else:
        out(EMPTY.get(operation, "None."))
    if page.get("next"):
        note(f"more: --cursor {page['next']}")


def _any_columns(items: list[dict[str, Any]]) -> tuple[tuple[str, str], ...]:
    flat = [name for name, value in (items[0] if items else {}).items() if _is_flat(name, value)]
    return tuple((name, name) for name in flat[:6])


def _is_flat(name: str, value: object) -> bool:
    return not is_repeated(name) and type(value) not in (dict, list)


def is_repeated(name: str) -> bool:
    """Whether a field is another system's name for what is there already."""
    from scout.model.wire_names import SYNONYMS

    return name in SYNONYMS.values()


def _cell(item: dict[str, Any], field: str, short: dict[str, str]) -> object:
    how, _, paths = field.rpartition(":")
    value = next((found for path in paths.split("|") if (found := _at(item, path)) not in (None, "")), None)
    if how == "id":
        return short.get(str(value), value)
    return _READ[how](value) if how else value


def _at(item: Any, path: str) -> Any:
    if path == "members":
        return ", ".join(str(one.get("address")) for one in item.get("members") or ())
    if path == "presence":
        return _presence(item)
    for name in path.split("."):
        item = item.get(name) if _is_object(item) else None
    return item


def _presence(agent: dict[str, Any]) -> object:
    """An agent's status, or that it sleeps, which says more than that it is offline."""
    asleep = agent.get("lifecycle") == "sleeping"
    return agent["lifecycle"] if asleep else agent.get("status")


def _folder(value: Any) -> str | None:
    """A folder as somebody who stands here would say it, where that is shorter."""
    if not value:
        return None
    path, home = str(value), os.path.expanduser("~")  # noqa: PTH111 (pathlib would be loaded for this)
    return f"~{path[len(home) :]}" if f"{path}/".startswith(f"{home}/") and home != "/" else path


_READ: dict[str, Callable[[Any], object]] = {
    "age": age,
    "time": local_time,
    "line": one_line,
    "path": _folder,
    "percent": lambda value: None if value is None else f"{value:g} %",
}


def show_record(title: str, record: Any) -> None:
    """A record as fields: nothing empty, nothing twice, inner records as one line of JSON."""
    told: dict[str, Any] = record if _is_object(record) else {"answer": record}
    shown = {
        name: json.dumps(value) if type(value) in (dict, list) else value
        for name, value in told.items()
        if value not in (None, "", [], {}) and not is_repeated(name)
    }
    out(fields(title or str(told.get("address") or told.get("minimal") or told.get("id") or ""), shown))


# ------------------------------------------------------------------------------------ special ones


def _show_agent(agent: dict[str, Any]) -> None:
    config: dict[str, Any] = agent.get("config") or {}
    shown = {
        "status": _presence(agent),
        "sleeping since": local_time(agent["sleepingSince"]) if agent.get("sleepingSince") else None,
        "about": agent.get("description"),
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
    out(
        fields(
            str(agent.get("address") or agent["minimal"]),
            {name: value for name, value in shown.items() if value is not None},
        )
    )
    for endpoint in agent.get("endpoints") or ():
        how = f"{endpoint.get('harness')}  {endpoint['state']}, seen {age(endpoint.get('lastSeen'))}"
        out(f"  endpoint {short_id(endpoint['id'])}  {how}")
    for session in agent.get("sessions") or ():
        out(f"  session {short_id(session['id'])}  {session.get('harness')}  {session['state']}")


def _show_identity(me: dict[str, Any]) -> None:
    """Who the caller is; what it is not is left out."""
    shown = {name: me.get(name) for name in _IDENTITY}
    out(fields(str(me.get("address") or ""), {name: value for name, value in shown.items() if value}))


def _show_registered(told: dict[str, Any]) -> None:
    word = "registered" if told["created"] else "already registered"
    out(f"{paint(word, 'green')} {told['address']}  ({told['path']})")
    for text in told.get("notes") or ():
        note(f"note: {text}")
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
    )
    shown = {name: flight.get(name) for name in names if flight.get(name) is not None}
    times = {"began": flight.get("createdAt"), "finished": flight.get("finishedAt")}
    shown |= {name: local_time(moment) for name, moment in times.items() if moment}
    shown["asked"] = first_line(str(flight.get("body") or ""))
    out(fields(str(flight["id"]), shown))
    if flight.get("output") is not None:
        out("")
        out_text(str(flight["output"]))
    if error := flight.get("error"):
        out("")
        out(f"{paint(str(error['code']), 'red')}: {error['message']}")


def _show_ask(receipt: dict[str, Any]) -> None:
    to = receipt.get("address") or receipt["target"]
    out(f"{paint('asked', 'green')} {to}: {receipt['flightId']} ({receipt['state']}, {receipt['phase']})")
    note(f"the answer: scout wait {receipt['flightId']}")


def _show_claimed(told: dict[str, Any]) -> None:
    from scout.cli.output.inbox import show_items

    show_items(told["items"])


def _show_settled(told: dict[str, Any]) -> None:
    for delivery in told["items"]:
        out(f"{delivery['id']}  {delivery['state']}")


def _show_message(message: dict[str, Any]) -> None:
    head = {name: message.get(name) for name in ("sender", "kind", "conversationId", "inReplyTo")}
    head["when"] = local_time(message.get("createdAt"))
    out(fields(str(message["id"]), {name: value for name, value in head.items() if value is not None}))
    for one in message.get("deliveries") or ():
        told = f"  delivery {one['deliveryId']}  {one['target']}  {one['state']}  {one.get('reason', '')}"
        out(told.rstrip())
    out("")
    out_text(str(message.get("body") or "") if not message.get("redactedAt") else "(redacted)")


def flight_rows(flights: list[dict[str, Any]], limit: int | None = None) -> list[str]:
    """Flights in a short list, each on one line."""
    chosen = flights[:limit]
    short = short_ids(str(one["id"]) for one in chosen)
    rows = [_flight_row(one, short[one["id"]]) for one in chosen]
    return [table((), rows, by="  ")] if rows else []


def _flight_row(flight: dict[str, Any], short: str) -> list[str]:
    state = str(flight["state"])
    colour = {"completed": "green", "failed": "red", "cancelled": "dim"}.get(state, "yellow")
    when = age(flight.get("finishedAt") or flight.get("createdAt"))
    asked = one_line(flight.get("body"))
    return [short, paint(state, colour), str(flight["targetAddress"]), when, asked]


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
    until = f", until {local_time(card['expiresAt'])}" if card.get("expiresAt") else ""
    out(f"card {card['id']}: {card['state']}, {uses}{until}")
    if card["state"] == "active":
        note(f"to use it: scout send {card['id']} TEXT")


_CHANNELS = ("create", "show", "join", "leave", "policy", "archive")

_SPECIAL: dict[str, Callable[[Any], None]] = {
    **{f"channel.{move}": _show_channel for move in _CHANNELS},
    **{f"alias.{move}": _show_alias for move in ("set", "show", "remove", "repair")},
    **{f"card.{move}": _show_card for move in ("create", "show", "revoke")},
    "whoami": _show_identity,
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
