"""Output of each result for a person; `--json` prints it unchanged."""

from __future__ import annotations

import json

from scout.cli.connection.text import (
    cut,
    format_age,
    format_fields,
    format_local_time,
    format_table,
    get_columns,
    get_first_line,
    indent,
    join_lines,
    join_words,
    note,
    paint,
    print_out,
    print_text,
    shorten_id,
    shorten_ids,
    wrap,
)
from scout.cli.output.fields import (
    AGENT,
    ALL_NODES,
    COLUMNS,
    EMPTY,
    FLIGHT,
    IDENTITY,
    MESSAGE,
    PUBLICATION,
    QUESTION,
    RESOLUTION,
    WORK,
    read_agent,
    read_field,
    read_member,
    read_target,
    show_fields,
)
from scout.cli.output.own_name import say_you
from scout.policy.sentences import add_node, describe_receipt, find_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from scout.cli.connection.call import DaemonCall
    from scout.cli.output.fields import Field

_PREVIEW = 12  # maximum lines of a message in the inbox
_NAMES = ("whoami", "resolve", "show")  # results that show the name of an agent or person
# Operations whose results another module shows, by first word or full name.
_ELSEWHERE = {
    **dict.fromkeys(("attention", "need", "consult", "notify", "allow"), "attention"),
    **dict.fromkeys(("why", "brief", "usage", "pause", "resume"), "insight"),
    "activity": "past",
    **dict.fromkeys(("archive", "purge"), "archives"),
    "reserve": "reservations",
    "cron": "schedules",
    "task": "tasks",
    **dict.fromkeys(("topology", "flight.diff", "session.tail"), "observation"),
    **dict.fromkeys(("session", "wake", "interrupt", "runtimes"), "sessions"),
    **dict.fromkeys(("user", "binding", "grant", "connector"), "people"),
    **dict.fromkeys(("mesh", "agent.move"), "mesh"),
    **dict.fromkeys(("tree", "tree.scan", "tree.reconcile"), "trees"),
    **dict.fromkeys(("spawn", "project.list", "project.set"), "spawned"),
}


def show(operation: str, answer: Any, as_json: bool = False, line: DaemonCall | None = None) -> None:
    """Show the result of an operation. With a line to the daemon, the caller is called `you`."""
    if as_json:
        print_out(json.dumps(answer))
        return
    if line is not None and operation not in _NAMES:
        answer = say_you(line, answer)
    if _is_object(answer) and answer.get("moment"):
        from scout.cli.output.past import show_moment

        show_moment(answer.pop("moment"))
    if _is_object(answer) and "items" not in answer:
        from scout.cli.output.outcomes import BRIEF, show_outcome

        show_outcome(operation, answer)
        if operation in BRIEF:
            return
    printer = _find_printer(operation)
    if printer is not None:
        printer(answer)
    elif _is_object(answer) and "items" in answer:
        show_page(operation, answer)
    else:
        show_record("", answer)


def _is_object(value: Any) -> bool:
    return type(value) is dict


def _find_printer(operation: str) -> Callable[[Any], None] | None:
    file = _ELSEWHERE.get(operation) or _ELSEWHERE.get(operation.partition(".")[0])
    if file is None:
        return PRINTERS.get(operation)
    from importlib import import_module

    return import_module(f"scout.cli.output.{file}").PRINTERS.get(operation)


def show_page(operation: str, page: dict[str, Any]) -> None:
    """Show a list as a table, and how to see the next page."""
    items: list[dict[str, Any]] = page["items"]
    shown = COLUMNS.get(operation) or _choose_columns(items)
    if operation == "who" and any(map(find_node, items)):
        shown = ALL_NODES
    if items:
        short = shorten_ids(str(item["id"]) for item in items if item.get("id"))
        rows = [
            [short[str(item["id"])] if how == "id:id" else read_field(item, how) for _, how in shown]
            for item in items
        ]
        print_out(format_table([head for head, _ in shown], rows))
    else:
        print_out(EMPTY.get(operation, "None."))
    if page.get("next"):
        note(f"more: --cursor {page['next']}")


def _choose_columns(items: list[dict[str, Any]]) -> tuple[Field, ...]:
    flat = [name for name, value in (items[0] if items else {}).items() if _is_flat(name, value)]
    return tuple((name, name) for name in flat[:6])


def _is_flat(name: str, value: object) -> bool:
    return not is_repeated(name) and type(value) not in (dict, list)


def is_repeated(name: str) -> bool:
    """Whether a field repeats another one under another system's name."""
    from scout.model.wire_names import SYNONYMS

    return name in SYNONYMS.values()


def show_record(title: str, record: Any) -> None:
    """Show any record as fields: without empty or repeated ones; inner records as one line of JSON."""
    told: dict[str, Any] = record if _is_object(record) else {"answer": record}
    shown = {
        name: json.dumps(value) if type(value) in (dict, list) else value
        for name, value in told.items()
        if value not in (None, "", [], {}) and not is_repeated(name)
    }
    print_out(
        format_fields(title or str(told.get("address") or told.get("minimal") or told.get("id") or ""), shown)
    )


# -- one kind of record each -------------------------------------------------------------------------


def _show_agent(agent: dict[str, Any]) -> None:
    show_fields(read_agent(agent), agent, AGENT)
    for endpoint in agent.get("endpoints") or ():
        seen = f"{endpoint['state']}, seen {format_age(endpoint.get('lastSeen'))}"
        print_out(f"  endpoint {shorten_id(endpoint['id'])}  {endpoint.get('harness')}  {seen}")
    for session in agent.get("sessions") or ():
        print_out(f"  session {shorten_id(session['id'])}  {session.get('harness')}  {session['state']}")
    for text in agent.get("notes") or ():
        note(wrap(text, "note: "))
    for one in agent.get("reservations") or ():
        from scout.cli.output.reservations import format_reservation

        print_out(f"  reserved {format_reservation(one, shorten_id(one['id']))}")


def _show_registered(told: dict[str, Any]) -> None:
    word = "registered" if told["created"] else "already registered"
    print_out(f"{paint(word, 'green')} {told['address']}  ({told['path']})")
    for text in told.get("notes") or ():
        note(f"note: {text}")
    if told.get("token"):
        print_out(f"token  {told['token']}")
        note("the token is shown this once; give it to the agent as SCOUT_TOKEN")


def _show_minted(told: dict[str, Any]) -> None:
    print_out(f"{paint('made', 'green')} {told['token']['id']} ({told['token']['kind']})")
    print_out(f"secret  {told['secret']}")
    note("the secret is shown this once")


def _show_flight(flight: dict[str, Any]) -> None:
    show_fields(flight["id"], flight, FLIGHT)
    if flight.get("output") is not None:
        print_out("")
        print_text(str(flight["output"]))
    if error := flight.get("error"):
        print_out("")
        print_out(f"{paint(str(error['code']), 'red')}: {error['message']}")


def _show_ask(receipt: dict[str, Any]) -> None:
    to = add_node(receipt.get("address") or receipt["target"], receipt.get("node"))
    print_out(
        f"{paint('asked', 'green')} {to}: {receipt['flightId']} ({receipt['state']}, {receipt['phase']})"
    )
    note(f"the answer: scout wait {receipt['flightId']}")


def show_items(items: list[dict[str, Any]]) -> None:
    """Show the items of an inbox, each with the beginning of its text."""
    for item in items:
        print_out(_describe_item(item))
    if not items:
        print_out("Your inbox is empty.")


def _describe_item(item: dict[str, Any]) -> str:
    delivery: dict[str, Any] = item.get("delivery") or {}
    message: dict[str, Any] = item.get("message") or {}
    lines = str(message.get("body") or item.get("prompt") or "").splitlines()
    shown = lines if len(lines) <= _PREVIEW else [*lines[:_PREVIEW], f"… {len(lines) - _PREVIEW} more lines"]
    kind = message.get("kind")
    what = "answers" if kind in ("final", "answer") else ("asks" if delivery.get("flightId") else "says")
    what = "adds, after the end of the ask," if delivery.get("rule") == "note" else what
    place = " to everybody" if item.get("broadcast") else ""
    place = f" in {item['channel']}" if item.get("channel") else place
    about = f" “{get_first_line(str(item['about']), 48)}”" if what != "says" and item.get("about") else ""
    when = format_age(message.get("createdAt") or delivery.get("createdAt"))
    sender = add_node(str(item.get("sender")), item.get("senderNode"))
    head = f"{paint(sender, 'bold')} {what}{about}{place}, {when}"
    ids = (message.get("id"), delivery.get("id"), delivery.get("flightId"))
    refs = " ".join(str(one) for one in ids if one)
    return join_lines([f"{head}  {paint(refs, 'dim')}", indent("\n".join(shown))])


def _show_settled(told: dict[str, Any]) -> None:
    for delivery in told["items"]:
        print_out(f"{delivery['id']}  {delivery['state']}")


def _show_message(message: dict[str, Any]) -> None:
    show_fields(message["id"], message, MESSAGE)
    for one in message.get("deliveries") or ():
        parts = (one["deliveryId"], one["target"], one["state"], one.get("reason", ""))
        print_out(f"  delivery {'  '.join(parts)}".rstrip())
        if way := describe_receipt(one.get("mesh")):
            print_out(f"    the message {way}")
    print_out("")
    print_text(str(message.get("body") or "") if not message.get("redactedAt") else "(redacted)")


def format_flights(flights: list[dict[str, Any]], limit: int | None = None) -> list[str]:
    """Format a short list of flights, one per line."""
    chosen = flights[:limit]
    short = shorten_ids(str(one["id"]) for one in chosen)
    rows = [_build_flight_row(one, short[one["id"]]) for one in chosen]
    return [format_table((), rows, by="  ")] if rows else []


def _build_flight_row(flight: dict[str, Any], short: str) -> list[str]:
    state = str(flight["state"])
    colour = {"completed": "green", "failed": "red", "cancelled": "dim"}.get(state, "yellow")
    when = format_age(flight.get("finishedAt") or flight.get("createdAt"))
    asked = join_words(flight.get("body"))
    return [short, paint(state, colour), read_target(flight), when, asked]


def _show_channel(channel: dict[str, Any]) -> None:
    """Show a channel: its name, its rules, and its members with their roles."""
    members: list[dict[str, Any]] = channel.get("members") or []
    soft = ", soft mentions wake" if channel.get("softMentions") == "wake" else ""
    rules = f"{channel['unread']} unread{', quiet' if channel.get('quiet') else ''}{soft}"
    count = f"{len(members)} member{'s' if len(members) != 1 else ''}"
    print_out(f"channel {channel['name']}: {count}, {rules}  ({channel['id']})")
    for member in members:
        roles = ", ".join(member.get("roles") or ())
        print_out(f"  {read_member(member)}{f'  {roles}' if roles else ''}")


def _show_alias(alias: dict[str, Any]) -> None:
    broken = f"  ({alias['state']}: {alias['reason']})" if alias["state"] != "active" else ""
    print_out(f"@{alias['name']} means {alias['means']}{broken}")


def _show_card(card: dict[str, Any]) -> None:
    most = card["maxUses"]
    uses = f"{card['uses']} of {most} uses" if most is not None else f"{card['uses']} uses"
    until = f", until {format_local_time(card['expiresAt'])}" if card.get("expiresAt") else ""
    print_out(f"card {card['id']}: {card['state']}, {uses}{until}")
    if card["state"] == "active":
        note(f"to use it: scout send {card['id']} TEXT")


def _show_question(question: dict[str, Any]) -> None:
    print_out(paint(str(question["id"]), "bold"))
    print_out(indent(str(question["body"])))
    show_fields("", question, QUESTION)
    _show_notes(question)


def _show_work(item: dict[str, Any]) -> None:
    print_out(f"{paint(str(item['id']), 'bold')}  {item['title']}")
    if item.get("description"):
        print_out(indent(str(item["description"])))
    show_fields("", item, WORK)
    _show_notes(item)
    for relation in item.get("relations") or ():
        print_out(f"  {relation['kind']} {relation['workItemId']}")
    for relation in item.get("relatedBy") or ():
        print_out(f"  {relation['workItemId']} {relation['kind']} it")
    for step in item.get("steps") or ():
        why = f": {step['reason']}" if step.get("reason") else ""
        moved = f"{step['move']:<10}  {step['state']:<9}  {step['by']}{why}"
        print_out(cut(f"  {step['revision']:>3}  {format_local_time(step['at'])}  {moved}", get_columns()))


def _show_publication(published: dict[str, Any]) -> None:
    show_fields(published["address"], published, PUBLICATION)
    _show_notes(published)


def _show_notes(record: dict[str, Any]) -> None:
    for one in record.get("notes") or ():
        print_out(f"  note: {one}")


_CHANNELS = ("create", "show", "join", "leave", "policy", "archive")

_FLIGHTS = ("get", "start", "block", "resume", "complete", "fail", "cancel")
_QUESTIONS = ("create", "show", "answer", "decline", "close", "reopen")
_WORK = (
    *("create", "show", "start", "progress", "wait", "resume", "submit", "accept", "reopen", "hand-over"),
    *("cancel", "update", "relate"),
)

PRINTERS: dict[str, Callable[[Any], None]] = {
    **{f"channel.{move}": _show_channel for move in _CHANNELS},
    **{f"alias.{move}": _show_alias for move in ("set", "show", "remove", "repair")},
    **{f"card.{move}": _show_card for move in ("create", "show", "revoke")},
    **{f"flight.{move}": _show_flight for move in _FLIGHTS},
    **{f"question.{move}": _show_question for move in _QUESTIONS},
    **{f"work.{move}": _show_work for move in _WORK},
    "whoami": lambda me: show_fields(me.get("address") or "", me, IDENTITY),
    "show": _show_agent,
    "agent.config": _show_agent,
    "agent.retire": _show_agent,
    "agent.revive": _show_agent,
    "agent.register": _show_registered,
    **{f"agent.{word}": _show_publication for word in ("publish", "publication", "unpublish")},
    "token.create": _show_minted,
    "token.rotate": _show_minted,
    "resolve": lambda found: show_fields("", found, RESOLUTION),
    "flight.retry": _show_ask,
    **dict.fromkeys(("inbox", "inbox.claim"), lambda page: show_items(page["items"])),
    "inbox.ack": _show_settled,
    "inbox.nack": _show_settled,
    "inbox.renew": _show_settled,
    "message.show": _show_message,
    "redact": _show_message,
}
