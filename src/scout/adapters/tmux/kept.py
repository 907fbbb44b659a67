"""The files of a session in a pane: its pane, and the start and end of each turn."""

from contextlib import suppress
from pathlib import Path

from scout.adapters.harness import check_id
from scout.adapters.process.process_table import ProcessId, is_alive
from scout.adapters.process.run import Run
from scout.adapters.tmux.hooks import HookFile
from scout.adapters.tmux.pane import Pane, TmuxServer
from scout.base.codec import decode, encode
from scout.base.record import Record
from scout.model.delivery import InspectResult
from scout.ports import Completed, Failed, Started

_HELD = "held"


class Held(Record):
    """The pane of a session. `own`: Scout started it and will stop it."""

    address: tuple[str, ...]
    session: str
    ident: str
    pid: int
    started: str
    own: bool
    program: str

    @property
    def pane(self) -> Pane:
        return Pane(self.session, self.ident, ProcessId(self.pid, self.started))

    @property
    def is_alive(self) -> bool:
        return is_alive(self.pane.process)

    @property
    def server(self) -> TmuxServer:
        return TmuxServer(self.address)

    @property
    def told(self) -> Started:
        native = f"{self.session}:{self.ident}"
        socket = "" if self.own else f"{self.address[-1]}:"
        return Started(native_ids={"pane": f"{socket}{native}"}, pid=self.pid, pid_started=self.started)


class PaneTurn(Record):
    """One turn: the screen and the size of the reports before it, whether its prompt was sent, its end."""

    before: tuple[str, ...] = ()
    mark: int = 0
    sent: bool = False
    interrupted: bool = False
    end: Completed | Failed | None = None


class Kept:
    """The files of one session, in a folder with the layout of a run."""

    def __init__(self, sessions: Path, session_id: str) -> None:
        self.folder = sessions / check_id(session_id) / "pane"
        self.run = Run(self.folder)
        self.hooks = HookFile(self.folder)

    @property
    def held(self) -> Held | None:
        with suppress(FileNotFoundError):
            return decode((self.folder / f"{_HELD}.json").read_bytes(), Held)
        return None

    def hold(self, held: Held) -> Held:
        """Store the pane of the session."""
        self._write(_HELD, held)
        return held

    def turn(self, delivery_id: str) -> PaneTurn | None:
        """Return the stored turn; None if it was not begun."""
        with suppress(FileNotFoundError):
            return decode((self.folder / f"{check_id(delivery_id)}.json").read_bytes(), PaneTurn)
        return None

    @property
    def had_turns(self) -> bool:
        """Whether Scout has typed a prompt into the pane."""
        return any(file.stem != _HELD for file in self.folder.glob("[!.]*.json"))

    def note(self, delivery_id: str, turn: PaneTurn) -> None:
        """Store the current state of a turn."""
        self._write(delivery_id, turn)

    def found(self, delivery_id: str) -> InspectResult:
        """Whether the program took a delivery."""
        turn = self.turn(delivery_id)
        if turn is None:
            return InspectResult.NOT_TAKEN
        return InspectResult.TAKEN if turn.sent else InspectResult.UNKNOWN

    def release(self) -> None:
        """Remove the traces of a program that has ended, because another one continues its session."""
        for name in ("exit", "stopped", f"{_HELD}.json"):
            (self.folder / name).unlink(missing_ok=True)
        self.hooks.forget()

    def _write(self, name: str, record: Record) -> None:
        """Write a file atomically."""
        draft = self.folder / f".{check_id(name)}"
        draft.touch(mode=0o600)
        draft.write_bytes(encode(record))
        draft.rename(self.folder / f"{name}.json")
