"""The names on the wire (2.1): every seed name is sent and read, and endpoints and statuses say what they must."""

from typing import Any

import pytest

from scout.base.codec import decode, to_plain
from scout.base.ids import parse_prefix
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.model.agent import Agent, AgentConfig, PermissionProfile, WakePolicy
from scout.model.ask import Ask, AskReceipt
from scout.model.attention import AttentionKind
from scout.model.card import Card
from scout.model.conversation import Message
from scout.model.endpoint import (
    Endpoint,
    EndpointMove,
    EndpointState,
    Transport,
    get_wake_policy,
    move_endpoint,
    update_endpoint,
)
from scout.model.flight import Flight, FlightPhase, FlightState
from scout.model.question import Question
from scout.model.session import Session
from scout.model.status import AgentStatus, get_status
from scout.model.usage import Usage
from scout.model.wire_names import from_wire, to_wire
from scout.model.work_item import WorkItem
from tests.model.samples import (
    T0,
    T1,
    a_card,
    a_flight,
    a_message,
    a_question,
    a_session,
    a_usage,
    a_work_item,
    an_agent,
    an_ask,
    an_attention,
    an_endpoint,
    ident,
)

AGENT = an_agent(definition_id="arc", workspace="main", profile="dev", project_root="/src/arc")
SAMPLES: dict[type[Record], Record] = {
    Agent: AGENT,
    Endpoint: an_endpoint(model="gpt-5-5"),
    Session: a_session(),
    Message: a_message(in_reply_to="msg_0", mentions=("@arc",), target_agents=("agt_1",)),
    Ask: an_ask(target_session_id="ses_1", reply_to_session_id="ses_2", project_path="/src/arc"),
    Flight: a_flight(),
    WorkItem: a_work_item(),
    Question: a_question(),
    Card: a_card(reply_to_session_id="ses_2"),
    Usage: a_usage(ask_id="ask_1"),
}

# record, name, the names under which the same thing is sent, a value to read back
NAMES: list[tuple[type[Record], str, set[str], Any]] = [
    (Endpoint, "harnessType", {"harness"}, "codex"),
    (Session, "harnessType", {"harness"}, "codex"),
    (Ask, "harnessType", {"harness"}, "codex"),
    (Usage, "harnessType", {"harness"}, "codex"),
    (Endpoint, "authorityNode", {"node"}, "maxi"),
    (Agent, "authorityNode", {"node"}, "maxi"),
    (Session, "authorityNode", {"node"}, "maxi"),
    (Ask, "authorityNode", {"node"}, "maxi"),
    (Agent, "definitionId", set(), "hudson"),
    (Agent, "workspaceQualifier", {"workspace"}, "fix"),
    (Agent, "profile", set(), "qa"),
    (Endpoint, "model", set(), "sonnet"),
    (Endpoint, "endpointId", {"id"}, "ept_9"),
    (Flight, "endpointId", set(), "ept_9"),
    (Agent, "projectPath", {"projectRoot"}, "/src/other"),
    (Ask, "projectPath", set(), "/src/other"),
    (Endpoint, "status", {"state"}, "idle"),
    (Flight, "status", {"state"}, "running"),
    (WorkItem, "ownerId", set(), "agt_9"),
    (WorkItem, "nextMoveOwnerId", set(), "agt_9"),
    (Question, "nextMoveOwnerId", set(), "agt_9"),
    (Flight, "nextMoveOwnerId", set(), "agt_9"),
    (Ask, "targetSessionId", set(), "ses_9"),
    (Ask, "replyToSessionId", set(), "ses_9"),
    (Card, "replyToSessionId", set(), "ses_9"),
    (Message, "conversationId", set(), "cnv_9"),
    (Message, "messageId", {"id"}, "msg_9"),
    (Ask, "messageId", set(), "msg_9"),
    (Flight, "flightId", {"id"}, "flt_9"),
    (Usage, "flightId", set(), "flt_9"),
    (Message, "inReplyTo", set(), "msg_9"),
    (Message, "mentions", set(), ("@hudson",)),
    (Message, "targetAgents", set(), ("agt_9",)),
    (Ask, "invocationId", {"askId", "id"}, "ask_9"),
    (Flight, "invocationId", {"askId"}, "ask_9"),
    (Usage, "invocationId", {"askId"}, "ask_9"),
]


@pytest.mark.rows("R2.1-38", "R2.1-41", "R2.1-42", "R2.1-43", "R2.1-44")
@pytest.mark.parametrize(("kind", "name", "same", "value"), NAMES)
def test_a_name_is_sent_and_read(kind: type[Record], name: str, same: set[str], value: Any) -> None:
    sent = to_wire(SAMPLES[kind])
    assert {other: sent[other] for other in same} == dict.fromkeys(same, sent[name])
    others = {key: known for key, known in sent.items() if key not in same}
    read = to_wire(from_wire(kind, {**others, name: value}))
    assert {other: read[other] for other in {name, *same}} == dict.fromkeys({name, *same}, value)


@pytest.mark.rows("R2.1-38", "R2.1-41")
@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Endpoint, {"harness": "claude", "harnessType": "codex"}),
        (Endpoint, {"node": "mini", "authorityNode": "maxi"}),
        (Flight, {"askId": "ask_1", "invocationId": "ask_2"}),
    ],
)
def test_two_names_of_one_thing_have_one_value(kind: type[Record], fields: dict[str, str]) -> None:
    with pytest.raises(Refused) as caught:
        from_wire(kind, {**to_plain(SAMPLES[kind]), **fields})
    assert isinstance(caught.value.diagnostic, BadRequest)


@pytest.mark.rows("R2.1-41")
def test_a_receipt_gives_the_ask_under_both_names() -> None:
    receipt = AskReceipt(
        conversation_id="cnv_1",
        message_id="msg_1",
        ask_id="ask_1",
        flight_id="flt_1",
        state="queued",
        phase="accepted",
        target="agt_1",
    )
    assert (to_wire(receipt)["askId"], to_wire(receipt)["invocationId"]) == ("ask_1", "ask_1")


@pytest.mark.rows("R2.1-42")
def test_the_status_of_an_agent_is_sent_with_it() -> None:
    sent = to_wire(AGENT, status=AgentStatus.WAKING)
    assert sent["status"] == "waking"
    assert from_wire(Agent, sent) == AGENT


@pytest.mark.rows("R2.1-39")
@pytest.mark.parametrize(
    ("fields", "handle"),
    [
        ({"definition_id": "arc"}, "@arc"),
        ({"definition_id": "arc", "workspace": "main"}, "@arc.main"),
        ({"definition_id": "arc", "profile": "dev"}, "@arc.profile:dev"),
        ({"definition_id": "arc", "workspace": "main", "profile": "dev"}, "@arc.main.profile:dev"),
    ],
)
def test_the_logical_agent_is_the_base_handle(fields: dict[str, str], handle: str) -> None:
    for node, config in (("mini", AgentConfig()), ("maxi", AgentConfig(harness="codex", model="opus"))):
        assert to_wire(an_agent(node=node, config=config, **fields))["logicalAgentId"] == handle


@pytest.mark.rows("R2.1-40")
def test_the_workspace_id_is_the_project() -> None:
    def workspace(node: str, root: str, path: str) -> str:
        sent = to_wire(an_agent(path, node=node, project_root=root, workspace="main"))
        assert sent["workspaceId"] == sent["projectId"]
        return sent["workspaceId"]

    here = workspace("mini", "/src/arc", "/u1/agent/arc")
    assert parse_prefix(here) == "prj"
    assert workspace("mini", "/src/arc", "/u1/agent/qa") == here
    assert len({here, workspace("maxi", "/src/arc", "/u1/agent/arc")}) == 2
    assert len({here, workspace("mini", "/src/hudson", "/u1/agent/arc")}) == 2


NEED = an_attention(AttentionKind.PERMISSION)
WAITING = a_flight(state=FlightState.WAITING)


@pytest.mark.rows("R2.1-45", "R2.1-46")
@pytest.mark.parametrize(
    ("state", "flights", "attention", "status"),
    [
        ("idle", [], [], "online"),
        ("working", [], [], "online"),
        ("registered", [], [], "offline"),
        ("attaching", [], [], "waking"),
        ("waking", [], [], "waking"),
        ("unreachable", [], [], "unreachable"),
        ("failed", [], [], "offline"),
        ("stale", [], [], "offline"),
        ("stopped", [], [], "offline"),
        ("registered", [a_flight(phase=FlightPhase.WAKING)], [], "waking"),
        ("idle", [WAITING], [], "waiting"),
        ("idle", [], [NEED], "needs_attention"),
    ],
)
def test_the_status_of_an_agent(state: str, flights: list[Any], attention: list[Any], status: str) -> None:
    endpoint = an_endpoint(state=EndpointState(state), last_seen=T0)
    found = get_status(an_agent(), [endpoint], T0, flights=flights, attention=attention)
    assert found.value == status
    words = {"online", "waking", "waiting", "needs_attention", "unreachable", "offline"}
    assert {known.value for known in AgentStatus} == words


ENDPOINT = """
agentId authorityNode harness model transport sessionId state preferred permissionProfile wakePolicy lastSeen
"""


@pytest.mark.rows("R2.1-47", "R2.1-48")
def test_an_endpoint_has_these_fields() -> None:
    full = an_endpoint(
        model="opus",
        session_id=ident("ses"),
        state=EndpointState.IDLE,
        preferred=True,
        permission_profile=PermissionProfile.REVIEW,
        wake_policy=WakePolicy.MANUAL,
        last_seen=T1,
    )
    sent = to_wire(full)
    values = [sent[name] for name in ENDPOINT.split()]
    assert values == [
        full.agent_id,
        *("mini", "claude", "opus", "process", ident("ses"), "idle", True, "review", "manual"),
        "2026-11-15T12:01:00.000Z",
    ]


@pytest.mark.rows("R2.1-49")
def test_the_transports() -> None:
    stored = to_plain(an_endpoint())
    words = ["process", "socket", "acp", "tmux", "pull", "a2a", "mesh"]
    assert [decode({**stored, "transport": word}, Endpoint).transport.value for word in words] == words
    assert len(Transport) == len(words)
    with pytest.raises(Refused):
        decode({**stored, "transport": "pigeon"}, Endpoint)


@pytest.mark.rows("R2.1-50")
@pytest.mark.parametrize("own", list(WakePolicy))
@pytest.mark.parametrize("agents", list(WakePolicy))
def test_an_endpoints_wake_policy_comes_before_its_agents(agents: WakePolicy, own: WakePolicy) -> None:
    agent = an_agent(config=AgentConfig(wake_policy=agents))
    assert get_wake_policy(agent, an_endpoint(wake_policy=own)) is own
    assert get_wake_policy(agent, an_endpoint(wake_policy=None)) is agents


@pytest.mark.rows("R2.1-51")
@pytest.mark.parametrize("name", ["harness", "node", "session_id"])
def test_what_makes_an_endpoint_never_changes(name: str) -> None:
    endpoint = an_endpoint(session_id="ses_1", state=EndpointState.IDLE)
    value: dict[str, Any] = {name: "other"}
    with pytest.raises(Refused) as caught:
        update_endpoint(endpoint, T1, **value)
    assert isinstance(caught.value.diagnostic, BadRequest)
    assert caught.value.diagnostic.field == name
    after = update_endpoint(endpoint, T1, preferred=True, model="opus")
    for move in (EndpointMove.CLAIM, EndpointMove.LOSE, EndpointMove.RECOVER, EndpointMove.READY):
        after = move_endpoint(after, move, T1)
        assert getattr(after, name) == getattr(endpoint, name)
