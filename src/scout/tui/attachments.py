"""Files that go with a message: a path with completion, and how they are stored."""

import asyncio
import mimetypes
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from scout.base.refusal import BadRequest, Refused
from scout.protocol.talk import PutBlob
from scout.tui.rows import Row, RowColumn, RowList
from scout.tui.text import show_text
from scout.tui.view import ViewHost

_OFFERED = 8
_PLAIN = "application/octet-stream"
_HINT = "Tab completes · Enter attaches · Esc goes back"


def list_paths(begun: str) -> list[str]:
    """Return the files and folders whose path begins so, as it was typed; a folder ends with a slash."""
    head, slash, name = begun.rpartition("/")
    try:
        folder = Path(f"{head}{slash}" or ".").expanduser()
        entries = sorted(folder.iterdir(), key=lambda entry: entry.name)
        fitting = [one for one in entries if one.name.startswith(name) and (name or one.name[0] != ".")]
        return [f"{head}{slash}{one.name}{'/' if one.is_dir() else ''}" for one in fitting]
    except (OSError, RuntimeError, ValueError):  # no such folder, no such home, no path at all
        return []


def find_common_start(words: list[str]) -> str:
    """Return the longest text that all of the words begin with."""
    first, last = min(words), max(words)
    differ = (number for number in range(len(first)) if not last.startswith(first[: number + 1]))
    return first[: next(differ, len(first))]


async def store_files(host: ViewHost, files: tuple[str, ...]) -> tuple[str, ...]:
    """Store files and return what a message names them by."""
    return tuple([await _store_file(host, Path(file)) for file in files])


async def _store_file(host: ViewHost, file: Path) -> str:
    try:
        data = await asyncio.to_thread(file.read_bytes)
    except OSError as error:
        raise Refused(BadRequest(problem=f"{file} cannot be read: {error.strerror}")) from None
    kind = mimetypes.guess_type(file.name)[0] or _PLAIN
    stored = await host.call(PutBlob(name=file.name, media_type=kind, data=data))
    return f"{stored.sha256}:{file.name}"


class PathDialog(ModalScreen[str | None]):
    """One path. Closed with the absolute path of a file."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static("Attach a file", classes="title", markup=False)
            yield Input(placeholder="a path; ~ is your home folder", select_on_focus=False)
            yield RowList((RowColumn(0),), id="paths")
            yield Static(_HINT, classes="hint", markup=False)

    def on_mount(self) -> None:
        self.query_one(RowList).can_focus = False
        self.query_one(Input).focus()
        self._offer("")

    def on_input_changed(self, event: Input.Changed) -> None:
        self._offer(event.value)
        self.query_one(".hint", Static).update(_HINT)

    def _offer(self, begun: str) -> None:
        offered = [Row(path, ((show_text(path, joined=False), ""),)) for path in list_paths(begun)]
        more = len(offered) - _OFFERED
        last = [Row("", ((f"… {more} more", "dim"),))] if more > 0 else []
        self.query_one(RowList).set_rows([*offered[:_OFFERED], *last])

    def on_key(self, event: events.Key) -> None:
        rows = self.query_one(RowList)
        if event.key in ("down", "up"):
            event.stop()
            rows.action_move(1 if event.key == "down" else -1)
            if rows.key:
                self._take(rows.key)
        elif event.key == "tab":
            event.stop()
            event.prevent_default()
            found = list_paths(self.query_one(Input).value)
            if found:
                self._take(find_common_start(found))

    def _take(self, path: str) -> None:
        field = self.query_one(Input)
        with field.prevent(Input.Changed):
            field.value = path
        field.cursor_position = len(path)
        if path not in [row.key for row in self.query_one(RowList).rows] or path.endswith("/"):
            self._offer(path)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        try:
            file = Path(event.value).expanduser().absolute()
            is_file = bool(event.value) and file.is_file()
        except (OSError, RuntimeError, ValueError):
            is_file, file = False, Path()
        if is_file:
            self.dismiss(str(file))
        else:
            self.query_one(".hint", Static).update(
                f"{show_text(event.value) or 'An empty path'} is not a file."
            )

    def action_leave(self) -> None:
        self.dismiss(None)
