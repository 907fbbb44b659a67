"""The protocol's own Inspector, on the command line, at a real daemon: over HTTP and over `scout mcp`."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.hosting import Hosted, hosted
from tests.live.programs import Program
from tests.mcp.conformance import node_words

__all__ = ["hosted"]

# The first to come here installs the Inspector; once it is there, a test takes a few seconds.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_INSPECTOR = Program(
    "@modelcontextprotocol/inspector",
    "2.12.0",
    "@modelcontextprotocol/inspector/clients/launcher/build/index.js",
)
_ERAS = ("legacy", "modern")


class Inspector:
    """What `npx @modelcontextprotocol/inspector --cli` runs, at one server."""

    def __init__(self, home: Path, *server: str) -> None:
        self._home = home
        self._server = server

    def says(self, era: str, method: str, *words: str) -> Any:
        """What it prints of a method's result."""
        told = [*node_words(_INSPECTOR), "--cli", *self._server, "--protocol-era", era, "--method", method]
        environ = {"PATH": os.environ["PATH"], "HOME": str(self._home)}
        done = subprocess.run(
            [*told, *words], env=environ, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def call(self, era: str, tool: str, **arguments: str) -> Any:
        """What a tool answers."""
        given = [f"{name}={value}" for name, value in arguments.items()]
        told = self.says(era, "tools/call", "--tool-name", tool, *(["--tool-arg", *given] if given else []))
        assert not told.get("isError"), told
        return told["structuredContent"]


def _over_http(hosted: Hosted) -> Inspector:
    token = hosted.data("agent", "register", "arc")["token"]
    url = f"{hosted.data('status')['url']}/mcp"
    return Inspector(hosted.folder, url, "--transport", "http", "--header", f"Authorization: Bearer {token}")


def _over_stdio(hosted: Hosted) -> Inspector:
    relay = hosted.folder / "relay"
    ours = {name: value for name, value in hosted.environ.items() if name.startswith(("SCOUT_", "PYTHON"))}
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in ours.items())
    relay.write_text(f"#!/bin/sh\n{exports}exec {shlex.quote(sys.executable)} -m scout mcp --host claude\n")
    relay.chmod(0o700)
    return Inspector(
        hosted.folder, str(relay), "--transport", "stdio", "--cwd", str(hosted.project("talkie"))
    )


@pytest.mark.rows("R4.3-10")
@pytest.mark.parametrize("era", _ERAS)
@pytest.mark.parametrize(("door", "name"), [(_over_http, "@arc"), (_over_stdio, "@talkie")])
def test_it_lists_and_calls_tools(
    hosted: Hosted, door: Callable[[Hosted], Inspector], name: str, era: str
) -> None:
    hosted.data("agent", "register", "parrot", "--harness", "echo")
    inspector = door(hosted)
    tools = {tool["name"] for tool in inspector.says(era, "tools/list")["tools"]}
    assert {"whoami", "ask", "messages_inbox", "operator_need"} <= tools
    assert inspector.call(era, "whoami")["minimal"] == name
    told = inspector.call(era, "ask", to="parrot", body="Say this.")
    if era == "legacy":
        assert told["next"]["tool"] == "invocations_wait"
        told = inspector.call(era, told["next"]["tool"], **told["next"]["arguments"])
    # The other one follows tasks by itself: what it prints is the task's result.
    assert told["state"] == "completed"
    assert "Say this." in told["output"]
