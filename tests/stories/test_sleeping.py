"""An agent that nobody needs sleeps, says since when, and is there again for the next ask."""

import asyncio
from collections.abc import Generator
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from scout.daemon.start import start
from tests.cli.running import Shell, a_shell
from tests.daemon.daemons import Daemon, eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def me() -> Generator[Shell]:
    """Somebody whose agents sleep after a second."""
    with a_shell() as shell:
        start(str(shell.home), environ={**shell.environ, "SCOUT_PERIODS_AGENT_IDLE": "1"}, timeout=60)
        yield shell


def show_agent(me: Shell, name: str = "@upper") -> dict[str, Any]:
    return me.data("show", name)


def fall_asleep(me: Shell, name: str = "@upper") -> dict[str, Any]:
    eventually(lambda: show_agent(me, name)["lifecycle"] == "sleeping")
    return show_agent(me, name)


@pytest.mark.rows("R2.2-9", "R2.3-8")
def test_an_agent_sleeps_and_the_next_ask_wakes_it(me: Shell) -> None:
    me.say("agent", "register", "upper", "--command", "tr a-z A-Z", cwd=me.project("letters"))
    assert me.data("ask", "@upper", "hello")["output"] == "HELLO"
    me.say("send", "@upper", "for later")  # unread mail keeps nobody awake

    asleep = fall_asleep(me)
    assert asleep["status"] == "offline"
    assert asleep["sleepingSince"] == asleep["updatedAt"]
    assert asleep["unread"] == 1
    assert "sleeping" in me.say("who")
    assert "sleeping since" in me.say("show", "@upper")
    assert "0 online" in me.say()
    [session] = me.data("session", "list", "--agent", "@upper")["items"]
    assert (session["state"], session["reason"]) == ("ended", "its agent sleeps")
    assert "@upper" in me.say("log")
    assert "sleeping" in me.say("log")

    assert me.data("ask", "@upper", "are you there?")["output"].startswith("ARE YOU THERE?")
    awake = me.data("session", "list", "--agent", "@upper")["items"]
    assert [one["id"] for one in awake] == [session["id"]]  # it is the same session
    assert "clean" in me.say("verify")


def test_an_agent_over_mcp_sees_who_sleeps_and_is_awake_while_it_acts(me: Shell) -> None:
    token = me.data("agent", "register", "friend")["token"]
    me.say("agent", "register", "upper", "--command", "tr a-z A-Z", cwd=me.project("letters"))
    fall_asleep(me)
    fall_asleep(me, "@friend")

    async def act(client: Client) -> None:
        found: Any = (await client.call_tool("agents_search", {"query": "upper"})).structured_content
        [upper] = found["items"]
        assert (upper["lifecycle"], upper["status"]) == ("sleeping", "offline")
        asked = (await client.call_tool("ask", {"to": "@upper", "body": "wake up"})).structured_content
        assert asked is not None
        flight = await client.call_tool("invocations_wait", {"flightId": asked["flightId"]})
        assert (flight.structured_content or {})["output"] == "WAKE UP"

    async def run() -> None:
        url = me.data("status")["url"]
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=30) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            await act(client)

    asyncio.run(run())
    facts = [one["type"] for one in me.data("log", "--family", "collab.agent")["items"]]
    assert facts.count("collab.agent.woken") == 2  # the one that was asked, and the one that asked


def test_a_task_ends_when_it_is_done_and_a_retired_agents_session_ends_with_it(me: Shell) -> None:
    scout = Daemon(me.home, start(str(me.home), environ=me.environ, timeout=60)[0])
    task = f"/{me.data('whoami')['user']}/task/7"
    made = {"to": task, "body": "for you", "create": {"harness": "echo"}}
    assert scout.call("POST", "/v1/messages", made).status == 201
    asked = me.data("ask", task, "do this")
    assert asked["output"].startswith("do this")
    eventually(lambda: show_agent(me, task)["lifecycle"] == "retired")
    assert {one["state"] for one in show_agent(me, task)["sessions"]} == {"ended"}
    assert me.data("flight", "get", asked["flightId"])["output"] == asked["output"]
    assert scout.call("POST", "/v1/asks", {"to": task, "body": "more"}).json["code"] == "retired_target"

    me.say("agent", "register", "hand", "--harness", "echo", "--wake-policy", "keep_warm")
    eventually(lambda: show_agent(me, "@hand")["status"] == "online")
    me.say("agent", "retire", "@hand")
    assert {one["state"] for one in show_agent(me, "@hand")["sessions"]} == {"ended"}
    assert me.data("session", "list", "--live")["items"] == []


@pytest.mark.rows("R9.m-4", "R2.2-10")
def test_a_memory_that_falls_asleep_wakes_nobody(me: Shell) -> None:
    for role in ("user", "memory", "memorySearch"):
        me.say("config", "set", f"roles.{role}", "echo")
    me.say("agent", "register", "arc")
    me.say("ask", "@arc", "hello")
    children = ("/me/agent/arc/memory", "/me/agent/arc/search/0")
    for path in children:
        me.say("ask", path, "What did you do?")
    for path in (*children, "@arc"):
        fall_asleep(me, path)
    flights = [one["id"] for one in me.data("flight", "list")["items"]]
    assert len(flights) == 3
    assert me.data("inbox", "--as", "@arc")["items"] == []
    assert me.data("attention")["items"] == []
    assert show_agent(me, "@arc")["lifecycle"] == "sleeping"
