"""`scout contract`: the rules every harness gets with its work."""

import sys

import click

from scout.base.refusal import Refused
from scout.cli.connection.refusal import render_refusal, write_refusal
from scout.cli.connection.text import out_json, out_text
from scout.policy.prompt import template

_EXAMPLES = """\b
Examples:
  scout contract                     # with the calls as MCP tools
  scout contract --harness tmux      # with the calls as commands
"""


@click.command(epilog=_EXAMPLES)
@click.option("--harness", default="claude", show_default=True, metavar="X", help="Whose syntax to use.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(harness: str, as_json: bool) -> None:
    """Print the prompt contract, with placeholders where the agent's own facts will stand."""
    try:
        text = template(harness)
    except Refused as refusal:
        if as_json:
            out_json({"input": harness, "error": render_refusal(refusal.diagnostic)})
        else:
            write_refusal(render_refusal(refusal.diagnostic))
        sys.exit(refusal.diagnostic.family.exit_code)
    if as_json:
        out_json({"harness": harness, "characters": len(text), "text": text})
    else:
        out_text(text.removesuffix("\n"))
