"""What a text in a chat means. The rules are tried in order, and the first that applies decides."""

import re
from enum import StrEnum

from scout.base.record import Record
from scout.identity.mention import find_mentions
from scout.model.events.chats import Meaning


class ChatCommand(StrEnum):
    """The commands that Scout answers in a chat."""

    STOP = "stop"
    WHO = "who"
    STATUS = "status"
    HELP = "help"


_COMMAND = re.compile(r"/([A-Za-z]+)(?=\s|$)")
_LONGEST_NAME = 120
_ROUTE = re.compile(r"\s*>>(?!>)")
_SAME = {"start": ChatCommand.HELP}  # what Telegram sends when a chat is opened


class ChatText(Record):
    """A text with what is known about it.

    `by_program`: a bot wrote it. `addressed`: it is for the bot, as the platform tells. `code`: it is a link
    code. `known`: its sender's account is linked. `decides`: it answers a post about an attention item.
    `edits`: it replaces an earlier text. `bound`: the chat is bound to a conversation or an agent.
    """

    text: str
    by_program: bool = False
    addressed: bool = True
    code: bool = False
    known: bool = True
    decides: bool = False
    edits: bool = False
    bound: bool = False


def read_meaning(said: ChatText) -> Meaning:
    """Return what a text means."""
    command = read_command(said.text)
    concerns = said.addressed or said.code or said.decides or said.bound or command is not None
    if said.by_program or not concerns:
        return Meaning.IGNORED
    if said.code:
        return Meaning.LINK
    if not said.known:
        return Meaning.STRANGER if said.addressed or command is not None else Meaning.IGNORED
    if said.edits:
        return Meaning.CORRECTION
    if command is not None:
        return Meaning.COMMAND
    if said.decides:
        return Meaning.DECISION
    if has_target(said.text):
        return Meaning.MENTION
    return Meaning.BOUND if said.bound else Meaning.PLAIN


def read_command(text: str) -> ChatCommand | None:
    """Return the command that a text begins with; another word behind a slash is text."""
    found = _COMMAND.match(text.strip())
    word = found[1].lower() if found else ""
    return _SAME.get(word) or next((one for one in ChatCommand if one == word), None)


def clean_file_name(name: str) -> str:
    """Return the name of a file that somebody sent: on one line, without a path, and of modest length."""
    shown = "".join("_" if char in "/\\" or not char.isprintable() else char for char in name).strip()
    if not shown.strip("._"):
        return "file"
    return shown if len(shown) <= _LONGEST_NAME else f"{shown[: _LONGEST_NAME - 20]}…{shown[-19:]}"


def has_target(text: str) -> bool:
    """Whether a text names the agent that it is for: by a mention at its beginning, or by `>>`."""
    return find_mentions(text).leading is not None or _ROUTE.match(text) is not None
