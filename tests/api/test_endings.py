"""A credential that ends, ends all that it holds; and requests that nobody finishes."""

import asyncio
import contextlib
import json
from typing import Any

import httpx2
import pytest

from scout.api import http
from scout.broker.upkeep import housekeeping
from scout.model.access.token import TokenKind
from scout.model.delivery import DeliveryState
from scout.protocol.access import CreateToken, RevokeToken
from scout.protocol.agents import WhoAmI
from scout.protocol.asks import MakeAsk
from scout.protocol.inbox import ListInbox
from scout.protocol.talk import Send
from tests.broker.rig import online_agent, wait_until
from tests.mcp.stage import Served, scene

_INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "old", "version": "1"},
    },
}
_WAITS = 30


async def end(stage: Served, token: str, how: str) -> None:
    """Revoke a token, or let its time pass."""
    if how == "revoked":
        me = await (await stage.rig.scout(token)).call(WhoAmI())
        await stage.rig.operator(RevokeToken(token_id=me.token_id))
    else:
        stage.rig.clock.ahead += 3600
        await housekeeping.tidy(stage.rig.broker)


async def create_token(stage: Served, name: str) -> str:
    minted = await stage.rig.operator(CreateToken(kind=TokenKind.AGENT, agent=f"@{name}", expires_in=600))
    return minted.secret


@pytest.mark.rows("R7-16")
@pytest.mark.parametrize("how", ["revoked", "expired"])
@pytest.mark.parametrize("what", ["inbox", "flight", "need"])
def test_an_open_wait_ends_and_takes_nothing_that_came_later(how: str, what: str, tmp_path: Any) -> None:
    async def play(stage: Served) -> None:
        await online_agent(stage.rig, "waits")
        await online_agent(stage.rig, "other")
        token = await create_token(stage, "waits")
        seat = await stage.rig.scout(token)
        asked = await seat.call(MakeAsk(to="@other", body="go"))
        calls = {
            "inbox": ("POST", "/v1/inbox/claim", {"wait": _WAITS}),
            "flight": ("GET", f"/v1/flights/{asked.flight_id}?wait={_WAITS}", None),
            "need": ("POST", "/v1/attention/need", {"question": "may I?", "wait": _WAITS}),
        }
        method, path, body = calls[what]
        waiting = asyncio.ensure_future(stage.request(method, path, token, json=body))
        await wait_until(lambda: any(key.startswith("token:") for key in stage.rig.broker.waiters._waiting))
        await end(stage, token, how)
        reply = await asyncio.wait_for(waiting, 20)
        assert (reply.status_code, reply.json()["code"]) == (401, "unauthenticated")
        await stage.rig.operator(Send(to="@waits", body="for whoever is there"))
        fresh = await stage.rig.scout(await create_token(stage, "waits"))
        (item,) = (await fresh.call(ListInbox())).items
        assert item.delivery is not None
        assert item.delivery.state is DeliveryState.PENDING

    scene(play)(tmp_path)


@pytest.mark.rows("R7-16")
@scene
async def test_an_mcp_session_ends_with_its_stream_and_its_running_call(stage: Served) -> None:
    seat = await online_agent(stage.rig, "waits")
    await online_agent(stage.rig, "other")
    asked = await seat.call(MakeAsk(to="@other", body="go"))
    me, waiting = await seat.call(WhoAmI()), stage.rig.broker.waiters._waiting
    ended = False
    with contextlib.suppress(Exception):  # whatever a client says of a connection that ends under it
        async with stage.client("waits") as client:
            arguments = {"flightId": asked.flight_id, "timeoutSeconds": _WAITS}
            running = asyncio.ensure_future(client.call_tool("invocations_wait", arguments))
            await wait_until(lambda: f"end of {asked.flight_id}" in waiting)
            await end(stage, stage.rig.tokens["waits"], "revoked")
            await wait_until(
                lambda: me.token_id not in waiting and f"end of {asked.flight_id}" not in waiting
            )
            ended = True
            running.cancel()
    assert ended
    again = await stage.request("POST", "/mcp", stage.rig.tokens["waits"], json=_INITIALIZE)
    assert again.status_code == 401


@pytest.mark.rows("R7-9")
@pytest.mark.parametrize("path", ["/v1/messages", "/mcp"])
def test_a_key_given_twice_is_refused(path: str, tmp_path: Any) -> None:
    async def play(stage: Served) -> None:
        await online_agent(stage.rig, "one")
        token = stage.rig.tokens["one"]
        text = '{"to": "@one", "body": "first", "body": "second"}'
        if path == "/mcp":
            text = json.dumps(_INITIALIZE)[:-1] + ', "id": 2}'
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        reply = await stage.request("POST", path, token, content=text, headers=headers)
        assert reply.status_code == 400, reply.text
        assert "given twice" in reply.json()["message"]
        inside = '{"to": "@one", "body": "x", "create": {"a": 1, "a": 2}}'
        reply = await stage.request("POST", "/v1/messages", token, content=inside, headers=headers)
        assert "'a' is given twice" in reply.json()["message"]

    scene(play)(tmp_path)


def test_half_a_request_is_not_waited_for_without_end(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_HEAD_SECONDS", 0.2)
    monkeypatch.setattr(http, "_BODY_SECONDS", 0.2)

    async def play(stage: Served) -> None:
        url = httpx2.URL(stage.url)
        half_head = b"GET /health HTTP/1.1\r\nHost: local"
        half_body = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
        for sent in (b"", half_head, half_body):
            reader, writer = await asyncio.open_connection(url.host, url.port)
            writer.write(sent)
            await asyncio.wait_for(reader.read(), 10)
            writer.close()
        assert (await stage.request("GET", "/health", None)).status_code == 200

    scene(play)(tmp_path)
