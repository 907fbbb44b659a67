"""Users (persons or groups) and their external keys."""

from enum import StrEnum

from scout.base.machine import Machine, Mutable, change_record, move_record
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.identity.path import is_segment


class UserState(StrEnum):
    ACTIVE = "active"
    DELETED = "deleted"


class UserMove(StrEnum):
    DELETE = "delete"
    RESTORE = "restore"


USER = Machine(
    "user",
    UserState.ACTIVE,
    {
        UserState.ACTIVE: {UserMove.DELETE: UserState.DELETED},
        UserState.DELETED: {UserMove.RESTORE: UserState.ACTIVE},
    },
    settled=frozenset({UserState.DELETED}),
)


class KeyState(StrEnum):
    ACTIVE = "active"
    FREED = "freed"


class KeyMove(StrEnum):
    FREE = "free"


KEY = Machine(
    "connector key", KeyState.ACTIVE, {KeyState.ACTIVE: {KeyMove.FREE: KeyState.FREED}, KeyState.FREED: {}}
)


class UserKind(StrEnum):
    PERSON = "person"
    GROUP = "group"


class User(Mutable):
    """One user. `name` is the id in paths (`/<name>/…`) and in `Agent.owner`; it never changes."""

    name: str
    kind: UserKind = UserKind.PERSON
    display_name: str | None = None
    operator: bool = False
    owner: str | None = None
    state: UserState = UserState.ACTIVE
    created_by: str


class ConnectorKey(Mutable):
    """Maps (connector, external id) to a user. The external id appears nowhere else, never in a path."""

    connector: str
    external_id: str
    user: str
    state: KeyState = KeyState.ACTIVE
    reason: str = ""
    created_by: str


class ConnectorTarget(Record):
    """The destination of a reply to a connector agent."""

    connector: str
    target_id: str


def check_user(user: User) -> User:
    """Return the user; refuse a name that cannot start a path."""
    if not is_segment(user.name):
        problem = f"'{user.name:.60}' cannot be a user id: letters, digits and . _ ~ - and not a path word"
        raise Refused(BadRequest(problem=problem, field="name"))
    return user


def move_user(user: User, move: UserMove, now: Time, *, seen: int | None = None) -> User:
    """Delete or restore the user. The record stays; its keys are freed separately."""
    return move_record(USER, user, move, now, seen=seen)


def rename_user(user: User, display_name: str | None, now: Time, *, seen: int | None = None) -> User:
    """Change the display name; the user id never changes."""
    return change_record("user", user, now, seen=seen, display_name=display_name)


def free_key(key: ConnectorKey, reason: str, now: Time) -> ConnectorKey:
    """Unlink the external id from this user, so that it can be linked again."""
    return move_record(KEY, key, KeyMove.FREE, now, reason=reason)


def get_target(key: ConnectorKey) -> ConnectorTarget:
    """Return the connector and target of a key such as `telegram:123456`."""
    return ConnectorTarget(connector=key.connector, target_id=key.external_id)
