"""Telling the operator of a runaway, a cap or a stall: one open item about one thing."""

from collections.abc import Sequence

from scout.base.refusal import Diagnostic, Refused
from scout.base.time import Time
from scout.broker.routing import attention_items
from scout.broker.transaction.transaction import Transaction
from scout.model.attention import Attention
from scout.policy.limits import Alarm, alarm_of, check_wake_budget
from scout.protocol.operations import command_line


def open_alarm(tx: Transaction, alarm: Alarm, user: str | None = None, about: str | None = None) -> Attention:
    """The item that a rule asks for, with what can be done about it; raised by the broker, whoever acts.

    `about`: the agent that an answer to it is for, if not the one that acts.
    """
    tries = [f"try: {command_line(remedy)}" for remedy in alarm.remedies]
    return attention_items.open_item(
        tx,
        alarm.kind,
        user=user or tx.actor.user or tx.services.operator,
        source=tx.services.system_agent,
        agent_id=about or tx.actor.agent_id,
        title=alarm.title,
        body="\n".join([alarm.body, *tries]),
        dedupe=alarm.dedupe,
    )


def raise_alarm(tx: Transaction, problem: Diagnostic) -> None:
    """Put a problem before the operator, if it is one of those that a person has to know."""
    alarm = alarm_of(problem)
    if alarm is not None:
        open_alarm(tx, alarm)


def report_wake_budget(tx: Transaction, conversation_id: str, wakes: Sequence[Time], name: str) -> None:
    """Say that agents have used up the wakes of a conversation."""
    try:
        check_wake_budget(conversation_id, wakes, tx.rules.limits, tx.now, name=name)
    except Refused as refusal:
        raise_alarm(tx, refusal.diagnostic)
