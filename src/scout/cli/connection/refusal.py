"""A refusal of the daemon or of the command line: how it is printed, and the exit code."""

from __future__ import annotations

import os
import sys

from scout.cli.connection.text import confirm, is_interactive, measure_width, note, paint, print_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from scout.base.refusal import Diagnostic

OPEN = 10  # exit code: the wait timed out before the work finished
DENIED = 11  # exit code: a person denied it
UNANSWERED = 12  # exit code: no person answered in time

# Codes that only the command line uses, because no daemon answers: exit code and explanation.
LOCAL_CODES = {
    "not_running": (
        5,
        """No daemon is running, and this command may not start one.

A command that a person types starts the daemon, unless SCOUT_AUTOSTART=0 or `autostart = false` is
set, SCOUT_URL names a daemon, or the command runs inside a harness session. `scout up` starts it.""",
    ),
    "not_installed": (
        9,
        """A part of Scout needs a Python package that is not installed.

Parts that not everybody needs are extras of the package. The refusal has the command that installs what is
missing into the environment of this `scout`.""",
    ),
}


class RefusalError(Exception):
    """A refusal: `code`, `message`, facts, `candidates` and `remedies`, as a dict."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(told.get("message", ""))
        self.told = told

    @classmethod
    def of(cls, code: str, message: str, **facts: object) -> RefusalError:
        """Build a refusal by the command line itself."""
        return cls({"code": code, "message": message, "candidates": [], "remedies": [], **facts})

    @property
    def code(self) -> str:
        return str(self.told.get("code", "failed"))

    def show(self, as_json: bool = False, command: str = "") -> int:
        """Print it and return the exit code. `command` is the command that was typed."""
        if as_json:
            import json

            print_out(json.dumps({"error": self.told}))
        else:
            write_refusal(self.told, command=command)
        return get_exit_code(self.code)


def write_refusal(
    facts: Mapping[str, Any], *, text: str = "", position: int | None = None, command: str = ""
) -> None:
    """Print a refusal on stderr: the problem, where in `text` it is, and which commands to try next."""
    message = str(facts.get("message") or facts.get("detail") or facts.get("title") or "")
    note(f"{paint(str(facts.get('code', 'failed')), 'red', sys.stderr)}: {message}")
    if position is not None and text.isprintable():
        note(f"  {text[:120]}")
        if position <= min(len(text), 120):
            note(f"  {' ' * measure_width(text[:position])}{paint('^', 'red', sys.stderr)}")
    if sentence := explain_path(facts):
        note(f"  {sentence}")
    named = [str(one["address"]) for one in facts.get("candidates") or ()]
    others = [name for name in named if name not in message]
    if others:
        note(f"  candidates: {', '.join(others)}")
    helps = facts.get("code") == "bad_request" and command
    for line in list_tries(facts, fall_back=not helps) or [f"try: {command} --help"]:
        note(line)


def render_refusal(diagnostic: Diagnostic) -> dict[str, Any]:
    """Return a refusal as data, with each remedy also as a command."""
    from scout.base.codec import render
    from scout.protocol.operations import build_command_line

    facts = render(diagnostic)
    pairs = zip(facts["remedies"], diagnostic.remedies, strict=True)
    return {**facts, "remedies": [{**shown, "command": build_command_line(one)} for shown, one in pairs]}


def explain_path(facts: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> str:
    """Return a sentence about a `program` that this shell finds and the daemon does not; else empty.

    A daemon keeps the PATH it was started with.
    """
    program = str(facts.get("program") or "")
    if not program or environ.get("SCOUT_URL"):  # that daemon was started from another shell
        return ""
    import shutil  # costs more than the rest of a session list

    found = shutil.which(program, path=environ.get("PATH"))
    return f"your shell finds {found}, the daemon does not: scout restart" if found else ""


def run_with_consent(work: Callable[[], int]) -> int:
    """Run the work. If only an allowed folder is missing, ask the person to allow it and run it again."""
    try:
        return work()
    except RefusalError as problem:
        if not allow_directory(problem):
            raise
    return work()


def allow_directory(problem: RefusalError) -> bool:
    """Ask the person to allow the folder that was refused; whether they did. A script is not asked."""
    directory = str(problem.told.get("directory") or "")
    if problem.code != "directory_not_allowed" or not directory or not is_interactive():
        return False
    if not confirm(f"Scout may not start programs in {directory} yet. Allow it?"):
        return False
    from scout.settings.edit import add_root
    from scout.settings.load import load

    add_root(load().settings, directory)
    return True


def build_remedy(operation: str, command: str = "", why: str = "") -> dict[str, Any]:
    """Build a remedy offered by the command line itself."""
    return {"operation": operation, "parameters": {}, "why": why, "command": command or f"scout {operation}"}


def repeat_typed(told: dict[str, Any], given: str, field: str) -> dict[str, Any]:
    """Return the refusal with the typed command where a remedy replaces `given` in a parameter.

    For commands that call other operations than their own.
    """
    import shlex

    words = sys.argv[1:]
    again: list[dict[str, Any]] = []
    for one in told.get("remedies") or ():
        other = one["parameters"].get(field)
        if isinstance(other, str) and given in words:
            typed = ["scout", *(other if word == given else word for word in words)]
            one = {**one, "command": shlex.join(typed)}  # noqa: PLW2901 (the same remedy, typed)
        again.append(one)
    return {**told, "remedies": list({one.get("command"): one for one in again}.values())}


def list_tries(told: Mapping[str, Any], *, fall_back: bool = True) -> list[str]:
    """Return the commands to try next. Each exists in this command line, and there is always one."""
    from scout.cli.connection.catalogue import is_command

    offered: list[dict[str, Any]] = list(told.get("remedies") or ())
    known = [one for one in offered if one.get("command") and is_command(str(one.get("operation", "")))]
    known = list({one["command"]: one for one in reversed(known)}.values())[::-1]  # the same line once
    if not fall_back and [one["operation"] for one in known] == ["explain"]:
        return []  # the help of the command says more
    return [_render_try(one) for one in known] or ([_render_try(_choose_fallback(told))] if fall_back else [])


def _render_try(one: dict[str, Any]) -> str:
    why = paint(f"  # {one['why']}", "dim", sys.stderr) if one.get("why") else ""
    return f"try: {one['command']}{why}"


def _choose_fallback(told: Mapping[str, Any]) -> dict[str, Any]:
    code = str(told.get("code", ""))
    return (
        build_remedy("explain", f"scout explain {code}") if _is_known_code(code) else build_remedy("doctor")
    )


def _is_known_code(code: str) -> bool:
    from scout.base.refusal import Refused
    from scout.model.problems.diagnostics import find_diagnostic

    try:
        return code in LOCAL_CODES or bool(find_diagnostic(code))
    except Refused:
        return False


def get_exit_code(code: str) -> int:
    """Return the exit code of a diagnostic's family. The diagnostics are loaded only for a failure."""
    if code in LOCAL_CODES:
        return LOCAL_CODES[code][0]
    from scout.base.refusal import Family, Refused
    from scout.model.problems.diagnostics import find_diagnostic

    try:
        return find_diagnostic(code).family.exit_code
    except Refused:
        return Family.FAILURE.exit_code


def render_command(document: dict[str, Any]) -> str:
    """Return a remedy as a command line: the daemon's, since the operation table is slow to load here."""
    if document.get("command"):
        return str(document["command"])
    from scout.base.codec import decode
    from scout.base.refusal import Remedy
    from scout.protocol.operations import build_command_line

    return build_command_line(decode(document, Remedy))
