"""`scout mcp` between the reference client and a real daemon: both generations, restarts, many at once."""

import asyncio
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.session import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

from scout.cli.hosts.host_session import HostSession
from scout.cli.hosts.mcp_connection import McpConnection
from scout.daemon.start import find_running, stop
from tests.cli.hosting import Hosted, hosted
from tests.cli.running import Shell, start_daemon

__all__ = ["hosted"]

WORDS = ["-m", "scout", "mcp", "--host", "claude"]
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "a test", "version": "0"},
}


META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": HELLO["clientInfo"],
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Pipe:
    """The relay as a host holds it: lines in, lines out."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.lines: queue.Queue[Any] = queue.Queue()
        self._number = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def write(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def send(self, method: str, ident: Any = None, **params: Any) -> None:
        told = {"jsonrpc": "2.0", "method": method, "params": params}
        self.write(json.dumps(told if ident is None else {**told, "id": ident}))

    def ask(self, method: str, **params: Any) -> Any:
        """The answer; what comes before it is left out."""
        self._number += 1
        self.send(method, self._number, **params)
        while (told := self.lines.get(timeout=30)).get("id") != self._number:
            pass
        return told

    def greet(self) -> Any:
        told = self.ask("initialize", **HELLO)
        self.send("notifications/initialized")
        return told

    def call(self, tool: str, **arguments: Any) -> Any:
        told = self.ask("tools/call", name=tool, arguments=arguments)
        assert "result" in told, told
        return told["result"]

    def close(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(timeout=60)


@contextmanager
def a_relay(shell: Shell, cwd: Path, **environ: str) -> Generator[Pipe]:
    process = subprocess.Popen(
        [sys.executable, *WORDS],
        cwd=cwd,
        env={**shell.environ, **environ},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        yield Pipe(process)
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def with_client(shell: Shell, cwd: Path, scene: Callable[[ClientSession], Awaitable[None]]) -> None:
    """The reference client of the generation with sessions."""
    server = StdioServerParameters(command=sys.executable, args=WORDS, env=shell.environ, cwd=str(cwd))

    async def play() -> None:
        async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
            await session.initialize()
            await scene(session)

    asyncio.run(asyncio.wait_for(play(), 60))


@pytest.mark.rows("R4.3-1")
def test_the_reference_client_speaks_through_it(hosted: Hosted) -> None:
    async def scene(session: ClientSession) -> None:
        tools = {tool.name for tool in (await session.list_tools()).tools}
        assert {"whoami", "ask", "messages_reply"} <= tools
        me = (await session.call_tool("whoami", {})).structured_content
        assert me is not None
        assert (me["minimal"], me["kind"]) == ("@talkie", "agent")
        many = await asyncio.gather(*(session.call_tool("whoami", {}) for _ in range(20)))
        assert {one.structured_content["sessionId"] for one in many if one.structured_content} == {
            me["sessionId"]
        }

    with_client(hosted, hosted.project("talkie"), scene)
    (session,) = hosted.data("session", "list")["items"]
    assert session["state"] == "ended"
    assert list((hosted.home / "hosts").iterdir()) == []


def test_the_generation_without_sessions_speaks_through_it(hosted: Hosted) -> None:
    server = StdioServerParameters(
        command=sys.executable, args=WORDS, env=hosted.environ, cwd=str(hosted.project("talkie"))
    )

    async def play() -> None:
        async with Client(stdio_client(server)) as client:
            assert client.protocol_version == "2026-07-28"
            told = await client.call_tool("whoami", {})
            assert told.structured_content is not None
            assert told.structured_content["minimal"] == "@talkie"

    asyncio.run(asyncio.wait_for(play(), 60))


def test_a_hook_that_ran_before_names_the_same_session(hosted: Hosted) -> None:
    here = hosted.project("talkie")
    with a_relay(hosted, here, CLAUDE_PID=str(os.getpid())) as pipe:
        hosted.type(
            "hook",
            "session_start",
            stdin=json.dumps({"session_id": "n-1", "cwd": str(here)}),
            CLAUDE_PID=str(os.getpid()),
        )
        pipe.greet()
        me = pipe.call("whoami")["structuredContent"]
        assert me["sessionId"] == hosted.kept()["sessionId"]
        assert pipe.close() == 0
    assert hosted.data("session", "inspect", me["sessionId"])["state"] == "live"


def test_a_hook_that_runs_later_takes_over_and_the_relay_goes_on(hosted: Hosted) -> None:
    here = hosted.project("talkie")
    with a_relay(hosted, here, CLAUDE_PID=str(os.getpid())) as pipe:
        pipe.greet()
        before = pipe.call("whoami")["structuredContent"]
        hosted.type(
            "hook",
            "session_start",
            stdin=json.dumps({"session_id": "n-1", "cwd": str(here)}),
            CLAUDE_PID=str(os.getpid()),
        )
        after = pipe.call("whoami")["structuredContent"]
        assert after["sessionId"] == before["sessionId"] == hosted.kept()["sessionId"]
        assert after["tokenId"] != before["tokenId"]


def test_the_token_that_scout_gave_is_used(hosted: Hosted) -> None:
    token = hosted.data("agent", "register", "bow", cwd=hosted.folder)["token"]
    with a_relay(hosted, hosted.folder, SCOUT_TOKEN=token) as pipe:
        pipe.greet()
        assert pipe.call("whoami")["structuredContent"]["minimal"] == "@bow"
        assert pipe.close() == 0
    assert hosted.data("session", "list")["items"] == []


def test_a_daemon_that_is_replaced_is_greeted_again(hosted: Hosted) -> None:
    with a_relay(hosted, hosted.project("talkie")) as pipe:
        pipe.greet()
        before = pipe.call("whoami")["structuredContent"]
        listing = pipe.ask("resources/list")["result"]["resources"]
        if listing:
            assert "result" in pipe.ask("resources/subscribe", uri=listing[0]["uri"])
        assert stop(str(hosted.home), timeout=60)
        pipe._number += 1
        number = pipe._number
        pipe.send("tools/call", number, name="whoami", arguments={})
        start_daemon(hosted)
        while (told := pipe.lines.get(timeout=30)).get("id") != number:
            pass
        after = told["result"]["structuredContent"]
        assert (after["sessionId"], after["url"] != before["url"]) == (before["sessionId"], True)
        sent = pipe.call("messages_send", to="@talkie", body="hi")
        assert sent["isError"] is False or sent["structuredContent"]


def test_it_starts_the_daemon_unless_told_not_to(fresh: Shell) -> None:
    start_daemon(fresh)
    made = Hosted(fresh.folder)
    made.make_token()
    assert stop(str(fresh.home), timeout=60)
    with a_relay(fresh, fresh.project("talkie"), SCOUT_AUTOSTART="1", CLAUDECODE="1") as pipe:
        pipe.greet()
        assert pipe.call("whoami")["structuredContent"]["minimal"] == "@talkie"
    assert find_running(str(fresh.home)) is not None


def test_without_a_set_up_host_every_request_says_what_to_do(fresh: Shell) -> None:
    with a_relay(fresh, fresh.folder) as pipe:
        told = pipe.ask("initialize", **HELLO)
        assert "scout setup" in told["error"]["message"]
        pipe.write("no json")
        assert pipe.lines.get(timeout=60)["error"]["code"] == -32700
        pipe.write("[]")
        assert pipe.lines.get(timeout=60)["error"]["code"] == -32600
        assert pipe.close() == 0


def test_what_the_daemon_says_by_itself_is_heard(hosted: Hosted) -> None:
    with a_relay(hosted, hosted.project("talkie")) as pipe:
        pipe.greet()
        pipe.call("whoami")
        inbox = next(
            one["uri"] for one in pipe.ask("resources/list")["result"]["resources"] if "inbox" in one["uri"]
        )
        assert "result" in pipe.ask("resources/subscribe", uri=inbox)
        hosted.say("send", "@talkie", "hi")
        while (told := pipe.lines.get(timeout=30)).get("method") != "notifications/resources/updated":
            pass
        assert told["params"]["uri"] == inbox


def test_what_may_have_been_done_is_not_done_again(hosted: Hosted) -> None:
    with a_relay(hosted, hosted.project("talkie")) as pipe:
        pipe.greet()
        secret = hosted.data("agent", "register", "lazy", cwd=hosted.folder)["token"]
        hosted.say("endpoint", "register", "--transport", "pull", "--state", "idle", SCOUT_TOKEN=secret)
        flight = pipe.call("ask", to="@lazy", body="x")["structuredContent"]["flightId"]
        wait = {"flightId": flight, "timeoutSeconds": 50}
        token = {"progressToken": "long"}
        pipe.send("tools/call", "long", name="invocations_wait", arguments=wait, _meta=token)
        while pipe.lines.get(timeout=60).get("method") != "notifications/progress":  # then the daemon has it
            pass
        daemon = find_running(str(hosted.home))
        assert daemon is not None
        os.kill(daemon.pid, signal.SIGKILL)
        while (told := pipe.lines.get(timeout=30)).get("id") != "long":
            pass
        assert "before you repeat it" in told["error"]["message"]
        start_daemon(hosted)
        assert pipe.call("whoami")["structuredContent"]["minimal"] == "@talkie"


@pytest.mark.parametrize("why", ["working", "hasDoor"])
def test_a_session_that_works_or_can_be_woken_is_there(hosted: Hosted, why: str) -> None:
    environ = {**hosted.environ, "CLAUDE_PID": str(os.getpid())}
    host = HostSession("claude", environ)
    kept = {**host.enrol(str(hosted.project("talkie")), "n-1"), "hasDoor": False}
    host.keep(kept)
    door = McpConnection(host)

    def seen() -> str:
        (one,) = hosted.data("show", "@talkie")["endpoints"]
        return str(one["lastSeen"])

    first = seen()
    door.beat(working=False)
    assert seen() == first
    host.keep({**kept, why: True})
    door.beat(working=False)
    stop(str(hosted.home), timeout=60)  # what is kept in memory is written at the end
    start_daemon(hosted)
    assert seen() > first
    stop(str(hosted.home), timeout=60)
    door.beat(working=True)


@pytest.mark.parametrize("generation", ["with sessions", "without"])
def test_a_request_that_is_cancelled_ends(hosted: Hosted, generation: str) -> None:
    more: dict[str, Any] = {} if generation == "with sessions" else {"_meta": META}
    with a_relay(hosted, hosted.project("talkie")) as pipe:
        if not more:
            pipe.greet()
        token = hosted.data("agent", "register", "lazy", cwd=hosted.folder)["token"]
        hosted.say("endpoint", "register", "--transport", "pull", "--state", "idle", SCOUT_TOKEN=token)
        asked = pipe.ask("tools/call", name="ask", arguments={"to": "@lazy", "body": "x"}, **more)
        flight = asked["result"]["structuredContent"]["flightId"]
        wait = {"flightId": flight, "timeoutSeconds": 50}
        pipe.send("tools/call", "long", name="invocations_wait", arguments=wait, **more)
        told = pipe.ask("tools/call", name="whoami", arguments={}, **more)
        assert "result" in told
        pipe.send("notifications/cancelled", requestId="long", **more)
        assert "result" in pipe.ask("tools/call", name="whoami", arguments={}, **more)
        assert pipe.close() == 0
        left = [pipe.lines.get_nowait() for _ in range(pipe.lines.qsize())]
        assert [one for one in left if one.get("id") == "long" and "result" in one] == []


def test_who_only_listens_is_not_waited_for(hosted: Hosted) -> None:
    with a_relay(hosted, hosted.project("talkie")) as pipe:
        pipe.send("subscriptions/listen", "all", notifications={"toolsListChanged": True}, _meta=META)
        assert pipe.lines.get(timeout=30)["method"] == "notifications/subscriptions/acknowledged"
        began = time.monotonic()
        assert pipe.close() == 0
        assert time.monotonic() - began < 9  # an answer under way is given ten


def test_a_task_is_followed_through_it(hosted: Hosted) -> None:
    hosted.data("agent", "register", "parrot", "--harness", "echo")
    tasks: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": tasks}
    with a_relay(hosted, hosted.project("talkie")) as pipe:
        asked = {"to": "parrot", "body": "Say this."}
        task = pipe.ask("tools/call", name="ask", arguments=asked, _meta=meta)["result"]["taskId"]
        end = time.monotonic() + 60
        while (told := pipe.ask("tasks/get", taskId=task, _meta=meta)["result"])["status"] == "working":
            assert time.monotonic() < end
        assert "Say this." in told["result"]["structuredContent"]["output"]
        assert pipe.close() == 0
