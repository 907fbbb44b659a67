"""Who may speak at which URL, and whose a session is: the credential says so, and nothing else."""

import asyncio
import json
import re
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from scout.mcp.caller import Backends
from scout.model.access.token import TokenKind
from scout.model.agent import ToolRole
from scout.protocol.access import CreateToken, RevokeToken, SetAlias
from scout.protocol.agents import ConfigureAgent, WhoAmI
from tests.broker.rig import SECRET, online_agent, wait_until
from tests.mcp.stage import MODES, Served, facts, scene

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


async def _knock(stage: Served, path: str, token: str | None, **headers: str) -> Any:
    reply = await stage.request("POST", path, token, json=_INITIALIZE, headers=headers)
    return reply.status_code, reply


@scene
async def test_both_generations_say_who_the_token_stands_for(stage: Served) -> None:
    for mode, spoken in (("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28"), ("auto", "2026-07-28")):
        async with stage.client("arc", mode=mode) as client:
            assert client.protocol_version == spoken
            me = await facts(client, "whoami")
            assert (me["minimal"], me["role"], me["kind"]) == ("@arc", "dev", "agent")
            assert {"canonical", "path", "node", "url", "version"} <= me.keys()


@scene
async def test_an_older_client_negotiates(stage: Served) -> None:
    status, reply = await _knock(stage, "/mcp", await stage.token("arc"))
    assert status == 200
    assert '"protocolVersion":"2025-06-18"' in reply.text


@pytest.mark.rows("R1.6-21", "R1.6-22", "R1.6-24", "R4.3-1")
@scene
async def test_an_agent_has_a_url_of_its_own_under_every_form_of_its_name(stage: Served) -> None:
    await stage.token("arc")
    me = await (await stage.rig.agent("arc")).call(WhoAmI())
    await stage.rig.operator(SetAlias(name="short", target="arc"))
    for name in ("arc", "@arc", str(me.path), str(me.agent_id), "self", "alias:short", str(me.canonical)):
        for mode in MODES:
            async with stage.client("arc", f"/agents/dev/{quote(name, safe='')}/mcp", mode=mode) as client:
                assert (await facts(client, "whoami"))["agentId"] == me.agent_id


@pytest.mark.rows("R1.6-23")
@scene
async def test_root_and_branches_resolve_in_the_tokens_project(stage: Served) -> None:
    for project in ("one", "two"):
        folder = stage.rig.home / project
        (folder / ".git").mkdir(parents=True)
        (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        made = await stage.rig.register(project, project_root=str(folder))
        for name in ("root", "main"):
            async with stage.client(project, f"/agents/tl/{name}/mcp") as client:
                me = await facts(client, "whoami")
                assert (me["agentId"], me["birthBranch"]) == (made.agent.id, "main")


@pytest.mark.rows("R1.6-27")
@scene
async def test_a_token_does_not_open_anybody_elses_url(stage: Served) -> None:
    arc, hudson = await stage.token("arc"), await stage.token("hudson")
    for token, name in ((arc, "hudson"), (hudson, "arc"), (arc, "operator"), (SECRET, "arc")):
        status, reply = await _knock(stage, f"/agents/dev/{name}/mcp", token)
        assert status == 403, name
        assert reply.headers["content-type"] == "application/problem+json"
        assert reply.json()["code"] == "forbidden"
    status, reply = await _knock(stage, "/agents/dev/nobody/mcp", arc)
    assert (status, reply.json()["code"]) == (404, "unknown_target")


@pytest.mark.rows("R1.6-25")
@scene
async def test_the_role_must_be_the_records_and_the_refusal_names_the_right_url(stage: Served) -> None:
    token = await stage.token("arc")
    for role in ("tl", "host", "DEV", "x"):
        status, reply = await _knock(stage, f"/agents/{role}/%40arc/mcp", token)
        assert status == 403
        assert reply.json()["needs"] == ["http://127.0.0.1:0/agents/dev/@arc/mcp"]
    await stage.rig.operator(ConfigureAgent(address="arc", tool_role=ToolRole.WORKER))
    assert (await _knock(stage, "/agents/dev/arc/mcp", token))[0] == 403
    assert (await _knock(stage, "/agents/worker/arc/mcp", token))[0] == 200


@scene
async def test_without_a_good_token_mcp_does_not_begin(stage: Served) -> None:
    for token in (None, "sct_forged"):
        status, reply = await _knock(stage, "/mcp", token)
        assert (status, reply.json()["code"]) == (401, "unauthenticated")
        assert reply.headers["www-authenticate"].startswith("Bearer")
    made = await stage.rig.operator(CreateToken(kind=TokenKind.GUEST))
    status, reply = await _knock(stage, "/mcp", made.secret)
    assert (status, reply.json()["code"]) == (403, "forbidden")


@scene
async def test_pages_and_names_that_are_not_ours_are_kept_out(stage: Served) -> None:
    token = await stage.token("arc")
    for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}):
        status, reply = await _knock(stage, "/mcp", token, **headers)
        assert (status, reply.json()["code"]) == (403, "forbidden")


@scene
async def test_the_operators_token_is_the_operator_and_nobody_elses_is(stage: Served) -> None:
    async with stage.client("operator") as client:
        me = await facts(client, "whoami")
        assert (me["kind"], me["role"]) == ("operator", "host")
    arc = await stage.token("arc")
    for name in ("operator", "hudson"):
        await stage.token("hudson")
        status, reply = await _knock(stage, "/mcp", arc, **{"Scout-As": name})
        assert (status, reply.json()["code"]) == (403, "forbidden")


@scene
async def test_a_session_belongs_to_the_credential_that_opened_it(stage: Served) -> None:
    arc, hudson = await stage.token("arc"), await stage.token("hudson")
    _, reply = await _knock(stage, "/mcp", arc)
    session = {"Mcp-Session-Id": reply.headers["mcp-session-id"], "Mcp-Protocol-Version": "2025-06-18"}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    for token, status in ((arc, 202), (hudson, 404), (SECRET, 404)):
        assert (await stage.request("POST", "/mcp", token, json=ready, headers=session)).status_code == status
    for token, status in ((hudson, 404), (SECRET, 404), (arc, 200)):
        reply = await stage.request("POST", "/mcp", token, json=listing, headers=session)
        assert reply.status_code == status
    for token, status in ((hudson, 404), (arc, 200)):
        assert (await stage.request("DELETE", "/mcp", token, headers=session)).status_code == status


@pytest.mark.rows("R7-16")
@scene
async def test_a_revoked_token_ends_its_sessions_at_once(stage: Served) -> None:
    async with stage.client("arc") as client:
        token_id = (await facts(client, "whoami"))["tokenId"]
        await stage.rig.operator(RevokeToken(token_id=token_id))
        status, reply = await _knock(stage, "/mcp", stage.rig.tokens["arc"])
        assert (status, reply.json()["code"]) == (401, "unauthenticated")


@pytest.mark.rows("R1.6-28", "R1.6-29")
@scene
async def test_a_backend_is_built_once(stage: Served) -> None:
    kept = Backends()
    arc = await (await stage.rig.agent("arc")).call(WhoAmI())
    backend = kept.of(arc)
    assert kept.of(arc) is backend
    assert backend._asdict() == {
        "agent_name": "@arc",
        "birth_branch": None,
        "agent_id": arc.agent_id,
        "user_id": "ada",
        "role": "dev",
        "project_root": None,
    }
    hudson = await (await stage.rig.agent("hudson")).call(WhoAmI())
    assert kept.of(hudson) is not backend
    assert len(kept) == 2


@scene
async def test_what_is_no_path_of_ours_is_not_mcps(stage: Served) -> None:
    token = await stage.token("arc")
    for path in ("/mcp/", "/agents/dev/mcp", "/agents/dev/a/b/mcp", "/agents//arc/mcp", "/x/mcp"):
        reply = await stage.request("POST", path, token, json=_INITIALIZE)
        assert (reply.status_code, reply.json()["code"]) == (404, "not_found"), path
    reply = await stage.request("POST", "/agents/dev/%zz/mcp", token, json=_INITIALIZE)
    assert (reply.status_code, reply.json()["code"]) == (400, "bad_request")


@pytest.mark.slow
@scene
async def test_sixty_four_clients_at_once(stage: Served) -> None:
    tokens = [await stage.token(f"agent-{number}") for number in range(8)]
    assert len(set(tokens)) == 8

    async def one(number: int) -> None:
        name = f"agent-{number % 8}"
        async with stage.client(name, mode=MODES[number % 2]) as client:
            assert (await facts(client, "whoami"))["minimal"] == f"@{name}"
            receipt = await facts(client, "messages_send", to=f"agent-{(number + 1) % 8}", body=f"{number}")
            assert receipt["messageId"]

    await asyncio.gather(*(one(number) for number in range(64)))


@scene
async def test_a_body_that_is_too_large_is_refused(stage: Served) -> None:
    token = await stage.token("arc")
    reply = await stage.request("POST", "/mcp", token, content=b" " * (1024 * 1024 + 1))
    assert (reply.status_code, reply.json()["code"]) == (413, "too_large")


@scene
async def test_what_is_no_mcp_is_answered_as_the_protocol_says(stage: Served) -> None:
    token = await stage.token("arc")
    for body in (b"", b"{", b"[]", b"nothing"):
        reply = await stage.request(
            "POST", "/mcp", token, content=body, headers={"Content-Type": "application/json"}
        )
        assert reply.status_code == 400, body
        assert reply.json()["jsonrpc"] == "2.0"
    assert (await stage.request("PUT", "/mcp", token)).status_code == 405


class _Raw:
    """A session of the older generation, spoken by hand."""

    def __init__(self, stage: Served, token: str, session: str) -> None:
        self._stage = stage
        self.token = token
        self.headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
            "Mcp-Session-Id": session,
            "Mcp-Protocol-Version": "2025-06-18",
        }

    @classmethod
    async def opened(cls, stage: Served, name: str) -> "_Raw":
        token = await stage.token(name)
        _, reply = await _knock(stage, "/mcp", token)
        raw = cls(stage, token, reply.headers["mcp-session-id"])
        await raw.said({"method": "notifications/initialized"})
        return raw

    async def said(self, message: dict[str, Any]) -> Any:
        body = json.dumps({"jsonrpc": "2.0", **message})
        headers = {**self.headers, "Content-Type": "application/json"}
        return await self._stage.request("POST", "/mcp", self.token, content=body, headers=headers)

    async def called(self, tool: str, **arguments: Any) -> Any:
        params = {"name": tool, "arguments": arguments}
        return await self.said({"id": 7, "method": "tools/call", "params": params})


async def _modern(stage: Served, token: str, tool: str, arguments: dict[str, Any]) -> Any:
    """One call of the newer generation, spoken by hand."""
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": MODES[1],
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Content-Type": "application/json",
        "Mcp-Protocol-Version": MODES[1],
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    return await stage.request("POST", "/mcp", token, content=json.dumps(body), headers=headers)


@scene
async def test_half_a_character_is_refused_and_harms_nobody(stage: Served) -> None:
    token = await stage.token("arc")
    for arguments in ({"to": "\ud800", "body": "x"}, {"to": "x", "body": "\udfff"}, {"\ud800": "x"}):
        reply = await _modern(stage, token, "ask", arguments)
        told = reply.json()["result"]
        assert told["isError"]
        assert told["structuredContent"]["code"] == "bad_request"
    reply = await _modern(stage, token, "whoami", {})
    assert reply.json()["result"]["structuredContent"]["minimal"] == "@arc"
    raw = await _Raw.opened(stage, "arc")
    assert (await raw.called("ask", to="\ud800", body="x")).status_code == 400
    assert "You are @arc" in (await raw.called("whoami")).text


@scene
async def test_who_hangs_up_in_the_middle_of_a_session_waits_no_longer(stage: Served) -> None:
    await online_agent(stage.rig, "hudson")
    raw = await _Raw.opened(stage, "arc")
    flight = re.search(r"flt_\w+", (await raw.called("ask", to="hudson", body="x")).text)
    assert flight is not None
    wait = {"name": "invocations_wait", "arguments": {"flightId": flight[0]}}
    body = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": wait}
    key = f"end of {flight[0]}"
    async with (
        httpx2.AsyncClient() as http,
        http.stream("POST", f"{stage.url}/mcp", json=body, headers=raw.headers) as reply,
    ):
        assert reply.status_code == 200
        await wait_until(lambda: stage.rig.broker.waiters.is_awaited(key))
    await wait_until(lambda: not stage.rig.broker.waiters.is_awaited(key))
    assert "queued" in (await raw.called("invocations_get", flightId=flight[0])).text
