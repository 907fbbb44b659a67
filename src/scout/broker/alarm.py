"""Telling the operator of a runaway: one open item about one thing."""

from collections.abc import Sequence

from scout.base.refusal import Diagnostic, Refused
from scout.base.time import Time
from scout.broker.turn import Turn
from scout.model.attention import Attention, actions_for, check_attention
from scout.model.ref import Ref
from scout.model.talk_event import AttentionCreated
from scout.policy.limits import alarm_of, check_wake_budget

__all__ = ["raise_alarm", "wake_budget"]


def raise_alarm(turn: Turn, problem: Diagnostic) -> None:
    """Put it before the operator, unless it is there already."""
    alarm = alarm_of(problem)
    user = turn.actor.user or turn.world.operator
    if alarm is None or turn.ledger.one(Attention, "attention_same", user=user, dedupe=alarm.dedupe):
        return
    item = Attention(
        id=turn.mint("att"),
        created_at=turn.now,
        updated_at=turn.now,
        kind=alarm.kind,
        user=user,
        agent_id=turn.actor.agent_id,
        source=Ref.to(turn.sender),
        title=alarm.title,
        body=alarm.body,
        actions=actions_for(alarm.kind),
        dedupe=alarm.dedupe,
    )
    turn.record(AttentionCreated, check_attention(item), move="create")


def wake_budget(turn: Turn, conversation_id: str, wakes: Sequence[Time]) -> None:
    """Say that a conversation has used up its wakes."""
    try:
        check_wake_budget(conversation_id, wakes, turn.rules.limits, turn.now)
    except Refused as refusal:
        raise_alarm(turn, refusal.diagnostic)
