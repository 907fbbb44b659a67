"""The terminal application in front of a real daemon: keys go in, and what the screen shows comes out."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from scout.client.client import Scout
from scout.tui.app import ScoutApp
from scout.tui.drafts import DraftBook
from tests.cli.running import Shell
from tests.daemon.daemons import Daemon

__all__ = ["Fleet", "Stage", "mask", "play"]

_PATIENCE = 60.0  # seconds: a busy machine is no failure
_CHANGING = re.compile(
    r"(?P<folder>\S*/sct-\w+)|\b(?P<kind>[a-z]{3})_[0-9a-z]{8,26}\b|(?P<quiet> · silent for \w+)|\b\d\d:\d\d:\d\d\b"
    r"|\b(\d+(\.\d+)?[smhd](\d\d[sm])?( ago)?|(just )?now)\b"
)


class Fleet:
    """Agents and what they want, made through HTTP as their programs would."""

    def __init__(self, shell: Shell, daemon: Daemon) -> None:
        self.shell, self.daemon = shell, daemon

    def call(self, method: str, path: str, body: object = None, token: str = "") -> Any:
        reply = self.daemon.call(method, path, body, {"Content-Type": "application/json"}, token=token)
        assert reply.status < 300, (reply.status, reply.json)
        return reply.json

    def register(self, name: str, **more: Any) -> str:
        """An agent in a project of its own; its token if it connects by itself."""
        folder = str(self.shell.project(name))
        body = {"definitionId": name, "projectRoot": folder, **more}
        return str(self.call("POST", "/v1/agents", body).get("token"))

    def ask(self, to: str, body: str, wait: float = 30) -> Any:
        return self.call("POST", "/v1/asks", {"to": to, "body": body, "wait": wait})

    def raise_item(self, token: str, title: str, **more: Any) -> str:
        """An item for the person; its id."""
        return str(self.call("POST", "/v1/attention", {"title": title, **more}, token)["id"])

    def want(self, project: str, command: str) -> str:
        """A program in a person's session asks whether it may run a command, as its hook does."""
        host = self.call("POST", "/v1/tokens", {"kind": "host"})["secret"]
        wish = {"cwd": str(self.shell.project(project)), "harness": "claude", "nativeSessionId": project}
        session = self.call("POST", "/v1/sessions/enrol", wish, host)["session"]["id"]
        asks = {
            "event": "permission_request",
            "tool": "Bash",
            "arguments": {"command": command},
            "expiresIn": 600,
        }
        return str(self.call("POST", f"/v1/sessions/{session}/hook", asks, host)["attentionId"])

    def item(self, ident: str) -> Any:
        return self.call("GET", f"/v1/attention/{ident}")


class Stage:
    """The application while it runs."""

    def __init__(self, app: ScoutApp, pilot: Pilot[None]) -> None:
        self.app, self.pilot = app, pilot

    @property
    def screen(self) -> str:
        """What the screen shows."""
        strips = self.app.screen._compositor.render_strips(self.app.size)
        return "\n".join(strip.text.rstrip() for strip in strips)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        await self.pilot.press(*("space" if sign == " " else sign for sign in text))

    async def shows(self, *texts: str) -> str:
        """The screen, once it shows all of these."""
        told = f"no {texts!r}"
        return await self.until(lambda: all(text in self.screen for text in texts), told)

    async def hides(self, text: str) -> str:
        return await self.until(lambda: text not in self.screen, f"still {text!r}")

    async def settle(self) -> None:
        """The view has been read, and nothing is waiting to be drawn."""
        view = self.app.view
        await self.until(lambda: not (view.is_stale or view.is_reading), "still reading")
        await self.pilot.pause()

    async def until(self, is_so: Callable[[], bool], told: str = "") -> str:
        end = time.monotonic() + _PATIENCE
        while not is_so():
            assert time.monotonic() < end, f"{told} on this screen:\n{self.screen}"
            await self.pilot.pause(0.02)
        return self.screen


@asynccontextmanager
async def _open(shell: Shell, size: tuple[int, int], drafts: Path | None) -> AsyncGenerator[Stage]:
    async with Scout(home=shell.home, directory=shell.folder) as scout:
        app = ScoutApp(scout, drafts=DraftBook(drafts))
        async with app.run_test(size=size) as pilot:
            stage = Stage(app, pilot)
            await stage.shows("● live")
            yield stage


def play(
    shell: Shell,
    scene: Callable[[Stage], Coroutine[Any, Any, None]],
    size: tuple[int, int] = (80, 24),
    drafts: Path | None = None,
) -> None:
    """Play a scene in front of a new application."""

    async def whole() -> None:
        async with _open(shell, size, drafts) as stage:
            await scene(stage)

    asyncio.run(whole())


def mask(screen: str) -> str:
    """A screen without what differs from run to run: ids, times, and the blanks that depend on them."""

    def replace(found: re.Match[str]) -> str:
        if found["folder"]:
            return "FOLDER"
        return "" if found["quiet"] else f"{found['kind']}_" if found["kind"] else "TIME"

    plain = re.sub("━+ *", "━ ", _CHANGING.sub(replace, re.sub("[▁▂▃▄▅▆▇█]", " ", screen)))
    return "\n".join(re.sub(r" {2,}", "  ", line).rstrip() for line in plain.splitlines()) + "\n"
