"""Somebody looks for an agent that can do something, and finds it by what its owner wrote about it."""

import asyncio
from collections.abc import Generator
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.cli.running import Shell, a_shell, start_daemon, type_in_terminal
from tests.daemon.daemons import Daemon

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

ABOUT = "Knows the billing code and its database migrations; ask it before you change an invoice."


@pytest.fixture
def shell() -> Generator[Shell]:
    with a_shell() as made:
        start_daemon(made)
        project = made.project("ledger")
        made.say("agent", "register", "ledger", "--project", str(project), "--command", "cat")
        made.say("agent", "config", "@ledger", "--set", f"description={ABOUT}")
        made.say("agent", "register", "other", "--project", str(project), "--command", "cat")
        yield made


def test_a_person_finds_an_agent_by_its_description(shell: Shell) -> None:
    _, screen = type_in_terminal(shell, "who", COLUMNS="80", LINES="24")
    lines = [line.rstrip() for line in screen.splitlines()]
    assert "ABOUT" in lines[0]
    assert any("@ledger" in line and "Knows the billing" in line for line in lines)
    assert all(len(line) <= 110 for line in lines)  # with the colours
    (found,) = shell.data("who", "billing migrations")["items"]
    assert (found["address"], found["description"]) == ("@ledger", ABOUT)
    assert f"{ABOUT}" in " ".join(shell.say("show", "@ledger").split())
    assert shell.data("resolve", "@ledger")["description"] == ABOUT
    # What is written there cannot drive the terminal.
    shell.say("agent", "config", "@ledger", "--set", "description=\x1b[2Jgone\rforged")
    for words in (["who"], ["show", "@ledger"]):
        shown = shell.say(*words)
        assert "\x1b[2J" not in shown, words
        assert "\r" not in shown, words


def test_an_agent_finds_another_by_its_description(shell: Shell) -> None:
    daemon = Daemon(shell.home, start_daemon(shell))
    token = daemon.call("POST", "/v1/agents", {"definitionId": "reader"}).json["token"]
    found, text = asyncio.run(call(daemon, token, "agents_search", {"query": "billing"}))
    assert [(one["address"], one["description"]) for one in found["items"]] == [("@ledger", ABOUT)]
    assert "@ledger (Knows the billing code" in text
    resolved, text = asyncio.run(call(daemon, token, "agents_resolve", {"address": "@ledger"}))
    assert resolved["description"] == ABOUT
    assert ABOUT in text


async def call(daemon: Daemon, token: str, tool: str, arguments: dict[str, Any]) -> tuple[Any, str]:
    """What an agent's tool gives: as data, and as text."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(f"{daemon.running.url}/mcp", http_client=http)
        async with Client(transport) as client:
            result = await client.call_tool(tool, arguments)
            return result.structured_content, "".join(getattr(one, "text", "") for one in result.content)
