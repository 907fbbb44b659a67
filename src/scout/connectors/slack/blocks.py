"""Messages for Slack: a section with the text, and a row of buttons below it."""

from typing import Any

from scout.connectors.slack.text import escape_text
from scout.ports.connector import OutboundText


def build_message(message: OutboundText) -> dict[str, Any]:
    """Return the text and the blocks of a message. `text` is what a notification shows.

    Slack makes no mention of a word like @channel in either of them.
    """
    text = {"type": "mrkdwn", "text": message.text, "verbatim": True}
    section = {"type": "section", "expand": True, "text": text}
    blocks: list[dict[str, Any]] = [section]
    if message.buttons:
        blocks.append({"type": "actions", "elements": _build_buttons(message)})
    return {"text": escape_text(message.plain), "parse": "none", "blocks": blocks}


def find_thread(message: OutboundText) -> str | None:
    """Return the thread of a message. In a channel, an answer opens a thread below the question."""
    return message.place.thread_id or (message.reply_to if message.place.group else None)


def _build_buttons(message: OutboundText) -> list[dict[str, Any]]:
    return [
        {
            "type": "button",
            "action_id": f"choice-{index}",
            "text": {"type": "plain_text", "text": button.label, "emoji": True},
            "value": button.value,
        }
        for index, button in enumerate(message.buttons)
    ]
