"""A name means one agent, stays the same while sessions come and go, and says so when it is broken."""

import asyncio
from collections.abc import Generator
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.cli.running import a_shell, start_daemon
from tests.daemon.daemons import Daemon
from tests.stories.refusals import Stage

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def stage() -> Generator[Stage]:
    with a_shell() as shell:
        yield Stage(shell, Daemon(shell.home, start_daemon(shell)))


async def use(stage: Stage, token: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What a tool answers to an agent."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(f"{stage.daemon.running.url}/mcp", http_client=http)
        async with Client(transport) as client:
            result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    assert result.structured_content is not None
    return result.structured_content


def test_an_agent_cannot_pretend_to_be_elsewhere(stage: Stage) -> None:
    token = stage.agent("arc")

    def answer(method: str, path: str, body: dict[str, Any]) -> Any:
        return stage.daemon.call(method, path, body, token=token)

    # A node that nobody joined, and the transports of Scout's own bridges, are no way to an agent.
    for field, value in (("node", "mini"), ("transport", "mesh"), ("transport", "a2a")):
        refused = answer("POST", "/v1/endpoints", {field: value})
        assert (refused.status, refused.json["code"], refused.json["field"]) == (400, "bad_request", field)
        accepted = (
            stage.daemon.call("GET", "/v1/nodes").json["items"][0]["name"] if field == "node" else "pull"
        )
        assert accepted in refused.json["message"]
        # What is offered instead is accepted.
        assert answer("POST", "/v1/endpoints", refused.json["remedies"][0]["parameters"]).status == 201
    made = answer("POST", "/v1/endpoints", {}).json
    for field, value in (("node", "mini"), ("transport", "mesh")):
        refused = answer("PATCH", f"/v1/endpoints/{made['id']}", {field: value})
        assert (refused.status, refused.json["code"]) == (400, "bad_request")
        assert field in refused.json["message"]

    # Its folder is inside the allowed roots, however it is spelt.
    link = stage.shell.project("arc") / "away"
    link.symlink_to("/etc")
    for wish in (
        {"workingDir": "/etc"},
        {"config": {"workspaceDir": "/etc"}},
        {"workingDir": str(link)},
        {"config": {"workspaceDir": str(link)}},
    ):
        refused = answer("PATCH", "/v1/agents/%40arc", wish)
        assert refused.json["code"] == "directory_not_allowed", (wish, refused.body)
        assert refused.json["remedies"][0]["command"] == "scout config roots --add /etc"
    # The operator may.
    assert stage.daemon.call("PATCH", "/v1/agents/%40arc", {"workingDir": "/etc"}).status == 200


def test_a_name_means_one_instance_and_outlives_its_session(stage: Stage) -> None:
    shell, daemon = stage.shell, stage.daemon

    def resolve(address: str) -> dict[str, Any]:
        found: dict[str, Any] = shell.data("resolve", address)
        over_http = daemon.call("GET", f"/v1/resolve?address={quote(address)}").json
        assert over_http.items() <= found.items()
        return found

    stage.agent("aa", harness="echo")
    token = stage.post("/v1/tokens", {"agent": "@aa"})["secret"]
    assert shell.say("ask", "@aa", "hello").strip() == "hello"
    stage.endpoint("aa", "codex")
    # Each instance has its own address, and that address leads back to it.
    for harness in ("echo", "codex"):
        found = resolve(f"@aa#{harness}")
        assert f".harness:{harness}." in found["canonical"], found
        assert found["minimal"] == f"@aa.harness:{harness}"
        assert resolve(found["minimal"])["endpointId"] == found["endpointId"]
    used = asyncio.run(use(stage, token, "agents_resolve", {"address": "@aa#codex"}))
    assert used["minimal"] == "@aa.harness:codex"

    # Its sessions end; its name stays.
    shell.say("session", "stop", "@aa#echo")
    daemon.call("DELETE", f"/v1/endpoints/{resolve('@aa#codex')['endpointId']}")
    (listed,) = shell.data("who")["items"]
    assert (listed["address"], listed["minimal"], listed["path"]) == ("@aa", "@aa", "/me/agent/aa")
    assert daemon.call("GET", "/v1/whoami", token=token).json["minimal"] == "@aa"


def test_a_broken_alias_says_so_and_what_it_offers_works(stage: Stage) -> None:
    shell = stage.shell
    for name in ("arc", "bow"):
        stage.agent(name)
        shell.say("alias", "set", f"my-{name}", f"@{name}")

    def states() -> dict[str, str]:
        return {one["name"]: one["state"] for one in shell.data("alias", "list")["items"]}

    # Its agent is retired: the list says so, and reviving the agent is all it takes.
    shell.say("agent", "retire", "@arc")
    assert states() == {"my-arc": "broken", "my-bow": "active"}
    refused = shell.type("ask", "@my-arc", "hello")
    assert "try: scout agent revive /me/agent/arc" in refused.stderr
    assert "alias set" not in refused.stderr
    shell.say("alias", "repair", "my-arc", "@bow")
    assert shell.data("alias", "show", "my-arc")["means"] == "@bow"
    shell.say("agent", "revive", "/me/agent/arc")

    # An agent takes its name: the alias is removed, and the name means the agent.
    stage.agent("my-bow")
    assert states()["my-bow"] == "broken"
    refused = shell.type("resolve", "@my-bow")
    assert "try: scout alias remove my-bow" in refused.stderr
    shell.say("alias", "remove", "my-bow")
    assert shell.data("resolve", "@my-bow")["path"] == "/me/agent/my-bow"


def test_some_names_are_taken_and_a_path_gives_one(stage: Stage) -> None:
    shell = stage.shell
    for word in ("direct", "system", "operator"):
        assert "reserved_name" in shell.type("agent", "register", word).stderr
        assert "reserved_name" in shell.type("alias", "set", word, "operator").stderr
    wish: dict[str, Any] = {"to": "/me/agent/scribe", "body": "hello", "create": {}}
    stage.post("/v1/messages", wish)
    assert shell.data("resolve", "@scribe")["path"] == "/me/agent/scribe"
