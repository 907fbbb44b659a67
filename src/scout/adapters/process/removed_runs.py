"""What is remembered of the runs of a session that were removed to save room."""

from pathlib import Path

from scout.base.codec import decode, encode
from scout.base.record import Record
from scout.base.refusal import Refused

_FILE = "removed-runs.json"


class RemovedRuns(Record):
    """`count` runs that wrote `transcript` bytes; `last` is the highest number that one of them had."""

    count: int = 0
    transcript: int = 0
    last: int = 0

    @property
    def message(self) -> str:
        """What is said in place of the output."""
        runs = "1 earlier run" if self.count == 1 else f"{self.count} earlier runs"
        return f"[The output of {runs} was removed to stay within limits.runOutputTotal.]"


def read_removed(session: Path) -> RemovedRuns:
    """What was removed from the folder of a session."""
    try:
        return decode((session / _FILE).read_bytes(), RemovedRuns)
    except (OSError, Refused):
        return RemovedRuns()


def note_removed(session: Path, name: str, transcript: int) -> None:
    """One more run is removed; `transcript`: the bytes that a reader of its session has passed with it."""
    known = read_removed(session)
    number = int(name) if name.isdecimal() else 0
    after = RemovedRuns(
        count=known.count + 1, transcript=known.transcript + transcript, last=max(known.last, number)
    )
    draft = session / f".{_FILE}"
    draft.write_bytes(encode(after))
    draft.rename(session / _FILE)
