"""Names that people give: aliases; and return addresses: cards."""

from msgspec.structs import replace

from scout.base.refusal import PLACEHOLDER, Refused, Remedy
from scout.broker.routing.views import extend_record
from scout.broker.transaction.paging import before, page, size
from scout.broker.transaction.transaction import Transaction, subject_of
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
from scout.policy.registration import check_alias
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


def set_alias(tx: Transaction, request: SetAlias) -> AliasView:
    """Give a name, or give it to another."""
    owner = _owner(tx)
    name = check_alias(request.name, tx.everybody)
    target = _target(tx, request.target)
    found = tx.ledger.one(Alias, "alias_named", owner=owner, name=name)
    if found is not None:
        changed = retarget_alias(found, target, tx.now, seen=request.revision)
        tx.record(ALIAS_EVENTS[AliasMove.RETARGET], changed, move=AliasMove.RETARGET)
        return _shown(tx, changed)
    alias = Alias(
        id=tx.mint("als"),
        created_at=tx.now,
        updated_at=tx.now,
        owner=owner,
        name=name,
        target=target,
        created_by=tx.sender,
    )
    return _shown(tx, tx.record(AliasCreated, alias, move="create"))


def _owner(tx: Transaction) -> str:
    """Aliases are set by people: an agent's token may not."""
    owner = tx.actor.user or tx.services.operator
    tx.permit(Deed.SET_ALIAS, Subject(name="aliases", user=owner))
    return owner


def _target(tx: Transaction, text: str) -> AliasTarget:
    found = tx.resolve(text)
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


def _shown(tx: Transaction, alias: Alias) -> AliasView:
    """An alias as it is now: one that no longer means one thing says so, whatever its record says."""
    target = alias.target
    fault = None if alias.state is AliasState.REMOVED else alias_fault(alias, tx.everybody)
    if fault is not None:
        alias = replace(alias, state=AliasState.BROKEN, reason=fault)
    return extend_record(AliasView, alias, means=target.session_id or tx.address(target.agent_id))


def _named(tx: Transaction, name: str) -> Alias:
    owner = tx.actor.user or tx.services.operator
    alias = tx.ledger.one(Alias, "alias_named", owner=owner, name=fold(name.lstrip("@")))
    if alias is None:
        remedy = Remedy(operation="alias.list", parameters={}, why="the aliases there are")
        raise Refused(NotFound(noun="alias", id=name[:60], remedies=(remedy,)))
    return alias


def list_aliases(tx: Transaction, request: ListAliases) -> Page[AliasView]:
    """The user's aliases, newest first."""
    wanted = size(request.limit, tx.rules.limits)
    owner = tx.actor.user or tx.services.operator
    bound = before(request.cursor)
    found = tx.ledger.many(Alias, "aliases_of", owner=owner, before=bound, limit=wanted + 1)
    return page([_shown(tx, alias) for alias in found], wanted, lambda alias: alias.id)


def show_alias(tx: Transaction, request: ShowAlias) -> AliasView:
    """One alias."""
    return _shown(tx, _named(tx, request.name))


def remove(tx: Transaction, request: RemoveAlias) -> AliasView:
    """The name is free again."""
    _owner(tx)
    removed = remove_alias(_named(tx, request.name), tx.now)
    return _shown(tx, tx.record(ALIAS_EVENTS[AliasMove.REMOVE], removed, move=AliasMove.REMOVE))


def repair(tx: Transaction, request: RepairAlias) -> AliasView:
    """A broken alias means its old target again, or another, unless an agent has its name."""
    _owner(tx)
    alias = _named(tx, request.name)
    check_alias(alias.name, tx.everybody)
    if request.target is not None:
        changed = retarget_alias(alias, _target(tx, request.target), tx.now)
        move = AliasMove.RETARGET
        return _shown(tx, tx.record(ALIAS_EVENTS[move], changed, move=move))
    repaired = repair_alias(alias, tx.now)
    return _shown(tx, tx.record(ALIAS_EVENTS[AliasMove.REPAIR], repaired, move=AliasMove.REPAIR))


# -- cards -------------------------------------------------------------------------------------------


def create_card(tx: Transaction, request: CreateCard) -> Card:
    """A return address for oneself, or for an agent that one controls."""
    agent_id = tx.resolve(request.agent).agent.id if request.agent else tx.sender
    agent = tx.need(Agent, "agent", agent_id)
    tx.permit(Deed.CONTROL, subject_of(agent))
    by_agent = tx.actor.kind is TokenKind.AGENT
    once, until = default_max_uses(made_by_agent=by_agent), default_expiry(tx.now, made_by_agent=by_agent)
    card = Card(
        id=tx.mint("crd"),
        created_at=tx.now,
        updated_at=tx.now,
        agent_id=agent.id,
        name=request.name,
        created_by=tx.sender,
        expires_at=tx.now.plus(request.expires_in) if request.expires_in is not None else until,
        max_uses=once if request.max_uses is None else request.max_uses,
        reply_to_session_id=_session_of(tx, agent, request.reply_to_session_id),
    )
    return tx.record(CardCreated, check_card(card), move="create")


def _session_of(tx: Transaction, agent: Agent, session_id: str | None) -> str | None:
    """The session that wants what is sent to a card, if it is one of the agent's."""
    if session_id is None:
        return None
    session = tx.need(Session, "session", session_id)
    if session.agent_id != agent.id:
        raise tx.missing(f"session of {tx.address(agent.id)}", session_id)
    return session.id


def session_of_card(tx: Transaction, card: Card) -> str | None:
    """The session that wants what is sent to a card, while it lives; then any session of its agent does."""
    session = tx.get(Session, card.reply_to_session_id)
    live = session is not None and session.state in (SessionState.STARTING, SessionState.LIVE)
    return card.reply_to_session_id if live else None


def used_card(tx: Transaction, card_id: str) -> tuple[Card, Agent]:
    """One use of a card, and the agent it stands for."""
    card = tx.need(Card, "card", card_id)
    try:
        used = use_card(card, tx.now)
    except Refused as refusal:
        ask = {"to": tx.address(card.agent_id), "body": PLACEHOLDER}
        again = Remedy(operation="ask", parameters=ask, why="without the card")
        raise Refused(replace(refusal.diagnostic, remedies=(again,))) from None
    tx.record(CardUsed, used, move="use")
    return used, tx.need(Agent, "agent", card.agent_id)


def list_cards(tx: Transaction, request: ListCards) -> Page[Card]:
    """The cards that the caller made, newest first."""
    wanted = size(request.limit, tx.rules.limits)
    bound = before(request.cursor)
    found = tx.ledger.many(Card, "cards_by", maker=tx.sender, before=bound, limit=wanted + 1)
    return page([shown_card(one, tx.now) for one in found], wanted, lambda card: card.id)


def show_card(tx: Transaction, request: ShowCard) -> Card:
    """One card; who holds its id may look at it."""
    return shown_card(tx.need(Card, "card", request.card_id), tx.now)


def revoke(tx: Transaction, request: RevokeCard) -> Card:
    """Take a card back; doing it again changes nothing."""
    card = tx.need(Card, "card", request.card_id)
    if card.created_by != tx.sender:
        tx.permit(Deed.ADMINISTER, Subject(name=card.id))
    if card.state is CardState.REVOKED:
        return card
    revoked = revoke_card(card, tx.now, reason=request.reason)
    return tx.record(CardRevoked, revoked, move="revoke", reason=request.reason)
