"""Whom an ask is for: an address, an exact session, a card, or a project whose agent may have to be made."""

from typing import NamedTuple

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Refused
from scout.broker.routing import names, registration, routes
from scout.broker.transaction.transaction import Turn
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

__all__ = ["Target", "target_of"]

_DAY = 86_400


class Target(NamedTuple):
    """Whom an ask is for, what it insists on, and by which name it was found."""

    agent: Agent
    wish: Demand
    choice: Choice | None
    canonical: str
    found: Resolution | None = None
    card: Card | None = None


def target_of(turn: Turn, request: MakeAsk) -> Target:
    named = [request.to, request.project_path, request.target_session_id]
    if sum(one is not None for one in named) > 1:
        problem = "name one of to, projectPath and targetSessionId"
        raise Refused(BadRequest(problem=problem, field="to"))
    if request.project_path is not None:
        return _project(turn, request)
    if request.target_session_id is not None:
        return _resolved(turn, request, turn.resolve(request.target_session_id))
    if request.to is not None and request.to.startswith("crd_"):
        card, agent = names.used_card(turn, request.to)
        session = names.session_of_card(turn, card)
        wanted = replace(request, target_session_id=session) if session else request
        return _chosen(turn, wanted, agent)._replace(card=card)
    targeting = decide_target(request.body, request.to, False, turn.resolve)
    assert targeting.target is not None  # without one it was refused
    return _resolved(turn, request, targeting.target)


def _project(turn: Turn, request: MakeAsk) -> Target:
    """The project's base agent, made if there is none; an isolated ask gets a card for one use."""
    assert turn.place is not None  # the request names a directory
    agent = registration.base_agent(turn, turn.place)
    target = _chosen(turn, request, agent)
    if not request.isolated:
        return target
    card = Card(
        id=turn.mint("crd"),
        created_at=turn.now,
        updated_at=turn.now,
        agent_id=agent.id,
        created_by=turn.sender,
        expires_at=turn.now.plus(_DAY),
        max_uses=1,
        reply_to_session_id=request.reply_to_session_id,
    )
    turn.record(CardCreated, card, move="create")
    used, _ = names.used_card(turn, card.id)
    return target._replace(card=used)


def _resolved(turn: Turn, request: MakeAsk, found: Resolution) -> Target:
    """What the address says about harness, model or node holds as if the ask had said it."""
    target = _chosen(turn, request, found.agent, _spelt(turn, found))
    return target._replace(found=found, canonical=found.canonical)


def _spelt(turn: Turn, found: Resolution) -> Handle | AliasTarget | None:
    alias = turn.ledger.get(Alias, found.alias_id)
    if alias is not None:
        return alias.target
    return parse_handle(found.text) if isinstance(lex(found.text), HandleName) else None


def _chosen(turn: Turn, request: MakeAsk, agent: Agent, spelt: Handle | AliasTarget | None = None) -> Target:
    """The endpoint by the same function as everywhere, with what the ask insists on."""
    exact = spelt.session_id if isinstance(spelt, AliasTarget) else None
    wish = Demand(
        session_id=request.target_session_id or exact,
        harness=request.harness or (spelt.harness if spelt else None),
        model=request.model or (spelt.model if spelt else None),
        node=request.node or (spelt.node if spelt else None),
        caller=turn.caller,
    )
    routes.check_harness(turn, agent, wish)
    return Target(agent, wish, routes.choice_for(turn, agent, wish), Instance(agent=agent).canonical)
