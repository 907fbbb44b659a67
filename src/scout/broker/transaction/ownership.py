"""Whose record it is: only those it belongs to, or who controls one of them, move it."""

from scout.base.refusal import Refused, Remedy
from scout.broker.transaction.transaction import Transaction, subject_of
from scout.model.agent import Agent
from scout.model.problems.request import NotOwner
from scout.policy.permit import Deed

_WHOAMI = Remedy(operation="whoami", parameters={}, why="whom your token stands for")


def require_owner(tx: Transaction, noun: str, ident: str, *movers: str | None) -> None:
    """Refused unless the caller is one of these, or controls one of them; the first is named."""
    named = _agents(tx, movers)
    if tx.sender in [one.id for one in named]:
        return
    if any(tx.allows(Deed.CONTROL, subject_of(one)) for one in named):
        return
    needs = (*(f"the token of {tx.address(one.id)}" for one in named), "the operator's token")
    owner = named[0].id if named else ""
    raise Refused(NotOwner(noun=noun, id=ident, owner_id=owner, needs=needs, remedies=(_WHOAMI,)))


def require_reader(tx: Transaction, *parties: str | None) -> None:
    """Refused unless the caller is one of these, or may read what is one of theirs."""
    named = _agents(tx, parties)
    known = tx.actor.agent_id in [one.id for one in named]
    if not known and not any(tx.allows(Deed.READ, subject_of(one)) for one in named):
        tx.permit(Deed.READ, subject_of(named[0]))


def _agents(tx: Transaction, idents: tuple[str | None, ...]) -> list[Agent]:
    found = [tx.agent(one) for one in dict.fromkeys(idents)]
    return [one for one in found if one is not None]
