"""Chats on outside platforms: where they are, and the words of their messages that Scout decides about."""

from enum import StrEnum

from scout.base.record import Record


class Markup(StrEnum):
    """The formatting that a platform understands."""

    PLAIN = "plain"
    TELEGRAM = "telegram"  # its subset of HTML
    MATRIX = "matrix"  # HTML beside a plain text
    SLACK = "slack"  # mrkdwn
    WHATSAPP = "whatsapp"


class ChatPlace(Record, omit_defaults=True):
    """A chat, and a thread in it. `group`: several people read it."""

    chat_id: str
    thread_id: str | None = None
    group: bool = False


class Button(Record):
    """One button. `value` comes back when it is pressed, at most 64 bytes."""

    label: str
    value: str
