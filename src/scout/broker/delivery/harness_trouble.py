"""What only a person can mend about a harness: one open item for it, however many turns fail of it."""

from scout.broker.delivery.opening import PreparedTurn
from scout.broker.routing import attention_items
from scout.broker.transaction.transaction import Transaction
from scout.model.attention import Attention, AttentionKind
from scout.model.problems.session import Missing
from scout.ports import Failed


def raise_trouble(tx: Transaction, prepared: PreparedTurn, problem: Failed) -> None:
    """A turn failed for want of a login or a program."""
    if problem.missing is not None:
        attention_items.open_item(
            tx,
            AttentionKind.SETUP,
            user=tx.services.operator,
            source=tx.services.system_agent,
            agent_id=prepared.spec.agent_id,
            title=f"{prepared.harness}: its {problem.missing} is missing",
            body=problem.reason,
            dedupe=_about(prepared.harness, problem.missing),
        )


def clear_trouble(tx: Transaction, harness: str) -> None:
    """A turn went well: what was missing is there again."""
    if not tx.services.harnesses[harness].capabilities.keeps_process:
        return
    for missing in Missing:
        for item in tx.ledger.many(Attention, "attention_about", dedupe=_about(harness, missing)):
            attention_items.close_item(tx, item, f"{harness} works again")


def _about(harness: str, missing: Missing) -> str:
    return f"{missing}:{harness}"
