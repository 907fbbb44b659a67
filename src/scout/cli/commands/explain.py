"""`scout explain` and `scout contract`: the meaning of refusals, and the rules that every harness gets."""

import sys

import click
import msgspec

from scout.base.refusal import Diagnostic, Refused, get_code, get_status
from scout.cli.connection.refusal import LOCAL_CODES, render_refusal, write_refusal
from scout.cli.connection.text import paint, print_json, print_out, print_text
from scout.model.problems.diagnostics import ALL, explain, find_diagnostic
from scout.policy.prompt import build_template

_EXAMPLES = """\b
Examples:
  scout explain                       # every code, by family
  scout explain ambiguous_target
"""


@click.command(epilog=_EXAMPLES)
@click.argument("code", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def command(code: str | None, as_json: bool) -> None:
    """Explain CODE: why Scout refuses with it, which facts it carries, what to do. Without CODE, list all."""
    if code is None:
        _list_codes(as_json)
        return
    if code in LOCAL_CODES:
        _write_local(code, as_json)
        return
    try:
        _write_diagnostic(find_diagnostic(code), as_json)
    except Refused as refusal:
        if as_json:
            print_json({"input": code, "error": render_refusal(refusal.diagnostic)})
        else:
            write_refusal(render_refusal(refusal.diagnostic))
        sys.exit(refusal.diagnostic.family.exit_code)


def _write_diagnostic(diagnostic: type[Diagnostic], as_json: bool) -> None:
    code = get_code(diagnostic)
    if as_json:
        print_json(_build_row(diagnostic) | {"explanation": explain(code), "facts": _list_facts(diagnostic)})
        return
    print_out(paint(code, "bold"))
    print_text(explain(code))
    print_out("")
    print_out(f"facts: {', '.join(_list_facts(diagnostic))}")
    print_out(f"exit code {diagnostic.family.exit_code}, HTTP {get_status(diagnostic)}")


def _write_local(code: str, as_json: bool) -> None:
    exit_code, text = LOCAL_CODES[code]
    if as_json:
        print_json({"code": code, "family": "unreachable", "exitCode": exit_code, "explanation": text})
        return
    print_out(paint(code, "bold"))
    print_text(f"{text}\n\nexit code {exit_code}")


def _list_codes(as_json: bool) -> None:
    rows = [_build_row(diagnostic) for diagnostic in ALL]
    if as_json:
        for row in rows:
            print_json(row)
        return
    width = max(len(str(row["code"])) for row in rows)
    for row in rows:
        print_out(f"{row['code']:<{width}}  {row['summary']}")


def _build_row(diagnostic: type[Diagnostic]) -> dict[str, object]:
    code = get_code(diagnostic)
    return {
        "code": code,
        "family": diagnostic.family.name.lower(),
        "exitCode": diagnostic.family.exit_code,
        "status": get_status(diagnostic),
        "summary": explain(code).partition("\n")[0],
    }


def _list_facts(diagnostic: type[Diagnostic]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(diagnostic)]


_CONTRACT_EXAMPLES = """\b
Examples:
  scout contract                     # with the calls as MCP tools
  scout contract --harness tmux      # with the calls as commands
"""


@click.command("contract", epilog=_CONTRACT_EXAMPLES)
@click.option(
    "--harness", default="claude", show_default=True, metavar="X", help="The harness whose syntax to use."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def contract(harness: str, as_json: bool) -> None:
    """Print the prompt contract, with placeholders where the agent's own facts will stand."""
    try:
        text = build_template(harness)
    except Refused as refusal:
        if as_json:
            print_json({"input": harness, "error": render_refusal(refusal.diagnostic)})
        else:
            write_refusal(render_refusal(refusal.diagnostic))
        sys.exit(refusal.diagnostic.family.exit_code)
    if as_json:
        print_json({"harness": harness, "characters": len(text), "text": text})
    else:
        print_text(text.removesuffix("\n"))
