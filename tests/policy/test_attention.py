"""Who reads what needs a person."""

import pytest
from msgspec.structs import replace

from scout.base.time import Time
from scout.identity.path import AgentPath
from scout.model.access.token import TokenKind
from scout.model.attention import Attention, AttentionKind, list_actions
from scout.model.ref import Ref
from scout.policy.permit import Actor, may_read_attention

NOW = Time(1_000_000)


def item(agent_id: str | None = "agt_arc", **more: object) -> Attention:
    kind = AttentionKind.QUESTION
    return Attention(
        id="att_1",
        created_at=NOW,
        updated_at=NOW,
        kind=kind,
        user="ada",
        agent_id=agent_id,
        source=Ref(f"agent:{agent_id}"),
        title="Which?",
        actions=list_actions(kind),
        **more,  # pyright: ignore[reportArgumentType] (fields of the record)
    )


def actor(kind: TokenKind, agent_id: str | None, path: str | None, user: str | None = "ada") -> Actor:
    place = AgentPath.parse(path) if path else None
    return Actor(kind=kind, token_id="tok_1", user=user, agent_id=agent_id, path=place)


@pytest.mark.parametrize(
    ("who", "expected"),
    [
        (actor(TokenKind.OPERATOR, "agt_ada", "/ada/direct"), True),
        (actor(TokenKind.AGENT, "agt_arc", "/ada/agent/arc"), True),
        (actor(TokenKind.AGENT, "agt_ada", "/ada/direct"), True),
        (actor(TokenKind.AGENT, "agt_bow", "/ada/agent/bow"), False),
        (actor(TokenKind.AGENT, "agt_bob", "/bob/direct", "bob"), False),
        (replace(actor(TokenKind.AGENT, "agt_bob", "/bob/direct", "bob"), subusers=("ada",)), True),
        (replace(actor(TokenKind.AGENT, "agt_bot", "/bob/agent/x", "bob"), subusers=("ada",)), False),
        (actor(TokenKind.AGENT, None, None), False),
        (actor(TokenKind.GUEST, None, None), False),
        (actor(TokenKind.GUEST, "agt_arc", "/ada/direct"), False),
        (actor(TokenKind.NODE, None, None), False),
        (actor(TokenKind.CONNECTOR, None, None), False),
        (actor(TokenKind.HOST, None, None), False),
    ],
)
def test_who_reads_an_item(who: Actor, expected: bool) -> None:
    assert may_read_attention(who, item()) is expected


def test_what_nobody_raised_is_the_persons_alone() -> None:
    assert not may_read_attention(actor(TokenKind.AGENT, None, None), item(None))
    assert may_read_attention(actor(TokenKind.AGENT, "agt_ada", "/ada/direct"), item(None))
