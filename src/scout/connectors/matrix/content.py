"""The content of the events that the bot sends to a Matrix room."""

from typing import Any

from scout.ports.connector import ChatPlace, OutboundFile, OutboundText

_KINDS = {"image": "m.image", "audio": "m.audio", "video": "m.video"}


def build_text(message: OutboundText) -> dict[str, Any]:
    """Return the content of a message in its thread."""
    content = _build_body(message)
    if relation := _build_relation(message.place, message.reply_to):
        content["m.relates_to"] = relation
    return content


def build_edit(message_id: str, message: OutboundText) -> dict[str, Any]:
    """Return the content that replaces an earlier message. Clients without edits show the plain text."""
    return {
        "msgtype": "m.text",
        "body": f"* {message.plain}",
        "m.mentions": {},
        "m.new_content": _build_body(message),
        "m.relates_to": {"rel_type": "m.replace", "event_id": message_id},
    }


def build_file(message: OutboundText, file: OutboundFile, url: str) -> dict[str, Any]:
    """Return the content of a file that was uploaded."""
    content: dict[str, Any] = {
        "msgtype": _KINDS.get(file.media_type.partition("/")[0], "m.file"),
        "body": file.name,
        "filename": file.name,
        "url": url,
        "info": {"mimetype": file.media_type, "size": len(file.data)},
        "m.mentions": {},
    }
    if relation := _build_relation(message.place, message.reply_to):
        content["m.relates_to"] = relation
    return content


def build_reaction(message_id: str, key: str) -> dict[str, Any]:
    """Return the content of a reaction to a message."""
    return {"m.relates_to": {"rel_type": "m.annotation", "event_id": message_id, "key": key}}


def _build_body(message: OutboundText) -> dict[str, Any]:
    """Return a text with its formatting. `m.mentions` is empty: no word in it rings anybody's phone."""
    return {
        "msgtype": "m.text",
        "body": message.plain,
        "format": "org.matrix.custom.html",
        "formatted_body": message.text,
        "m.mentions": {},
    }


def _build_relation(place: ChatPlace, reply_to: str | None) -> dict[str, Any]:
    if place.thread_id is None:
        return {"m.in_reply_to": {"event_id": reply_to}} if reply_to else {}
    return {
        "rel_type": "m.thread",
        "event_id": place.thread_id,
        "is_falling_back": reply_to is None,
        "m.in_reply_to": {"event_id": reply_to or place.thread_id},
    }
