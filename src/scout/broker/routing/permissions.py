"""What a program wants to do and a person has decided before: let through at once, and shown with it."""

from msgspec.structs import replace

from scout.broker.transaction.transaction import Transaction
from scout.model.agent import PermissionProfile
from scout.model.allowance import Allowance, AllowanceKind
from scout.model.attention import Attention, AttentionMove, decide_attention
from scout.model.events.talk import ATTENTION_EVENTS
from scout.model.permission import PermissionRequest
from scout.model.session import Session
from scout.policy.allowance import Asker, allowance_for

_MANY = 500


def let_through(tx: Transaction, item: Attention) -> Attention:
    """The same item, decided at once if a standing decision answers it."""
    wish = item.permission
    found = allowance_for(_about(tx, item.user, wish), wish, asker_of(tx, item), tx.now) if wish else None
    if found is None:
        return item
    move, by, reason = AttentionMove.APPROVE, tx.services.system_agent, f"let through by {found.id}"
    decided = decide_attention(item, move, found.created_by, tx.now, reason=reason)
    allowed = replace(decided, allowance_id=found.id)
    return tx.record(ATTENTION_EVENTS[move], allowed, move=move, reason=reason, source=by)


def _about(tx: Transaction, user: str, wish: PermissionRequest) -> list[Allowance]:
    """The standing decisions that could be about a request."""
    subjects = {AllowanceKind.TOOL: wish.tool, AllowanceKind.PATH: ""}
    if wish.command is not None:
        subjects[AllowanceKind.COMMAND] = wish.command
    return [
        one
        for kind, subject in subjects.items()
        for one in tx.ledger.many(
            Allowance, "allowances_about", user=user, what=kind, subject=subject, limit=_MANY
        )
    ]


def asker_of(tx: Transaction, item: Attention) -> Asker:
    """Whose program asks: its session says where it works and what it may do."""
    agent = tx.agent(item.agent_id)
    session = tx.get(Session, item.return_path.session_id)
    profile = session.permission_profile if session else None
    own = agent.config.permission_profile if agent else None
    return Asker(
        user=item.user,
        agent_id=item.agent_id,
        project_root=agent.project_root if agent else None,
        directory=session.cwd if session else None,
        profile=profile or own or PermissionProfile.WORKSPACE_WRITE,
    )
