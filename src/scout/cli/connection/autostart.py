"""Starting the daemon on the way to an answer: one line on stderr, and only for a person."""

from __future__ import annotations

from scout.cli.connection.refusal import RefusalError, remedy
from scout.cli.connection.text import note
from scout.daemon.start import NotAnswering, NotStarted, start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from scout.cli.connection.identity import CliIdentity
    from scout.daemon.start import Running


def start_for(caller: CliIdentity) -> None:
    """Start it because a verb needs it."""
    running, began = ensure(caller)
    if began:
        note(f"scout: started the daemon (pid {running.pid}, {running.url})")


def ensure(caller: CliIdentity, arguments: Sequence[str] = ()) -> tuple[Running, bool]:
    """The daemon, started unless it runs; whether it was started here."""
    try:
        return start(caller.where.home, arguments=arguments, environ=caller.environ)
    except NotAnswering as silent:
        raise not_answering(silent) from None
    except NotStarted as refused:
        code = str(refused.problem.get("code") or "busy")
        raise RefusalError.of(code, str(refused), **_doctor(refused.problem)) from None


def not_answering(silent: NotAnswering) -> RefusalError:
    """A daemon that runs and does not answer: only replacing it helps."""
    reason = "the daemon does not answer"
    return RefusalError.of("busy", str(silent), reason=reason, remedies=[remedy("restart"), remedy("doctor")])


def _doctor(told: dict[str, Any]) -> dict[str, Any]:
    """What the daemon said; without words of its own, the doctor looks."""
    facts = {name: value for name, value in told.items() if name not in ("code", "message")}
    return {"remedies": [remedy("doctor")], **facts}
