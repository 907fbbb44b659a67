"""Telling the operator of a runaway, a cap or a stall: one open item about one thing."""

from collections.abc import Sequence

from scout.base.refusal import Diagnostic, Refused
from scout.base.time import Time
from scout.broker.routing import attention_items
from scout.broker.transaction.transaction import Turn
from scout.model.attention import Attention
from scout.policy.limits import Alarm, alarm_of, check_wake_budget
from scout.protocol.operations import command_line

__all__ = ["raise_alarm", "raised", "wake_budget"]


def raised(turn: Turn, alarm: Alarm, user: str | None = None, about: str | None = None) -> Attention:
    """The item that a rule asks for, with what can be done about it; raised by the broker, whoever acts.

    `about`: the agent that an answer to it is for, if not the one that acts.
    """
    tries = [f"try: {command_line(remedy)}" for remedy in alarm.remedies]
    return attention_items.put(
        turn,
        alarm.kind,
        user=user or turn.actor.user or turn.world.operator,
        source=turn.world.system_agent,
        agent_id=about or turn.actor.agent_id,
        title=alarm.title,
        body="\n".join([alarm.body, *tries]),
        dedupe=alarm.dedupe,
    )


def raise_alarm(turn: Turn, problem: Diagnostic) -> None:
    """Put a problem before the operator, if it is one of those that a person has to know."""
    alarm = alarm_of(problem)
    if alarm is not None:
        raised(turn, alarm)


def wake_budget(turn: Turn, conversation_id: str, wakes: Sequence[Time], name: str) -> None:
    """Say that agents have used up the wakes of a conversation."""
    try:
        check_wake_budget(conversation_id, wakes, turn.rules.limits, turn.now, name=name)
    except Refused as refusal:
        raise_alarm(turn, refusal.diagnostic)
