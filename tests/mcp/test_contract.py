"""Every call that the contract teaches is a call that the tools take, for each role."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from scout.model.agent import ToolRole
from scout.policy.prompt import build_template
from scout.protocol.agents import ConfigureAgent
from scout.protocol.asks import MakeAsk, StartFlight
from scout.protocol.attention import AnswerAttention, ListAttention
from scout.protocol.questions import CreateQuestion
from scout.protocol.work import CreateWork, StartWork
from tests.broker.rig import online_agent, wait_until
from tests.mcp.stage import Served, facts, open_server

_CALL = re.compile(r"`(\w+) \{(.*?)\}`")
CALLS = sorted(set(_CALL.findall(build_template("claude"))))


def fill_arguments(taught: str, values: dict[str, Any]) -> dict[str, Any]:
    """What stands between the braces, with a value for each name that has none."""
    pairs = [one.partition(":") for one in taught.split(", ") if one]
    return {name: json.loads(value) if value else values[name] for name, _, value in pairs}


def test_the_contract_teaches_calls() -> None:
    assert {name for name, _ in CALLS} == {
        "ask", "invocations_wait", "question_create", "question_answer", "work_create", "work_update",
        "operator_need", "messages_reply", "whoami", "messages_inbox",
    }  # fmt: skip
    assert len(CALLS) == 12


@pytest.mark.rows("R5.3-2")
@pytest.mark.parametrize("role", list(ToolRole))
def test_every_call_of_the_contract_is_taken(role: ToolRole, tmp_path: Path) -> None:
    async def main() -> None:
        async with open_server(tmp_path) as stage:
            values = await _at_hand(stage, role)
            for tool, taught in CALLS:
                fresh = {**values, "workItemId": await _make_owned(stage)}
                if tool == "invocations_wait":
                    fresh["flightId"] = await _make_finished(stage)
                if tool == "question_create":
                    fresh["flightId"] = await _make_asked(stage)
                told = await _call_tool(stage, tool, fill_arguments(taught, fresh))
                if tool == "question_create":
                    assert told["responderAddress"] == "@hudson"
                if tool == "work_update":
                    assert told["state"] in ("waiting", "review", "working", "open"), taught

    asyncio.run(main())


async def _call_tool(stage: Served, tool: str, arguments: dict[str, Any]) -> Any:
    async with stage.client("arc") as client:
        call = asyncio.ensure_future(facts(client, tool, **arguments))
        if tool == "operator_need":
            (item,) = await wait_until(lambda: _list_raised(stage))
            await stage.rig.operator(AnswerAttention(attention_id=item.id, answer="green"))
        return await call


async def _make_finished(stage: Served) -> str:
    """A flight that the agent asked for, which is over."""
    await stage.rig.register("parrot", harness="echo")
    arc = await stage.rig.agent("arc")
    return (await arc.call(MakeAsk(to="@parrot", body="hello", wait=20))).flight_id


async def _make_asked(stage: Served) -> str:
    """A flight that the agent works on."""
    hudson, arc = await stage.rig.agent("hudson"), await stage.rig.agent("arc")
    asked = await hudson.call(MakeAsk(to="@arc", body="Please."))
    await arc.call(StartFlight(flight_id=asked.flight_id))
    return asked.flight_id


async def _make_owned(stage: Served) -> str:
    """A new work item of the agent's own, begun."""
    hudson, arc = await stage.rig.agent("hudson"), await stage.rig.agent("arc")
    item = await hudson.call(CreateWork(title="Fix it", owner_id="@arc"))
    await arc.call(StartWork(work_item_id=item.id))
    return item.id


async def _list_raised(stage: Served) -> Any:
    return (await stage.rig.operator(ListAttention())).items


async def _at_hand(stage: Served, role: ToolRole) -> dict[str, Any]:
    """An agent in the middle of its work: asked by another, with a question and a work item of its own."""
    hudson = (await online_agent(stage.rig, "arc"), await online_agent(stage.rig, "hudson"))[1]
    await stage.rig.operator(ConfigureAgent(address="@arc", tool_role=role))
    asked = await _make_asked(stage)
    question = await hudson.call(CreateQuestion(to="@arc", body="Which port?"))
    await online_agent(stage.rig, "bow")
    return {
        "to": "@bow",
        "body": "here it is",
        "flightId": asked,
        "questionId": question.id,
        "answer": "8080",
        "title": "More",
        "ownerId": "@hudson",
        "nextMoveOwnerId": "@hudson",
        "waitingOn": "@hudson",
        "question": "Which colour?",
        "summary": "done so far",
    }
