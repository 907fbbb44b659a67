"""A person or a group, and the keys by which the outside knows them."""

from enum import StrEnum

from scout.base.machine import Machine
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.identity.path import is_segment
from scout.model.change import Mutable, changed, moved


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
    """`name` is the user id of paths (`/<name>/…`) and what `Agent.owner` holds; it never changes."""

    name: str
    kind: UserKind = UserKind.PERSON
    display_name: str | None = None
    operator: bool = False
    owner: str | None = None
    state: UserState = UserState.ACTIVE
    created_by: str


class ConnectorKey(Mutable):
    """(connector, external id) ↔ user. The external id appears nowhere else, never in a path."""

    connector: str
    external_id: str
    user: str
    state: KeyState = KeyState.ACTIVE
    reason: str = ""
    created_by: str


class ConnectorTarget(Record):
    """Where a reply to a connector agent goes."""

    connector: str
    target_id: str


def check_user(user: User) -> User:
    """The same user, or the refusal of a name that cannot begin a path."""
    if not is_segment(user.name):
        problem = f"'{user.name:.60}' cannot be a user id: letters, digits and . _ ~ - and no word of paths"
        raise Refused(BadRequest(problem=problem, field="name"))
    return user


def move_user(user: User, move: UserMove, now: Time, *, seen: int | None = None) -> User:
    """Delete (the record stays; its keys are freed beside this) or restore."""
    return moved(USER, user, move, now, seen=seen)


def rename_user(user: User, display_name: str | None, now: Time, *, seen: int | None = None) -> User:
    """What is shown of them; their id never changes."""
    return changed("user", user, now, seen=seen, display_name=display_name)


def free_key(key: ConnectorKey, reason: str, now: Time) -> ConnectorKey:
    """The external id no longer means this user, and may be linked anew."""
    return moved(KEY, key, KeyMove.FREE, now, reason=reason)


def target_of(key: ConnectorKey) -> ConnectorTarget:
    """`telegram:123456` as connector and target."""
    return ConnectorTarget(connector=key.connector, target_id=key.external_id)
