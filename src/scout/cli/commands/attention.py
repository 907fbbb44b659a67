"""`need`, `attention show --wait`, `approve`, `deny`, `answer`, `dismiss`: decisions by a person."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

import click

from scout.cli.connection.call import DaemonCall
from scout.cli.connection.refusal import DENIED, OPEN, UNANSWERED
from scout.cli.connection.text import note, print_out, print_text
from scout.cli.operations import verbs
from scout.cli.operations.build import (
    build_common_options,
    build_epilog,
    build_parameters,
    run_guarded,
    tidy_parameters,
)
from scout.cli.operations.complete import get_completion
from scout.cli.operations.decision_calls import decide
from scout.cli.operations.table import find_operation
from scout.cli.operations.verbs import Options
from scout.cli.output.attention import OPEN_STATES
from scout.cli.output.results import show as show_answer
from scout.cli.waiting.follow import POLL
from scout.cli.waiting.progress import TICK, ProgressLine

# Exit codes by decision; 0 for all others.
_EXITS = {"denied": DENIED, "expired": UNANSWERED, "dismissed": 7}

_LIMIT = click.Option(["--timeout", "wait"], type=float, metavar="SECONDS", help="Maximum time to wait.")


def follow(line: DaemonCall, ident: str, budget: float | None, as_json: bool) -> int:
    """Wait until an item is decided, the budget is used up or Ctrl-C; show it; return the exit code."""
    try:
        item = _wait_for_decision(line, ident, budget)
    except KeyboardInterrupt:
        ProgressLine.clear()
        return _tell_open(ident)
    finally:
        ProgressLine.clear()
    if as_json:
        print_out(json.dumps(item))
    else:
        _print_outcome(item)
    return OPEN if item["state"] in OPEN_STATES else _EXITS.get(item["state"], 0)


def _ask_and_follow(
    line: DaemonCall, parameters: dict[str, Any], manner: Options, budget: float | None
) -> int:
    """Raise the item and wait for its decision.

    The first wait is part of the request: an answer that came between two requests would be delivered as
    mail, and the agent would be woken for an answer that it has.
    """
    route, key, began = _get_route("need"), manner.key or os.urandom(16).hex(), time.monotonic()
    first = min(TICK if sys.stderr.isatty() else POLL, POLL if budget is None else budget)
    try:
        item = line.call(route, {**parameters, "wait": round(first, 3)}, key)
    except KeyboardInterrupt:  # under the same key, the daemon returns the same item
        return _tell_open(line.call(route, parameters, key)["id"])
    left = None if budget is None else max(budget - (time.monotonic() - began), 0.0)
    return follow(line, item["id"], left, manner.as_json)


def _tell_open(ident: str) -> int:
    note(f"it stays open; to wait again: scout attention show {ident} --wait")
    return 130


def _wait_for_decision(line: DaemonCall, ident: str, budget: float | None) -> dict[str, Any]:
    route, began = _get_route("attention.show"), time.monotonic()
    progress = ProgressLine() if sys.stderr.isatty() else None
    while True:
        left = POLL if budget is None else max(budget - (time.monotonic() - began), 0)
        step = min(TICK if progress else POLL, left)
        item = line.call(route, {"attentionId": ident, "wait": round(step, 3)})
        if item["state"] not in OPEN_STATES or (budget is not None and left <= step):
            return item
        if progress:
            progress.show(f"waiting for a person: {item['title'][:60]}", item, time.monotonic() - began)


def _print_outcome(item: dict[str, Any]) -> None:
    state = item["state"]
    if state in OPEN_STATES:
        note(f"not decided yet; try: scout attention show {item['id']} --wait")
    elif state == "answered":
        print_text(str(item["answer"]))
    elif state == "resolved":
        print_out("approved")
    else:
        print_out(state if state == "denied" else "")
        note(f"{state}: {item.get('reason') or item.get('answer') or 'no reason was given'}")


def _get_route(operation: str) -> str:
    request = find_operation(operation).request
    assert request is not None
    return request.route


def _build_need() -> click.Command:
    row = find_operation("need")
    left_out = frozenset({"question", "wait"})

    def callback(**given: Any) -> None:
        words, no_wait, wait = list(given.pop("words")), given.pop("no_wait"), given.pop("wait")
        manner = Options(**{name: given.pop(name) for name in ("as_json", "act_as", "key", "file")})

        def work() -> int:
            line = manner.line()
            parameters = {**tidy_parameters(row, given), "question": verbs.read_body(words, manner)}
            if no_wait:
                show_answer("need", line.call(_get_route("need"), parameters, manner.key), manner.as_json)
                return 0
            return _ask_and_follow(line, parameters, manner, wait)

        run_guarded(work, manner.as_json)

    return click.Command(
        "need",
        params=[
            click.Argument(["words"], nargs=-1, metavar="QUESTION..."),
            click.Option(["--no-wait", "no_wait"], is_flag=True, help="Print the item and do not wait."),
            _LIMIT,
            click.Option(["--file"], metavar="FILE", help="Read the text from a file."),
            *build_parameters(row, left_out),
            *build_common_options(row),
        ],
        callback=callback,
        help=f"{row.says}\n\nThe answer goes to standard output. The exit code is 0 when it was answered or "
        "approved, 11 when it was denied, 12 when it expired, 7 when it was dismissed, 10 when "
        "--timeout passed first. Ctrl-C stops the wait; the question stays open.",
        short_help=row.says,
        epilog=build_epilog("need"),
    )


def _build_show() -> click.Command:
    row = find_operation("attention.show")

    def callback(attention_id: str, until_decided: bool, wait: float | None, **given: Any) -> None:
        manner = Options(**given)

        def work() -> int:
            line = manner.line()
            if until_decided or wait is not None:
                return follow(line, attention_id, wait, manner.as_json)
            item = line.call(_get_route("attention.show"), {"attentionId": attention_id})
            show_answer("attention.show", item, manner.as_json, line)
            return 0

        run_guarded(work, manner.as_json)

    return click.Command(
        "show",
        params=[
            click.Argument(
                ["attention_id"],
                required=False,
                default="only",
                metavar="[ATTENTION_ID]",
                **get_completion("attentionId"),
            ),
            click.Option(["--wait", "until_decided"], is_flag=True, help="Wait until it is decided."),
            _LIMIT,
            *build_common_options(row),
        ],
        callback=callback,
        help="Show an item, or wait until it is decided and print the answer, as `scout need` does.",
        short_help=row.says,
        epilog=build_epilog("attention", "show"),
    )


need = _build_need()
show = _build_show()


def _build_command(move: str, says: str) -> click.Command:
    row = find_operation(f"attention.{move}")
    left_out = frozenset({"attentionId", "answer"})

    def callback(**given: Any) -> None:
        words, of = list(given.pop("words")), given.pop("all_of")
        manner = Options(**{name: given.pop(name) for name in ("as_json", "act_as", "key")})
        run_guarded(lambda: decide(move, words, of, tidy_parameters(row, given), manner), manner.as_json)

    return click.Command(
        move,
        params=[
            click.Argument(["words"], nargs=-1, metavar=_build_metavar(move)),
            click.Option(
                ["--all-of", "all_of"], metavar="AGENT|FLIGHT", help="All open items of this agent or flight."
            ),
            *_build_options(row, left_out),
            *build_common_options(row),
        ],
        callback=callback,
        help=f"{says}\n\nITEM is an id, its beginning (att_ and at least 4 characters) or the address of its "
        "agent. You may give several items, or none if only one is open. The first decision wins: a later "
        "one shows who decided, and how.",
        short_help=says,
        epilog=build_epilog(move),
    )


def _build_metavar(move: str) -> str:
    return "[ITEM...] TEXT..." if move == "answer" else "[ITEM...] [REASON...]"


def _build_options(row: Any, left_out: frozenset[str]) -> list[click.Parameter]:
    """Return the flags of the operation. The reason is a flag here too, because words follow the items."""
    flags = [one for one in build_parameters(row, left_out | {"reason"}) if isinstance(one, click.Option)]
    return [click.Option(["--reason", "reason"], metavar="TEXT", help="Why."), *flags]


approve = _build_command("approve", "Approve an item that needs you.")
deny = _build_command("deny", "Deny an item that needs you.")
answer = _build_command("answer", "Answer an item that needs you.")
dismiss = _build_command("dismiss", "Dismiss an item that needs you, without an answer.")
