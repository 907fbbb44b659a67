"""Everyday read commands: one call, then output. `scout` alone, `status`, every list and `watch` end here."""

from __future__ import annotations

import json
import sys
import time

from scout.cli.connection.call import ROUTES, CliIdentity, DaemonCall, report_not_answering
from scout.cli.connection.refusal import RefusalError, build_remedy
from scout.cli.connection.text import (
    format_age,
    format_fields,
    format_table,
    join_words,
    note,
    paint,
    print_out,
    shorten_ids,
)
from scout.cli.output.events import Names, format_event
from scout.cli.output.own_name import say_you
from scout.cli.output.results import format_flights, show
from scout.client.http import Lost, build_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from scout.cli.operations.verbs import Options

_SHOWN = 10
_EACH = 3  # items shown of one agent; the rest is counted
_PATIENCE = 15.0
_EVENTS = ("log", "feed")
_MORE = ("node", "paused", "connectors", "history", "telemetry")
_MOMENTS = {"activity": ("at", "from", "to")}  # elsewhere `to` names an agent


def poll(operation: str, route: str, parameters: dict[str, Any], manner: Options) -> int:
    """Call an operation and show the answer."""
    _format_moments(parameters, operation)
    line = manner.line()
    answer = line.call(route, parameters, manner.key)
    if operation in _EVENTS and not manner.as_json:
        from scout.cli.output.events import Names, format_event

        names = Names(line)
        for event in answer["items"]:
            print_out(format_event(event, names))
        if answer.get("next"):
            older = parameters.get("newest") or parameters.get("before") is not None
            note(f"more: --{'before' if older else 'after'} {answer['next']}")
        return 0
    show(operation, answer, manner.as_json, line)
    return 0


def _format_moments(parameters: dict[str, Any], operation: str) -> None:
    """Replace local times by times with offset; refuse what is no moment."""
    given = [name for name in _MOMENTS.get(operation, ("at",)) if type(parameters.get(name)) is str]
    if given:
        from scout.cli.operations.moments import read_moment

        parameters |= {name: read_moment(parameters[name], name, operation) for name in given}
    if type(since := parameters.get("since")) is str:
        from scout.cli.operations.moments import read_time

        parameters["since"] = read_time(since, "since", operation)


def show_status(manner: Options) -> int:
    """Show whether the daemon is running, and its address. Never starts it."""
    from scout.daemon.start import NotAnswering, find_running, wait_ready

    home = CliIdentity().where.home
    found = wait_ready(home, _PATIENCE) if find_running(home) else None
    if found is None and (silent := find_running(home)):
        raise report_not_answering(NotAnswering(silent))
    if found is None:
        message = f"no daemon is running for {home}"
        raise RefusalError.of("not_running", message, home=home, remedies=[build_remedy("up")])
    more = _read_more_status()
    if manner.as_json:
        print_out(json.dumps({**found.facts(), **more}))
        return 0
    chats = ", ".join(f"{name} {state}" for name, state in more.get("connectors", {}).items())
    print_out(format_fields("running", {**found.facts(), **({"chats": chats} if chats else {})}))
    if "history" in more:
        indexed, events = more["history"]["indexed"], more["history"]["events"]
        print_out(f"history: reading the log, {indexed} of {events} events; --at works up to there")
    if "telemetry" in more:
        from scout.cli.output.telemetry import describe_telemetry

        print_out(f"telemetry: {describe_telemetry(more['telemetry'])}")
    if "mesh" in more:
        from scout.policy.sentences import describe_mesh

        print_out(f"mesh: {describe_mesh(more['mesh'])}")
    if "paused" in more:
        from scout.cli.output.insight import pause_line

        print_out(pause_line(more["paused"]))
    return 0


def _read_more_status() -> dict[str, Any]:
    """Return the pause, the connectors and the mesh of the daemon, if any; empty if it does not answer."""
    line = DaemonCall(CliIdentity(), start=False)
    try:
        status = line.call(ROUTES["status"], {})
        mesh = line.call("GET /v1/mesh", {}) if status.get("meshed") else None
    except (RefusalError, Lost):
        return {}
    more = {name: status[name] for name in _MORE if status.get(name)}
    return more if mesh is None else {**more, "mesh": mesh}


def show_now(parameters: dict[str, Any], manner: Options) -> int:
    """Show what needs the caller, who is working, and what finished. On a terminal, it counts as seen."""
    _format_moments(parameters, "now")
    line = manner.line()
    now = line.call(ROUTES["now"], parameters)
    if manner.as_json:
        print_out(json.dumps(now))
        return 0
    _show_summary(say_you(line, now))
    if sys.stdout.isatty() and "moment" not in now:
        line.call(ROUTES["now.seen"], {"at": now["at"]})
    return 0


def _show_summary(now: dict[str, Any]) -> None:
    if now.get("moment"):
        from scout.cli.output.past import show_moment

        show_moment(now["moment"])
    if now.get("paused"):
        from scout.cli.output.insight import pause_line

        print_out(pause_line(now["paused"]))
    _show_problems(now.get("problems") or ())
    _show_needs(now)
    _print_section(
        "Working", format_flights(now["open"], _SHOWN), len(now["open"]), "scout flight list --open"
    )
    since = f" since {format_age(now['since'])}" if now.get("since") else ""
    finished = format_flights(now["finished"], _SHOWN)
    _print_section(f"Finished{since}", finished, now["finishedCount"], "scout flight list")
    _show_reserved(now.get("reservations") or ())
    if not (now["needsMe"] or now["open"] or now["finished"]):
        print_out("All quiet: nothing needs you, no agent is working, nothing new has finished.")
    online, agents, unread = len(now["online"]), now["agents"], now["unread"]
    told = f"{agents} agent{'' if agents == 1 else 's'}, {online} online"
    told += "" if unread is None else f", {unread} unread"
    print_out(told + (": scout inbox" if unread else ""))
    if not agents and not now.get("moment"):
        print_out("Begin: scout setup  (connects Claude Code, Codex and others)")
        print_out("   or: scout agent register upper --command 'tr a-z A-Z'  (any program)")


def _show_problems(problems: Sequence[dict[str, Any]]) -> None:
    """Show what is wrong with this machine; hints are for `scout doctor`."""
    wrong = [one for one in problems if not one.get("hint")]
    if wrong:
        lines = [f"  {paint('problem', 'red')}  {join_words(one['says'])}" for one in wrong]
        _print_section("This machine", lines, len(lines), "scout doctor")
        remedies = [remedy for one in wrong for remedy in one.get("remedies", ())]
        for command in dict.fromkeys(one["command"] for one in remedies if "command" in one):
            print_out(f"  try: {command}")


def _show_reserved(held: Sequence[dict[str, Any]]) -> None:
    """Show who has reserved which files here, if any are."""
    if held:
        from scout.cli.output.reservations import format_holder

        lines = [f"  {format_holder(one)}" for one in held[:_SHOWN]]
        _print_section("Reserved files", lines, len(held), "scout reserve")


def _print_section(title: str, lines: list[str], total: int, more: str) -> None:
    if not total:
        return
    print_out(paint(title, "bold"))
    for line in lines:
        print_out(line)
    if total > _SHOWN:
        print_out(f"  … and {total - _SHOWN} more: {more}")


def _show_needs(now: dict[str, Any]) -> None:
    """Show the needs of each agent, riskiest first: the count, then the first items."""
    agents = now["needsByAgent"]
    if agents:
        print_out(paint("Needs you", "bold"))
    for agent in agents:
        mine = [one for one in now["needsMe"] if one.get("agentId") == agent.get("agentId")][:_EACH]
        who, risky = agent["address"] or "scout", f", {agent['high']} high risk" if agent["high"] else ""
        print_out(f"  {who}: {agent['open']}{risky}")
        for line in _list_needs(mine):
            print_out(line)
        if agent["open"] > len(mine):
            print_out(f"  … and {agent['open'] - len(mine)} more: scout attention --agent {who}")


def _list_needs(items: list[dict[str, Any]]) -> list[str]:
    """Format items that need a person, one per line: id, kind, agent, age, title."""
    chosen = items[:_SHOWN]
    short = shorten_ids(str(one["id"]) for one in chosen)
    rows = [
        [
            short[one["id"]],
            paint(str(one["kind"]), "yellow"),
            one.get("agentAddress") or "scout",
            format_age(one["createdAt"]),
            join_words(one["title"]),
        ]
        for one in chosen
    ]
    return [format_table((), rows, by="  ")] if rows else []


# -- following the log -------------------------------------------------------------------------------

_PAUSES = (0.05, 0.2, 0.8, 2.0, 5.0)


def follow_log(parameters: dict[str, Any], manner: Options, count: int | None = None) -> int:
    """Print each event, until Ctrl-C or `count` events."""
    last = parameters.pop("after", None)
    line, failures, shown = manner.line(), 0, 0
    names = Names(line)
    while count is None or shown < count:
        try:
            for number, event in _read_events(line, parameters, last):
                failures, last, shown = 0, number, shown + 1
                print_out(json.dumps(event) if manner.as_json else format_event(event, names))
                sys.stdout.flush()
                if shown == count:
                    return 0
            problem = "the stream ended"
        except (Lost, OSError) as error:
            problem = str(error)
        if failures == len(_PAUSES):
            raise RefusalError.of(
                "busy", f"the daemon did not come back: {problem}", remedies=[build_remedy("doctor")]
            )
        if not failures:
            note("scout: the stream broke; following again from where it was")
        time.sleep(_PAUSES[failures])
        failures += 1
    return 0


def _read_events(
    line: DaemonCall, parameters: dict[str, Any], last: object
) -> Iterator[tuple[object, dict[str, Any]]]:
    _, target, _ = build_target(ROUTES["watch"], parameters)
    for event in line.events(target, None if last is None else str(last)):
        record = json.loads(event.data)
        if event.type == "dropped":
            note(f"scout: {record.get('message', 'the stream was dropped')}")
            return
        yield event.id or last, record
