"""Users (persons or groups), and the keys that link their chat accounts."""

import re
from enum import StrEnum

from scout.base.machine import Machine, Mutable, change_record, move_record
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.identity.path import is_segment


class UserState(StrEnum):
    ACTIVE = "active"
    RETIRED = "retired"

    @classmethod
    def _missing_(cls, value: object) -> "UserState | None":
        # Older logs use this word.
        return cls.RETIRED if value == "deleted" else None


class UserMove(StrEnum):
    RETIRE = "retire"
    REVIVE = "revive"


USER = Machine(
    "user",
    UserState.ACTIVE,
    {
        UserState.ACTIVE: {UserMove.RETIRE: UserState.RETIRED},
        UserState.RETIRED: {UserMove.REVIVE: UserState.ACTIVE},
    },
    settled=frozenset({UserState.RETIRED}),
)


class KeyState(StrEnum):
    ACTIVE = "active"
    FREED = "freed"


class KeyMove(StrEnum):
    UPDATE = "update"
    FREE = "free"


KEY = Machine(
    "connector key",
    KeyState.ACTIVE,
    {
        KeyState.ACTIVE: {KeyMove.UPDATE: KeyState.ACTIVE, KeyMove.FREE: KeyState.FREED},
        KeyState.FREED: {},
    },
)


class UserKind(StrEnum):
    PERSON = "person"
    GROUP = "group"


class User(Mutable):
    """One user. `name` is the id in paths (`/<name>/…`) and in `Agent.owner`; it never changes.

    `owner`: the user who controls this one, a sub-user. `retired_agents`: the agents that were retired with
    the user, and `retired_users` its sub-users; reviving it revives them.
    """

    name: str
    kind: UserKind = UserKind.PERSON
    display_name: str | None = None
    operator: bool = False
    owner: str | None = None
    state: UserState = UserState.ACTIVE
    reason: str = ""
    retired_agents: tuple[str, ...] = ()
    retired_users: tuple[str, ...] = ()
    created_by: str


class QuietHours(Record):
    """The daily time in which nothing but high risk is sent: from `start` to `end`, in a time zone.

    Both are minutes since midnight; a `start` after the `end` crosses midnight.
    """

    start: int
    end: int
    time_zone: str = "UTC"

    def __str__(self) -> str:
        return f"{_format_minute(self.start)}-{_format_minute(self.end)} {self.time_zone}"


class ConnectorKey(Mutable):
    """Maps (connector, external id) to a user. The external id appears nowhere else, never in a path.

    The external id is the person's, or the chat's for a group. `chat_id`: the private chat in which the
    person is reached, or the group's chat. `label`: the display name of the account.
    """

    connector: str
    external_id: str
    user: str
    chat_id: str | None = None
    label: str = ""
    quiet: QuietHours | None = None
    state: KeyState = KeyState.ACTIVE
    reason: str = ""
    # Volatile: when a message last came from this account.
    last_used_at: Time | None = None
    created_by: str


class ConnectorTarget(Record):
    """The destination of a reply to a connector agent."""

    connector: str
    target_id: str


def check_user(user: User) -> User:
    """Return the user; refuse a name that cannot start a path, and a group that belongs to a user."""
    if not is_segment(user.name):
        problem = f"'{user.name:.60}' cannot be a user id: letters, digits and . _ ~ - and not a path word"
        raise Refused(BadRequest(problem=problem, field="name"))
    if user.owner == user.name:
        raise Refused(BadRequest(problem="a user cannot be its own sub-user", field="owner"))
    return user


def move_user(
    user: User,
    move: UserMove,
    now: Time,
    *,
    seen: int | None = None,
    reason: str = "",
    retired_agents: tuple[str, ...] = (),
    retired_users: tuple[str, ...] = (),
) -> User:
    """Retire or revive the user. The record stays; its keys are freed and its agents retired separately."""
    return move_record(
        USER,
        user,
        move,
        now,
        seen=seen,
        reason=reason,
        retired_agents=retired_agents,
        retired_users=retired_users,
    )


def rename_user(user: User, display_name: str | None, now: Time, *, seen: int | None = None) -> User:
    """Change the display name; the user id never changes."""
    return change_record("user", user, now, seen=seen, display_name=display_name)


# -- keys --------------------------------------------------------------------------------------------


def free_key(key: ConnectorKey, reason: str, now: Time, *, seen: int | None = None) -> ConnectorKey:
    """Unlink the external id from this user, so that it can be linked again."""
    return move_record(KEY, key, KeyMove.FREE, now, seen=seen, reason=reason)


def set_quiet_hours(
    key: ConnectorKey, quiet: QuietHours | None, now: Time, *, seen: int | None = None
) -> ConnectorKey:
    """Set or remove the quiet hours of a chat account."""
    return move_record(KEY, key, KeyMove.UPDATE, now, seen=seen, quiet=quiet)


def update_account(key: ConnectorKey, chat_id: str | None, label: str, now: Time) -> ConnectorKey:
    """Change the chat in which the person is reached, and the display name of the account."""
    return move_record(KEY, key, KeyMove.UPDATE, now, chat_id=chat_id, label=label)


def get_target(key: ConnectorKey) -> ConnectorTarget:
    """Return the connector and target of a key such as `telegram:123456`."""
    return ConnectorTarget(connector=key.connector, target_id=key.external_id)


# -- quiet hours -------------------------------------------------------------------------------------

_DAY = 24 * 60
_HOURS = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)-([01]?\d|2[0-3]):([0-5]\d)")


def read_quiet_hours(text: str, time_zone: str) -> QuietHours:
    """Return the quiet hours of a text such as `22:00-07:00`."""
    found = _HOURS.fullmatch(text.replace(" ", ""))
    if found is None:
        problem = f"'{text:.60}' is not a time span: write it as 22:00-07:00"
        raise Refused(BadRequest(problem=problem, field="hours"))
    first, second, third, fourth = map(int, found.groups())
    start, end = first * 60 + second, third * 60 + fourth
    if start == end:
        raise Refused(BadRequest(problem="quiet hours need a start and an end that differ", field="hours"))
    return QuietHours(start=start, end=end, time_zone=time_zone)


def count_quiet_minutes(quiet: QuietHours, minute: int) -> int:
    """Return the minutes until the quiet hours end, by the wall clock; 0 outside of them.

    `minute`: the minute of the day, in their time zone.
    """
    length = (quiet.end - quiet.start) % _DAY
    passed = (minute - quiet.start) % _DAY
    return max(length - passed, 0)


def _format_minute(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
