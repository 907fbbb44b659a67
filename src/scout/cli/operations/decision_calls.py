"""Implements `approve`, `deny`, `answer` and `dismiss` after parsing; the warm path ends here."""

from __future__ import annotations

import sys

from scout.cli.connection.call import ROUTES, DaemonCall
from scout.cli.connection.refusal import RefusalError, repeat_typed
from scout.cli.connection.text import note, print_out
from scout.cli.output.attention import format_headline, format_wish
from scout.cli.output.results import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from scout.cli.operations.verbs import Options

_NOT_ALL = 7  # exit code if one of several items was not decided
_WORDS = ("only", "last")
_TEXT = {"answer": "answer"}  # the parameter for words after the items; default: the reason


def _is_reference(word: str) -> bool:
    """Whether a word refers to items: an id or its prefix, an agent, `only` or `last`."""
    return word.startswith(("att_", "@", "/")) or word in _WORDS


def _split_words(words: list[str]) -> tuple[list[str], str]:
    """Split the words into items and the text after them."""
    count = next((at for at, word in enumerate(words) if not _is_reference(word)), len(words))
    return words[:count], " ".join(words[count:])


def decide(move: str, words: list[str], of: str | None, given: dict[str, Any], manner: Options) -> int:
    """Decide the items that the words refer to; return the exit code."""
    if "" in words or of == "":
        raise RefusalError.of("bad_request", "an address or id is empty")
    named, text = _split_words(words)
    field = _TEXT.get(move, "reason")
    given = {**given, **({field: text} if text else {})}
    if move == "answer" and not text:
        raise RefusalError.of("bad_request", "there is no answer; give it as text: scout answer blue")
    line = manner.line()
    if of is not None:
        return _decide_all(line, move, of, given, manner)
    if len(named) > 1:
        return _decide_several(line, move, named, given, manner)
    ident = named[0] if named else "only"
    item = line.call(ROUTES[f"attention.{move}"], {"attentionId": ident, **given}, manner.key)
    show(f"attention.{move}", item, manner.as_json, line)
    return 0


def _decide_all(line: DaemonCall, move: str, of: str, given: dict[str, Any], manner: Options) -> int:
    """Decide all open items of an agent or flight: exactly those shown."""
    field = "flight" if of.startswith("flt_") else "agent"
    try:
        shown = line.call(ROUTES["attention"], {field: of, "limit": 200})["items"]
    except RefusalError as problem:
        raise RefusalError(repeat_typed(problem.told, of, field)) from None
    items = [one for one in shown if one.get("mayDecide")]
    if not items:
        print_out(f"nothing of {of} is open")
        return 0
    if sys.stdin.isatty() and not manner.as_json and not _confirm_all(move, items):
        note("nothing was decided")
        return 1
    return _decide_several(line, move, [str(one["id"]) for one in items], given, manner)


def _confirm_all(move: str, items: list[dict[str, Any]]) -> bool:
    for item in items:
        note(format_headline(item))
        for shown in format_wish(item):
            note(f"  {shown}")
    import click

    return click.confirm(f"{move} these {len(items)}?", default=False, err=True)


def _decide_several(
    line: DaemonCall, move: str, named: list[str], given: dict[str, Any], manner: Options
) -> int:
    if given.get("anyUse") or given.get("path"):
        raise RefusalError.of("bad_request", "--any-use and --path are decided for one item at a time")
    decision = line.call(
        ROUTES["attention.decide"], {"move": move, "attentionIds": named, **given}, manner.key
    )
    show("attention.decide", decision, manner.as_json, line)
    return 0 if all(one["decided"] for one in decision["items"]) else _NOT_ALL
