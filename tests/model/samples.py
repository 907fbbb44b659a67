"""One plausible record of each noun, to be varied by a test."""

from typing import Any

import msgspec

from scout.base.ids import mint
from scout.base.time import Time
from scout.identity.path import AgentPath
from scout.model.access.grant import Action, Grant, GrantScope
from scout.model.access.token import Token, TokenKind, hash_secret
from scout.model.agent import Agent, create_agent
from scout.model.alias import Alias, AliasTarget
from scout.model.ask import Ask
from scout.model.attention import Attention, AttentionKind, list_actions
from scout.model.card import Card
from scout.model.conversation import Conversation, ConversationKind, Member, Message
from scout.model.delivery import Backoff, Delivery
from scout.model.endpoint import Endpoint, Transport
from scout.model.flight import Flight, create_flight
from scout.model.node import Node
from scout.model.people.binding import Binding, Surface
from scout.model.people.link_code import LinkCode
from scout.model.people.schedule import Schedule
from scout.model.people.user import ConnectorKey, User
from scout.model.question import Question, create_question
from scout.model.ref import Ref
from scout.model.session import Session
from scout.model.usage import Usage, UsageLedger, UsageSource
from scout.model.work_item import WorkItem, create_work

T0 = Time.parse("2026-11-15T12:00:00.000Z")
T1 = T0.plus(60)


def ident(prefix: str, number: int = 0) -> str:
    return mint(prefix, 1_700_000_000_000, number.to_bytes(10, "big"))


ALICE, BOB, CAROL, OPERATOR = (ident("agt", number) for number in range(1, 5))
CONVERSATION, MESSAGE, ASK = ident("cnv"), ident("msg"), ident("ask")


def _with(record: Any, changes: dict[str, Any]) -> Any:
    return msgspec.structs.replace(record, **changes)


def an_agent(path: str = "/u1/agent/arc", **changes: Any) -> Agent:
    return _with(create_agent(ALICE, AgentPath.parse(path), T0, node="mini", by=OPERATOR), changes)


def an_endpoint(**changes: Any) -> Endpoint:
    base = Endpoint(
        id=ident("ept"),
        agent_id=ALICE,
        node="mini",
        harness="claude",
        transport=Transport.PROCESS,
        created_at=T0,
        updated_at=T0,
    )
    return _with(base, changes)


def a_session(**changes: Any) -> Session:
    base = Session(
        id=ident("ses"),
        agent_id=ALICE,
        node="mini",
        harness="claude",
        created_by=OPERATOR,
        created_at=T0,
        updated_at=T0,
    )
    return _with(base, changes)


def an_alias(**changes: Any) -> Alias:
    base = Alias(
        id=ident("als"),
        owner="u1",
        name="boss",
        target=AliasTarget(agent_id=ALICE),
        created_by=OPERATOR,
        created_at=T0,
        updated_at=T0,
    )
    return _with(base, changes)


def a_node(**changes: Any) -> Node:
    return _with(Node(id=ident("nod"), name="mini", created_at=T0, updated_at=T0), changes)


def a_conversation(**changes: Any) -> Conversation:
    base = Conversation(
        id=CONVERSATION, kind=ConversationKind.DM, created_by=ALICE, created_at=T0, updated_at=T0
    )
    return _with(base, changes)


def a_member(**changes: Any) -> Member:
    base = Member(id=ident("mbr"), conversation_id=CONVERSATION, agent_id=ALICE, created_at=T0, updated_at=T0)
    return _with(base, changes)


def a_message(**changes: Any) -> Message:
    base = Message(id=MESSAGE, conversation_id=CONVERSATION, sender=ALICE, body="hello", created_at=T0)
    return _with(base, changes)


def an_ask(**changes: Any) -> Ask:
    base = Ask(
        id=ASK, conversation_id=CONVERSATION, message_id=MESSAGE, sender=ALICE, target=BOB, created_at=T0
    )
    return _with(base, changes)


def a_flight(**changes: Any) -> Flight:
    return _with(create_flight(ident("flt"), an_ask(), T0), changes)


BACK_OFF = Backoff(first=2, most=300, attempts=8)


def a_delivery(**changes: Any) -> Delivery:
    base = Delivery(
        id=ident("dlv"),
        sender=ALICE,
        target=BOB,
        message_id=MESSAGE,
        next_attempt_at=T0,
        created_at=T0,
        updated_at=T0,
    )
    return _with(base, changes)


def a_question(**changes: Any) -> Question:
    base = create_question(ident("qst"), "Which port?", T0, asker_id=ALICE, responder_id=BOB)
    return _with(base, changes)


def a_work_item(**changes: Any) -> WorkItem:
    return _with(create_work(ident("wrk"), "Fix it", T0, requester_id=ALICE, owner_id=BOB), changes)


def an_attention(kind: AttentionKind = AttentionKind.APPROVAL, **changes: Any) -> Attention:
    base = Attention(
        id=ident("att"),
        kind=kind,
        user="u1",
        source=Ref.to(ALICE),
        title="May I?",
        actions=list_actions(kind),
        created_at=T0,
        updated_at=T0,
    )
    return _with(base, changes)


def a_binding(**changes: Any) -> Binding:
    base = Binding(
        id=ident("bnd"),
        surface=Surface.CONNECTOR,
        name="telegram",
        external_id="123456",
        conversation_id=CONVERSATION,
        created_by=OPERATOR,
        created_at=T0,
        updated_at=T0,
    )
    return _with(base, changes)


def a_card(**changes: Any) -> Card:
    base = Card(id=ident("crd"), agent_id=ALICE, created_by=ALICE, created_at=T0, updated_at=T0)
    return _with(base, changes)


def a_usage(**changes: Any) -> Usage:
    base = Usage(
        id=ident("usg"),
        agent_id=ALICE,
        category=UsageLedger.HARNESS_EXECUTION,
        usage_source=UsageSource.PROVIDER_EXACT,
        created_at=T0,
    )
    return _with(base, changes)


def a_user(**changes: Any) -> User:
    return _with(User(id=ident("usr"), name="u1", created_by=OPERATOR, created_at=T0, updated_at=T0), changes)


def a_key(**changes: Any) -> ConnectorKey:
    base = ConnectorKey(
        id=ident("key"),
        connector="telegram",
        external_id="123456",
        user="u1",
        created_by=OPERATOR,
        created_at=T0,
        updated_at=T0,
    )
    return _with(base, changes)


def a_link_code(**changes: Any) -> LinkCode:
    base = LinkCode(
        id=ident("lnk"),
        user="u1",
        connector="telegram",
        hashed="h",
        expires_at=T0.plus(900),
        created_by=OPERATOR,
        created_at=T0,
        updated_at=T0,
    )
    return _with(base, changes)


def a_token(**changes: Any) -> Token:
    base = Token(
        id=ident("tok"),
        kind=TokenKind.AGENT,
        hashed=hash_secret("secret"),
        agent_id=ALICE,
        created_by=OPERATOR,
        created_at=T0,
        updated_at=T0,
    )
    return _with(base, changes)


def a_grant(**changes: Any) -> Grant:
    base = Grant(
        id=ident("grt"),
        action=Action.ASK,
        scope=GrantScope(path=AgentPath.parse("/u2/agent/hudson")),
        agent_id=ALICE,
        created_by=OPERATOR,
        created_at=T0,
        updated_at=T0,
    )
    return _with(base, changes)


def a_schedule(**changes: Any) -> Schedule:
    base = Schedule(
        id=ident("sch"),
        owner="u1",
        agent_id=ALICE,
        cron="0 9 * * 1",
        target="@hudson",
        body="Report.",
        next_at=T1,
        created_by=OPERATOR,
        created_at=T0,
        updated_at=T0,
    )
    return _with(base, changes)
