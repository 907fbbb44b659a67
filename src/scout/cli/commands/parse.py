"""`scout parse`: parse a text as an address, or find the mentions in it."""

import json
import sys
from collections.abc import Iterable
from typing import Any, cast

import click

from scout.base.refusal import Refused
from scout.cli.connection.refusal import render_refusal, write_refusal
from scout.cli.connection.text import print_fields, print_json
from scout.identity.branch import check_ref
from scout.identity.describe import describe, describe_mentions
from scout.identity.mention import find_mentions
from scout.identity.problem import MalformedAddress, build_malformed

_EXAMPLES = """\b
Examples:
  scout parse '@arc.main#claude?sonnet'
  scout parse --root-branch main main.feature.auth
  scout parse --mentions 'ask @hudson and @arc.main, please'
  printf '%s\\n' '@arc' '/u1/telegram' | scout parse - --json
"""


@click.command(epilog=_EXAMPLES)
@click.argument("texts", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--mentions", is_flag=True, help="Find the mentions of a body instead.")
@click.option("--root-branch", metavar="B", help="Read bare dotted texts as birth branches below B.")
def command(texts: tuple[str, ...], as_json: bool, mentions: bool, root_branch: str | None) -> None:
    """Read each TEXT as an address: its form, its canonical text and its parts. No broker is needed.

    With `-` every line of standard input is a text (or a JSON string, when it starts with a double
    quote) and one JSON object comes out per line; bad lines are answered in place.
    """
    if not texts:
        raise click.UsageError("give at least one TEXT, or - to read standard input")
    if root_branch is not None:
        _check_root(root_branch)
    if "-" in texts:
        for line in _read_lines():
            print_json(_parse_text(line, mentions, root_branch))
        return
    failed = [not _show_address(text, as_json, mentions, root_branch) for text in texts]
    if any(failed):
        sys.exit(MalformedAddress.family.exit_code)


def _check_root(root_branch: str) -> None:
    try:
        check_ref(root_branch)
    except Refused as refusal:
        raise click.UsageError(f"--root-branch: {refusal.diagnostic.message}") from None


def _read_lines() -> Iterable[str]:
    """Yield lines as they arrive, for interactive use. Any bytes are text, and only newlines end a line."""
    for line in sys.stdin.buffer:
        text = line.decode("utf-8", "surrogateescape")
        yield text.removesuffix("\n").removesuffix("\r")


def _parse_text(line: str, mentions: bool, root_branch: str | None) -> dict[str, Any]:
    text = line
    try:
        text = _unquote(line)
        return _describe_text(text, mentions, root_branch)
    except Refused as refusal:
        return {"input": text, "error": _build_error(refusal)}


def _unquote(line: str) -> str:
    if not line.startswith('"'):
        return line
    try:
        value: object = json.loads(line)
    except ValueError as error:
        at = error.pos if isinstance(error, json.JSONDecodeError) else 0
        raise build_malformed(line, at, "a line that begins with a quote", "a JSON string") from None
    assert isinstance(value, str)  # a leading quote means a JSON string
    return value


def _show_address(text: str, as_json: bool, mentions: bool, root_branch: str | None) -> bool:
    try:
        described = _describe_text(text, mentions, root_branch)
    except Refused as refusal:
        if as_json:
            print_json({"input": text, "error": _build_error(refusal)})
        else:
            position = getattr(refusal.diagnostic, "position", None)
            write_refusal(render_refusal(refusal.diagnostic), text=text, position=position)
        return False
    if as_json:
        print_json(described)
        return "error" not in described
    print_fields(
        text, _flatten({key: value for key, value in described.items() if key not in ("input", "error")})
    )
    problem = _find_leading_problem(text) if mentions else None
    if problem is not None:
        write_refusal(render_refusal(problem), text=problem.text, position=problem.position)
    return problem is None


def _build_error(refusal: Refused) -> dict[str, Any]:
    told = render_refusal(refusal.diagnostic)
    return {
        name: told[name] for name in ("code", "message", "position", "expected", "remedies") if name in told
    }


def _flatten(described: dict[str, Any]) -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in described.items():
        if isinstance(value, dict):
            flat.update(cast(dict[str, object], value))
        else:
            flat[name] = ", ".join(cast(list[str], value)) or None if isinstance(value, list) else value
    return flat


def _describe_text(text: str, mentions: bool, root_branch: str | None) -> dict[str, Any]:
    if not mentions:
        return describe(text, root_branch)
    described, problem = describe_mentions(text), _find_leading_problem(text)
    return described if problem is None else {**described, "error": _build_error(Refused(problem))}


def _find_leading_problem(text: str) -> MalformedAddress | None:
    leading = find_mentions(text).leading
    return leading.problem if leading else None
