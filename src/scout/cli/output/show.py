"""How the offline commands show records and refusals: JSON lines, aligned text, and what to try next."""

import json
import sys
from collections.abc import Mapping
from typing import Any

from scout.base.codec import render
from scout.base.refusal import Diagnostic
from scout.cli.connection.refusal import tries
from scout.cli.connection.text import fields, note, out, paint, width
from scout.protocol.operations import command_line


def write_json(value: Mapping[str, Any]) -> None:
    """One object on one line; escaped to ASCII, so that any text survives any terminal."""
    out(json.dumps(value))


def write_fields(title: str, values: Mapping[str, object]) -> None:
    """A title and its fields, one a line, values aligned."""
    out(fields(title, values))


def refusal_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """A refusal as data, with each remedy also as a command."""
    told = render(diagnostic)
    told["remedies"] = [
        {**shown, "command": command_line(remedy)}
        for shown, remedy in zip(told["remedies"], diagnostic.remedies, strict=True)
    ]
    return told


def write_refusal(
    refusal: Diagnostic | Mapping[str, Any], text: str = "", position: int | None = None
) -> None:
    """A refusal for a person, on stderr: what, where, and the commands that go on from here."""
    told = refusal_json(refusal) if isinstance(refusal, Diagnostic) else refusal
    message = str(told["message"])
    note(f"{paint(told['code'], 'red', sys.stderr)}: {message}")
    if position is not None and text.isprintable():
        note(f"  {text[:120]}")
        if position <= min(len(text), 120):
            note(f"  {' ' * width(text[:position])}{paint('^', 'red', sys.stderr)}")
    others = [one["address"] for one in told["candidates"] if one["address"] not in message]
    if others:
        note(f"  candidates: {', '.join(others)}")
    for line in tries(dict(told)):
        note(line)
