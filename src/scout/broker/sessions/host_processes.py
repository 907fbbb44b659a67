"""Processes of enrolled sessions: a session ends when its process is gone, even without a hook event."""

import asyncio
from collections.abc import Mapping

from scout.broker.effects import session_end
from scout.broker.transaction.transaction import Transaction
from scout.broker.transaction.transactions import Transactions
from scout.model.problems.session import Layer
from scout.model.session import Session, SessionOrigin, SessionState
from scout.ports import KeptRuns

_MANY = 10_000
_Process = tuple[int, str]
_Seen = frozenset[_Process]


class HostProcesses:
    """Tracks the processes of enrolled sessions, by pid and start time."""

    def __init__(self, broker: Transactions) -> None:
        self._broker = broker
        self._known: dict[str, _Seen] = {}

    async def begin(self) -> None:
        """Load the sessions that were open when the broker stopped."""
        running = await self._broker.read(
            lambda ledger: ledger.many(Session, "sessions_running", limit=_MANY)
        )
        for session in running:
            self.on_session(session)

    def on_session(self, session: Session) -> None:
        """Update the processes of a session that started, moved to another process, or ended."""
        seen = _list_processes(session)
        if seen:
            self._known[session.id] = seen
        else:
            self._known.pop(session.id, None)

    async def check(self) -> None:
        """End the sessions whose process is gone."""
        runs = self._broker.services.runs
        if runs is None or not self._known:
            return
        for ident, process in await asyncio.to_thread(_find_gone, runs, dict(self._known)):
            await self._broker.as_system(lambda tx, one=ident, at=process: _end_session(tx, one, at))


def _list_processes(session: Session) -> _Seen:
    """Return the processes that a live enrolled session needs, as reported by its host."""
    if session.origin is not SessionOrigin.ENROLLED or session.state is not SessionState.LIVE:
        return frozenset()
    named = ((session.pid, session.pid_started), (session.window_pid, session.window_started))
    return frozenset((pid, started) for pid, started in named if pid and started)


def _find_gone(runs: KeptRuns, known: Mapping[str, _Seen]) -> list[tuple[str, _Process]]:
    return [
        (ident, process)
        for ident, processes in known.items()
        for process in processes
        if not runs.is_alive(*process)
    ]


def _end_session(tx: Transaction, ident: str, process: _Process) -> None:
    session = tx.need(Session, "session", ident)
    if process in _list_processes(session):
        reason = f"its {session.harness} program is gone (pid {process[0]})"
        session_end.end(tx, session, reason, layer=Layer.PROCESS)
