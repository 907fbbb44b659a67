"""Desktop notifications, shown by a program of the system."""

import asyncio
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress

from scout.ports import Notice
from scout.settings.environment import build_environment

_PATIENCE = 10.0  # seconds
_TEXT = 300
# The texts are arguments of the script, never part of it.
_SCRIPT = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
_SCREEN = ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XAUTHORITY")


def find_program(path: str | None = None) -> str | None:
    """Return the program that shows notifications, if there is one."""
    return shutil.which("notify-send", path=path) or shutil.which("osascript", path=path)


class Desktop:
    """Shows a notice with `notify-send` or `osascript`, whichever is on the PATH."""

    name = "desktop"

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ

    async def tell(self, notice: Notice) -> None:
        """Show a notice. `OSError` if it was not shown."""
        found = find_program(self._environ.get("PATH"))
        if found is None:
            raise OSError("neither notify-send nor osascript is on the PATH")
        screen = {name: self._environ[name] for name in _SCREEN if name in self._environ}
        showing = await asyncio.create_subprocess_exec(
            *_build_command(found, notice),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=build_environment(screen, self._environ),
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(_PATIENCE):
                _, said = await showing.communicate()
        except BaseException:
            with suppress(ProcessLookupError):
                showing.kill()
            await showing.wait()
            raise
        if showing.returncode:
            reason = said.decode("utf-8", "replace").strip()[:_TEXT]
            raise OSError(f"{found} exited with {showing.returncode}: {reason}")


def _build_command(found: str, notice: Notice) -> list[str]:
    title, text = _prepare_text(f"Scout: {notice.title}"), _prepare_text(notice.text)
    if found.endswith("osascript"):
        return [found, "-e", _SCRIPT, title, text]
    urgency = "critical" if notice.risk == "high" else "normal"
    return [found, f"--urgency={urgency}", "--app-name=Scout", "--", title, text]


def _prepare_text(text: str) -> str:
    """Return a text as an argument: control characters are made visible, and a long text is shortened."""
    shown = "".join(char if char.isprintable() else _escape(char) for char in text)
    return shown if len(shown) <= _TEXT else f"{shown[: _TEXT - 1]}…"


def _escape(char: str) -> str:
    return " ⏎ " if char == "\n" else char.encode("unicode_escape").decode()
