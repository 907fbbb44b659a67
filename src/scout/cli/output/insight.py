"""Output of explanations, briefs and usage, for a person or an agent that lost its context."""

from __future__ import annotations

import os

from scout.cli.connection.refusal import render_command
from scout.cli.connection.text import (
    cut,
    format_age,
    format_local_time,
    get_columns,
    get_first_line,
    paint,
    print_out,
)
from scout.cli.output.fields import read_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_FEW = 3  # maximum lines of each list in a brief
_STEPS = 20
_NARROW, _USUAL = 40, 80


# -- pause --------------------------------------------------------------------------------------------


def pause_line(paused: dict[str, Any]) -> str:
    """Return that Scout is paused: since when, why, and how to resume."""
    why = f", {paused['reason']}" if paused.get("reason") else ""
    since = f"{paint('paused', 'yellow')} ({format_age(paused['since'])}{why})"
    end = "scout resume or scout restart" if paused.get("untilRestart") else "scout resume"
    return f"{since}: no turn starts until you run {end}"


def _show_pause(told: dict[str, Any]) -> None:
    print_out(
        pause_line(told["paused"])
        if told.get("paused")
        else f"{paint('resumed', 'green')}: turns start again"
    )
    print_out(f"turns running: {told['running']}, waiting: {told['waiting']}")
    for flight_id in told.get("interrupted") or ():
        print_out(f"interrupted {flight_id}; retry: scout flight retry {flight_id}")


# -- why ---------------------------------------------------------------------------------------------


def _show_why(told: dict[str, Any]) -> None:
    """Show the summary, each decision with the agents it passed over, then the events."""
    print_out(f"{paint(str(told['noun']), 'bold')} {told['id']}")
    print_out(str(told["says"]) or "no events were found")
    for decision in told["decisions"]:
        _show_decision(decision)
    steps = told["steps"]
    if steps:
        print_out(paint("what happened", "bold"))
    if len(steps) > _STEPS:
        print_out(f"  … {len(steps) - _STEPS} earlier steps: --json")
    for step in steps[-_STEPS:]:
        reason = f": {get_first_line(str(step['reason']), 60)}" if step.get("reason") else ""
        kind = str(step["type"]).removeprefix("collab.")
        print_out(
            cut(
                f"  {paint(format_local_time(step['at']), 'dim')}  {kind}  {step['by']}{reason}",
                get_columns(),
            )
        )


def _show_decision(decision: dict[str, Any]) -> None:
    whom = f" {decision['holder']}" if decision.get("holder") else ""
    rule, event = decision["rule"], decision["eventId"]
    print_out(f"{paint('decided', 'bold')}  {decision['action']}{whom}, by {rule}  ({event})")
    addresses = {one["agentId"]: one["address"] for one in decision["facts"].get("reaches") or ()}
    for one in decision.get("passedOver") or ():
        who = addresses.get(one["agentId"], one["agentId"])
        print_out(f"  not {who} ({one.get('role', '')}): {one['why']}")
    if decision.get("differs"):
        print_out(f"  {paint('today', 'yellow')}: {decision['differs']}")


# -- brief -------------------------------------------------------------------------------------------


def _show_brief(told: dict[str, Any]) -> None:
    """Show what an agent needs to continue, in at most 25 lines."""
    me = told["me"]
    where = f", project {me['project']}" if me.get("project") else ""
    session = f", session {me['sessionId']}" if me.get("sessionId") else ""
    name = "the operator" if me.get("kind") == "operator" else me.get("address")
    print_out(f"You are {name} ({me.get('path')}), role {me.get('role')}{where}{session}")
    if told.get("paused"):
        print_out(pause_line(told["paused"]))
    _list("asked of you", told["flights"], _format_flight_to_me)
    _list("to answer", told["questions"], _format_question_to_me)
    _list(
        "your move", told["work"], lambda one: f"{one['id']}  {one['state']}  {_shorten_line(one['title'])}"
    )
    _list("awaits you", told["awaited"], _format_flight_of_other)
    _list("answered", told["answered"], lambda one: f"{one['id']}  {_shorten_line(one.get('answer') or '')}")
    _list("you wait for", told["asked"], lambda one: f"{one['id']}  {read_target(one)}  {one['state']}")
    _list("person asked", told["needs"], lambda one: f"{one['id']}  {_shorten_line(one['title'])}")
    if told.get("reservations"):
        from scout.cli.output.reservations import format_holder

        _list("reserved", told["reservations"], format_holder)
    waiting = ", ".join(told["waitingForMe"]) or "nobody"
    print_out(f"waits for you: {waiting}; unread: {told['unread']}")
    for step in told["next"]:
        why = paint(f"  # {step['why']}", "dim") if step.get("why") else ""
        print_out(f"next: {render_command(step)}{why}")
    if not told["next"]:
        print_out("you owe nothing; to wait for messages: scout inbox claim --wait 60")


def _shorten_line(text: object) -> str:
    return get_first_line(str(text), 60)


def _format_flight_to_me(flight: dict[str, Any]) -> str:
    whose = f"{flight['requesterAddress']}, {format_age(flight['createdAt'])}"
    return f"{flight['id']}  {flight['state']}  {whose}: {_shorten_line(flight['body'])}"


def _format_flight_of_other(flight: dict[str, Any]) -> str:
    return f"{flight['id']}  {read_target(flight)}: {_shorten_line(flight['reason'])}"


def _format_question_to_me(question: dict[str, Any]) -> str:
    return f"{question['id']}  {question['askerAddress']}: {_shorten_line(question['body'])}"


def _list(title: str, items: list[dict[str, Any]], line: Callable[[dict[str, Any]], str]) -> None:
    shown = [line(item) for item in items[:_FEW]]
    if len(items) > _FEW:
        shown[-1] += f"  (and {len(items) - _FEW} more)"
    for number, text in enumerate(shown):
        print_out(cut(f"{title if number == 0 else '':<13}  {text}", get_columns()))


# -- usage -------------------------------------------------------------------------------------------

_LEDGERS = {"harnessExecution": "harness execution", "protocolOverhead": "protocol overhead"}


def _show_usage(report: dict[str, Any]) -> None:
    """Show both ledgers, each plotted on its own scale; they are never added up."""
    whose = f" of {report['agent']}" if report.get("agent") else ""
    print_out(
        f"usage{whose} from {str(report['since'])[:10]} to {str(report['until'])[:10]}, by {report['by']}"
    )
    for ledger, name in _LEDGERS.items():
        total = report["totals"][name.replace(" ", "_")]
        print_out(f"{paint(name, 'bold')}: {_format_sums(total)}")
        rows = [(str(one["key"]), one[ledger]) for one in report["trend"] if _get_tokens(one[ledger])]
        for line in _plot([(key, _get_tokens(account)) for key, account in rows]):
            print_out(line)


def _get_tokens(account: dict[str, Any]) -> int:
    return int(account["totals"]["totalTokens"])


def _format_sums(account: dict[str, Any]) -> str:
    """Return the number of tokens, how many of them are estimated, and the counters."""
    totals, counters = account["totals"], account["counters"]
    guessed = (
        f", {_format_number(totals['estimatedTokens'])} of them estimated"
        if totals["estimatedTokens"]
        else ""
    )
    counted = "".join(f", {_split_name(name)} {count}" for name, count in counters.items() if count)
    return f"{_format_number(totals['totalTokens'])} tokens in {totals['reports']} reports{guessed}{counted}"


def _split_name(name: str) -> str:
    return "".join(f" {char.lower()}" if char.isupper() else char for char in name)


def _format_number(count: int) -> str:
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(count)


def _plot(rows: Iterable[tuple[str, int]], room: int | None = None) -> list[str]:
    """Return a bar for each row, scaled to the terminal; empty without tokens."""
    listed = list(rows)
    most = max((count for _, count in listed), default=0)
    if not most:
        return []
    wide = max(room or get_columns() or _USUAL, _NARROW)
    label = min(max(len(key) for key, _ in listed), wide // 2)
    bar = wide - label - 12
    full = "#" if _is_plain() else "█"
    return [
        f"  {key[:label]:<{label}}  {_format_number(count):>6}  {full * -(-count * bar // most)}".rstrip()
        for key, count in listed
    ]


def _is_plain() -> bool:
    """Whether the terminal may only support ASCII."""
    return "utf" not in (os.environ.get("LC_ALL") or os.environ.get("LANG") or "utf").lower()


PRINTERS: dict[str, Callable[[Any], None]] = {
    "why": _show_why,
    "brief": _show_brief,
    "usage": _show_usage,
    **dict.fromkeys(("pause", "resume"), _show_pause),
}
