"""A conversation or a flight as Markdown, to be kept, read or sent outside Scout.

What was written is quoted, so that a heading or a list in it stays a part of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scout.base.visible import make_lines_visible, make_visible

_ERASED = "*erased*"


def render_conversation(conversation: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the whole conversation, oldest message first."""
    members = [_name(one["address"], one["node"]) for one in conversation["members"] if not one["leftAt"]]
    title = conversation["name"] or " and ".join(members) or conversation["id"]
    count = f"{len(messages)} message{'' if len(messages) == 1 else 's'}"
    facts = [f"- conversation: `{conversation['id']}`", f"- members: {', '.join(members)}", f"- {count}"]
    parts = [f"# {title}", "\n".join(facts), *map(_render_message, messages)]
    return "\n\n".join(parts)


def render_flight(flight: Mapping[str, Any]) -> str:
    """Return an ask with its answer, or with what happened to it instead."""
    target = _name(flight["targetAddress"], flight["targetNode"])
    return "\n\n".join(
        [f"# An ask to {target}", "\n".join(_list_facts(flight)), "## Ask", _quote(flight["body"])]
        + (["## Answer", _quote(flight["output"])] if flight["output"] is not None else [])
        + (["## Error", _quote(flight["error"]["message"])] if flight["error"] else [])
    )


def _list_facts(flight: Mapping[str, Any]) -> Iterator[str]:
    yield f"- flight: `{flight['id']}`"
    yield f"- asked by: {_name(flight['requesterAddress'], flight['requesterNode'])}"
    yield f"- asked at: {_format_time(flight['createdAt'])}"
    if flight["finishedAt"]:
        yield f"- finished at: {_format_time(flight['finishedAt'])}"
    reason = make_visible(flight["reason"])
    state = flight["state"].replace("_", " ")
    yield f"- state: {state}" if reason == flight["state"] else f"- state: {state} ({reason})"
    if flight["harnessObserved"]:
        model = f", {make_visible(flight['modelObserved'])}" if flight["modelObserved"] else ""
        yield f"- program: {flight['harnessObserved']}{model}"
    if flight["attempts"] > 1:
        yield f"- attempts: {flight['attempts']}"


def _render_message(message: Mapping[str, Any]) -> str:
    sender = _name(message["senderAddress"], message["senderNode"])
    kind = "" if message["kind"] in ("chat", "final") else f" · {message['kind']}"
    parts = [f"## {sender} · {_format_time(message['createdAt'])}{kind}"]
    parts.append(_ERASED if message["redactedAt"] else _quote(message["body"]))
    files = [
        f"- file: {make_visible(one['name'])} ({one['size']} bytes, SHA-256 `{one['sha256']}`)"
        for one in message["attachments"]
    ]
    return "\n\n".join([*parts, *(["\n".join(files)] if files else [])])


def _quote(text: str) -> str:
    lines = make_lines_visible(text.expandtabs(4)).split("\n")
    return "\n".join(f"> {line}".rstrip() for line in lines)


def _name(address: str, node: str | None) -> str:
    return make_visible(f"{address} on {node}" if node else address)


def _format_time(moment: str) -> str:
    """Return a time of the wire, as `2026-11-18 21:18:38 UTC`."""
    return f"{moment[:10]} {moment[11:19]} UTC"
