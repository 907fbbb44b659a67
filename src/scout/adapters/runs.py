"""What the programs of sessions left behind, and which processes there are."""

from pathlib import Path

from scout.adapters.process_table import Identity, is_alive

__all__ = ["Runs"]

_TAIL = 16_384
_WIDTH = 500


class Runs:
    """The runs of each session are folders below `sessions/<id>`."""

    def __init__(self, sessions: Path) -> None:
        self._sessions = sessions.absolute()

    def is_alive(self, pid: int, started: str) -> bool:
        return is_alive(Identity(pid, started))

    def last_words(self, session_id: str, lines: int) -> tuple[str, ...]:
        folder = self._sessions / Path(session_id).name
        try:
            logs = [one / "stderr" for one in folder.iterdir()]
            newest = max((log for log in logs if log.is_file()), key=lambda log: log.stat().st_mtime)
            with newest.open("rb") as file:
                file.seek(max(0, newest.stat().st_size - _TAIL))
                text = file.read(_TAIL).decode("utf-8", "replace")
        except (OSError, ValueError):
            return ()  # it has no folder, or no run in it
        said = [line.rstrip()[:_WIDTH] for line in text.split("\n")]
        return tuple([line for line in said if line.strip()][-lines:])
