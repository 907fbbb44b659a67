"""What is kept of a session in a pane: which pane it is, and of each turn how it began and ended."""

from contextlib import suppress
from pathlib import Path

from scout.adapters.harness import check_id
from scout.adapters.process.process_table import ProcessId, is_alive
from scout.adapters.process.run import Run
from scout.adapters.tmux.pane import Pane, TmuxServer
from scout.base.codec import decode, encode
from scout.base.record import Record
from scout.model.delivery import InspectResult
from scout.ports import Completed, Failed, Started

_HELD = "held"


class Held(Record):
    """The pane of a session. `own`: Scout started it, and ends it."""

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
    """One turn: what stood there before, whether it was sent off, and how it ended."""

    before: tuple[str, ...] = ()
    sent: bool = False
    interrupted: bool = False
    end: Completed | Failed | None = None


class Kept:
    """The files of one session, in a folder of the shape that a run has."""

    def __init__(self, sessions: Path, session_id: str) -> None:
        self.folder = sessions / check_id(session_id) / "pane"
        self.run = Run(self.folder)

    @property
    def held(self) -> Held | None:
        with suppress(FileNotFoundError):
            return decode((self.folder / f"{_HELD}.json").read_bytes(), Held)
        return None

    def hold(self, held: Held) -> Held:
        """This is its pane from now on."""
        self._write(_HELD, held)
        return held

    def turn(self, delivery_id: str) -> PaneTurn | None:
        """What is known of a turn; nothing when it was not begun."""
        with suppress(FileNotFoundError):
            return decode((self.folder / f"{check_id(delivery_id)}.json").read_bytes(), PaneTurn)
        return None

    @property
    def had_turns(self) -> bool:
        """Whether anything was typed into it for Scout."""
        return any(file.stem != _HELD for file in self.folder.glob("[!.]*.json"))

    def note(self, delivery_id: str, turn: PaneTurn) -> None:
        """So far it is."""
        self._write(delivery_id, turn)

    def found(self, delivery_id: str) -> InspectResult:
        """Whether its program took a delivery."""
        turn = self.turn(delivery_id)
        if turn is None:
            return InspectResult.NOT_TAKEN
        return InspectResult.TAKEN if turn.sent else InspectResult.UNKNOWN

    def _write(self, name: str, record: Record) -> None:
        """Whole or not at all."""
        draft = self.folder / f".{check_id(name)}"
        draft.touch(mode=0o600)
        draft.write_bytes(encode(record))
        draft.rename(self.folder / f"{name}.json")
