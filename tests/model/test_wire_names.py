from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.model.agent import Agent, derive_project_id
from scout.model.ask import Ask, AskReceipt
from scout.model.endpoint import Endpoint, EndpointState
from scout.model.flight import Flight
from scout.model.noun import NOUNS
from scout.model.usage import Usage
from scout.model.wire_names import from_wire, get_logical_agent_id, restore_names, to_wire
from tests.model.generate import records
from tests.model.samples import (
    a_flight,
    a_message,
    a_usage,
    a_work_item,
    an_agent,
    an_ask,
    an_endpoint,
)

RECORDS = [noun.record for noun in NOUNS.values()]


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
@settings(max_examples=15)
@given(data=st.data())
def test_what_is_sent_with_all_names_is_read_back(kind: type[Record], data: st.DataObject) -> None:
    one = data.draw(records(kind))
    assert from_wire(kind, to_wire(one)) == one


def test_an_endpoint_has_the_seeds_names() -> None:
    wire = to_wire(an_endpoint(state=EndpointState.IDLE, model="sonnet"))
    assert (wire["harness"], wire["harnessType"]) == ("claude", "claude")
    assert (wire["node"], wire["authorityNode"]) == ("mini", "mini")
    assert (wire["state"], wire["status"]) == ("idle", "idle")
    assert wire["endpointId"] == wire["id"]
    assert {"agentId", "model", "transport", "sessionId", "preferred"} <= set(wire)
    assert {"permissionProfile", "wakePolicy", "lastSeen"} <= set(wire)


def test_an_agent_has_the_seeds_names() -> None:
    agent = an_agent(definition_id="arc", workspace="main", profile="dev", project_root="/p")
    wire = to_wire(agent, status="online")
    assert wire["logicalAgentId"] == "@arc.main.profile:dev"
    assert (wire["workspace"], wire["workspaceQualifier"]) == ("main", "main")
    assert (wire["projectRoot"], wire["projectPath"]) == ("/p", "/p")
    assert wire["projectId"] == wire["workspaceId"] == derive_project_id("mini", "/p")
    assert (wire["definitionId"], wire["status"], wire["agentId"]) == ("arc", "online", agent.id)


def test_an_agent_without_a_handle_is_its_path_and_one_without_a_project_has_none() -> None:
    agent = an_agent("/u1/telegram")
    assert get_logical_agent_id(agent) == "/u1/telegram"
    assert not {"projectId", "workspaceId"} & set(to_wire(agent))


def test_an_ask_is_an_invocation() -> None:
    wire = to_wire(an_ask())
    assert wire["askId"] == wire["invocationId"] == wire["id"]
    for one in (a_flight(), a_usage(ask_id="ask_1")):
        sent = to_wire(one)
        assert sent["askId"] == sent["invocationId"]
    receipt = AskReceipt(
        conversation_id="c",
        message_id="m",
        ask_id="a",
        flight_id="f",
        state="queued",
        phase="accepted",
        target="t",
        work_item_id="w",
    )
    sent = to_wire(receipt)
    assert (sent["invocationId"], sent["workId"], sent["status"]) == ("a", "w", "queued")
    assert "sessionId" not in sent


def test_the_other_seeds_names_are_our_own() -> None:
    assert {"ownerId", "nextMoveOwnerId"} <= set(to_wire(a_work_item()))
    assert {"targetSessionId", "replyToSessionId", "conversationId", "messageId"} <= set(to_wire(an_ask()))
    assert {"inReplyTo", "mentions", "targetAgents", "messageId"} <= set(to_wire(a_message()))
    assert {"flightId", "conversationId"} <= set(to_wire(a_flight()))


@pytest.mark.parametrize(
    ("kind", "seed", "own", "value"),
    [
        (Endpoint, "harnessType", "harness", "codex"),
        (Endpoint, "authorityNode", "node", "maxi"),
        (Endpoint, "status", "state", "idle"),
        (Endpoint, "endpointId", "id", "ept_9"),
        (Agent, "workspaceQualifier", "workspace", "fix"),
        (Agent, "projectPath", "projectRoot", "/q"),
        (Flight, "invocationId", "askId", "ask_9"),
        (Flight, "workId", "workItemId", "wrk_9"),
        (Usage, "invocationId", "askId", "ask_9"),
        (Ask, "invocationId", "id", "ask_9"),
    ],
)
def test_a_seeds_name_is_read_as_ours(kind: type[Record], seed: str, own: str, value: str) -> None:
    samples: dict[Any, Record] = {
        Endpoint: an_endpoint(),
        Agent: an_agent(),
        Flight: a_flight(),
        Usage: a_usage(),
        Ask: an_ask(),
    }
    fields = {name: known for name, known in to_wire(samples[kind]).items() if name not in _all_names(own)}
    read = from_wire(kind, {**fields, seed: value})
    assert to_wire(read)[own] == value
    with pytest.raises(Refused) as refused:
        from_wire(kind, {**fields, seed: value, own: "other"})
    problem = refused.value.diagnostic
    assert isinstance(problem, BadRequest)
    assert problem.field == seed
    assert from_wire(kind, {**fields, seed: value, own: value}) == read


def _all_names(own: str) -> set[str]:
    names = {
        "harness": {"harnessType"},
        "node": {"authorityNode"},
        "state": {"status"},
        "id": {"endpointId", "askId", "invocationId"},
        "workspace": {"workspaceQualifier"},
        "projectRoot": {"projectPath"},
        "askId": {"invocationId"},
        "workItemId": {"workId"},
    }
    return {own, *names[own]}


def test_a_name_that_means_something_else_here_is_left_alone() -> None:
    ask = from_wire(Ask, {**to_wire(an_ask()), "projectPath": "/p"})
    assert ask.project_path == "/p"
    assert restore_names({"status": "x"}, {"status", "state"}) == {"status": "x"}
    assert restore_names({"banana": 1}, {"state"}) == {"banana": 1}


@pytest.mark.parametrize("data", [None, "[]", b"{", 5])
def test_what_is_no_object_is_refused(data: object) -> None:
    with pytest.raises(Refused):
        from_wire(Agent, data)
