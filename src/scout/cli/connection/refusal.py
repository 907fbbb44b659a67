"""A refusal as it came over the wire, and how the command line ends with it."""

from __future__ import annotations

import os
import sys

from scout.cli.connection.text import confirm, is_interactive, note, out, paint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

OPEN = 10  # the exit code of a wait whose time was over before the work was
DENIED = 11  # a person said no
UNANSWERED = 12  # no person answered in time

# What only the command line can say, because nobody is there to say it: exit code and explanation.
LOCAL_CODES = {
    "not_running": (
        5,
        """No daemon runs here, and this command may not start one.

Verbs that a person types start it, unless SCOUT_AUTOSTART=0 or `autostart = false` says no,
SCOUT_URL names a daemon, or the verb runs inside a harness session. `scout up` starts it.""",
    ),
}


class RefusalError(Exception):
    """A refusal: `code`, `message`, facts, `candidates` and `remedies`, as a dict."""

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(told.get("message", ""))
        self.told = told

    @classmethod
    def of(cls, code: str, message: str, **facts: object) -> RefusalError:
        """One that the command line itself says."""
        return cls({"code": code, "message": message, "candidates": [], "remedies": [], **facts})

    @property
    def code(self) -> str:
        return str(self.told.get("code", "failed"))

    def show(self, as_json: bool = False, command: str = "") -> int:
        """Say it, with what to try next; the exit code to end with. `command` is what was typed."""
        if as_json:
            import json

            out(json.dumps({"error": self.told}))
        else:
            self._write(command)
        return exit_code(self.code)

    def _write(self, command: str) -> None:
        message = str(self.told.get("message") or self.told.get("detail") or self.told.get("title") or "")
        note(f"{paint(self.code, 'red', sys.stderr)}: {message}")
        if sentence := explain_path(self.told):
            note(f"  {sentence}")
        named = [str(one["address"]) for one in self.told.get("candidates") or ()]
        others = [name for name in named if name not in message]
        if others:
            note(f"  candidates: {', '.join(others)}")
        helps = self.code == "bad_request" and command
        for line in tries(self.told, fall_back=not helps) or [f"try: {command} --help"]:
            note(line)


def explain_path(facts: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> str:
    """A sentence about a `program` that this shell finds and the daemon does not; else nothing.

    A daemon keeps the PATH it was started with.
    """
    program = str(facts.get("program") or "")
    if not program or environ.get("SCOUT_URL"):  # that daemon has another shell
        return ""
    import shutil  # costs more than the rest of a session list

    found = shutil.which(program, path=environ.get("PATH"))
    return f"your shell finds {found}, the daemon does not: scout restart" if found else ""


def run_with_consent(work: Callable[[], int]) -> int:
    """Do it. If only an allowed folder is missing, ask the person to allow it and do it again."""
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


def remedy(operation: str, command: str = "", why: str = "") -> dict[str, Any]:
    """A remedy that the command line itself knows."""
    return {"operation": operation, "parameters": {}, "why": why, "command": command or f"scout {operation}"}


def tries(told: dict[str, Any], *, fall_back: bool = True) -> list[str]:
    """The next commands, each of which this command line has; there is always one to fall back on."""
    from scout.cli.connection.catalogue import exists

    offered: list[dict[str, Any]] = list(told.get("remedies") or ())
    known = [one for one in offered if one.get("command") and exists(str(one.get("operation", "")))]
    if not fall_back and [one["operation"] for one in known] == ["explain"]:
        return []  # the help of the command says more
    return [_try(one) for one in known] or ([_try(_fallback(told))] if fall_back else [])


def _try(one: dict[str, Any]) -> str:
    why = paint(f"  # {one['why']}", "dim", sys.stderr) if one.get("why") else ""
    return f"try: {one['command']}{why}"


def _fallback(told: dict[str, Any]) -> dict[str, Any]:
    code = str(told.get("code", ""))
    return remedy("explain", f"scout explain {code}") if _is_known(code) else remedy("doctor")


def _is_known(code: str) -> bool:
    from scout.base.refusal import Refused
    from scout.model.problems.diagnostics import by_code

    try:
        return code in LOCAL_CODES or bool(by_code(code))
    except Refused:
        return False


def exit_code(code: str) -> int:
    """The exit code of a diagnostic's family. Only a failure pays for loading the diagnostics."""
    if code in LOCAL_CODES:
        return LOCAL_CODES[code][0]
    from scout.base.refusal import Family, Refused
    from scout.model.problems.diagnostics import by_code

    try:
        return by_code(code).family.exit_code
    except Refused:
        return Family.FAILURE.exit_code
