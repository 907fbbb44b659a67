"""Names that people give: aliases; and return addresses: cards."""

from msgspec.structs import replace

from scout.base.refusal import PLACEHOLDER, Refused, Remedy
from scout.broker.routing.views import enriched
from scout.broker.transaction.paging import before, page, size
from scout.broker.transaction.transaction import Turn, subject_of
from scout.identity.grammar import parse_handle
from scout.identity.lexer import lex
from scout.identity.name import HandleName
from scout.identity.segment import fold
from scout.model.agent import Agent
from scout.model.alias import (
    Alias,
    AliasMove,
    AliasState,
    AliasTarget,
    check_target,
    remove_alias,
    repair_alias,
    retarget_alias,
)
from scout.model.card import (
    Card,
    CardState,
    check_card,
    default_expiry,
    default_max_uses,
    revoke_card,
    shown_card,
    use_card,
)
from scout.model.events.directory import ALIAS_EVENTS, AliasCreated, CardCreated, CardRevoked, CardUsed
from scout.model.problems.request import NotFound
from scout.model.session import Session, SessionState
from scout.model.token import TokenKind
from scout.policy.handle import alias_fault
from scout.policy.permit import Deed, Subject
from scout.policy.register import check_alias
from scout.protocol.access import (
    AliasView,
    CreateCard,
    ListAliases,
    ListCards,
    RemoveAlias,
    RepairAlias,
    RevokeCard,
    SetAlias,
    ShowAlias,
    ShowCard,
)
from scout.protocol.request import Page

__all__ = [
    "create_card",
    "list_aliases",
    "list_cards",
    "remove",
    "repair",
    "revoke",
    "set_alias",
    "show_alias",
    "show_card",
    "used_card",
]


def set_alias(turn: Turn, request: SetAlias) -> AliasView:
    """Give a name, or give it to another."""
    owner = _owner(turn)
    name = check_alias(request.name, turn.everybody)
    target = _target(turn, request.target)
    found = turn.ledger.one(Alias, "alias_named", owner=owner, name=name)
    if found is not None:
        changed = retarget_alias(found, target, turn.now, seen=request.revision)
        turn.record(ALIAS_EVENTS[AliasMove.RETARGET], changed, move=AliasMove.RETARGET)
        return _shown(turn, changed)
    alias = Alias(
        id=turn.mint("als"),
        created_at=turn.now,
        updated_at=turn.now,
        owner=owner,
        name=name,
        target=target,
        created_by=turn.sender,
    )
    return _shown(turn, turn.record(AliasCreated, alias, move="create"))


def _owner(turn: Turn) -> str:
    """Aliases are set by people: an agent's token may not."""
    owner = turn.actor.user or turn.world.operator
    turn.permit(Deed.SET_ALIAS, Subject(name="aliases", user=owner))
    return owner


def _target(turn: Turn, text: str) -> AliasTarget:
    found = turn.resolve(text)
    name = lex(text)
    if found.form == "session" or text.startswith("ses_"):
        endpoint = found.choice.endpoint
        return check_target(AliasTarget(session_id=endpoint.session_id if endpoint else text))
    spelt = parse_handle(text) if isinstance(name, HandleName) else None
    return check_target(
        AliasTarget(
            agent_id=found.agent.id,
            harness=spelt.harness if spelt else None,
            model=spelt.model if spelt else None,
            node=spelt.node if spelt else None,
        )
    )


def _shown(turn: Turn, alias: Alias) -> AliasView:
    """An alias as it is now: one that no longer means one thing says so, whatever its record says."""
    target = alias.target
    fault = None if alias.state is AliasState.REMOVED else alias_fault(alias, turn.everybody)
    if fault is not None:
        alias = replace(alias, state=AliasState.BROKEN, reason=fault)
    return enriched(AliasView, alias, means=target.session_id or turn.address(target.agent_id))


def _named(turn: Turn, name: str) -> Alias:
    owner = turn.actor.user or turn.world.operator
    alias = turn.ledger.one(Alias, "alias_named", owner=owner, name=fold(name.lstrip("@")))
    if alias is None:
        remedy = Remedy(operation="alias.list", parameters={}, why="the aliases there are")
        raise Refused(NotFound(noun="alias", id=name[:60], remedies=(remedy,)))
    return alias


def list_aliases(turn: Turn, request: ListAliases) -> Page[AliasView]:
    """The user's aliases, newest first."""
    wanted = size(request.limit, turn.rules.limits)
    owner = turn.actor.user or turn.world.operator
    bound = before(request.cursor)
    found = turn.ledger.many(Alias, "aliases_of", owner=owner, before=bound, limit=wanted + 1)
    return page([_shown(turn, alias) for alias in found], wanted, lambda alias: alias.id)


def show_alias(turn: Turn, request: ShowAlias) -> AliasView:
    """One alias."""
    return _shown(turn, _named(turn, request.name))


def remove(turn: Turn, request: RemoveAlias) -> AliasView:
    """The name is free again."""
    _owner(turn)
    removed = remove_alias(_named(turn, request.name), turn.now)
    return _shown(turn, turn.record(ALIAS_EVENTS[AliasMove.REMOVE], removed, move=AliasMove.REMOVE))


def repair(turn: Turn, request: RepairAlias) -> AliasView:
    """A broken alias means its old target again, or another, unless an agent has its name."""
    _owner(turn)
    alias = _named(turn, request.name)
    check_alias(alias.name, turn.everybody)
    if request.target is not None:
        changed = retarget_alias(alias, _target(turn, request.target), turn.now)
        move = AliasMove.RETARGET
        return _shown(turn, turn.record(ALIAS_EVENTS[move], changed, move=move))
    repaired = repair_alias(alias, turn.now)
    return _shown(turn, turn.record(ALIAS_EVENTS[AliasMove.REPAIR], repaired, move=AliasMove.REPAIR))


# -- cards -------------------------------------------------------------------------------------------


def create_card(turn: Turn, request: CreateCard) -> Card:
    """A return address for oneself, or for an agent that one controls."""
    agent_id = turn.resolve(request.agent).agent.id if request.agent else turn.sender
    agent = turn.need(Agent, "agent", agent_id)
    turn.permit(Deed.CONTROL, subject_of(agent))
    by_agent = turn.actor.kind is TokenKind.AGENT
    once, until = default_max_uses(made_by_agent=by_agent), default_expiry(turn.now, made_by_agent=by_agent)
    card = Card(
        id=turn.mint("crd"),
        created_at=turn.now,
        updated_at=turn.now,
        agent_id=agent.id,
        name=request.name,
        created_by=turn.sender,
        expires_at=turn.now.plus(request.expires_in) if request.expires_in is not None else until,
        max_uses=once if request.max_uses is None else request.max_uses,
        reply_to_session_id=_session_of(turn, agent, request.reply_to_session_id),
    )
    return turn.record(CardCreated, check_card(card), move="create")


def _session_of(turn: Turn, agent: Agent, session_id: str | None) -> str | None:
    """The session that wants what is sent to a card, if it is one of the agent's."""
    if session_id is None:
        return None
    session = turn.need(Session, "session", session_id)
    if session.agent_id != agent.id:
        raise turn.missing(f"session of {turn.address(agent.id)}", session_id)
    return session.id


def session_of_card(turn: Turn, card: Card) -> str | None:
    """The session that wants what is sent to a card, while it lives; then any session of its agent does."""
    session = turn.ledger.get(Session, card.reply_to_session_id)
    live = session is not None and session.state in (SessionState.STARTING, SessionState.LIVE)
    return card.reply_to_session_id if live else None


def used_card(turn: Turn, card_id: str) -> tuple[Card, Agent]:
    """One use of a card, and the agent it stands for."""
    card = turn.need(Card, "card", card_id)
    try:
        used = use_card(card, turn.now)
    except Refused as refusal:
        ask = {"to": turn.address(card.agent_id), "body": PLACEHOLDER}
        again = Remedy(operation="ask", parameters=ask, why="without the card")
        raise Refused(replace(refusal.diagnostic, remedies=(again,))) from None
    turn.record(CardUsed, used, move="use")
    return used, turn.need(Agent, "agent", card.agent_id)


def list_cards(turn: Turn, request: ListCards) -> Page[Card]:
    """The cards that the caller made, newest first."""
    wanted = size(request.limit, turn.rules.limits)
    bound = before(request.cursor)
    found = turn.ledger.many(Card, "cards_by", maker=turn.sender, before=bound, limit=wanted + 1)
    return page([shown_card(one, turn.now) for one in found], wanted, lambda card: card.id)


def show_card(turn: Turn, request: ShowCard) -> Card:
    """One card; who holds its id may look at it."""
    return shown_card(turn.need(Card, "card", request.card_id), turn.now)


def revoke(turn: Turn, request: RevokeCard) -> Card:
    """Take a card back; doing it again changes nothing."""
    card = turn.need(Card, "card", request.card_id)
    if card.created_by != turn.sender:
        turn.permit(Deed.ADMINISTER, Subject(name=card.id))
    if card.state is CardState.REVOKED:
        return card
    revoked = revoke_card(card, turn.now, reason=request.reason)
    return turn.record(CardRevoked, revoked, move="revoke", reason=request.reason)
