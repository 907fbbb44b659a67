"""The WhatsApp Cloud API as pywa knows it: an independent reader of what the fake sends and gets.

A request of the connector must be, field by field, what pywa sends for the same message; a notification of the
fake must be what pywa reads.
"""

import json
from typing import Any

import httpx
import pywa
import pywa.types
import pywa.types.base_update
from pywa import utils

__all__ = ["is_signed", "read", "rebuild"]

_RAW: Any = pywa.types.base_update.RawUpdate
types: Any = pywa.types  # it says nothing about what it exports
WhatsApp: Any = vars(pywa)["WhatsApp"]
_UPDATES: dict[str, Any] = {
    "text": types.Message,
    "image": types.Message,
    "document": types.Message,
    "reaction": types.Message,
    "edit": types.EditedMessage,
    "button_reply": types.CallbackButton,
    "list_reply": types.CallbackSelection,
    "status": types.MessageStatus,
}


class _Capture(httpx.BaseTransport):
    """Keeps the request, and answers as Meta would."""

    def __init__(self) -> None:
        self.body: dict[str, Any] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.body = json.loads(request.content)
        accepted = {
            "messaging_product": "whatsapp",
            "contacts": [{"input": "1", "wa_id": "1", "user_id": "US.1"}],
        }
        return httpx.Response(200, json={**accepted, "messages": [{"id": "wamid.1"}], "success": True})


def is_signed(secret: str, body: bytes, signature: str) -> bool:
    """Whether pywa accepts the signature of a notification."""
    return utils.webhook_updates_validator(secret, body, signature)


def read(notification: bytes, kind: str) -> Any:
    """A notification as pywa reads it."""
    with httpx.Client(transport=_Capture()) as session:
        client = WhatsApp(phone_id="100", token="t", session=session)
        return _UPDATES[kind].from_update(client, _RAW(notification, hmac_header=None, update_hash=""))


def rebuild(message: dict[str, Any]) -> dict[str, Any]:
    """The request that pywa makes for the same message."""
    capture = _Capture()
    with httpx.Client(transport=capture) as session:
        client = WhatsApp(phone_id="100", token="t", session=session)
        if "status" in message:
            client.indicate_typing(message_id=message["message_id"])
        else:
            _send(client, message)
    return capture.body


def _send(client: Any, message: dict[str, Any]) -> None:
    told = {
        "to": message.get("to") or message["recipient"],
        "reply_to_message_id": message.get("context", {}).get("message_id"),
    }
    content = message[message["type"]]
    match message["type"]:
        case "text":
            client.send_message(text=content["body"], preview_url=content["preview_url"], **told)
        case "image":
            client.send_image(image=content["id"], **told)
        case "document":
            client.send_document(document=content["id"], filename=content["filename"], **told)
        case "interactive":
            client.send_message(text=content["body"]["text"], buttons=_read_buttons(content), **told)
        case other:
            raise ValueError(other)


def _read_buttons(content: dict[str, Any]) -> Any:
    action = content["action"]
    if content["type"] == "button":
        replies = [one["reply"] for one in action["buttons"]]
        return [types.Button(title=one["title"], callback_data=one["id"]) for one in replies]
    sections = [
        types.Section(
            title=section["title"],
            rows=[types.SectionRow(title=one["title"], callback_data=one["id"]) for one in section["rows"]],
        )
        for section in action["sections"]
    ]
    return types.SectionList(button_title=action["button"], sections=sections)
