"""Every tool once, over both generations: which role has it, what it answers, how it declines."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from scout.base.refusal import Refused, Remedy
from scout.mcp.tools import lines
from scout.mcp.tools.result import build_refusal, drop_empty
from scout.mcp.tools.table import TOOLS, get_role_tools
from scout.model.agent import ToolRole
from scout.model.problems.request import NotFound
from scout.policy.usage import estimate_tokens
from scout.protocol.access import CreateToken, SetAlias
from scout.protocol.agents import ConfigureAgent
from scout.protocol.channels import CreateChannel
from scout.protocol.inbox import ListInbox
from scout.protocol.request import Page
from scout.protocol.talk import Send
from scout.protocol.tools import ROLE_TOOLS, list_roles
from tests.broker.rig import online_agent
from tests.mcp.stage import MODES, Served, facts, refusal, scene, scenes, text

WORKER = set(ROLE_TOOLS[ToolRole.WORKER])


# -- the table -----------------------------------------------------------------------------------------


def test_the_table_and_the_roles_name_the_same_tools() -> None:
    assert set(TOOLS) == set(ROLE_TOOLS[ToolRole.HOST])
    assert list_roles("broker_feed") == ("dev", "tl", "host")
    assert list_roles("nothing") == ()


def test_roles_grow_from_worker_to_host() -> None:
    worker, dev, tl, host = (
        set(ROLE_TOOLS[role]) for role in (ToolRole.WORKER, ToolRole.DEV, ToolRole.TL, ToolRole.HOST)
    )
    assert worker < dev <= tl < host
    assert dev - worker == {"agents_search", "broker_feed", "usage_report"}
    assert host - tl == {
        "sessions_attach",
        "sessions_inspect",
        "sessions_list",
        "sessions_start",
        "sessions_stop",
        "card_create",
        "agents_register",
        "aliases_list",
        "aliases_resolve",
    }


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_a_schema_is_plain(tool: Any) -> None:
    schema = tool.schema
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert set(schema.get("required", ())) <= set(schema["properties"])
    assert all("type" in one for one in schema["properties"].values()), schema
    assert "$ref" not in json.dumps(schema)


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_an_argument_that_is_unknown_is_refused_by_its_name(tool: Any) -> None:
    with pytest.raises(Refused) as caught:
        tool.build_request({"bodi": "x"})
    problem = caught.value.diagnostic
    assert problem.code == "bad_request"
    assert "bodi" in problem.message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"move": "fly", "workItemId": "w"}, "expected one of start, progress"),
        ({"workItemId": "w", "to": "x"}, "has no argument 'to' here"),
        ({"move": "hand_over", "workItemId": "w", "percent": 3}, "has no argument 'percent' here"),
        ({"move": "hand_over", "workItemId": "w"}, "the field `to` is missing"),
        ({"workItemId": "a\0b"}, "NUL"),
        ({"workItemId": "w", "revision": 2**70}, "64 bits"),
        ({"workItemId": "w", "move": "progress", "percent": float("nan")}, "finite"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused) as caught:
        TOOLS["work_update"].build_request(arguments)
    assert message in caught.value.diagnostic.message


def test_numbers_and_truths_may_come_as_text_and_null_is_left_out() -> None:
    request: Any = TOOLS["broker_feed"].build_request({"since": "12", "limit": None})
    assert (request.after, request.limit, request.address) == (12, None, "self")
    claim: Any = TOOLS["messages_inbox"].build_request({"claim": True, "limit": 3})
    assert (claim.operation, claim.limit) == ("inbox.claim", 3)
    with pytest.raises(Refused):
        TOOLS["messages_inbox"].build_request({"claim": "maybe"})


@pytest.mark.rows("R0-96")
@pytest.mark.parametrize(
    ("remedy", "step"),
    [
        (
            Remedy(operation="flight.wait", parameters={"flightId": "flt_1"}, why="it runs"),
            {"tool": "invocations_wait", "arguments": {"flightId": "flt_1"}, "why": "it runs"},
        ),
        (
            Remedy(operation="ask", parameters={"to": "@arc", "body": "x", "sessionPolicy": "new"}),
            {"tool": "ask", "arguments": {"to": "@arc", "body": "x", "session": "new"}},
        ),
        (
            Remedy(operation="work.submit", parameters={"workItemId": "wrk_1"}),
            {"tool": "work_update", "arguments": {"move": "submit", "workItemId": "wrk_1"}},
        ),
        (
            Remedy(operation="inbox.claim", parameters={}),
            {"tool": "messages_inbox", "arguments": {"claim": True}},
        ),
        (
            Remedy(operation="ask", parameters={"to": "x", "body": "y", "wait": 3}),
            {"command": "scout ask --wait 3 x y"},
        ),
        (Remedy(operation="alias.show", parameters={"name": "a"}), {"command": "scout alias show a"}),
        (Remedy(operation="of nobody", parameters={}), {"operation": "of nobody"}),
    ],
)
def test_a_remedy_is_the_next_call_or_a_command(remedy: Remedy, step: dict[str, Any]) -> None:
    result = build_refusal(NotFound(noun="thing", id="x", remedies=(remedy,)), get_role_tools(ToolRole.DEV))
    assert result.is_error
    structured: Any = result.structured_content
    assert structured["remedies"] == [step]
    assert "; next: " in text(result)


def test_what_is_empty_is_not_told() -> None:
    assert drop_empty(
        {"a": None, "b": "", "c": (), "d": {}, "e": False, "f": 0, "g": [{"h": None, "i": 1}]}
    ) == {
        "f": 0,
        "g": [{"i": 1}],
    }
    assert drop_empty({"items": [{"a": 1, "b": 2}]}, ("a",)) == {"items": [{"a": 1}]}


def test_that_there_is_nothing_is_told() -> None:
    """Claude Code and Codex show their model the facts of a result and not its line."""
    assert drop_empty(Page[Any](items=())) == {"items": []}
    assert drop_empty(Page[Any](items=()), ("a",)) == {"items": []}


def test_a_line_spells_the_next_call_as_json() -> None:
    receipt = {"flightId": "f1", "state": "queued", "next": {"tool": "wait", "arguments": {"flightId": "f1"}}}
    assert lines.format_ask(receipt) == 'f1 is queued; next: wait {"flightId":"f1"}'


# -- over the wire -------------------------------------------------------------------------------------


@pytest.mark.rows("R4.3-2")
@scene
async def test_a_role_has_its_tools_and_no_others(stage: Served) -> None:
    await stage.token("arc")
    for role in ToolRole:
        await stage.rig.operator(ConfigureAgent(address="arc", tool_role=role))
        for mode in MODES:
            async with stage.client("arc", mode=mode) as client:
                listed = [tool.name for tool in (await client.list_tools()).tools]
                assert listed == list(ROLE_TOOLS[role])
                if role is not ToolRole.HOST:
                    told = await refusal(client, "agents_register", definitionId="new")
                    assert (told["code"], told["needs"]) == ("forbidden", ["the role host"])
                told = await refusal(client, "messages_sent")
                assert told["candidates"][0]["address"] == "messages_send"


@pytest.mark.rows("R3.5-5", "R4.3-3")
@scene
async def test_a_refusal_is_a_tool_error_with_the_next_call(stage: Served) -> None:
    await stage.token("hudson")
    for mode in MODES:
        async with stage.client("arc", mode=mode) as client:
            told = await refusal(client, "ask", to="hudsen", body="x")
            assert told["code"] == "unknown_target"
            assert told["candidates"][0]["address"] == "@hudson"
            (step, *_) = told["remedies"]
            assert (step["tool"], step["arguments"]) == ("ask", {"to": "@hudson", "body": "x"})
            result = await client.call_tool("ask", {"to": "hudsen", "body": "x"})
            assert text(result).startswith("unknown_target: ")
            told = await refusal(client, "ask", to="hudson", bodi="x")
            assert (told["code"], told["field"]) == ("bad_request", "bodi")
            assert told["candidates"] == [{"address": "body"}]


@scene
async def test_the_main_tools_are_always_loaded(stage: Served) -> None:
    async with stage.client("arc") as client:
        listed = (await client.list_tools()).tools
        main = [tool.name for tool in listed if tool.meta and tool.meta.get("anthropic/alwaysLoad")]
        assert main == [name for name in ROLE_TOOLS[ToolRole.DEV] if TOOLS[name].main]
        assert 5 <= len(main) <= 9


@scenes
async def test_talk(stage: Served, mode: str) -> None:
    await online_agent(stage.rig, "hudson")
    async with stage.client("arc", mode=mode) as arc, stage.client("hudson", mode=mode) as hudson:
        found = await facts(arc, "agents_resolve", address="hudson")
        assert found["minimal"] == "@hudson"
        sent = await facts(arc, "messages_send", to="hudson", body="hello", kind="status")
        waiting = (await facts(hudson, "messages_inbox"))["items"]
        assert [(one["from"], one["body"], one["kind"]) for one in waiting] == [("@arc", "hello", "status")]
        assert await facts(hudson, "messages_inbox", claim=True, limit=5) == {"items": waiting}
        assert await facts(hudson, "messages_inbox", claim=True) == {"items": []}
        assert (await facts(hudson, "messages_reply", body="hi", inReplyTo=sent["messageId"]))["messageId"]
        assert [one["body"] for one in (await facts(arc, "messages_inbox"))["items"]] == ["hi"]
        feed = await facts(arc, "broker_feed", limit=3)
        more = await facts(arc, "broker_feed", since=feed["next"])
        assert more["items"][0]["seq"] > feed["items"][-1]["seq"]
        assert (await facts(arc, "broker_feed", agent="self"))["items"][0] == feed["items"][0]
        assert "hudson" in text(await arc.call_tool("agents_search", {"query": "hud"}))


@scene
async def test_channels(stage: Served) -> None:
    await stage.token("arc")
    await stage.rig.operator(CreateChannel(name="room", members=("arc",)))
    await stage.rig.operator(CreateChannel(name="elsewhere"))  # what it could not read is not listed
    await stage.rig.operator(Send(channel="room", body="one"))
    async with stage.client("arc") as client:
        (listed,) = (await facts(client, "channels_list"))["items"]
        assert (listed["channel"], listed["unread"], len(listed["members"])) == ("room", 1, 2)
        (waiting,) = (await facts(client, "messages_inbox"))["items"]
        assert (waiting["channel"], waiting["body"], "deliveryId" in waiting) == ("room", "one", False)
        assert waiting["seq"] > 0
        assert (await facts(client, "messages_inbox", claim=True))["items"] == [waiting]
        assert (await facts(client, "messages_inbox"))["items"] == []
        assert (await facts(client, "channels_list"))["items"][0]["unread"] == 0
        await facts(client, "messages_send", channel="room", body="two")
        said = (await facts(client, "messages_channel", channel="room", limit=5))["items"]
        assert [one["body"] for one in said] == ["one", "two"]
        assert {"id", "senderAddress", "createdAt"} <= said[0].keys()


@scene
async def test_questions(stage: Served) -> None:
    await online_agent(stage.rig, "hudson")
    async with stage.client("arc") as arc, stage.client("hudson") as hudson:
        asked = await facts(arc, "question_create", to="hudson", body="Tabs?", options=["yes", "no"])
        assert (asked["state"], asked["responderAddress"].startswith("@hudson")) == ("open", True)
        given = await facts(hudson, "question_answer", questionId=asked["id"], answer="no")
        assert (given["state"], given["answer"]) == ("answered", "no")
        assert (await facts(arc, "question_close", questionId=asked["id"], reason="fine"))[
            "state"
        ] == "closed"
        told = await refusal(hudson, "question_answer", questionId=asked["id"], answer="again")
        assert told["code"] == "wrong_state"


@scene
async def test_work(stage: Served) -> None:
    await online_agent(stage.rig, "hudson")
    async with stage.client("arc") as arc, stage.client("hudson") as hudson:
        made = await facts(arc, "work_create", title="Mend it", ownerId="hudson", priority="high")
        ident = made["id"]
        assert (made["state"], made["priority"]) == ("open", "high")
        assert [one["id"] for one in (await facts(hudson, "work_list", owed=True))["items"]] == [ident]
        assert (await facts(hudson, "work_update", workItemId=ident, move="start"))["state"] == "working"
        further = await facts(
            hudson, "work_update", workItemId=ident, move="progress", percent=40, summary="half"
        )
        assert further["progress"]["percent"] == 40
        assert (await facts(arc, "work_update", workItemId=ident, title="Mend all"))["title"] == "Mend all"
        done = await facts(hudson, "work_update", workItemId=ident, move="submit", summary="done")
        assert done["state"] == "review"
        assert (await facts(arc, "work_update", workItemId=ident, move="accept"))["state"] == "done"
        assert len((await facts(arc, "work_get", workItemId=ident))["steps"]) >= 5


@scene
async def test_the_person_is_consulted_and_told(stage: Served) -> None:
    async with stage.client("arc") as client:
        asked = await facts(client, "operator_consult", question="Tabs?", defaultAction="spaces")
        assert (asked["state"], asked["defaultAction"]) == ("open", "spaces")
        assert (await facts(client, "operator_notify", message="done"))["id"]
        told = await refusal(client, "operator_consult", question="Tabs?")
        assert "defaultAction" in told["message"]


@scene
async def test_who_has_no_parent_is_told_so(stage: Served) -> None:
    async with stage.client("arc") as client:
        told = await refusal(client, "notify_parent", body="done", status="final")
        assert told["code"] == "unknown_target"


@scene
async def test_a_child_tells_its_parent_without_an_address(stage: Served) -> None:
    arc = await stage.rig.agent("arc")
    await arc.call(Send(to="/ada/agent/arc/sub/0", body="begin", create={"name": "helper"}))
    made = await stage.rig.operator(CreateToken(agent="/ada/agent/arc/sub/0"))
    stage.rig.tokens["helper"] = made.secret
    async with stage.client("helper") as client:
        await facts(client, "notify_parent", body="half way")
        await facts(client, "notify_parent", body="done", status="final")
    said = (await arc.call(ListInbox())).items
    assert [(one.message.body, one.message.kind) for one in said if one.message] == [
        ("half way", "status"),
        ("done", "final"),
    ]


@scene
async def test_usage_is_reported(stage: Served) -> None:
    async with stage.client("arc") as client:
        told = await facts(client, "usage_report", promptTokens=10, completionTokens=5, model="m")
        assert (told["totalTokens"], told["usageSource"], told["estimated"]) == (15, "manual_estimate", True)


@scene
async def test_a_host_registers_and_looks_up(stage: Served) -> None:
    async with stage.client("operator") as client:
        made = await facts(client, "agents_register", definitionId="new", toolRole="worker")
        assert made["address"] == "@new"
        assert made["token"].startswith("sct_")
        assert (await facts(client, "card_create", agent="new"))["state"] == "active"
        assert await facts(client, "sessions_list") == {"items": []}
        assert (await refusal(client, "sessions_inspect", sessionId="ses_x"))["code"] == "not_found"
        session = await facts(client, "sessions_start", agent="new", harness="echo")
        assert (session["state"], session["harness"]) == ("live", "echo")
        assert (await facts(client, "sessions_inspect", sessionId=session["id"]))["address"].startswith(
            "@new"
        )
        assert (await facts(client, "sessions_stop", sessionId=session["id"]))["state"] == "ended"
        again = await facts(client, "sessions_attach", session=session["id"])
        assert (again["id"], again["state"]) == (session["id"], "live")
        told = await refusal(client, "sessions_attach", session="n-1", harness="echo", agent="new")
        assert told["code"] == "session_not_attachable"
        await stage.rig.operator(SetAlias(name="short", target="new"))
        assert [one["name"] for one in (await facts(client, "aliases_list"))["items"]] == ["short"]
        assert (await facts(client, "aliases_resolve", name="short"))["means"].startswith("@new")


# -- what it costs -------------------------------------------------------------------------------------


@scene
async def test_the_cost_of_the_list_and_of_one_round(stage: Served) -> None:
    """Printed with -s; the numbers of docs/mcp.md are these."""
    await online_agent(stage.rig, "hudson")
    async with stage.client("arc") as arc, stage.client("hudson") as hudson:
        listed = await arc.list_tools()
        whole = listed.model_dump_json(by_alias=True, exclude_none=True)
        assert len(whole.encode()) <= 16_000
        spent: list[str] = []

        async def said(client: Any, tool: str, **arguments: Any) -> Any:
            result = await client.call_tool(tool, arguments)
            spent.append(json.dumps({"name": tool, "arguments": arguments}))
            spent.append(result.model_dump_json(by_alias=True, exclude_none=True))
            return result.structured_content

        receipt = await said(arc, "ask", to="hudson", body="Please review the last commit.")
        waiting = asyncio.ensure_future(said(arc, "invocations_wait", flightId=receipt["flightId"]))
        await said(hudson, "messages_inbox", claim=True)
        await said(hudson, "messages_reply", body="It is fine.", inReplyTo=receipt["flightId"])
        assert (await waiting)["output"] == "It is fine."
    tools, round_trip = estimate_tokens(whole), estimate_tokens("".join(spent))
    print(f"tools/list of dev: {len(whole.encode())} bytes, {tools.tokens} tokens ({tools.usage_source})")
    print(f"one ask and its reply: {round_trip.tokens} tokens ({round_trip.usage_source})")
    assert tools.tokens <= 4_000
    assert round_trip.tokens <= 1_000


# -- the page ------------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs/mcp.md").read_text()


def test_the_page_names_the_tools_of_trees() -> None:
    assert {"agent_spawn", "spawn_subtree"} <= {*re.findall(r"`(\w+)`", PAGE)} & set(TOOLS)
