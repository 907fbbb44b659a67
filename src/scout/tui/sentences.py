"""Events of the log as rows: the time, the sentence, and the id of the record."""

from typing import Any

from scout.base.codec import to_plain
from scout.base.time import Time
from scout.model.events.envelope import Event
from scout.policy.sentences import build_sentence
from scout.tui.names import NameBook
from scout.tui.rows import Row
from scout.tui.text import format_clock, shorten_id, show_text

_STYLES = {"attention": "yellow", "ask": "accent"}


def build_event_row(event: Event | dict[str, Any], names: NameBook) -> Row:
    """Return an event as a row. Its key is the id of the event."""
    plain: dict[str, Any] = event if isinstance(event, dict) else to_plain(event)
    sentence, ident = build_sentence(plain, names)
    when = format_clock(Time.parse(plain["time"]))
    kind = str(plain["type"])
    style = "red" if kind.endswith((".failed", ".dead_lettered")) else _STYLES.get(kind.split(".")[1], "")
    text = show_text(names.say_you(sentence))
    cells = ((f"{when} ", "dim"), (f"{text}  ", style), (shorten_id(ident), "dim"))
    return Row(str(plain["id"]), cells, free=True)
