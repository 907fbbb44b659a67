"""What can be read and followed, in both generations; and the prompts."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import (
    EmptyResult,
    ResourceUpdatedNotification,
    SubscribeRequest,
    SubscribeRequestParams,
    UnsubscribeRequest,
    UnsubscribeRequestParams,
)

from scout.model.agent import ToolRole
from scout.policy.limits import Limits
from scout.protocol.access import RevokeToken
from scout.protocol.agents import ConfigureAgent
from scout.protocol.talk import Send
from tests.broker.rig import online_agent, wait_until
from tests.mcp.stage import MODES, Served, facts, open_server, scene, scenes


async def _read(client: Any, uri: str) -> Any:
    (content,) = (await client.read_resource(uri)).contents
    assert content.mime_type == "application/json"
    return json.loads(content.text)


async def _subscribe(client: Client, uri: str) -> None:
    """As hosts of the older generation do; the client itself only offers the newer way."""
    request = SubscribeRequest(params=SubscribeRequestParams(uri=uri))
    await client.session.send_request(request, EmptyResult)


@scenes
async def test_what_an_agent_can_read(stage: Served, mode: str) -> None:
    await online_agent(stage.rig, "hudson")
    async with stage.client("arc", mode=mode) as client:
        flight = (await facts(client, "ask", to="hudson", body="x"))["flightId"]
        work = (await facts(client, "work_create", title="Mend it"))["id"]
        listed = [str(one.uri) for one in (await client.list_resources()).resources]
        assert listed == [
            "scout://brief",
            "scout://inbox",
            f"scout://flights/{flight}",
            f"scout://work/{work}",
        ]
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == ["scout://flights/{id}", "scout://work/{id}"]
        assert (await _read(client, "scout://brief"))["me"]["minimal"] == "@arc"
        assert await _read(client, "scout://inbox") == {"items": []}
        assert (await _read(client, f"scout://flights/{flight}"))["state"] == "queued"
        assert (await _read(client, f"scout://work/{work}"))["title"] == "Mend it"


@scenes
async def test_what_is_not_there_or_not_ones_own_is_not_read(stage: Served, mode: str) -> None:
    async with stage.client("hudson", mode=mode) as hudson:
        work = (await facts(hudson, "work_create", title="mine"))["id"]
    async with stage.client("arc", mode=mode) as client:
        for uri in ("scout://nothing", "scout://flights/", "scout://flights/flt_x", "file:///etc/passwd"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)
        with pytest.raises(MCPError) as caught:
            await client.read_resource(f"scout://work/{work}")
        assert caught.value.data["code"] in {"forbidden", "not_found"}


@scene
async def test_a_session_is_told_of_what_it_subscribed_to(stage: Served) -> None:
    await online_agent(stage.rig, "hudson")
    told: list[str] = []

    async def heard(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            told.append(str(message.params.uri))

    async with stage.client("arc", message_handler=heard) as client:
        flight = (await facts(client, "ask", to="hudson", body="x"))["flightId"]
        await _subscribe(client, "scout://inbox")
        await _subscribe(client, f"scout://flights/{flight}")
        assert len(stage.rig.broker.hub) == 1
        await stage.rig.operator(Send(to="arc", body="hello"))
        await wait_until(lambda: "scout://inbox" in told)
        assert f"scout://flights/{flight}" not in told
        await facts(client, "flight_cancel", flightId=flight)
        await wait_until(lambda: f"scout://flights/{flight}" in told)
        assert set(told) == {"scout://inbox", f"scout://flights/{flight}"}
        request = UnsubscribeRequest(params=UnsubscribeRequestParams(uri="scout://inbox"))
        await client.session.send_request(request, EmptyResult)
        await _subscribe(client, "scout://brief")
        told.clear()
        await stage.rig.operator(Send(to="arc", body="again"))
        await wait_until(lambda: told)
        assert set(told) == {"scout://brief"}
    await wait_until(lambda: len(stage.rig.broker.hub) == 0)


@scene
async def test_without_sessions_one_request_listens(stage: Served) -> None:
    async with stage.client("arc", mode=MODES[1]) as client:
        async with client.listen(resource_subscriptions=["scout://inbox"]) as stream:
            assert len(stage.rig.broker.hub) == 1
            await stage.rig.operator(Send(to="arc", body="hello"))
            assert await anext(stream) == ResourceUpdated(uri="scout://inbox")
        await wait_until(lambda: len(stage.rig.broker.hub) == 0)


@scene
async def test_a_client_hears_that_a_list_is_another(stage: Served) -> None:
    await online_agent(stage.rig, "hudson")
    async with stage.client("arc", mode=MODES[1]) as client:
        async with client.listen(tools_list_changed=True, resources_list_changed=True) as stream:
            flight = (await facts(client, "ask", to="hudson", body="x"))["flightId"]
            assert await anext(stream) == ResourcesListChanged()
            await facts(client, "flight_cancel", flightId=flight)
            assert await anext(stream) == ResourcesListChanged()
            before = len((await client.list_tools()).tools)
            await stage.rig.operator(ConfigureAgent(address="arc", tool_role=ToolRole.HOST))
            assert await anext(stream) == ToolsListChanged()
        assert len((await client.list_tools()).tools) > before


@scene
async def test_nobody_hears_of_anothers_inbox(stage: Served) -> None:
    await stage.token("hudson")
    told: list[str] = []

    async def heard(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            told.append(str(message.params.uri))

    async with stage.client("arc", message_handler=heard) as client:
        await _subscribe(client, "scout://inbox")
        await stage.rig.operator(Send(to="hudson", body="a secret"))
        await stage.rig.operator(Send(to="arc", body="for arc"))
        await wait_until(lambda: told)
        assert told == ["scout://inbox"]


@scene
async def test_a_revoked_token_hears_nothing_more(stage: Served) -> None:
    async with stage.client("arc") as client:
        await _subscribe(client, "scout://inbox")
        token = (await facts(client, "whoami"))["tokenId"]
        assert len(stage.rig.broker.hub) == 1
        await stage.rig.operator(RevokeToken(token_id=token))
        await wait_until(lambda: len(stage.rig.broker.hub) == 0)


@scene
async def test_too_many_streams_of_one_token_are_refused(stage: Served) -> None:
    limit = stage.rig.broker.services.rules.limits.streams
    async with stage.client("arc", mode=MODES[1]) as client:
        watchers = [asyncio.ensure_future(_listening(client)) for _ in range(limit)]
        await wait_until(lambda: len(stage.rig.broker.hub) == limit)
        with pytest.raises(MCPError) as caught:
            async with client.listen(resource_subscriptions=["scout://inbox"]):
                pass
        assert caught.value.data["code"] == "rate_limited"
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)


async def _listening(client: Any) -> None:
    async with client.listen(resource_subscriptions=["scout://inbox"]) as stream:
        async for _event in stream:
            pass


@scenes
async def test_prompts(stage: Served, mode: str) -> None:
    async with stage.client("arc", mode=mode) as client:
        prompts = (await client.list_prompts()).prompts
        assert [one.name for one in prompts] == ["delegate", "review", "hand_over"]
        for one in prompts:
            given = {argument.name: f"<{argument.name}>" for argument in one.arguments or ()}
            (message,) = (await client.get_prompt(one.name, given)).messages
            assert message.content.type == "text"
            assert all(value in message.content.text for value in given.values())
        for name, given in (("nothing", {}), ("review", {"to": "arc"})):
            with pytest.raises(MCPError):
                await client.get_prompt(name, given)


def test_who_falls_behind_goes_on_from_there(tmp_path: Path) -> None:
    """One event of room: a burst of messages is more than a follower can keep."""

    async def run() -> None:
        async with open_server(tmp_path, limits=Limits(stream_buffer=1)) as stage:
            told: list[str] = []

            async def heard(message: Any) -> None:
                if isinstance(message, ResourceUpdatedNotification):
                    told.append(str(message.params.uri))

            async with stage.client("arc", message_handler=heard) as client:
                await _subscribe(client, "scout://inbox")
                await asyncio.gather(*(stage.rig.operator(Send(to="arc", body=f"{n}")) for n in range(30)))
                await wait_until(lambda: len(told) == 30)
                assert stage.rig.broker.hub.dropped

    asyncio.run(run())
