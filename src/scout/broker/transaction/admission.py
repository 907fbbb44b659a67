"""Credentials: a token becomes an actor with a viewpoint, or is refused. Agent tokens: create and revoke."""

import secrets
from typing import NamedTuple

from msgspec.structs import replace

from scout.base.refusal import Refused, Remedy
from scout.base.time import Time
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction, build_subject, require_local
from scout.model.access.token import Token, TokenKind, check_token, hash_secret, require_valid, revoke_token
from scout.model.agent import Agent
from scout.model.events.directory import TokenCreated, TokenRevoked
from scout.model.people.user import User
from scout.model.problems.request import Unauthenticated
from scout.model.session import Session
from scout.policy.directory import OUTSIDE, Viewpoint
from scout.policy.permit import Actor, Deed, identify_actor
from scout.ports import Surroundings
from scout.protocol.scout import Credential
from scout.store.directory import find_work_tree_agent
from scout.store.ledger import LAST, Ledger


class Admitted(NamedTuple):
    """An actor, its viewpoint, and the directory that its relative paths start from."""

    actor: Actor
    caller: Viewpoint
    token: Token | None = None
    here: Surroundings | None = None
    base: str | None = None


_Key = tuple[str | None, str | None, str | None, bool]
_KEPT = 10_000  # admissions remembered
_FRESH = 2.0  # seconds after which the caller's directory is looked at again
_MANY = 1000


class Admissions:
    """Admissions by secret, identity and directory, kept until something that decided them changes."""

    def __init__(self) -> None:
        self._kept: dict[_Key, tuple[Admitted, Time]] = {}
        self._keys: dict[str, set[_Key]] = {}  # by token and by agent
        self._acting = set[_Key]()

    def get(self, credential: Credential, now: Time) -> Admitted | None:
        """Return the admission of a credential, unless its directory may have changed since."""
        admitted, at = self._kept.get(_get_key(credential), (None, now))
        is_old = admitted is not None and admitted.here is not None and not 0 <= now.since(at) <= _FRESH
        return None if is_old else admitted

    def keep(self, credential: Credential, admitted: Admitted, now: Time) -> None:
        if len(self._kept) >= _KEPT:
            self.forget_all()
        key = _get_key(credential)
        if key in self._kept:
            self._drop(key)
        self._kept[key] = admitted, now
        for ident in _list_named_ids(admitted):
            self._keys.setdefault(ident, set()).add(key)
        if credential.act_as is not None:
            self._acting.add(key)

    def forget(self, ident: str) -> None:
        """Forget the admissions of a token that has ended, or of an agent that has changed."""
        for key in list(self._keys.get(ident, ())):
            self._drop(key)

    def forget_acting(self) -> None:
        """Forget who acts as another agent: names and grants decide that."""
        for key in list(self._acting):
            self._drop(key)

    def forget_all(self) -> None:
        """Forget every admission: whom a person controls may have changed, or the name of this node."""
        self._kept.clear()
        self._keys.clear()
        self._acting.clear()

    def _drop(self, key: _Key) -> None:
        admitted, _ = self._kept.pop(key)
        self._acting.discard(key)
        for ident in _list_named_ids(admitted):
            self._keys[ident].discard(key)
            if not self._keys[ident]:
                del self._keys[ident]


def _get_key(credential: Credential) -> _Key:
    return credential.secret, credential.act_as, credential.directory, credential.page


def _list_named_ids(admitted: Admitted) -> set[str]:
    """Return the token and the agents that an admission depends on."""
    own = admitted.token.agent_id if admitted.token is not None else None
    return {one for one in (admitted.actor.token_id, admitted.actor.agent_id, own) if one}


def admit_system(services: Services, agent_id: str | None = None) -> Admitted:
    """Return the broker itself as an actor, in the name of one of its agents."""
    own = agent_id or services.system_agent
    actor = Actor(kind=TokenKind.OPERATOR, token_id="", agent_id=own, user=services.operator)
    return Admitted(actor, OUTSIDE)


def check_expiry(admitted: Admitted, now: Time) -> Admitted:
    """Return the same admission, or refuse if its credential has expired."""
    if admitted.token is not None:
        require_valid(admitted.token, now)
    return admitted


def admit(services: Services, ledger: Ledger, credential: Credential, here: Surroundings | None) -> Admitted:
    """Return the actor behind a credential; `here` applies to people, agents have their own folder."""
    token = _find_token(ledger, credential.secret)
    now = services.clock.now()
    agent = ledger.get(Agent, token.agent_id) if token else None
    actor = _with_subusers(ledger, identify_actor(token, now, agent))
    assert token is not None  # a missing token
    if (token.kind is TokenKind.BROWSER) is not credential.page:
        raise Refused(_refuse_browser_session())
    place = here if actor.kind is TokenKind.OPERATOR else None
    caller = build_viewpoint(services, ledger, actor, agent, place)
    base = _find_base_directory(agent, place, credential)
    admitted = Admitted(actor, caller, token, place, base)
    if credential.act_as is not None:
        return _require_identity(services, ledger, admitted, credential.act_as)
    return admitted


def _refuse_browser_session() -> Unauthenticated:
    """A browser session is no token for programs: what a browser sends can reach other servers."""
    sign_in = Remedy(operation="web", parameters={}, why="sign in again")
    reason = "a browser session is valid only on the web page"
    return Unauthenticated(
        reason=reason, needs=("an agent's token", "the operator's token"), remedies=(sign_in,)
    )


def admit_chat(
    services: Services, ledger: Ledger, person: Agent, key_id: str, group: str | None = None
) -> Admitted:
    """Return a person who speaks in a chat: with the rights of an agent, and the key in the audit trail.

    `group`: the group that the chat belongs to.
    """
    actor = Actor(
        kind=TokenKind.AGENT,
        token_id=key_id,
        user=person.owner,
        agent_id=person.id,
        path=person.path,
        group=group,
    )
    actor = _with_subusers(ledger, actor)
    return Admitted(actor, build_viewpoint(services, ledger, actor, person))


def _with_subusers(ledger: Ledger, actor: Actor) -> Actor:
    """Return a person with the users that belong to them, directly or through another one."""
    found = list(actor.own_users[:1])
    for owner in found:
        owned = ledger.many(User, "users_owned", owner=owner, before=LAST, limit=_MANY)
        found += [one.name for one in owned if one.name not in found]
    return replace(actor, subusers=tuple(found[1:]))


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


def build_viewpoint(
    services: Services, ledger: Ledger, actor: Actor, agent: Agent | None, here: Surroundings | None = None
) -> Viewpoint:
    """Return the viewpoint of an actor: its own place, else its agent's."""
    root, branch = find_project(ledger, agent, here)
    return Viewpoint(
        agent_id=actor.agent_id,
        session_id=actor.session_id,
        path=agent.path if agent else None,
        user=actor.user or services.operator,
        project_root=root,
        root_branch=branch,
        node=services.node,
    )


def find_project(
    ledger: Ledger, agent: Agent | None, here: Surroundings | None = None
) -> tuple[str | None, str | None]:
    """Return the project of a directory or an agent, and its root branch.

    The work tree of a spawned agent belongs to the project of that agent.
    """
    if here is not None:
        agent = find_work_tree_agent(ledger, here.project_root)
        if agent is None:
            return here.project_root, here.branch
    if agent is None:
        return None, None
    line = [agent]
    while (above := ledger.get(Agent, line[-1].parent_id)) is not None:
        line.append(above)
    return next((one.project_root for one in line if one.project_root), None), line[-1].birth_branch


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
    agent = require_local(tx, tx.resolve(address).agent)
    tx.permit(Deed.ACT_AS, build_subject(agent))
    actor = replace(
        admitted.actor,
        kind=TokenKind.AGENT if agent.id != admitted.actor.agent_id else admitted.actor.kind,
        agent_id=agent.id,
        path=agent.path,
        user=agent.owner,
        session_id=None,
    )
    actor = _with_subusers(ledger, actor)
    caller = build_viewpoint(services, ledger, actor, agent)
    return Admitted(actor, caller, admitted.token, None, agent.working_dir or agent.project_root)


# -- agent tokens ------------------------------------------------------------------------------------


def create_agent_token(
    tx: Transaction, agent: Agent, *, session_id: str | None = None, label: str = ""
) -> str:
    """Create a token for an agent; return its secret, which is not stored."""
    token = Token(
        id=tx.mint("tok"),
        created_at=tx.now,
        updated_at=tx.now,
        kind=TokenKind.AGENT,
        hashed="",
        label=label,
        user=agent.owner,
        agent_id=agent.id,
        session_id=session_id,
        created_by=tx.sender,
    )
    return mint_token(tx, token)[1]


def mint_token(tx: Transaction, token: Token) -> tuple[Token, str]:
    secret = tx.services.ids.secret()
    token = check_token(replace(token, hashed=hash_secret(secret)))
    return tx.record(TokenCreated, token, move="create"), secret


def revoke_agent_tokens(tx: Transaction, agent: Agent, reason: str) -> None:
    """Revoke all tokens of an agent."""
    for token in tx.ledger.many(Token, "tokens_of_agent", agent=agent.id, limit=_MANY):
        record_revocation(tx, token, reason)


def revoke_session_tokens(tx: Transaction, session: Session, reason: str) -> None:
    """Revoke all tokens of a session."""
    for token in tx.ledger.many(Token, "tokens_of_session", session=session.id, limit=_MANY):
        record_revocation(tx, token, reason)


def record_revocation(tx: Transaction, token: Token, reason: str) -> Token:
    revoked = revoke_token(token, reason, tx.now)
    return tx.record(TokenRevoked, revoked, move="revoke", reason=reason)
