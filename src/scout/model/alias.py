"""Aliases: a user's short name for an agent (with harness, model, node) or for one exact session."""

from enum import StrEnum

from msgspec import UNSET

from scout.base.machine import Machine, Mutable, move_record
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.model.imported import Origin


class AliasState(StrEnum):
    ACTIVE = "active"
    BROKEN = "broken"
    REMOVED = "removed"


class AliasMove(StrEnum):
    RETARGET = "retarget"
    BREAK = "break"
    REPAIR = "repair"
    REMOVE = "remove"


ALIAS = Machine(
    "alias",
    AliasState.ACTIVE,
    {
        AliasState.ACTIVE: {
            AliasMove.RETARGET: AliasState.ACTIVE,
            AliasMove.BREAK: AliasState.BROKEN,
            AliasMove.REMOVE: AliasState.REMOVED,
        },
        AliasState.BROKEN: {
            AliasMove.RETARGET: AliasState.ACTIVE,
            AliasMove.REPAIR: AliasState.ACTIVE,
            AliasMove.REMOVE: AliasState.REMOVED,
        },
        AliasState.REMOVED: {},
    },
)


class AliasTarget(Record):
    """Either an agent (optionally narrowed by harness, model, node) or a session."""

    agent_id: str | None = None
    session_id: str | None = None
    harness: str | None = None
    model: str | None = None
    node: str | None = None


class Alias(Mutable):
    """One alias of one user. `until_session_ends`: created by Scout for a second live session."""

    owner: str
    name: str
    target: AliasTarget
    state: AliasState = AliasState.ACTIVE
    reason: str = ""
    until_session_ends: bool = False
    created_by: str
    imported_from: Origin = UNSET


def check_target(target: AliasTarget) -> AliasTarget:
    """Return the target; refuse one that an alias cannot point to."""
    if (target.agent_id is None) == (target.session_id is None):
        raise Refused(BadRequest(problem="an alias names either an agent or a session", field="target"))
    if target.session_id is not None and (target.harness or target.model or target.node):
        problem = "a session already has its harness, model and node: name the session alone"
        raise Refused(BadRequest(problem=problem, field="target"))
    return target


def retarget_alias(alias: Alias, target: AliasTarget, now: Time, *, seen: int | None = None) -> Alias:
    """Return the alias with another target; this also repairs a broken alias."""
    target = check_target(target)
    return move_record(ALIAS, alias, AliasMove.RETARGET, now, seen=seen, target=target, reason="")


def break_alias(alias: Alias, reason: str, now: Time) -> Alias:
    """Mark the alias as broken (it no longer names exactly one target) until a person repairs it."""
    return move_record(ALIAS, alias, AliasMove.BREAK, now, reason=reason)


def repair_alias(alias: Alias, now: Time, *, seen: int | None = None) -> Alias:
    """Return the alias as active again, with the same target."""
    return move_record(ALIAS, alias, AliasMove.REPAIR, now, seen=seen, reason="")


def remove_alias(alias: Alias, now: Time, *, seen: int | None = None, reason: str = "") -> Alias:
    """Remove the alias; its name is free again."""
    return move_record(ALIAS, alias, AliasMove.REMOVE, now, seen=seen, reason=reason)


def end_with_session(alias: Alias, session_id: str, now: Time) -> Alias:
    """Remove an alias that was created for this session; return any other unchanged."""
    bound = alias.until_session_ends and alias.target.session_id == session_id
    if not bound or alias.state is AliasState.REMOVED:
        return alias
    return remove_alias(alias, now, reason="its session ended")
