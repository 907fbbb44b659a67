"""Output of sessions and of the harnesses that run them."""

from __future__ import annotations

from scout.cli.connection.refusal import explain_path
from scout.cli.connection.text import format_table, note, paint, print_out, shorten_id, wrap
from scout.cli.output.fields import SESSION, show_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_VERDICTS = {"passed": "green", "failed": "red", "not supported": "dim", "not tried": "yellow"}
_ABILITIES = ("resume", "fork", "steer", "permissions", "liveWake")


def run_row(session: dict[str, Any]) -> str:
    """Format a session whose program is running, for a short list."""
    pid = f"  pid {session['pid']}" if session.get("pid") else ""
    return f"  {shorten_id(str(session['id']))}  {session['address']} ({session['harness']}){pid}"


def _show_session(session: dict[str, Any]) -> None:
    show_fields(session["id"], session, SESSION)
    for line in session["logTail"]:
        print_out(f"  {paint('|', 'dim')} {line}")


def _show_woken(told: dict[str, Any]) -> None:
    harness = f" in {told['harness']}" if told.get("harness") else ""
    print_out(f"{paint(told['outcome'], 'green')}: {told['sessionId'] or '-'} of {told['address']}{harness}")


def _show_interrupted(told: dict[str, Any]) -> None:
    if not told["interrupted"]:
        print_out(f"{told['address']}: {told['reason']}")
        return
    print_out(f"{paint('interrupted', 'green')} {told['address']}")
    for flight in told["flights"]:
        print_out(f"  {flight} is cancelled: {told['reason']}")


def _show_opened(told: dict[str, Any]) -> None:
    print_out(f"{told['session']['id']} is yours. Continue it with:")
    print_out(f"  {' '.join(told['command'])}")


def _show_closed(session: dict[str, Any]) -> None:
    print_out(f"{session['id']} was returned to Scout")


def _show_runtimes(page: dict[str, Any]) -> None:
    items: list[dict[str, Any]] = page["items"]
    print_out(
        format_table(("harness", "ready", "version", "can", "lacks"), [_build_row(one) for one in items])
    )
    for one in items:
        if lacks := explain_path(one) or (not one["ready"] and one.get("hint")):
            note(wrap(str(lacks), f"{one['name']}: "))


def show_verdict(check: dict[str, Any]) -> None:
    """Show one line of the checklist: its verdict and the reason."""
    verdict = str(check["verdict"])
    shown = wrap(f"{check['line']}: {check['because']}", f"{verdict:<15}")
    print_out(paint(shown[: len(verdict)], _VERDICTS[verdict]) + shown[len(verdict) :])


def _build_row(one: dict[str, Any]) -> list[str]:
    can = [name for name in _ABILITIES if one["capabilities"].get(name)]
    return [
        one["name"],
        "yes" if one["ready"] else "no",
        one.get("version") or "-",
        ", ".join(can) or "-",
        one.get("missing") or "",
    ]


PRINTERS: dict[str, Callable[[Any], None]] = {
    **{f"session.{move}": _show_session for move in ("inspect", "start", "attach", "fork", "stop")},
    "session.open": _show_opened,
    "session.close": _show_closed,
    "wake": _show_woken,
    "interrupt": _show_interrupted,
    "runtimes": _show_runtimes,
}
