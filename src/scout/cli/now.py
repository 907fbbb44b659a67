"""`scout` alone: what needs me, who works, what finished since I last looked."""

import json
import sys
from typing import Any

import click

from scout.cli.build import epilog, run_guarded
from scout.cli.line import ROUTES
from scout.cli.pause_shapes import pause_line
from scout.cli.shapes import flight_row
from scout.cli.text import age, first_line, out, paint
from scout.cli.verbs import Manner

__all__ = ["command", "run"]

_SHOWN = 10


@click.command("now", epilog=epilog("now"))
@click.option("--since", metavar="TIME", help="Look back to here instead of your last look.")
@click.option("--as", "act_as", metavar="ADDRESS", help="Act as this agent, if you may.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(since: str | None, act_as: str | None, as_json: bool) -> None:
    """Show what needs you, who works, and what finished since you last looked.

    Shown on a terminal, it counts as looked at; in a pipe or with --json it does not.
    """
    run_guarded(lambda: run(since, Manner(act_as=act_as, as_json=as_json)), as_json)


def run(since: str | None, manner: Manner) -> int:
    """One summary, however long it was ago."""
    line = manner.line()
    now = line.call(ROUTES["now"], {"since": since})
    if manner.as_json:
        out(json.dumps(now))
        return 0
    _show(now)
    if sys.stdout.isatty():
        line.call(ROUTES["now.seen"], {"at": now["at"]})
    return 0


def _show(now: dict[str, Any]) -> None:
    if now.get("paused"):
        out(pause_line(now["paused"]))
    _section("Needs me", [_need(one) for one in now["needsMe"]])
    _section("Works", [flight_row(one) for one in now["open"]])
    since = f" since {age(now['since'])}" if now.get("since") else ""
    _section(f"Finished{since}", [flight_row(one) for one in now["finished"]], now["finishedCount"])
    if not (now["needsMe"] or now["open"] or now["finished"]):
        out("All quiet: nothing needs you, nobody works, nothing new is finished.")
    online, agents, unread = len(now["online"]), now["agents"], now["unread"]
    out(f"{agents} agents, {online} online, {unread} unread" + (": scout inbox" if unread else ""))
    if not agents:
        out("Begin: scout agent register upper --command 'tr a-z A-Z'")


def _section(title: str, lines: list[str], count: int | None = None) -> None:
    total = len(lines) if count is None else count
    if not total:
        return
    out(paint(title, "bold"))
    for line in lines[:_SHOWN]:
        out(line)
    if total > min(len(lines), _SHOWN):
        out(f"  … and {total - min(len(lines), _SHOWN)} more: scout flight list")


def _need(item: dict[str, Any]) -> str:
    title = first_line(str(item["title"]))
    return f"  {paint(str(item['kind']), 'yellow')}  {title}  {age(item['createdAt'])}  {item['id']}"
