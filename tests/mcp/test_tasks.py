"""Asks as tasks: a client that follows tasks by itself, on the wire as the extension defines it."""

from typing import Any

import pytest

from scout.broker.local import LocalScout
from scout.protocol.asks import CompleteFlight, FailFlight, GetFlight
from scout.protocol.attention import AnswerAttention, ListAttention, Need
from scout.protocol.inbox import AckInbox, ClaimInbox
from scout.protocol.questions import CreateQuestion, GetQuestion
from tests.broker.rig import online_agent, wait_until
from tests.mcp.stage import MODES, Served, scene

TASKS = "io.modelcontextprotocol/tasks"
FORMS: dict[str, Any] = {"elicitation": {}}


class TaskClient:
    """An agent's client that speaks tasks."""

    def __init__(self, stage: Served, token: str, **offers: Any) -> None:
        self._stage = stage
        self._token = token
        self._offers: dict[str, Any] = {"extensions": {TASKS: {}}, **offers}

    async def send(self, method: str, name: str, /, **params: Any) -> Any:
        """The whole answer to a request that names something in its header."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODES[1],
            "io.modelcontextprotocol/clientInfo": {"name": "a test", "version": "0"},
            "io.modelcontextprotocol/clientCapabilities": self._offers,
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        headers = {"MCP-Protocol-Version": MODES[1], "Mcp-Method": method, "Mcp-Name": name}
        reply = await self._stage.request("POST", "/mcp", self._token, json=body, headers=headers)
        return reply.json()

    async def result(self, method: str, name: str, /, **params: Any) -> Any:
        answer = await self.send(method, name, **params)
        assert "result" in answer, answer
        return answer["result"]

    async def refused(self, method: str, name: str, /, **params: Any) -> Any:
        answer = await self.send(method, name, **params)
        assert "error" in answer, answer
        return answer["error"]

    async def ask(self, **arguments: Any) -> Any:
        return await self.result("tools/call", "ask", name="ask", arguments=arguments)

    async def get(self, task: str) -> Any:
        return await self.result("tasks/get", task, taskId=task)


async def _client(stage: Served, name: str = "arc", **offers: Any) -> TaskClient:
    return TaskClient(stage, await stage.token(name), **offers)


async def _take(seat: LocalScout) -> None:
    """An agent takes what waits for it."""
    claimed = await seat.call(ClaimInbox())
    await seat.call(AckInbox(delivery_ids=tuple(item.delivered.id for item in claimed.items)))


@pytest.mark.rows("R4.3-8")
@scene
async def test_an_ask_is_a_task_and_the_task_is_the_flight(stage: Served) -> None:
    hudson, arc = await online_agent(stage.rig, "hudson"), await _client(stage)
    made = await arc.ask(to="hudson", body="Count to three.")
    task = made["taskId"]
    assert (made["resultType"], made["status"], made["ttlMs"]) == ("task", "working", None)
    flight = await stage.rig.operator(GetFlight(flight_id=task))
    assert made["createdAt"] == str(flight.created_at)
    told = await arc.get(task)
    assert (told["resultType"], told["status"]) == ("complete", "working")
    assert not {"result", "error", "inputRequests"} & told.keys()
    await _take(hudson)
    await hudson.call(CompleteFlight(flight_id=task, output="1 2 3"))
    for _ in range(2):  # a result is kept
        told = await arc.get(task)
        assert told["status"] == "completed"
        assert told["result"]["content"] == [{"type": "text", "text": "1 2 3"}]
        assert told["result"]["structuredContent"]["output"] == "1 2 3"
        assert not told["result"].get("isError")


@scene
async def test_an_answer_that_was_to_be_told_is_no_task(stage: Served) -> None:
    await online_agent(stage.rig, "hudson")
    arc = await _client(stage)
    told = await arc.ask(to="hudson", body="x", replyMode="notify")
    assert told["structuredContent"]["next"]["tool"] == "messages_inbox"
    told = await arc.ask(to="nobody", body="x")
    assert (told["isError"], told["resultType"]) == (True, "complete")


@scene
async def test_what_the_other_agent_could_not_do_is_a_result_and_what_scout_could_not_is_an_error(
    stage: Served,
) -> None:
    hudson, arc = await online_agent(stage.rig, "hudson"), await _client(stage)
    given_up = (await arc.ask(to="hudson", body="x"))["taskId"]
    empty = (await arc.ask(to="hudson", body="y"))["taskId"]
    await _take(hudson)
    await hudson.call(FailFlight(flight_id=given_up, reason="too hard", code="gave_up"))
    told = await arc.get(given_up)
    assert (told["status"], told["result"]["isError"]) == ("completed", True)
    assert told["result"]["structuredContent"]["error"]["code"] == "gave_up"
    await hudson.call(CompleteFlight(flight_id=empty, output=" "))
    told = await arc.get(empty)
    assert (told["status"], told["error"]["data"]["error"]["code"]) == ("failed", "empty_reply")
    assert "result" not in told


@scene
async def test_a_task_that_is_cancelled_cancels_the_flight(stage: Served) -> None:
    await online_agent(stage.rig, "hudson")
    arc = await _client(stage)
    task = (await arc.ask(to="hudson", body="x"))["taskId"]
    for _ in range(2):
        told = await arc.result("tasks/cancel", task, taskId=task)
        assert (told["resultType"], "status" in told) == ("complete", False)
    assert (await arc.get(task))["status"] == "cancelled"
    assert (await stage.rig.operator(GetFlight(flight_id=task))).state == "cancelled"


@scene
async def test_a_task_is_seen_by_who_may_read_the_flight(stage: Served) -> None:
    await online_agent(stage.rig, "hudson")
    arc, eve = await _client(stage), await _client(stage, "eve")
    task = (await arc.ask(to="hudson", body="x"))["taskId"]
    for method in ("tasks/get", "tasks/cancel", "tasks/update"):
        assert (await eve.refused(method, task, taskId=task))["code"] == -32602
        assert (await arc.refused(method, "flt_0", taskId="flt_0"))["code"] == -32602
    operator = await _client(stage, "operator")
    assert (await operator.get(task))["status"] == "working"


@scene
async def test_a_question_to_who_asked_is_asked_at_the_client(stage: Served) -> None:
    hudson, arc = await online_agent(stage.rig, "hudson"), await _client(stage, **FORMS)
    task = (await arc.ask(to="hudson", body="Paint it."))["taskId"]
    await _take(hudson)
    colours = ("red", "blue")
    asked = await hudson.call(CreateQuestion(to="arc", body="Which?", options=colours, flight_id=task))
    told = await arc.get(task)
    assert told["status"] == "input_required"
    form = told["inputRequests"][asked.id]
    assert (form["method"], form["params"]["message"]) == ("elicitation/create", "Which?")
    assert form["params"]["requestedSchema"]["properties"]["answer"]["enum"] == [*colours]
    blind = await _client(stage)
    assert (await blind.get(task))["status"] == "working"  # it offers no forms: the question is in its inbox
    wrong = {asked.id: 12345}
    assert (await arc.refused("tasks/update", task, taskId=task, inputResponses=wrong))["code"] == -32602
    other = {"qst_0": {"action": "accept", "content": {"answer": "green"}}}
    await arc.result("tasks/update", task, taskId=task, inputResponses=other)
    assert (await arc.get(task))["status"] == "input_required"
    answer = {asked.id: {"action": "accept", "content": {"answer": "blue"}}}
    told = await arc.result("tasks/update", task, taskId=task, inputResponses=answer)
    assert (told["resultType"], "status" in told) == ("complete", False)
    assert (await arc.get(task))["status"] == "working"
    assert (await hudson.call(GetQuestion(question_id=asked.id))).answer == "blue"


@scene
async def test_a_question_can_be_declined_at_the_client(stage: Served) -> None:
    hudson, arc = await online_agent(stage.rig, "hudson"), await _client(stage, **FORMS)
    task = (await arc.ask(to="hudson", body="Paint it."))["taskId"]
    await _take(hudson)
    asked = await hudson.call(CreateQuestion(to="arc", body="Which?", flight_id=task))
    for action, state in (("cancel", "open"), ("decline", "declined")):
        given = {asked.id: {"action": action}}
        await arc.result("tasks/update", task, taskId=task, inputResponses=given)
        assert (await hudson.call(GetQuestion(question_id=asked.id))).state == state


@pytest.mark.rows("R7-2")
@scene
async def test_what_the_person_is_asked_no_agent_answers(stage: Served) -> None:
    hudson, arc = await online_agent(stage.rig, "hudson"), await _client(stage, **FORMS)
    task = (await arc.ask(to="hudson", body="Deploy."))["taskId"]
    await _take(hudson)
    item = await hudson.call(Need(question="Now?", options=("yes", "no"), flight_id=task))
    told = await arc.get(task)
    assert (told["status"], "inputRequests" in told) == ("working", False)
    answer = {item.id: {"action": "accept", "content": {"answer": "yes"}}}
    await arc.result("tasks/update", task, taskId=task, inputResponses=answer)
    (open_,) = (await stage.rig.operator(ListAttention())).items
    assert open_.id == item.id
    await stage.rig.operator(AnswerAttention(attention_id=item.id, answer="no"))

    async def goes_on() -> bool:
        return (await stage.rig.operator(GetFlight(flight_id=task))).state == "running"

    await wait_until(goes_on)


@scene
async def test_the_person_answers_at_a_client_of_their_own(stage: Served) -> None:
    hudson, operator = await online_agent(stage.rig, "hudson"), await _client(stage, "operator", **FORMS)
    task = (await operator.ask(to="hudson", body="Deploy."))["taskId"]
    await _take(hudson)
    item = await hudson.call(Need(question="Now?", options=("yes", "no"), flight_id=task))
    told = await operator.get(task)
    assert told["status"] == "input_required", told
    assert told["inputRequests"][item.id]["params"]["message"] == "Now?"
    answer = {item.id: {"action": "accept", "content": {"answer": "yes"}}}
    await operator.result("tasks/update", task, taskId=task, inputResponses=answer)
    assert (await operator.get(task))["status"] == "working"


@scene
async def test_who_does_not_speak_tasks_is_told_what_is_missing(stage: Served) -> None:
    await online_agent(stage.rig, "hudson")
    plain = await _client(stage, extensions={})
    told = await plain.ask(to="hudson", body="x")
    flight = told["structuredContent"]["flightId"]
    error = await plain.refused("tasks/get", flight, taskId=flight)
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"extensions": {TASKS: {}}}}


@scene
async def test_the_header_names_the_same_task(stage: Served) -> None:
    await online_agent(stage.rig, "hudson")
    arc = await _client(stage)
    task = (await arc.ask(to="hudson", body="x"))["taskId"]
    assert (await arc.refused("tasks/cancel", "flt_other", taskId=task))["code"] == -32020
    assert (await arc.get(task))["status"] == "working"
