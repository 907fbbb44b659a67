"""What only a person can mend about a harness: one open item for it, however many turns fail of it."""

from scout.broker.delivery.opening import Prepared
from scout.broker.routing import attention_items
from scout.broker.transaction.transaction import Turn
from scout.model.attention import Attention, AttentionKind
from scout.model.problems.session import Missing
from scout.ports import Failed

__all__ = ["over", "seen"]


def seen(turn: Turn, prepared: Prepared, problem: Failed) -> None:
    """A turn failed for want of a login or a program."""
    if problem.missing is not None:
        attention_items.put(
            turn,
            AttentionKind.SETUP,
            user=turn.world.operator,
            source=turn.world.system_agent,
            agent_id=prepared.spec.agent_id,
            title=f"{prepared.harness}: its {problem.missing} is missing",
            body=problem.reason,
            dedupe=_about(prepared.harness, problem.missing),
        )


def over(turn: Turn, harness: str) -> None:
    """A turn went well: what was missing is there again."""
    if not turn.world.harnesses[harness].capabilities.keeps_process:
        return
    for missing in Missing:
        for item in turn.ledger.many(Attention, "attention_about", dedupe=_about(harness, missing)):
            attention_items.put_away(turn, item, f"{harness} works again")


def _about(harness: str, missing: Missing) -> str:
    return f"{missing}:{harness}"
