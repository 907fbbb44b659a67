"""The table of keys as Textual wants it, and its short form for the last line of the screen."""

from collections.abc import Iterable

from textual.binding import Binding, BindingType

from scout.protocol.keys import KEYS, Key

_SPELLED = {"Ctrl-K": "ctrl+k", "Esc": "escape", "Space": "space"}
OF_LISTS = ("next", "previous", "show")  # keys that the lists handle themselves
_HINTS = {
    "approve": "approve",
    "approve.always": "always",
    "deny": "deny",
    "answer": "answer",
    "dismiss": "dismiss",
    "select": "select",
    "open": "open",
    "cancel": "cancel",
    "retry": "retry",
    "diff": "diff",
    "start": "start",
    "submit": "submit",
    "accept": "accept",
    "reopen": "reopen",
    "progress": "progress",
    "wait": "wait",
    "hand_over": "hand over",
    "work.cancel": "cancel",
    "new": "new",
    "node.remove": "remove",
    "seen": "mark as seen",
    "help": "keys",
    "find": "find",
    "ask": "ask",
    "filter": "filter",
    "why": "why",
}
_REPLIES = {"agents": "ask it", "agent": "ask it", "conversations": "write", "conversation": "write"}


def list_bindings() -> list[BindingType]:
    """Return the keys of the table; what a key means depends on the view."""
    rows = [row for row in KEYS if row.action not in OF_LISTS]
    pressed = dict.fromkeys(key for row in rows for key in row.keys if " " not in key)
    return [
        Binding("g", "go_to", show=False),
        Binding("q,ctrl+c", "quit", show=False),
        *(Binding(_SPELLED.get(key, key), f"press('{key}')", show=False) for key in pressed),
    ]


def list_hints(view: str, keys: Iterable[Key]) -> list[tuple[str, str]]:
    """Return the keys that are worth a place in the last line, each with a word or two."""
    told = {**_HINTS, "reply": _REPLIES.get(view, "ask back")}
    if view == "mesh":
        told["new"] = "invite"
    return [(row.keys[0], told[row.action]) for row in keys if row.action in told]
