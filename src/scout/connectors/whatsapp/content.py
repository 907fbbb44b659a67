"""Messages for WhatsApp: a text, a text with choices, or a file."""

from typing import Any

from scout.ports.connector import Button, OutboundFile, OutboundText

MOST_BUTTONS = 3
_LONGEST_BODY = 1024  # characters above reply buttons
_LONGEST_LIST_BODY = 4096
_LARGEST_IMAGE = 5 * 1024 * 1024
_IMAGES = ("image/jpeg", "image/png")
_TEXTS = ("application/json", "application/xml", "application/x-yaml", "application/toml", "application/x-sh")


def build_message(to: str, kind: str, content: dict[str, Any], reply_to: str | None = None) -> dict[str, Any]:
    """Return a request. An id with a country and a dot names a person without their phone number."""
    message: dict[str, Any] = {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "recipient" if "." in to else "to": to,
        "type": kind,
        kind: content,
    }
    return {**message, "context": {"message_id": reply_to}} if reply_to else message


def build_text(text: str) -> dict[str, Any]:
    """Return a text without a preview of its links."""
    return {"body": text, "preview_url": False}


def needs_own_text(message: OutboundText) -> bool:
    """Whether the text is too long to stand above the choices."""
    limit = _LONGEST_BODY if len(message.buttons) <= MOST_BUTTONS else _LONGEST_LIST_BODY
    return bool(message.buttons) and len(message.text) > limit


def build_choices(text: str, buttons: tuple[Button, ...]) -> dict[str, Any]:
    """Return a text with up to three buttons, or with a list of more choices."""
    if len(buttons) <= MOST_BUTTONS:
        replies = [{"type": "reply", "reply": {"id": one.value, "title": one.label}} for one in buttons]
        return {"type": "button", "body": {"text": text}, "action": {"buttons": replies}}
    rows = [{"id": one.value, "title": one.label} for one in buttons]
    action = {"button": "Choose", "sections": [{"title": "Choices", "rows": rows}]}
    return {"type": "list", "body": {"text": text}, "action": action}


def choose_kind(file: OutboundFile) -> str:
    """Return how a file is sent: small pictures as such, everything else as a document."""
    is_picture = file.media_type in _IMAGES and len(file.data) <= _LARGEST_IMAGE
    return "image" if is_picture else "document"


def choose_media_type(file: OutboundFile) -> str:
    """Return the type to upload a file with. WhatsApp accepts few types, and plain text is one of them."""
    is_text = file.media_type.startswith("text/") or file.media_type in _TEXTS
    return "text/plain" if is_text else file.media_type


def build_file(kind: str, media_id: str, name: str) -> dict[str, Any]:
    """Return a file that was uploaded."""
    return {"id": media_id} if kind == "image" else {"id": media_id, "filename": name}
