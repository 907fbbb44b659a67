"""Whose record it is: only those it belongs to, or who controls one of them, move it."""

from scout.base.refusal import Refused, Remedy
from scout.broker.transaction.transaction import Turn, subject_of
from scout.model.agent import Agent
from scout.model.problems.request import NotOwner
from scout.policy.permit import Deed

__all__ = ["check_mover", "check_reader"]

_WHOAMI = Remedy(operation="whoami", parameters={}, why="whom your token stands for")


def check_mover(turn: Turn, noun: str, ident: str, *movers: str | None) -> None:
    """Refused unless the caller is one of these, or controls one of them; the first is named."""
    named = _agents(turn, movers)
    if turn.sender in [one.id for one in named]:
        return
    if any(turn.allows(Deed.CONTROL, subject_of(one)) for one in named):
        return
    needs = (*(f"the token of {turn.address(one.id)}" for one in named), "the operator's token")
    owner = named[0].id if named else ""
    raise Refused(NotOwner(noun=noun, id=ident, owner_id=owner, needs=needs, remedies=(_WHOAMI,)))


def check_reader(turn: Turn, *parties: str | None) -> None:
    """Refused unless the caller is one of these, or may read what is one of theirs."""
    named = _agents(turn, parties)
    known = turn.actor.agent_id in [one.id for one in named]
    if not known and not any(turn.allows(Deed.READ, subject_of(one)) for one in named):
        turn.permit(Deed.READ, subject_of(named[0]))


def _agents(turn: Turn, idents: tuple[str | None, ...]) -> list[Agent]:
    found = [turn.agent(one) for one in dict.fromkeys(idents)]
    return [one for one in found if one is not None]
