"""Aliases, cards, tokens and grants: user-defined names, return addresses, credentials and permissions."""

import shlex

from msgspec.structs import replace

from scout.base.refusal import PLACEHOLDER, BadRequest, Refused, Remedy
from scout.broker.routing import conversations, users
from scout.broker.routing.views import extend_record
from scout.broker.transaction import admission
from scout.broker.transaction.paging import build_page, decode_bound, get_page_size
from scout.broker.transaction.transaction import Transaction, build_subject, require_local
from scout.identity.address import fold
from scout.identity.grammar import parse_handle
from scout.identity.lexer import lex
from scout.identity.name import HandleName
from scout.identity.path import AgentPath
from scout.model import alias as alias_moves
from scout.model import card as card_moves
from scout.model.access.grant import Grant, GrantMove, GrantScope, check_grant, end_grant
from scout.model.access.token import Token, TokenKind, TokenState
from scout.model.agent import Agent
from scout.model.alias import (
    Alias,
    AliasMove,
    AliasState,
    AliasTarget,
    check_target,
    retarget_alias,
)
from scout.model.card import (
    Card,
    CardState,
    check_card,
    get_default_expiry,
    get_default_max_uses,
    get_effective_card,
)
from scout.model.conversation import Conversation
from scout.model.events.directory import (
    ALIAS_EVENTS,
    AliasCreated,
    CardCreated,
    CardRevoked,
    CardUsed,
    GrantCreated,
    GrantRevoked,
)
from scout.model.node import Node
from scout.model.problems.request import NotFound
from scout.model.remote_agent import find_node_owner
from scout.model.session import Session, SessionState
from scout.policy.permit import Deed, Subject
from scout.policy.registration import check_alias
from scout.policy.resolver.handle import find_alias_fault
from scout.protocol.access import (
    AddGrant,
    AliasView,
    CreateCard,
    CreateToken,
    GrantView,
    ListAliases,
    ListCards,
    ListGrants,
    ListTokens,
    Minted,
    OpenWeb,
    RemoveAlias,
    RepairAlias,
    RevokeCard,
    RevokeGrant,
    RevokeToken,
    RotateToken,
    SetAlias,
    ShowAlias,
    ShowCard,
    TokenView,
    WebLink,
)
from scout.protocol.request import Page

_LINK = 60.0  # seconds in which a sign-in link works


def set_alias(tx: Transaction, request: SetAlias) -> AliasView:
    """Create an alias, or point an existing one at a new target."""
    owner = _require_alias_owner(tx)
    name = check_alias(request.name, tx.directory)
    target = _resolve_alias_target(tx, request.target)
    found = tx.ledger.one(Alias, "alias_named", owner=owner, name=name)
    if found is not None:
        changed = retarget_alias(found, target, tx.now, seen=request.revision)
        tx.record(ALIAS_EVENTS[AliasMove.RETARGET], changed, move=AliasMove.RETARGET)
        return _show_alias_view(tx, changed)
    alias = Alias(
        id=tx.mint("als"),
        created_at=tx.now,
        updated_at=tx.now,
        owner=owner,
        name=name,
        target=target,
        created_by=tx.sender,
    )
    return _show_alias_view(tx, tx.record(AliasCreated, alias, move="create"))


def _require_alias_owner(tx: Transaction) -> str:
    """Return the user whose aliases change; an agent's token may not set aliases."""
    owner = tx.actor.user or tx.services.operator
    tx.permit(Deed.SET_ALIAS, Subject(name="aliases", user=owner))
    return owner


def _resolve_alias_target(tx: Transaction, text: str) -> AliasTarget:
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


def _show_alias_view(tx: Transaction, alias: Alias) -> AliasView:
    """Return the alias's current view; an alias without exactly one target now is shown as broken."""
    target = alias.target
    fault = None if alias.state is AliasState.REMOVED else find_alias_fault(alias, tx.everybody)
    if fault is not None:
        alias = replace(alias, state=AliasState.BROKEN, reason=fault)
    return extend_record(AliasView, alias, means=target.session_id or tx.address(target.agent_id))


def _find_alias(tx: Transaction, name: str) -> Alias:
    owner = tx.actor.user or tx.services.operator
    alias = tx.ledger.one(Alias, "alias_named", owner=owner, name=fold(name.lstrip("@")))
    if alias is None:
        remedy = Remedy(operation="alias.list", parameters={}, why="list the aliases")
        raise Refused(NotFound(noun="alias", id=name[:60], remedies=(remedy,)))
    return alias


def list_aliases(tx: Transaction, request: ListAliases) -> Page[AliasView]:
    """List the user's aliases, newest first."""
    wanted = get_page_size(request.limit, tx.rules.limits)
    owner = tx.actor.user or tx.services.operator
    bound = decode_bound(request.cursor)
    found = tx.ledger.many(Alias, "aliases_of", owner=owner, before=bound, limit=wanted + 1)
    return build_page([_show_alias_view(tx, alias) for alias in found], wanted, lambda alias: alias.id)


def show_alias(tx: Transaction, request: ShowAlias) -> AliasView:
    """Return one alias."""
    return _show_alias_view(tx, _find_alias(tx, request.name))


def remove_alias(tx: Transaction, request: RemoveAlias) -> AliasView:
    """Remove an alias, which frees its name."""
    _require_alias_owner(tx)
    removed = alias_moves.remove_alias(_find_alias(tx, request.name), tx.now)
    return _show_alias_view(tx, tx.record(ALIAS_EVENTS[AliasMove.REMOVE], removed, move=AliasMove.REMOVE))


def repair_alias(tx: Transaction, request: RepairAlias) -> AliasView:
    """Repair a broken alias, with its old target or a new one; refused if an agent has its name."""
    _require_alias_owner(tx)
    alias = _find_alias(tx, request.name)
    check_alias(alias.name, tx.directory)
    if request.target is not None:
        changed = retarget_alias(alias, _resolve_alias_target(tx, request.target), tx.now)
        move = AliasMove.RETARGET
        return _show_alias_view(tx, tx.record(ALIAS_EVENTS[move], changed, move=move))
    repaired = alias_moves.repair_alias(alias, tx.now)
    return _show_alias_view(tx, tx.record(ALIAS_EVENTS[AliasMove.REPAIR], repaired, move=AliasMove.REPAIR))


# -- cards -------------------------------------------------------------------------------------------


def create_card(tx: Transaction, request: CreateCard) -> Card:
    """Create a card (a return address) for the caller, or for an agent that the caller controls."""
    agent_id = tx.resolve(request.agent).agent.id if request.agent else tx.sender
    agent = require_local(tx, tx.need(Agent, "agent", agent_id))
    tx.permit(Deed.CONTROL, build_subject(agent))
    by_agent = tx.actor.kind is TokenKind.AGENT
    once, until = (
        get_default_max_uses(made_by_agent=by_agent),
        get_default_expiry(tx.now, made_by_agent=by_agent),
    )
    card = Card(
        id=tx.mint("crd"),
        created_at=tx.now,
        updated_at=tx.now,
        agent_id=agent.id,
        name=request.name,
        created_by=tx.sender,
        expires_at=tx.now.plus(request.expires_in) if request.expires_in is not None else until,
        max_uses=once if request.max_uses is None else request.max_uses,
        reply_to_session_id=_check_own_session(tx, agent, request.reply_to_session_id),
    )
    return tx.record(CardCreated, check_card(card), move="create")


def _check_own_session(tx: Transaction, agent: Agent, session_id: str | None) -> str | None:
    """Return the session that a card's mail goes to, which must belong to the agent."""
    if session_id is None:
        return None
    session = tx.need(Session, "session", session_id)
    if session.agent_id != agent.id:
        raise tx.missing(f"session of {tx.address(agent.id)}", session_id)
    return session.id


def find_card_session(tx: Transaction, card: Card) -> str | None:
    """Return the session that a card's mail goes to while it is live, else None: any session of the agent."""
    session = tx.get(Session, card.reply_to_session_id)
    live = session is not None and session.state in (SessionState.STARTING, SessionState.LIVE)
    return card.reply_to_session_id if live else None


def use_card(tx: Transaction, card_id: str) -> tuple[Card, Agent]:
    """Record one use of a card; return the card and its agent."""
    card = tx.need(Card, "card", card_id)
    try:
        used = card_moves.use_card(card, tx.now)
    except Refused as refusal:
        ask = {"to": tx.address(card.agent_id), "body": PLACEHOLDER}
        again = Remedy(operation="ask", parameters=ask, why="without the card")
        raise Refused(replace(refusal.diagnostic, remedies=(again,))) from None
    tx.record(CardUsed, used, move="use")
    return used, tx.need(Agent, "agent", card.agent_id)


def list_cards(tx: Transaction, request: ListCards) -> Page[Card]:
    """List the cards that the caller created, newest first."""
    wanted = get_page_size(request.limit, tx.rules.limits)
    bound = decode_bound(request.cursor)
    found = tx.ledger.many(Card, "cards_by", maker=tx.sender, before=bound, limit=wanted + 1)
    return build_page([get_effective_card(one, tx.now) for one in found], wanted, lambda card: card.id)


def show_card(tx: Transaction, request: ShowCard) -> Card:
    """Return one card; any caller that knows its id may read it."""
    return get_effective_card(tx.need(Card, "card", request.card_id), tx.now)


def revoke_card(tx: Transaction, request: RevokeCard) -> Card:
    """Revoke a card; safe to repeat."""
    card = tx.need(Card, "card", request.card_id)
    if card.created_by != tx.sender:
        tx.permit(Deed.ADMINISTER, Subject(name=card.id))
    if card.state is CardState.REVOKED:
        return card
    revoked = card_moves.revoke_card(card, tx.now, reason=request.reason)
    return tx.record(CardRevoked, revoked, move="revoke", reason=request.reason)


# -- tokens ------------------------------------------------------------------------------------------


def _show_token(tx: Transaction, token: Token) -> TokenView:
    address = tx.address(token.agent_id) if token.agent_id else None
    return extend_record(TokenView, replace(token, hashed=""), address=address)


def create_token(tx: Transaction, request: CreateToken) -> Minted:
    """Create a credential of any kind; operator only."""
    tx.permit(Deed.ADMINISTER, Subject(name="credentials"))
    if request.kind in (TokenKind.LINK, TokenKind.BROWSER):
        remedy = Remedy(operation="web", parameters={}, why="sign a browser in")
        problem = f"a {request.kind} is made by `scout web`"
        raise Refused(BadRequest(problem=problem, field="kind", remedies=(remedy,)))
    agent = _find_token_agent(tx, request)
    if agent is None and request.kind is TokenKind.OPERATOR:
        agent = tx.get(Agent, tx.services.operator_agent)
    session = tx.need(Session, "session", request.session_id) if request.session_id else None
    if session is not None and (agent is None or session.agent_id != agent.id):
        raise tx.missing("session of this agent", session.id)
    token = Token(
        id=tx.mint("tok"),
        created_at=tx.now,
        updated_at=tx.now,
        kind=request.kind,
        hashed="",
        label=request.label,
        user=agent.owner if agent else tx.actor.user,
        agent_id=agent.id if agent else None,
        session_id=request.session_id,
        node=request.node,
        connector=request.connector,
        expires_at=tx.now.plus(request.expires_in) if request.expires_in is not None else None,
        created_by=tx.sender,
    )
    made, secret = admission.mint_token(tx, token)
    return Minted(token=_show_token(tx, made), secret=secret)


def create_web_link(tx: Transaction, request: OpenWeb) -> WebLink:
    """Create the secret link of the web page for the operator."""
    tx.permit(Deed.ADMINISTER, Subject(name="credentials"))
    expires_at = tx.now.plus(_LINK)
    link = Token(
        id=tx.mint("tok"),
        created_at=tx.now,
        updated_at=tx.now,
        kind=TokenKind.LINK,
        hashed="",
        label="sign-in link",
        user=tx.services.operator,
        agent_id=tx.services.operator_agent,
        expires_at=expires_at,
        created_by=tx.sender,
    )
    _, secret = admission.mint_token(tx, link)
    return WebLink(url=f"{tx.services.page_url}/enter/{secret}", expires_at=expires_at)


def _find_token_agent(tx: Transaction, request: CreateToken) -> Agent | None:
    """Return the agent that uses a new credential; for a user, the person."""
    if request.user is None:
        return require_local(tx, tx.resolve(request.agent).agent) if request.agent else None
    if request.agent is not None:
        raise Refused(BadRequest(problem="name an agent or a user, not both", field="user"))
    user = users.require_active(tx, users.need_user(tx, request.user))
    return tx.resolve(str(AgentPath.root(user.name, users.DIRECT))).agent


def list_tokens(tx: Transaction, request: ListTokens) -> Page[TokenView]:
    """List all credentials, without their secrets."""
    tx.permit(Deed.ADMINISTER, Subject(name="credentials"))
    wanted = get_page_size(request.limit, tx.rules.limits)
    found = tx.ledger.many(Token, "tokens_all", before=decode_bound(request.cursor), limit=wanted + 1)
    return build_page([_show_token(tx, token) for token in found], wanted, lambda token: token.id)


def revoke_token(tx: Transaction, request: RevokeToken) -> TokenView:
    """Revoke the caller's own credential, or any as the operator; safe to repeat."""
    token = _get_own_token(tx, request.token_id)
    _keep_file_token(tx, token)
    over = token.state is not TokenState.ACTIVE
    return _show_token(tx, token if over else admission.record_revocation(tx, token, request.reason))


def rotate_token(tx: Transaction, request: RotateToken) -> Minted:
    """Replace the caller's own credential, or any as the operator, with a new one.

    A sign-in link is replaced by the session of the browser that opened it.
    """
    old = _get_own_token(tx, request.token_id)
    _keep_file_token(tx, old)
    admission.record_revocation(tx, old, "rotated")
    fresh = replace(old, id=tx.mint("tok"), revision=1, created_at=tx.now, updated_at=tx.now)
    if old.kind is TokenKind.LINK:
        until = tx.now.plus(tx.rules.periods.browser_session)
        fresh = replace(fresh, kind=TokenKind.BROWSER, label="browser", expires_at=until)
    made, secret = admission.mint_token(tx, replace(fresh, last_used_at=None, created_by=tx.sender))
    return Minted(token=_show_token(tx, made), secret=secret)


def _keep_file_token(tx: Transaction, token: Token) -> None:
    """Refuse to end the token in the operator's token file: without it, no command works any more."""
    if token.id != tx.services.file_token:
        return
    file = f"{tx.services.status.home}/token"
    problem = f"this is the token in {file}, which your commands use: to replace it, remove the file"
    why = f"after `rm {shlex.quote(file)}`: a new token is made, and this one is revoked"
    remedy = Remedy(operation="restart", parameters={}, why=why)
    raise Refused(BadRequest(problem=problem, field="tokenId", remedies=(remedy,)))


def _get_own_token(tx: Transaction, token_id: str) -> Token:
    if token_id != tx.actor.token_id:
        tx.permit(Deed.ADMINISTER, Subject(name=token_id[:60]))
    return tx.need(Token, "token", token_id)


# -- grants ------------------------------------------------------------------------------------------


def add_grant(tx: Transaction, request: AddGrant) -> GrantView:
    """Grant an agent, or every agent of a user, a permission beyond the defaults."""
    tx.permit(Deed.ADMINISTER, Subject(name="grants"))
    holder = tx.resolve(request.agent).agent if request.agent else None
    scope = GrantScope(
        path=AgentPath.parse(request.path) if request.path else None,
        user=_find_user_name(tx, request.user),
        project_root=request.project,
        conversation_id=_find_conversation_id(tx, request.channel) if request.channel else None,
    )
    grant = Grant(
        id=tx.mint("grt"),
        created_at=tx.now,
        updated_at=tx.now,
        action=request.action,
        scope=scope,
        agent_id=holder.id if holder else None,
        user=_find_holder(tx, request),
        reason=request.reason,
        expires_at=tx.now.plus(request.expires_in) if request.expires_in is not None else None,
        created_by=tx.sender,
    )
    made = tx.record(GrantCreated, check_grant(grant), move="create", reason=request.reason)
    return _build_grant_view(tx, made)


def _find_holder(tx: Transaction, request: AddGrant) -> str | None:
    """Return the user that holds a grant: a user here, or the operator of a guest machine."""
    if request.node is None:
        return _find_user_name(tx, request.holder)
    if request.holder is not None or request.agent is not None:
        raise Refused(BadRequest(problem="name one of agent, holder and node", field="node"))
    node = tx.ledger.one(Node, "node_named", name=fold(request.node))
    if node is None:
        look = Remedy(operation="mesh.nodes", parameters={}, why="list the nodes")
        raise Refused(NotFound(noun="node", id=request.node[:60], remedies=(look,)))
    if node.guest_key is None:
        problem = f"{node.name} is a machine of yours: its agents need no grant"
        raise Refused(BadRequest(problem=problem, field="node"))
    return find_node_owner(node, tx.services.operator)


def _find_user_name(tx: Transaction, name: str | None) -> str | None:
    """Return the name of a user that a grant names; an unknown one is refused."""
    return users.need_user(tx, name).name if name is not None else None


def _build_grant_view(tx: Transaction, grant: Grant) -> GrantView:
    address = tx.address(grant.agent_id) if grant.agent_id is not None else None
    return extend_record(GrantView, grant, address=address)


def _find_conversation_id(tx: Transaction, name: str) -> str:
    """Return the id of a channel by its name, or of any conversation by its id."""
    found = tx.get(Conversation, name)
    return found.id if found is not None else conversations.require_channel(tx, name).id


def list_grants(tx: Transaction, request: ListGrants) -> Page[GrantView]:
    """List all grants, newest first."""
    tx.permit(Deed.ADMINISTER, Subject(name="grants"))
    wanted = get_page_size(request.limit, tx.rules.limits)
    found = tx.ledger.many(Grant, "grants_all", before=decode_bound(request.cursor), limit=wanted + 1)
    page = build_page(found, wanted, lambda grant: grant.id)
    return Page(items=tuple(_build_grant_view(tx, one) for one in page.items), next=page.next)


def revoke_grant(tx: Transaction, request: RevokeGrant) -> GrantView:
    """Revoke a grant."""
    tx.permit(Deed.ADMINISTER, Subject(name="grants"))
    grant = tx.need(Grant, "grant", request.grant_id)
    ended = end_grant(grant, GrantMove.REVOKE, tx.now, reason=request.reason)
    gone = tx.record(GrantRevoked, ended, move=GrantMove.REVOKE, reason=request.reason)
    return _build_grant_view(tx, gone)
