"""Long calls: an ask and its result, progress, cancelling, going away, the person's answer."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp_types import ElicitRequestParams, ElicitResult

from scout.mcp.call import LONGEST
from scout.mcp.tools import asking
from scout.protocol.asks import GetFlight
from scout.protocol.attention import AnswerAttention, GetAttention, ListAttention
from tests.broker.rig import online_agent, wait_until
from tests.mcp.stage import MODES, Served, facts, open_server, scene, scenes, text


@scenes
async def test_an_ask_is_answered(stage: Served, mode: str) -> None:
    await online_agent(stage.rig, "hudson")
    async with stage.client("arc", mode=mode) as arc, stage.client("hudson", mode=mode) as hudson:
        receipt = await facts(arc, "ask", to="hudson", body="Count to three.")
        assert receipt["next"] == {"tool": "invocations_wait", "arguments": {"flightId": receipt["flightId"]}}
        shown = await facts(arc, "invocations_get", flightId=receipt["flightId"])
        assert (shown["state"], shown["next"]) == ("queued", receipt["next"])
        assert shown["nextMoveOwnerId"]
        heard: list[str] = []

        async def told_of(progress: float, total: float | None, message: str | None) -> None:
            assert (progress, total) == (len(heard) + 1, None)
            heard.append(message or "")

        waiting = asyncio.ensure_future(
            arc.call_tool(receipt["next"]["tool"], receipt["next"]["arguments"], progress_callback=told_of)
        )
        await wait_until(lambda: heard)
        (item,) = (await facts(hudson, "messages_inbox", claim=True))["items"]
        assert item["body"] == "Count to three."
        await facts(hudson, "messages_reply", body="1 2 3", inReplyTo=item["messageId"])
        result = await waiting
        told: Any = result.structured_content
        assert (told["state"], told["output"], text(result)) == ("completed", "1 2 3", "1 2 3")
        assert "next" not in told
        assert heard[0].startswith("queued")


@scene
async def test_a_wait_that_is_over_says_how_to_go_on(stage: Served) -> None:
    await online_agent(stage.rig, "hudson")
    async with stage.client("arc") as arc:
        receipt = await facts(arc, "ask", to="hudson", body="x", replyMode="notify")
        assert receipt["next"] == {"tool": "messages_inbox", "arguments": {"claim": True}}
        told = await facts(arc, "invocations_wait", flightId=receipt["flightId"], timeoutSeconds=0.05)
        assert told["next"]["tool"] == "invocations_wait"
        over = await facts(arc, "flight_cancel", flightId=receipt["flightId"], reason="not needed")
        assert over["state"] == "cancelled"
        told = await facts(arc, "invocations_wait", flightId=receipt["flightId"])
        assert told["state"] == "cancelled"


@scenes
async def test_a_change_does_not_shorten_a_wait(stage: Served, mode: str) -> None:
    await online_agent(stage.rig, "hudson")
    async with stage.client("arc", mode=mode) as arc, stage.client("hudson", mode=mode) as hudson:
        flight = (await facts(arc, "ask", to="hudson", body="x"))["flightId"]
        heard: list[str] = []

        async def told_of(progress: float, total: float | None, message: str | None) -> None:
            heard.append(message or "")

        wish = {"flightId": flight, "timeoutSeconds": 10}
        waiting = asyncio.ensure_future(arc.call_tool("invocations_wait", wish, progress_callback=told_of))
        await wait_until(lambda: heard)
        await facts(hudson, "messages_inbox", claim=True)
        await wait_until(lambda: heard[-1].startswith("running"))
        await facts(hudson, "messages_reply", body="done", inReplyTo=flight)
        told: Any = (await waiting).structured_content
        assert (told["state"], told["output"]) == ("completed", "done")


@scene
async def test_an_answer_that_was_to_be_told_comes_to_the_inbox(stage: Served) -> None:
    await online_agent(stage.rig, "hudson")
    async with stage.client("arc") as arc, stage.client("hudson") as hudson:
        receipt = await facts(arc, "ask", to="hudson", body="x", replyMode="notify")
        await facts(hudson, "messages_reply", body="here it is", inReplyTo=receipt["flightId"])
        (item,) = (await facts(arc, receipt["next"]["tool"], **receipt["next"]["arguments"]))["items"]
        assert (item["body"], item["flightId"]) == ("here it is", receipt["flightId"])


def _waits(stage: Served, flight_id: str) -> bool:
    """Whether somebody waits for the end of a flight."""
    return stage.rig.broker.waiters.is_awaited(f"end of {flight_id}")


@pytest.mark.rows("R4.3-6")
@scenes
async def test_a_cancelled_wait_ends_at_once_and_the_work_goes_on(stage: Served, mode: str) -> None:
    await online_agent(stage.rig, "hudson")
    async with stage.client("arc", mode=mode) as arc:
        receipt = await facts(arc, "ask", to="hudson", body="x")
        flight = receipt["flightId"]
        waiting = asyncio.ensure_future(arc.call_tool("invocations_wait", {"flightId": flight}))
        await wait_until(lambda: _waits(stage, flight))
        waiting.cancel()
        await wait_until(lambda: not _waits(stage, flight))
        assert (await stage.rig.operator(GetFlight(flight_id=flight))).state == "queued"
        assert (await facts(arc, "whoami"))["minimal"] == "@arc"


@scenes
async def test_a_client_that_goes_away_waits_no_longer(stage: Served, mode: str) -> None:
    await online_agent(stage.rig, "hudson")
    flight = ""

    async def doomed() -> None:
        nonlocal flight
        async with stage.client("arc", mode=mode) as arc:
            flight = (await facts(arc, "ask", to="hudson", body="x"))["flightId"]
            await arc.call_tool("invocations_wait", {"flightId": flight})

    task = asyncio.ensure_future(doomed())
    await wait_until(lambda: flight and _waits(stage, flight))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await wait_until(lambda: not _waits(stage, flight))
    assert (await stage.rig.operator(GetFlight(flight_id=flight))).state == "queued"


@pytest.mark.parametrize("mode", MODES)
def test_a_daemon_that_stops_does_not_wait_for_those_who_wait(tmp_path: Path, mode: str) -> None:
    async def run() -> None:
        flight = ""
        async with open_server(tmp_path) as stage:
            await online_agent(stage.rig, "hudson")

            async def patient() -> None:
                nonlocal flight
                async with stage.client("arc", mode=mode) as arc:
                    flight = (await facts(arc, "ask", to="hudson", body="x"))["flightId"]
                    await arc.call_tool("invocations_wait", {"flightId": flight})

            task = asyncio.ensure_future(patient())
            await wait_until(lambda: flight and _waits(stage, flight))
            began = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - began < 3  # uvicorn gives the unwilling five
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


# -- the person ----------------------------------------------------------------------------------------


async def _only_need(stage: Served) -> str:
    async def look() -> str | None:
        items = (await stage.rig.operator(ListAttention())).items
        return items[0].id if items else None

    return await wait_until(look)


@scenes
async def test_the_person_answers_in_the_inbox(stage: Served, mode: str) -> None:
    async with stage.client("arc", mode=mode) as client:
        waiting = asyncio.ensure_future(facts(client, "operator_need", question="Which?", options=["a", "b"]))
        ident = await _only_need(stage)
        await stage.rig.operator(AnswerAttention(attention_id=ident, answer="b"))
        told = await waiting
        assert (told["id"], told["state"], told["answer"]) == (ident, "answered", "b")


@pytest.mark.parametrize("mode", MODES)
def test_a_question_that_stays_open_says_where_the_answer_will_come(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LONGEST < 300  # when Codex gives up a call, whatever progress it hears of
    monkeypatch.setattr(asking, "LONGEST", 0.1)

    @scene
    async def play(stage: Served) -> None:
        async with stage.client("arc", mode=mode) as client:

            async def told_of(progress: float, total: float | None, message: str | None) -> None: ...

            result = await client.call_tool(
                "operator_need", {"question": "Which?"}, progress_callback=told_of
            )
            told: Any = result.structured_content
            assert (told["state"], told["next"]["tool"]) == ("open", "messages_inbox")
            await stage.rig.operator(AnswerAttention(attention_id=told["id"], answer="late"))
            (item,) = (await facts(client, "messages_inbox", claim=True))["items"]
            assert "late" in item["body"]

    play(tmp_path)


@pytest.mark.rows("R4.3-7")
@scenes
async def test_a_form_at_the_client_is_answered_first(stage: Served, mode: str) -> None:
    async def fill(_: Any, params: ElicitRequestParams) -> ElicitResult:
        assert params.message == "Which?"
        return ElicitResult(action="accept", content={"answer": "a"})

    async with stage.client("arc", mode=mode, elicitation_callback=fill) as client:
        told = await facts(client, "operator_need", question="Which?", options=["a", "b"])
        assert (told["answer"], told["answeredAt"], told["state"]) == ("a", "client", "dismissed")
        item = await stage.rig.operator(GetAttention(attention_id=told["id"]))
        assert item.answer is None
        assert item.decided_by == (await facts(client, "whoami"))["agentId"]
        assert (await stage.rig.operator(ListAttention())).items == ()


@pytest.mark.rows("R4.3-7")
@scenes
async def test_a_form_that_is_not_filled_leaves_it_to_the_inbox(stage: Served, mode: str) -> None:
    async def decline(_: Any, __: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="decline")

    async with stage.client("arc", mode=mode, elicitation_callback=decline) as client:
        waiting = asyncio.ensure_future(facts(client, "operator_need", question="Which?"))
        await stage.rig.operator(AnswerAttention(attention_id=await _only_need(stage), answer="c"))
        assert (await waiting)["answer"] == "c"


@scenes
async def test_the_inbox_answers_while_a_form_is_shown(stage: Served, mode: str) -> None:
    shown, answered, withdrawn = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(_: Any, __: ElicitRequestParams) -> ElicitResult:
        shown.set()
        try:
            await answered.wait()
        except asyncio.CancelledError:
            withdrawn.set()
            raise
        return ElicitResult(action="accept", content={"answer": "too late"})

    async with stage.client("arc", mode=mode, elicitation_callback=slow) as client:
        waiting = asyncio.ensure_future(facts(client, "operator_need", question="Which?"))
        await shown.wait()
        await stage.rig.operator(AnswerAttention(attention_id=await _only_need(stage), answer="first"))
        if mode == MODES[0]:
            await withdrawn.wait()  # the form is taken back; without a session there is no way to say so
        answered.set()
        assert (await waiting)["answer"] == "first"


@scene
async def test_an_item_of_another_is_not_gone_on_with(stage: Served) -> None:
    """What a client gives back as state is only looked up, under its own credential."""
    async with stage.client("hudson", mode=MODES[1]) as hudson:
        waiting = asyncio.ensure_future(facts(hudson, "operator_need", question="mine"))
        ident = await _only_need(stage)
        async with stage.client("arc", mode=MODES[1]) as arc:
            result = await arc.session.call_tool(
                "operator_need", {"question": "yours?"}, request_state=ident, allow_input_required=True
            )
            assert result.is_error  # type: ignore[union-attr] (a refusal is a result)
        await stage.rig.operator(AnswerAttention(attention_id=ident, answer="x"))
        await waiting
