"""Grants: permission for one action on a subtree of paths, a project or a channel, beyond the defaults."""

from enum import StrEnum

from scout.base.machine import Machine, Mutable, move_record
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.identity.path import AgentPath


class GrantState(StrEnum):
    ACTIVE = "active"
    REVOKED = "revoked"
    EXPIRED = "expired"


class GrantMove(StrEnum):
    REVOKE = "revoke"
    EXPIRE = "expire"


GRANT = Machine(
    "grant",
    GrantState.ACTIVE,
    {
        GrantState.ACTIVE: {GrantMove.REVOKE: GrantState.REVOKED, GrantMove.EXPIRE: GrantState.EXPIRED},
        GrantState.REVOKED: {},
        GrantState.EXPIRED: {},
    },
)


class Action(StrEnum):
    ADDRESS = "address"
    ASK = "ask"
    SPAWN = "spawn"
    READ = "read"
    CONTROL = "control"


class GrantScope(Record, omit_defaults=True):
    """Exactly one of a path (with its subtree), a user (all of the user's paths), a project, a channel."""

    path: AgentPath | None = None
    user: str | None = None
    project_root: str | None = None
    conversation_id: str | None = None


class Grant(Mutable):
    """One grant. Its holder is an agent, or every agent of a user."""

    action: Action
    scope: GrantScope
    agent_id: str | None = None
    user: str | None = None
    state: GrantState = GrantState.ACTIVE
    reason: str = ""
    expires_at: Time | None = None
    created_by: str


def check_grant(grant: Grant) -> Grant:
    """Return the grant; refuse one without exactly one holder and one scope."""
    scope = grant.scope
    scopes = (scope.path, scope.user, scope.project_root, scope.conversation_id)
    if sum(place is not None for place in scopes) != 1:
        problem = "a grant is for one path, one user, one project or one channel"
        raise Refused(BadRequest(problem=problem, field="scope"))
    if (grant.agent_id is None) == (grant.user is None):
        raise Refused(BadRequest(problem="a grant is held by either an agent or a user"))
    return grant


def is_valid_grant(grant: Grant, now: Time) -> bool:
    """Whether the grant is active and not expired."""
    in_time = grant.expires_at is None or grant.expires_at > now
    return grant.state is GrantState.ACTIVE and in_time


def end_grant(
    grant: Grant, move: GrantMove, now: Time, *, reason: str = "", seen: int | None = None
) -> Grant:
    """Revoke or expire the grant."""
    return move_record(GRANT, grant, move, now, seen=seen, reason=reason)
