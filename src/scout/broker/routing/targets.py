"""Whom an ask is for: an address, an exact session, a card, or a project whose agent may have to be made."""

from typing import NamedTuple

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Refused
from scout.broker.routing import names, registration, routes
from scout.broker.transaction.transaction import Transaction
from scout.identity.address import Address as Handle
from scout.identity.grammar import parse_handle
from scout.identity.lexer import lex
from scout.identity.name import HandleName
from scout.model.agent import Agent
from scout.model.alias import Alias, AliasTarget
from scout.model.card import Card
from scout.model.events.directory import CardCreated
from scout.policy.choose import Choice, Demand
from scout.policy.directory import Instance
from scout.policy.resolve import Resolution
from scout.policy.target import decide_target
from scout.protocol.asks import MakeAsk

_DAY = 86_400


class Target(NamedTuple):
    """Whom an ask is for, what it insists on, and by which name it was found."""

    agent: Agent
    wish: Demand
    choice: Choice | None
    canonical: str
    found: Resolution | None = None
    card: Card | None = None


def target_of(tx: Transaction, request: MakeAsk) -> Target:
    named = [request.to, request.project_path, request.target_session_id]
    if sum(one is not None for one in named) > 1:
        problem = "name one of to, projectPath and targetSessionId"
        raise Refused(BadRequest(problem=problem, field="to"))
    if request.project_path is not None:
        return _project(tx, request)
    if request.target_session_id is not None:
        return _resolved(tx, request, tx.resolve(request.target_session_id))
    if request.to is not None and request.to.startswith("crd_"):
        card, agent = names.used_card(tx, request.to)
        session = names.session_of_card(tx, card)
        wanted = replace(request, target_session_id=session) if session else request
        return _chosen(tx, wanted, agent)._replace(card=card)
    targeting = decide_target(request.body, request.to, False, tx.resolve)
    assert targeting.target is not None  # without one it was refused
    return _resolved(tx, request, targeting.target)


def _project(tx: Transaction, request: MakeAsk) -> Target:
    """The project's base agent, made if there is none; an isolated ask gets a card for one use."""
    assert tx.place is not None  # the request names a directory
    agent = registration.base_agent(tx, tx.place)
    target = _chosen(tx, request, agent)
    if not request.isolated:
        return target
    card = Card(
        id=tx.mint("crd"),
        created_at=tx.now,
        updated_at=tx.now,
        agent_id=agent.id,
        created_by=tx.sender,
        expires_at=tx.now.plus(_DAY),
        max_uses=1,
        reply_to_session_id=request.reply_to_session_id,
    )
    tx.record(CardCreated, card, move="create")
    used, _ = names.used_card(tx, card.id)
    return target._replace(card=used)


def _resolved(tx: Transaction, request: MakeAsk, found: Resolution) -> Target:
    """What the address says about harness, model or node holds as if the ask had said it."""
    target = _chosen(tx, request, found.agent, _spelt(tx, found))
    return target._replace(found=found, canonical=found.canonical)


def _spelt(tx: Transaction, found: Resolution) -> Handle | AliasTarget | None:
    alias = tx.get(Alias, found.alias_id)
    if alias is not None:
        return alias.target
    return parse_handle(found.text) if isinstance(lex(found.text), HandleName) else None


def _chosen(
    tx: Transaction, request: MakeAsk, agent: Agent, spelt: Handle | AliasTarget | None = None
) -> Target:
    """The endpoint by the same function as everywhere, with what the ask insists on."""
    exact = spelt.session_id if isinstance(spelt, AliasTarget) else None
    wish = Demand(
        session_id=request.target_session_id or exact,
        harness=request.harness or (spelt.harness if spelt else None),
        model=request.model or (spelt.model if spelt else None),
        node=request.node or (spelt.node if spelt else None),
        caller=tx.caller,
    )
    routes.check_harness(tx, agent, wish)
    return Target(agent, wish, routes.choice_for(tx, agent, wish), Instance(agent=agent).canonical)
