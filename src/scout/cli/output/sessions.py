"""How sessions and the harnesses that run them are shown."""

from __future__ import annotations

from scout.cli.connection.refusal import explain_path
from scout.cli.connection.text import age, fields, note, out, paint, short_id, table, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_VERDICTS = {"passed": "green", "failed": "red", "not supported": "dim", "not tried": "yellow"}
_ABILITIES = ("resume", "fork", "steer", "permissions", "liveWake")


def run_row(session: dict[str, Any]) -> str:
    """A session whose program runs, in a short list."""
    pid = f"  pid {session['pid']}" if session.get("pid") else ""
    return f"  {short_id(str(session['id']))}  {session['address']} ({session['harness']}){pid}"


def _show_session(session: dict[str, Any]) -> None:
    tokens, terminal = session["tokens"], session.get("terminal")
    guess = " (estimated)" if tokens["estimated"] else ""
    shown = {
        "state": f"{session['state']}, {session['class']}",
        "agent": session["address"],
        "harness": session["harness"],
        "program": _program(session),
        "native ids": " ".join(f"{name}={value}" for name, value in session["nativeIds"].items()) or None,
        "folder": session.get("cwd"),
        "model": _model(session),
        "permission": session.get("permissionProfile"),
        "forked from": session.get("forkedFrom"),
        "terminal": f"open in a terminal (pid {terminal['pid']})" if terminal else None,
        "last event": age(session["lastEventAt"]) if session.get("lastEventAt") else None,
        "tokens": f"{tokens['totalTokens']}{guess}" if tokens["totalTokens"] else None,
        "flight": session.get("flightId"),
        "reason": session.get("reason") or None,
    }
    out(fields(str(session["id"]), {name: value for name, value in shown.items() if value is not None}))
    for line in session["logTail"]:
        out(f"  {paint('|', 'dim')} {line}")


def _model(session: dict[str, Any]) -> str | None:
    """What answers, and what was asked for where that is another."""
    wished, taken, seen = (session.get(f"model{name}") for name in ("Requested", "Resolved", "Observed"))
    real = seen or taken or wished
    return f"{real} (asked for {wished})" if wished and wished != real else real


def _program(session: dict[str, Any]) -> str:
    if not session["running"]:
        return "none runs"
    return f"runs (pid {session['pid']})" if session.get("pid") else "runs"


def _show_woken(told: dict[str, Any]) -> None:
    harness = f" in {told['harness']}" if told.get("harness") else ""
    out(f"{paint(told['outcome'], 'green')}: {told['sessionId'] or '-'} of {told['address']}{harness}")


def _show_interrupted(told: dict[str, Any]) -> None:
    if not told["interrupted"]:
        out(f"{told['address']}: {told['reason']}")
        return
    out(f"{paint('interrupted', 'green')} {told['address']}")
    for flight in told["flights"]:
        out(f"  {flight} is cancelled: {told['reason']}")


def _show_opened(told: dict[str, Any]) -> None:
    out(f"{told['session']['id']} is yours; go on with it:")
    out(f"  {' '.join(told['command'])}")


def _show_closed(session: dict[str, Any]) -> None:
    out(f"{session['id']} is given back")


def _show_runtimes(page: dict[str, Any]) -> None:
    items: list[dict[str, Any]] = page["items"]
    out(table(("harness", "ready", "version", "can", "lacks"), [_row(one) for one in items]))
    for one in items:
        if lacks := explain_path(one) or (not one["ready"] and one.get("hint")):
            note(wrap(str(lacks), f"{one['name']}: "))


def show_verdict(check: dict[str, Any]) -> None:
    """One promise of the checklist: its verdict, and what was seen."""
    verdict = str(check["verdict"])
    shown = wrap(f"{check['line']}: {check['because']}", f"{verdict:<15}")
    out(paint(shown[: len(verdict)], _VERDICTS[verdict]) + shown[len(verdict) :])


def _row(one: dict[str, Any]) -> list[str]:
    can = [name for name in _ABILITIES if one["capabilities"].get(name)]
    return [
        one["name"],
        "yes" if one["ready"] else "no",
        one.get("version") or "-",
        ", ".join(can) or "-",
        one.get("missing") or "",
    ]


SESSIONS: dict[str, Callable[[Any], None]] = {
    **{f"session.{move}": _show_session for move in ("inspect", "start", "attach", "fork", "stop")},
    "session.open": _show_opened,
    "session.close": _show_closed,
    "wake": _show_woken,
    "interrupt": _show_interrupted,
    "runtimes": _show_runtimes,
}
