"""How the command line shows records and refusals: JSON lines, aligned text, and what to try next."""

import json
from collections.abc import Mapping
from typing import Any

import click

from scout.base.codec import render
from scout.base.refusal import Diagnostic, Remedy
from scout.cli.commands import COMMANDS
from scout.protocol.operations import command_line

__all__ = ["refusal_json", "write_fields", "write_json", "write_refusal"]


def write_json(value: Mapping[str, Any]) -> None:
    """One object on one line; escaped to ASCII, so that any text survives any terminal."""
    click.echo(json.dumps(value))


def write_fields(title: str, fields: Mapping[str, object]) -> None:
    """A title and its fields, one a line, values aligned."""
    click.echo(click.style(title, bold=True))
    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        click.echo(f"  {name:<{width}}  {'-' if value is None else value}")


def refusal_json(diagnostic: Diagnostic) -> dict[str, Any]:
    """A refusal as data, with each remedy also as a command."""
    told = render(diagnostic)
    told["remedies"] = [
        {**shown, "command": command_line(remedy)}
        for shown, remedy in zip(told["remedies"], diagnostic.remedies, strict=True)
    ]
    return told


def write_refusal(diagnostic: Diagnostic, text: str = "", position: int | None = None) -> None:
    """A refusal for a person, on stderr: what, where, and the commands that go on from here."""
    click.echo(f"{click.style(diagnostic.code, fg='red', bold=True)}: {diagnostic.message}", err=True)
    if position is not None and text.isprintable():
        click.echo(f"  {text[:120]}", err=True)
        if position <= min(len(text), 120):
            click.echo(f"  {' ' * position}{click.style('^', fg='red')}", err=True)
    others = [one.address for one in diagnostic.candidates if one.address not in diagnostic.message]
    if others:
        click.echo(f"  candidates: {', '.join(others)}", err=True)
    for remedy in diagnostic.remedies:
        _write_remedy(remedy)


def _write_remedy(remedy: Remedy) -> None:
    """A command to paste; one that this version does not have yet is said to be so."""
    word = "try" if remedy.operation in COMMANDS else "with a broker"
    why = click.style(f"  # {remedy.why}", dim=True) if remedy.why else ""
    click.echo(f"{word}: {command_line(remedy)}{why}", err=True)
