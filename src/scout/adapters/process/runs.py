"""What the programs of sessions left behind, and which processes there are."""

from pathlib import Path

from scout.adapters.process.outputs import transcript_size
from scout.adapters.process.process import Run, RunState
from scout.adapters.process.process_table import ProcessId, is_alive
from scout.adapters.process.removed_runs import note_removed, read_removed
from scout.policy.disk import StoredFolder
from scout.ports.folders import Measured, measure, remove_folder

_TAIL = 16_384
_WIDTH = 500


class RunFolders:
    """The runs of each session are folders below `sessions/<id>`."""

    def __init__(self, sessions: Path) -> None:
        self._sessions = sessions.absolute()
        self._measured: dict[Path, Measured] = {}  # of runs that have ended, and so do not grow

    def is_alive(self, pid: int, started: str) -> bool:
        return is_alive(ProcessId(pid, started))

    def last_words(self, session_id: str, lines: int) -> tuple[str, ...]:
        folder = self._sessions / Path(session_id).name
        try:
            logs = [one / "stderr" for one in folder.iterdir()]
            newest = max((log for log in logs if log.is_file()), key=lambda log: log.stat().st_mtime)
            with newest.open("rb") as file:
                file.seek(max(0, newest.stat().st_size - _TAIL))
                text = file.read(_TAIL).decode("utf-8", "replace")
        except (OSError, ValueError):
            removed = read_removed(folder)  # it has no folder, or no run in it
            return (removed.message,) if removed.count else ()
        said = [line.rstrip()[:_WIDTH] for line in text.split("\n")]
        return tuple([line for line in said if line.strip()][-lines:])

    def list_stored(self) -> tuple[StoredFolder, ...]:
        found = {run: self._stored(run) for run in self._sessions.glob("*/*") if (run / "pid").is_file()}
        self._measured = {run: known for run, known in self._measured.items() if run in found}
        return tuple(found.values())

    def _stored(self, run: Path) -> StoredFolder:
        session, name = run.parent.name, run.name
        if run not in self._measured and Run(run).state() is RunState.RUNNING:
            return StoredFolder(session_id=session, name=name, size=measure(run).size)
        if run not in self._measured:
            self._measured[run] = measure(run)
        size, written = self._measured[run]
        return StoredFolder(session_id=session, name=name, size=size, ended=written)

    def remove(self, folder: StoredFolder) -> None:
        session = self._sessions / Path(folder.session_id).name
        run = session / Path(folder.name).name
        note_removed(session, run.name, transcript_size(run))
        remove_folder(run)
