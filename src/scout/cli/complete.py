"""Shell completion of addresses: asked of a daemon that runs, never worth starting one."""

import click
from click.shell_completion import CompletionItem

from scout.cli.caller import Caller
from scout.cli.line import Line
from scout.cli.problem import Problem
from scout.cli.wire import Lost

__all__ = ["ADDRESSES", "addresses"]

# Parameters that take an agent's address.
ADDRESSES = frozenset(
    {
        "to",
        "address",
        "agent",
        "target",
        "replyTo",
        "master",
        "members",
        "ownerId",
        "reviewerId",
        "nextMoveOwnerId",
    }
)


def addresses(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The shortest addresses that begin so."""
    query = incomplete.removeprefix("@").partition(".")[0] or None
    try:
        page = Line(Caller(), start=False).call("GET /v1/agents", {"query": query, "limit": 50})
    except (Problem, Lost, OSError):
        return []
    found = [(str(item["address"]), str(item.get("status", ""))) for item in page["items"]]
    return [CompletionItem(name, help=status) for name, status in found if name.startswith(incomplete)]
