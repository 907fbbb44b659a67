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
from scout.model.token import Token, TokenKind, hash_secret, require_valid
from scout.policy.directory import OUTSIDE, Viewpoint
from scout.policy.permit import Actor, Deed, identify_actor
from scout.ports import Surroundings
from scout.protocol.scout import Credential
from scout.store.ledger import Ledger


class Admitted(NamedTuple):
    """An actor, its viewpoint, and the directory that its relative paths start from."""

    actor: Actor
    caller: Viewpoint
    token: Token | None = None
    here: Surroundings | None = None
    base: str | None = None


def system(services: Services, agent_id: str | None = None) -> Admitted:
    """Return the broker itself as an actor, in the name of one of its agents."""
    own = agent_id or services.system_agent
    actor = Actor(kind=TokenKind.OPERATOR, token_id="", agent_id=own, user=services.operator)
    return Admitted(actor, OUTSIDE)


def still_valid(admitted: Admitted, now: Time) -> Admitted:
    """Return the same admission, or refuse if its credential has expired."""
    if admitted.token is not None:
        require_valid(admitted.token, now)
    return admitted


def admit(services: Services, ledger: Ledger, credential: Credential, here: Surroundings | None) -> Admitted:
    """Return the actor behind a credential; `here` applies to people, agents have their own folder."""
    token = _find_token(ledger, credential.secret)
    now = services.clock.now()
    agent = ledger.get(Agent, token.agent_id) if token else None
    actor = identify_actor(token, now, agent)
    assert token is not None  # a missing token
    place = here if actor.kind is TokenKind.OPERATOR else None
    caller, base = caller_of(services, actor, agent, place), _find_base_directory(agent, place, credential)
    admitted = Admitted(actor, caller, token, place, base)
    if credential.act_as is not None:
        return _require_identity(services, ledger, admitted, credential.act_as)
    return admitted


def _find_token(ledger: Ledger, secret: str | None) -> Token | None:
    if not secret:
        return None
    hashed = hash_secret(secret)
    token = ledger.one(Token, "token_hashed", hashed=hashed)
    if token is None or not secrets.compare_digest(token.hashed, hashed):
        whose = Remedy(operation="doctor", parameters={}, why="check that your token file is the daemon's")
        reason, needs = "this token is not known here", ("an agent's token", "the operator's token")
        raise Refused(Unauthenticated(reason=reason, needs=needs, remedies=(whose,)))
    return token


def caller_of(
    services: Services, actor: Actor, agent: Agent | None, here: Surroundings | None = None
) -> Viewpoint:
    """Return the viewpoint of an actor: its own place, else its agent's."""
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


def _find_base_directory(
    agent: Agent | None, here: Surroundings | None, credential: Credential
) -> str | None:
    if here is not None:
        return here.directory
    working = agent.working_dir or agent.project_root if agent else None
    return working or credential.directory


def _require_identity(services: Services, ledger: Ledger, admitted: Admitted, address: str) -> Admitted:
    """Return the identity to act as; the token must allow it."""
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
