"""A day of broadcasts and channels: a person at the command line, a program over HTTP, an MCP client."""

import asyncio
import json
import urllib.request
from collections.abc import Generator
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.cli.running import Shell, a_shell, start_daemon

pytestmark = pytest.mark.slow


@pytest.fixture
def me() -> Generator[Shell]:
    with a_shell() as shell:
        start_daemon(shell)
        yield shell


class Puller:
    """A program that takes its mail over HTTP."""

    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token

    def get(self, path: str) -> Any:
        return self._call(urllib.request.Request(self.url + path))

    def post(self, path: str, **what: Any) -> Any:
        body = json.dumps(what).encode()
        headers = {"Content-Type": "application/json"}
        return self._call(urllib.request.Request(self.url + path, body, headers, method="POST"))

    def _call(self, request: urllib.request.Request) -> Any:
        request.add_header("Authorization", f"Bearer {self.token}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())


def over_mcp(url: str, token: str, tool: str, **arguments: Any) -> Any:
    """What one tool answers an MCP client."""

    async def call() -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            return (await client.call_tool(tool, arguments)).structured_content

    return asyncio.run(call())


def register(me: Shell, name: str) -> str:
    return str(me.data("agent", "register", name)["token"])


@pytest.mark.rows("R4.3-5")
def test_what_is_said_to_many_is_unread_for_each_of_them(me: Shell) -> None:
    url = me.data("status")["url"]
    program = Puller(url, register(me, "puller"))
    client = register(me, "client")

    assert "sent" in me.say("send", "--broadcast", "main is frozen until noon")
    (item,) = program.get("/v1/inbox")["items"]
    assert (item["message"]["body"], item["broadcast"]) == ("main is frozen until noon", True)
    assert "deliveryId" not in item
    assert program.get("/v1/brief")["unread"] == program.get("/v1/now")["unread"] == 1
    (seen,) = over_mcp(url, client, "messages_inbox")["items"]
    assert seen["body"] == "main is frozen until noon"
    late = Puller(url, register(me, "late"))
    assert late.get("/v1/inbox")["items"] == []  # it was not there then

    (claimed,) = program.post("/v1/inbox/claim")["items"]
    program.post("/v1/inbox/ack", conversationId=claimed["conversationId"], seq=claimed["seq"])
    assert program.get("/v1/inbox")["items"] == []
    over_mcp(url, client, "messages_inbox", claim=True)
    assert over_mcp(url, client, "messages_inbox")["items"] == []

    me.say("channel", "create", "release", "--member", "@puller", "--member", "@client")
    me.say("send", "--channel", "release", "who writes the notes?")
    (channel,) = over_mcp(url, client, "channels_list")["items"]
    assert (channel["channel"], channel["unread"]) == ("release", 1)
    over_mcp(url, client, "messages_send", channel="release", body="I do")
    said = over_mcp(url, client, "messages_channel", channel="release")["items"]
    assert [one["body"] for one in said] == ["who writes the notes?", "I do"]
    waiting = program.post("/v1/inbox/claim")["items"]
    assert [one["message"]["body"] for one in waiting] == ["who writes the notes?", "I do"]
    feed = over_mcp(url, client, "broker_feed", limit=200)["items"]
    assert {"main is frozen until noon", "who writes the notes?"} <= {one.get("text") for one in feed}


@pytest.mark.rows("R4.3-4")
def test_the_feed_of_an_agent_has_everything_that_concerns_it(me: Shell) -> None:
    me.say("agent", "register", "picky", "--command", "grep -v refuse", cwd=me.project("letters"))
    me.say("ask", "@picky", "hello")
    assert "session_failed" in me.type("ask", "@picky", "please refuse").stderr
    me.say("send", "@picky", "for later")
    secret = me.data("token", "create", "--agent", "@picky")["secret"]
    url = me.data("status")["url"]
    whole = over_mcp(url, secret, "broker_feed", limit=200)["items"]
    kinds = {one["type"].removeprefix("collab.") for one in whole}
    expected = {
        "message": ("posted",),
        "ask": ("created",),
        "flight": ("queued", "started", "completed", "failed"),
        "delivery": ("requested", "leased", "woken", "acked"),
        "session": ("ready",),
        "endpoint": ("claimed", "released"),
    }
    assert kinds >= {f"{noun}.{move}" for noun, moves in expected.items() for move in moves}
    said = [one["text"] for one in whole if one["type"] == "collab.message.posted"]
    assert said == ["hello", "hello", "please refuse", "for later"]
    (failed,) = [one for one in whole if one["type"] == "collab.flight.failed"]
    assert "exit 1" in failed["reason"]
    # The same, page by page.
    paged = over_mcp(url, secret, "broker_feed", limit=20)
    more = over_mcp(url, secret, "broker_feed", limit=200, since=paged["next"])
    assert [*paged["items"], *more["items"]][: len(whole)] == whole


@pytest.mark.rows("R4.1-13")
def test_a_persons_inbox_is_a_mailbox(me: Shell) -> None:
    url = me.data("status")["url"]
    arc = Puller(url, register(me, "arc"))
    assert me.data("now")["agents"] == len(me.data("who")["items"]) == 1
    sent = me.data("send", "@arc", "is the parser done?")
    arc.post("/v1/replies", inReplyTo=sent["messageId"], body="yes, since noon")
    me.say("channel", "create", "ops", "--member", "@arc")
    arc.post("/v1/messages", channel="ops", body="deploying now")
    assert me.data("now")["unread"] == sum(one["unread"] for one in me.data("latest")["items"]) == 2

    shown = me.say("inbox")
    assert "@arc answers “is the parser done?”" in shown
    assert "yes, since noon" in shown
    assert "in ops" in shown
    assert me.say("inbox").strip() == "Your inbox is empty."
    assert me.data("now")["unread"] == sum(one["unread"] for one in me.data("latest")["items"]) == 0
    assert "yes, since noon" in me.say("inbox", "--all")

    arc.post("/v1/messages", to="operator", body="lunch?")
    assert "to @arc" in me.say("reply", "in ten minutes")
    me.say("inbox")

    me.say("agent", "register", "parrot", "--harness", "echo")
    flight = me.data("ask", "@parrot", "--notify", "hello")["flightId"]
    assert me.say("wait", flight).strip() == "hello"
    assert me.say("inbox").strip() == "Your inbox is empty."  # the answer was printed already


@pytest.mark.rows("R2.2-61")
def test_a_reply_after_the_end_is_not_lost(me: Shell) -> None:
    url = me.data("status")["url"]
    slow = Puller(url, register(me, "slow"))
    asked = me.data("ask", "@slow", "--no-wait", "--if-unreachable", "queue", "how many files?")
    me.say("flight", "cancel", asked["flightId"])
    slow.post("/v1/replies", inReplyTo=asked["flightId"], body="there are 12")
    shown = me.say("inbox")
    assert "after the end of the ask" in shown
    assert "there are 12" in shown
    woken = [one["type"] for one in me.data("log", "--agent", "@slow", "--limit", "200")["items"]]
    assert "collab.delivery.woken" not in woken
