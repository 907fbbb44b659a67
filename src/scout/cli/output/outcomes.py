"""The result of a command in its first word: `stopped ses_01m7k485nq of @arc`."""

from __future__ import annotations

from scout.cli.connection.text import join_words, note, paint, print_out, shorten_id
from scout.policy.sentences import add_node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Operation → its word, and whether that line is the whole output.
_WORDS: dict[str, tuple[str, bool]] = {
    "agent.config": ("changed", False),
    "agent.publish": ("published", False),
    "agent.retire": ("retired", True),
    "agent.revive": ("revived", True),
    "agent.unpublish": ("unpublished", True),
    "alias.remove": ("removed", True),
    "alias.repair": ("repaired", False),
    "alias.set": ("set", False),
    "card.create": ("created", False),
    "card.revoke": ("revoked", True),
    "channel.archive": ("archived", True),
    "channel.create": ("created", False),
    "channel.join": ("joined", False),
    "channel.leave": ("left", False),
    "channel.policy": ("changed", False),
    "connector.remove": ("removed", True),
    "connector.test": ("sent", True),
    "conversation.read": ("read", True),
    "endpoint.register": ("registered", False),
    "endpoint.remove": ("removed", True),
    "endpoint.update": ("changed", False),
    "flight.block": ("blocked", True),
    "flight.cancel": ("cancelled", True),
    "flight.complete": ("completed", True),
    "flight.fail": ("failed", True),
    "flight.resume": ("resumed", True),
    "flight.start": ("started", True),
    "grant.add": ("granted", False),
    "grant.revoke": ("revoked", True),
    "post": ("posted", True),
    "project.move": ("moved", False),
    "question.answer": ("answered", True),
    "question.close": ("closed", True),
    "question.create": ("asked", False),
    "question.decline": ("declined", True),
    "question.reopen": ("reopened", True),
    "redact": ("redacted", True),
    "session.attach": ("attached", False),
    "session.close": ("closed", True),
    "session.fork": ("forked", False),
    "session.start": ("started", False),
    "session.stop": ("stopped", True),
    "token.revoke": ("revoked", True),
    "user.add": ("added", False),
    "user.rename": ("renamed", False),
    "user.retire": ("retired", False),
    "user.revive": ("revived", False),
    "binding.add": ("bound", True),
    "binding.close": ("closed", True),
    "binding.reopen": ("reopened", True),
    "work.accept": ("accepted", False),
    "work.cancel": ("cancelled", True),
    "work.create": ("created", False),
    "work.hand-over": ("handed over", False),
    "work.progress": ("noted", False),
    "work.relate": ("related", False),
    "work.reopen": ("reopened", False),
    "work.resume": ("resumed", False),
    "work.start": ("started", False),
    "work.submit": ("submitted", False),
    "work.update": ("changed", False),
    "work.wait": ("waiting", False),
}

# Notes after an operation, on stderr.
_AFTERWARDS = {
    "agent.retire": "its name and messages are kept; bring it back with: scout agent revive {path}",
    "user.retire": "nothing is deleted; bring the user back with: scout user revive {name}",
    "agent.revive": "its name, settings and messages are as before; its sessions, tokens and flights stay "
    "ended (a new token: scout token create --agent {path})",
}

BRIEF = frozenset(operation for operation, (_, brief) in _WORDS.items() if brief)


def show_outcome(operation: str, record: dict[str, Any]) -> None:
    """Show the first line of the answer of an operation that changes something."""
    if operation in _WORDS:
        word, noun = _WORDS[operation][0], operation.partition(".")[0]
        subject = _SUBJECTS.get(noun, _get_id)(record)
        print_out(f"{paint(word, 'green')} {subject}".rstrip())
    if operation in _AFTERWARDS:
        note(_AFTERWARDS[operation].format(path=record.get("path"), name=record.get("name")))


def _get_id(record: dict[str, Any]) -> str:
    return str(record.get("id") or "")


def _format_agent(record: dict[str, Any]) -> str:
    return str(record.get("address") or record.get("minimal") or record.get("id"))


def _format_flight(record: dict[str, Any]) -> str:
    why = join_words(record.get("reason"))
    to = add_node(str(record.get("targetAddress")), record.get("targetNode"))
    return f"{shorten_id(_get_id(record))} to {to}{f': {why}' if why else ''}"


def _format_session(record: dict[str, Any]) -> str:
    return f"{shorten_id(_get_id(record))} of {record.get('address')} ({record.get('harness')})"


def _format_titled(record: dict[str, Any]) -> str:
    return f"{shorten_id(_get_id(record))}  {join_words(record.get('title') or record.get('body'))}"


def _format_binding(record: dict[str, Any]) -> str:
    chat = f"{record.get('name')} {record.get('externalId')}"
    return f"{shorten_id(_get_id(record))}: {chat} and {record.get('target')}"


def _format_posted(record: dict[str, Any]) -> str:
    chats = ", ".join(dict.fromkeys(str(one["connector"]) for one in record.get("posts", ())))
    return f"to {record.get('user')} ({chats or 'in the inbox: no chat is linked'})"


_SUBJECTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "agent": _format_agent,
    "alias": lambda record: f"@{record.get('name')}",
    "channel": lambda record: f"channel {record.get('name')}",
    "connector": lambda record: f"{record.get('connector')} ({record.get('state')})",
    "post": _format_posted,
    "conversation": lambda record: str(record.get("name") or _get_id(record)),
    "flight": _format_flight,
    "session": _format_session,
    "user": lambda record: str(record.get("name")),
    "binding": _format_binding,
    "question": _format_titled,
    "work": _format_titled,
    "project": lambda _: "the project",
}
