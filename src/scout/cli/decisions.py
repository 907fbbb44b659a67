"""`approve`, `deny`, `answer`, `dismiss`: one item, several, or all of one agent or flight."""

from __future__ import annotations

import sys
from typing import Any

import click

from scout.cli.attention_shapes import headline, wish_lines
from scout.cli.build import epilog, every_option, parameters_of, run_guarded, tidy
from scout.cli.line import Line
from scout.cli.problem import Problem
from scout.cli.shapes import show
from scout.cli.text import note, out
from scout.cli.verbs import Manner
from scout.protocol.operations import OPERATIONS

__all__ = ["answer", "approve", "deny", "dismiss", "is_reference"]

_NOT_ALL = 7  # the exit code when one of several was not decided
_WORDS = ("only", "last")
_TEXT = {"answer": "answer"}  # the words that are no items; else they are the reason


def is_reference(word: str) -> bool:
    """Whether a word names items: an id or its beginning, an agent, or one of the short words."""
    return word.startswith(("att_", "@", "/")) or word in _WORDS


def _parted(words: list[str]) -> tuple[list[str], str]:
    """The items that the first words name, and the text after them."""
    count = next((at for at, word in enumerate(words) if not is_reference(word)), len(words))
    return words[:count], " ".join(words[count:])


def _decide(move: str, words: list[str], of: str | None, given: dict[str, Any], manner: Manner) -> int:
    named, text = _parted(words)
    field = _TEXT.get(move, "reason")
    given = {**given, **({field: text} if text else {})}
    line = manner.line()
    if of is not None:
        return _decide_all(line, move, of, given, manner)
    if len(named) > 1:
        return _decide_several(line, move, named, given, manner)
    ident = named[0] if named else "only"
    item = line.call(_route(f"attention.{move}"), {"attentionId": ident, **given}, manner.key)
    show(f"attention.{move}", item, manner.as_json)
    return 0


def _decide_all(line: Line, move: str, of: str, given: dict[str, Any], manner: Manner) -> int:
    """All of an agent or flight that are open now: those that are shown, and no other."""
    listing = {"flight" if of.startswith("flt_") else "agent": of, "limit": 200}
    items = [one for one in line.call(_route("attention"), listing)["items"] if one.get("mayDecide")]
    if not items:
        out(f"nothing of {of} is open")
        return 0
    if sys.stdin.isatty() and not manner.as_json and not _agreed(move, items):
        note("nothing was decided")
        return 1
    return _decide_several(line, move, [str(one["id"]) for one in items], given, manner)


def _agreed(move: str, items: list[dict[str, Any]]) -> bool:
    for item in items:
        note(headline(item))
        for shown in wish_lines(item):
            note(f"  {shown}")
    return click.confirm(f"{move} these {len(items)}?", default=False, err=True)


def _decide_several(line: Line, move: str, named: list[str], given: dict[str, Any], manner: Manner) -> int:
    if given.get("anyUse") or given.get("path"):
        raise Problem.of("bad_request", "--any-use and --path are decided for one item at a time")
    decision = line.call(
        _route("attention.decide"), {"move": move, "attentionIds": named, **given}, manner.key
    )
    show("attention.decide", decision, manner.as_json)
    return 0 if all(one["decided"] for one in decision["items"]) else _NOT_ALL


def _route(operation: str) -> str:
    request = OPERATIONS[operation].request
    assert request is not None
    return request.route


def _command(move: str, says: str) -> click.Command:
    row = OPERATIONS[f"attention.{move}"]
    left_out = frozenset({"attentionId", "answer"})

    def callback(**given: Any) -> None:
        words, of = list(given.pop("words")), given.pop("all_of")
        manner = Manner(**{name: given.pop(name) for name in ("as_json", "act_as", "key")})
        run_guarded(lambda: _decide(move, words, of, tidy(row, given), manner), manner.as_json)

    return click.Command(
        move,
        params=[
            click.Argument(["words"], nargs=-1, metavar=_metavar(move)),
            click.Option(
                ["--all-of", "all_of"], metavar="AGENT|FLIGHT", help="All open items of this agent or flight."
            ),
            *_options(row, left_out),
            *every_option(row),
        ],
        callback=callback,
        help=f"{says}\n\nITEM is an id, its beginning (att_ and at least 4 characters) or the address of its "
        "agent; several may be given, and none where only one is open. The first decision wins: who comes "
        "later is shown who decided and how.",
        short_help=says,
        epilog=epilog(move),
    )


def _metavar(move: str) -> str:
    return "[ITEM...] TEXT..." if move == "answer" else "[ITEM...] [REASON...]"


def _options(row: Any, left_out: frozenset[str]) -> list[click.Parameter]:
    """The flags of the operation; its reason is also a flag here, for words follow the items."""
    flags = [one for one in parameters_of(row, left_out | {"reason"}) if isinstance(one, click.Option)]
    return [click.Option(["--reason", "reason"], metavar="TEXT", help="Why."), *flags]


approve = _command("approve", "Say yes to what needs you.")
deny = _command("deny", "Say no to what needs you.")
answer = _command("answer", "Answer what needs you.")
dismiss = _command("dismiss", "Put away what needs you, without an answer.")
