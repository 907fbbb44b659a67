"""Panes of tmux: on Scout's own server for programs it starts, or on any server that a person names."""

import asyncio
import hashlib
import os
import shlex
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from scout.adapters.process.process_table import ProcessId, list_processes, read_boot_id
from scout.adapters.tmux.screen import split_lines
from scout.settings.environment import build_environment
from scout.settings.folder import make_private

_LONGEST_PATH = 90
_WAIT = 10.0
_SIZE = ("-x", "200", "-y", "50")
_OPTIONS = {
    "history-limit": "50000",
    "remain-on-exit": "on",  # keeps the last output of a program readable
    "remain-on-exit-format": "",
    "default-terminal": "screen-256color",
    "status": "off",
}
# The environment is passed in a file, so that no credential appears in a command line.
_SHELL = r"""
run=$1; shift
trap : HUP INT QUIT TERM
. "$run/env"; rm -f "$run/env"
"$@"
code=$?
umask 077; echo "$code" >"$run/exit"
exit "$code"
"""
_PLACE = "#{session_name}\t#{pane_id}\t#{window_index}.#{pane_index}"
_PANE = f"{_PLACE}\t#{{pane_pid}}\t#{{pane_dead}}\t#{{pane_current_command}}"
_STATE = "#{pane_pid} #{pane_dead} #{cursor_x} #{cursor_y} #{pane_height}"


class Pane(NamedTuple):
    """One pane, identified by the process in it. `command`: the program in front when it was found."""

    session: str
    ident: str
    process: ProcessId
    command: str = ""


class Shown(NamedTuple):
    """The contents of a pane: `lines` with its scrollback, `visible` only the screen; `cursor` is in that."""

    lines: tuple[str, ...]
    visible: tuple[str, ...]
    cursor: tuple[int, int]
    dead: bool = False


class TmuxServer(NamedTuple):
    """A tmux server; `address` are the arguments that select it."""

    address: tuple[str, ...]

    async def run(self, *words: str, stdin: bytes = b"") -> str | None:
        """Run a tmux command and return its output; None if it failed."""
        said = await self._run_tmux(words, stdin, asyncio.subprocess.PIPE)
        return None if said is None else said.decode("utf-8", "replace")

    async def _run_tmux(self, words: tuple[str, ...], stdin: bytes, stdout: int) -> bytes | None:
        """Run tmux. A command that starts the server must not use a pipe: the server would keep it open."""
        null = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *("tmux", "-u", *self.address, *words),
            env={**build_environment({}), "LC_CTYPE": "C.UTF-8"},
            stdin=asyncio.subprocess.PIPE if stdin else null,
            stdout=stdout,
            stderr=null,
        )
        try:
            async with asyncio.timeout(_WAIT):
                said, _ = await process.communicate(stdin or None)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return said or b"" if process.returncode == 0 else None

    async def find(self, name: str) -> Pane | None:
        """Return the pane `session:pane`, or the only one of a session; None unless exactly one matches."""
        session, _, place = name.partition(":")
        said = await self.run("list-panes", "-a", "-F", _PANE)
        rows = [line.split("\t") for line in (said or "").splitlines()]
        found = [row for row in rows if row[0] == session and place in ("", row[1], row[2])]
        if len(found) != 1 or found[0][4] == "1":
            return None
        entry = list_processes().get(int(found[0][3]))
        return Pane(session, found[0][1], entry.identity, found[0][5]) if entry is not None else None

    async def begin(
        self, session: str, folder: Path, command: tuple[str, ...], directory: str
    ) -> Pane | None:
        """Start a program in a new tmux session; `folder` already holds its environment."""
        options = [
            word for name, value in _OPTIONS.items() for word in ("set-option", "-gq", name, value, ";")
        ]
        words = ("/bin/sh", "-c", _SHELL, "sh", str(folder), *command)
        new = ("new-session", "-d", "-s", session, *_SIZE, "-c", directory, "--", *words)
        fixed = ("set-option", "-t", f"={session}:", "window-size", "manual")  # attaching does not resize it
        begin = ("-f", os.devnull, "start-server", ";", *options, *new, ";", *fixed)
        _make_folder(Path(self.address[-1]))
        await self._run_tmux(begin, b"", asyncio.subprocess.DEVNULL)
        return await self.find(session)

    async def look(self, pane: Pane) -> Shown | None:
        """Return the contents of a pane; None if it is gone or runs another program."""
        state = ("display-message", "-p", "-t", pane.ident, _STATE)
        screen = ("capture-pane", "-p", "-t", pane.ident)
        all_lines = ("capture-pane", "-p", "-J", "-S", "-", "-t", pane.ident)
        said = await self.run(*state, ";", *screen, ";", *all_lines)
        head, _, text = (said or "").partition("\n")
        if not head.startswith(f"{pane.process.pid} "):
            return None
        _, dead, x, y, height = head.split(" ")
        rows = text.split("\n")
        visible = tuple(row.rstrip() for row in rows[: int(height)])
        return Shown(split_lines("\n".join(rows[int(height) :])), visible, (int(x), int(y)), dead == "1")

    async def paste(self, pane: Pane, text: str) -> bool:
        """Paste a text as one piece, if the program supports bracketed paste."""
        buffer = f"scout-{pane.ident.lstrip('%')}"
        if await self.run("load-buffer", "-b", buffer, "-", stdin=text.encode()) is None:
            return False
        pasted = await self.run("paste-buffer", "-p", "-d", "-b", buffer, "-t", pane.ident)
        return pasted is not None

    async def press(self, pane: Pane, *keys: str) -> bool:
        """Press keys, by their tmux names."""
        return await self.run("send-keys", "-t", pane.ident, *keys) is not None

    async def close(self, session: str) -> None:
        """End a session and its panes. The last one also ends the server, and its socket is removed."""
        await self.run("kill-session", "-t", f"={session}")
        if not await self.run("list-sessions"):
            _remove(Path(self.address[-1]))


def get_server(sessions: Path) -> TmuxServer:
    """Return the server of these sessions; its socket is beside them unless the path would be too long."""
    socket = sessions / "tmux.socket"
    if len(os.fsencode(socket)) > _LONGEST_PATH:
        name = hashlib.sha256(os.fsencode(sessions)).hexdigest()[:16]
        socket = Path(tempfile.gettempdir()) / f"scout-tmux-{name}" / "s"
    return TmuxServer(("-S", str(socket)))


def _remove(socket: Path) -> None:
    """Remove a socket that tmux left, and its folder if that is empty."""
    socket.unlink(missing_ok=True)
    with suppress(OSError):
        socket.parent.rmdir()


def _make_folder(socket: Path) -> None:
    """Create the private folder of a socket; a folder of another user is refused."""
    make_private(socket.parent)
    if socket.parent.stat().st_uid != os.getuid():
        raise OSError(f"{socket.parent} is another user's")


def write_environment(folder: Path, environment: Mapping[str, str]) -> None:
    """Write the environment for the shell that starts the program; the shell removes the file."""
    text = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())
    _write(folder / "env", text)


def write_process(folder: Path, process: ProcessId) -> None:
    """Write the process file as every run has it; see `Run`."""
    _write(folder / "pid", f"{process.pid}\n{process.started}\n{read_boot_id()}\n")


def _write(file: Path, text: str) -> None:
    """Write a file that is private from its creation."""
    file.unlink(missing_ok=True)
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:  # noqa: PTH123 (a descriptor)
        out.write(text)
