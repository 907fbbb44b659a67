"""The help of what hosts call; the warm path takes the calls themselves."""

import click

from scout.cli.hosts import hook as hooks
from scout.cli.hosts.relay import relay
from scout.cli.operations.build import epilog

_host = click.option("--host", default="claude", show_default=True, help="Which host calls.")


@click.command("hook", epilog=epilog("hook"))
@click.argument("event", type=click.Choice(list(hooks.EVENTS)))
@_host
@click.option("--wait", type=float, default=30.0, show_default=True, help="Seconds for a permission request.")
def hook(event: str, host: str, wait: float) -> None:
    """Report an EVENT of a session: reads the host's JSON, prints what the host expects.

    Never starts the daemon, and is silent when there is none: a host goes on as if Scout were not there.
    """
    click.get_current_context().exit(hooks.hook([event, "--host", host, "--wait", str(wait)]))


@click.command("statusline", epilog=epilog("statusline"))
@_host
def statusline(host: str) -> None:
    """Print one line for a host's status line: who the session is, what is unread, what needs you."""
    click.get_current_context().exit(hooks.statusline(["--host", host]))


@click.command("mcp", epilog=epilog("mcp"))
@click.option("--host", default="mcp", show_default=True, help="Which host calls.")
def mcp(host: str) -> None:
    """Be an MCP server on standard input and output: the host's session gets Scout's tools.

    The session enrols by itself, with the token that `scout setup` made, or speaks as SCOUT_TOKEN says.
    """
    click.get_current_context().exit(relay(["--host", host]))
