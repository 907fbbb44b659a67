"""Admission: a credential becomes an actor with a viewpoint, or is refused."""

import secrets
from typing import NamedTuple

from msgspec.structs import replace

from scout.base.refusal import Refused, Remedy
from scout.base.time import Time
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction, subject_of
from scout.model.agent import Agent
from scout.model.problems.request import Unauthenticated
from scout.model.token import Token, TokenKind, hash_of, require_valid
from scout.policy.directory import OUTSIDE, Viewpoint
from scout.policy.permit import Actor, Deed, actor_of
from scout.ports import Surroundings
from scout.protocol.scout import Credential
from scout.store.ledger import Ledger


class Admitted(NamedTuple):
    """An actor, where it looks from, and the directory that its relative paths are relative to."""

    actor: Actor
    caller: Viewpoint
    token: Token | None = None
    here: Surroundings | None = None
    base: str | None = None


def system(services: Services, agent_id: str | None = None) -> Admitted:
    """The broker itself, in the name of an agent of its own."""
    own = agent_id or services.system_agent
    actor = Actor(kind=TokenKind.OPERATOR, token_id="", agent_id=own, user=services.operator)
    return Admitted(actor, OUTSIDE)


def still_valid(admitted: Admitted, now: Time) -> Admitted:
    """The same admission, or a refusal if its credential has expired since."""
    if admitted.token is not None:
        require_valid(admitted.token, now)
    return admitted


def admit(services: Services, ledger: Ledger, credential: Credential, here: Surroundings | None) -> Admitted:
    """The actor behind a credential; `here` counts for people, agents look from where they work."""
    token = _token(ledger, credential.secret)
    now = services.clock.now()
    agent = ledger.get(Agent, token.agent_id) if token else None
    actor = actor_of(token, now, agent)
    assert token is not None  # no token is refused
    place = here if actor.kind is TokenKind.OPERATOR else None
    caller, base = caller_of(services, actor, agent, place), _base(agent, place, credential)
    admitted = Admitted(actor, caller, token, place, base)
    if credential.act_as is not None:
        return _acting(services, ledger, admitted, credential.act_as)
    return admitted


def _token(ledger: Ledger, secret: str | None) -> Token | None:
    if not secret:
        return None
    hashed = hash_of(secret)
    token = ledger.one(Token, "token_hashed", hashed=hashed)
    if token is None or not secrets.compare_digest(token.hashed, hashed):
        whose = Remedy(operation="doctor", parameters={}, why="whether your token file is the daemon's")
        reason, needs = "this token is not known here", ("an agent's token", "the operator's token")
        raise Refused(Unauthenticated(reason=reason, needs=needs, remedies=(whose,)))
    return token


def caller_of(
    services: Services, actor: Actor, agent: Agent | None, here: Surroundings | None = None
) -> Viewpoint:
    """Where an actor looks from: where it stands, else where its agent works."""
    root = here.project_root if here else (agent.project_root if agent else None)
    born = agent.birth_branch if agent else None
    branch = here.branch if here else (born.partition(".")[0] if born else None)
    return Viewpoint(
        agent_id=actor.agent_id,
        session_id=actor.session_id,
        path=agent.path if agent else None,
        user=actor.user or services.operator,
        project_root=root,
        root_branch=branch,
        node=services.node,
    )


def _base(agent: Agent | None, here: Surroundings | None, credential: Credential) -> str | None:
    if here is not None:
        return here.directory
    working = agent.working_dir or agent.project_root if agent else None
    return working or credential.directory


def _acting(services: Services, ledger: Ledger, admitted: Admitted, address: str) -> Admitted:
    """On behalf of another: only for identities that the token may act for."""
    tx = Transaction(services, ledger, admitted.actor, admitted.caller)
    agent = tx.resolve(address).agent
    tx.permit(Deed.ACT_AS, subject_of(agent))
    actor = replace(
        admitted.actor,
        kind=TokenKind.AGENT if agent.id != admitted.actor.agent_id else admitted.actor.kind,
        agent_id=agent.id,
        path=agent.path,
        user=agent.owner,
        session_id=None,
    )
    caller = caller_of(services, actor, agent, None)
    return Admitted(actor, caller, admitted.token, None, agent.working_dir or agent.project_root)
