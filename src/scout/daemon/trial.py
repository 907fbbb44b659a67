"""`scout runtimes --check`: tries each promise of a harness in a temporary Scout."""

import asyncio
import importlib
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from scout.broker.sessions.harness_checks import CheckWish
from scout.daemon import lock, start
from scout.protocol.sessions import CheckLine
from scout.settings.record import Settings

_PATIENCE = 30.0  # seconds for a daemon to start or to end


async def play_check(wish: CheckWish, settings: Settings) -> AsyncGenerator[CheckLine]:
    """Try each promise of the checklist, one after another."""
    promises = await asyncio.to_thread(_load_promises)
    if (lines := promises.judge_without_trial(wish)) is not None:
        for line in lines:
            yield line
        return
    async with _open_trial(settings) as scout:
        play = await asyncio.to_thread(promises.Play, scout, wish)
        async with aclosing(play):
            for promise in (*promises.FREE, *promises.PAID):
                yield await promises.judge(promise, play, wish)


def _load_promises() -> Any:
    """Import the promises, and with them the client library."""
    importlib.import_module(
        "anyio._backends._asyncio"
    )  # the client would load it at its first call, on the loop
    from scout.daemon import promises  # noqa: PLC0415 (its client is large, and few need it)

    return promises


@asynccontextmanager
async def _open_trial(settings: Settings) -> AsyncGenerator["TrialScout"]:
    scout = await asyncio.to_thread(TrialScout, settings)
    try:
        await asyncio.to_thread(scout.start)
        yield scout
    finally:
        await asyncio.shield(asyncio.to_thread(scout.remove))


class TrialScout:
    """A daemon with a temporary data folder; it ends with this process."""

    def __init__(self, settings: Settings) -> None:
        folder = _get_folder(settings)
        folder.mkdir(mode=0o700, exist_ok=True)
        self.home = tempfile.mkdtemp(prefix="t", dir=folder)
        self.work = f"{self.home}/work"
        Path(self.work).mkdir(mode=0o700)
        self._settings = settings
        self._near, self._far = os.pipe()

    def start(self) -> None:
        """Start the daemon; after `stop`, it starts again with the same data."""
        self.running, _ = start.start(
            self.home, environ=self._build_environment(), timeout=_PATIENCE, tether=self._near
        )

    def stop(self) -> None:
        """Stop the daemon, as `scout down` does. Its sessions keep running."""
        start.stop(self.home, _PATIENCE)

    def remove(self) -> None:
        """Stop the daemon and its sessions, and remove its folder."""
        os.close(self._far)
        os.close(self._near)
        found = start.find_running(self.home)
        if found is not None and not start.wait_ended(found, _PATIENCE):
            with suppress(ProcessLookupError):
                os.kill(found.pid, signal.SIGKILL)
            start.wait_ended(found, _PATIENCE)
        _remove(Path(self.home))

    @property
    def token(self) -> str:
        return Path(self.home, "token").read_text("utf-8").strip()

    def _build_environment(self) -> dict[str, str]:
        """Return this daemon's environment without its settings."""
        others = {name: value for name, value in os.environ.items() if not name.startswith("SCOUT_")}
        ours = {"SCOUT_HOME": self.home, "SCOUT_PORT": "0", "SCOUT_ROOTS": self.work}
        quiet = {"SCOUT_AUTOSTART": "0", "SCOUT_NOTIFY_DESKTOP": "0"}
        allowed = os.pathsep.join(self._settings.environment)
        return {**others, **ours, **quiet, **({"SCOUT_ENVIRONMENT": allowed} if allowed else {})}


def remove_trials(settings: Settings) -> None:
    """Remove what was left by a daemon that was killed during a check."""
    folder = _get_folder(settings)
    for home in folder.iterdir() if folder.is_dir() else ():
        if not lock.is_held(str(home)):
            _remove(home)


def _remove(home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    with suppress(OSError):  # another check uses the folder
        home.parent.rmdir()


def _get_folder(settings: Settings) -> Path:
    return Path(settings.home, "trials")
