"""Requests about users: people, groups and sub-users, and the chat accounts that are linked to them."""

from typing import Annotated, ClassVar

from scout.base.record import Record
from scout.base.time import Time
from scout.model.people.user import ConnectorKey, User, UserKind
from scout.protocol.parameters import Cursor, Limit, Revision, Words, describe
from scout.protocol.request import Page, Request, Write

_PERSON = "the operator, the user in person, or the owner of the sub-user"
UserName = Annotated[Words, describe("a user's id, such as ada")]
Connector = Annotated[Words, describe("telegram, whatsapp, matrix or slack")]


class UserView(User):
    """A user with the address of the person, and how many chat accounts are linked."""

    address: str
    keys: int = 0


class LinkCodeView(Record):
    """A link code that was not used yet. The code itself is shown once, when it is issued."""

    connector: str
    expires_at: Time


class UserDetail(User):
    """A user with their chat accounts, open link codes, sub-users and agents.

    `gateway`: the agent through which the owner reaches a sub-user.
    """

    address: str
    gateway: str | None = None
    keys: tuple[ConnectorKey, ...] = ()
    codes: tuple[LinkCodeView, ...] = ()
    subusers: tuple[str, ...] = ()
    agents: int = 0
    notes: tuple[str, ...] = ()


class AddUser(Write[UserDetail]):
    """Add a person, a group, or a sub-user."""

    operation: ClassVar[str] = "user.add"
    route: ClassVar[str] = "POST /v1/users"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("user",)
    flags: ClassVar[dict[str, str]] = {"displayName": "name"}
    permission: ClassVar[str] = "the operator"

    user: Annotated[Words, describe("the id in paths, such as ada in /ada/direct; it never changes")]
    kind: Annotated[UserKind, describe("person or group")] = UserKind.PERSON
    owner: Annotated[Words | None, describe("the user who controls it: it becomes a sub-user")] = None
    display_name: Annotated[Words | None, describe("the name that is shown")] = None


class ListUsers(Request[Page[UserView]]):
    """List users, newest first."""

    operation: ClassVar[str] = "user.list"
    route: ClassVar[str] = "GET /v1/users"
    permission: ClassVar[str] = "the operator sees all; others see themselves and their sub-users"

    all: Annotated[bool, describe("include retired users")] = False
    owner: Annotated[Words | None, describe("only the sub-users of this user")] = None
    cursor: Cursor = None
    limit: Limit = None


class ShowUser(Request[UserDetail]):
    """Show a user: chat accounts with their last use, sub-users, agents."""

    operation: ClassVar[str] = "user.show"
    route: ClassVar[str] = "GET /v1/users/{user}"
    words: ClassVar[tuple[str, ...]] = ("user",)
    permission: ClassVar[str] = _PERSON

    user: UserName


class RenameUser(Write[UserDetail]):
    """Change the name that is shown for a user."""

    operation: ClassVar[str] = "user.rename"
    route: ClassVar[str] = "POST /v1/users/{user}/rename"
    words: ClassVar[tuple[str, ...]] = ("user", "displayName")
    permission: ClassVar[str] = _PERSON

    user: UserName
    display_name: Annotated[Words, describe("the name that is shown; empty: none")]
    revision: Revision = None


class IssuedCode(Record):
    """A one-time code, shown once. Typed in a chat, it links that chat account to the user."""

    user: str
    connector: str
    code: str
    expires_at: Time
    kind: UserKind


class LinkUser(Write[IssuedCode]):
    """Print a one-time code that links a chat account to a user. A new code replaces the old one."""

    operation: ClassVar[str] = "user.link"
    route: ClassVar[str] = "POST /v1/users/{user}/link"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("user", "connector")
    permission: ClassVar[str] = _PERSON

    user: UserName
    connector: Connector


class UnlinkUser(Write[ConnectorKey]):
    """Unlink a chat account. What is written there no longer counts as this user's."""

    operation: ClassVar[str] = "user.unlink"
    route: ClassVar[str] = "POST /v1/users/{user}/unlink"
    words: ClassVar[tuple[str, ...]] = ("user", "connector")
    permission: ClassVar[str] = _PERSON

    user: UserName
    connector: Annotated[Words | None, describe("the connector, if the user has one account there")] = None
    key_id: Annotated[Words | None, describe("the account, as `user show` lists it")] = None
    reason: Annotated[Words, describe("why")] = "unlinked"


class SetQuietHours(Write[ConnectorKey]):
    """Set the hours in which a chat account gets only high-risk items; `off` removes them."""

    operation: ClassVar[str] = "user.quiet"
    route: ClassVar[str] = "POST /v1/users/{user}/quiet"
    words: ClassVar[tuple[str, ...]] = ("user", "connector", "hours")
    flags: ClassVar[dict[str, str]] = {"timeZone": "tz"}
    permission: ClassVar[str] = _PERSON

    user: UserName
    connector: Connector
    hours: Annotated[Words, describe("a time span such as 22:00-07:00, or off")]
    time_zone: Annotated[
        Words | None, describe("such as Europe/Berlin; default: the one set before, else the machine's")
    ] = None
    key_id: Annotated[Words | None, describe("the account, if the user has several there")] = None
    revision: Revision = None


class ReplyTarget(Record):
    """Where a reply to an agent behind a chat goes, and the rule that decided."""

    connector: str
    target_id: str
    key_id: str | None = None
    rule: str
    considered: tuple[str, ...] = ()


class ShowTarget(Request[ReplyTarget]):
    """Show which chat account a message to a user on a connector goes to, and why."""

    operation: ClassVar[str] = "user.target"
    route: ClassVar[str] = "GET /v1/users/{user}/target"
    words: ClassVar[tuple[str, ...]] = ("user", "connector")
    permission: ClassVar[str] = _PERSON

    user: UserName
    connector: Connector


class RetireUser(Write[UserDetail]):
    """Retire a user: unlink the chat accounts, retire the agents and sub-users, close the bindings.

    Nothing is deleted: `user revive` brings the user and the agents back. Chat accounts are linked again by
    a new code.
    """

    operation: ClassVar[str] = "user.retire"
    route: ClassVar[str] = "POST /v1/users/{user}/retire"
    words: ClassVar[tuple[str, ...]] = ("user",)
    permission: ClassVar[str] = "the operator, or the owner of the sub-user"

    user: UserName
    reason: Annotated[Words, describe("why")] = ""
    revision: Revision = None


class ReviveUser(Write[UserDetail]):
    """Revive a retired user, with the agents and sub-users that were retired with them."""

    operation: ClassVar[str] = "user.revive"
    route: ClassVar[str] = "POST /v1/users/{user}/revive"
    words: ClassVar[tuple[str, ...]] = ("user",)
    permission: ClassVar[str] = "the operator, or the owner of the sub-user"

    user: UserName
    revision: Revision = None


class ListKeys(Request[Page[ConnectorKey]]):
    """List linked chat accounts, newest first."""

    operation: ClassVar[str] = "user.keys"
    route: ClassVar[str] = "GET /v1/keys"
    words: ClassVar[tuple[str, ...]] = ("user",)
    permission: ClassVar[str] = "the operator sees all; others see their own and their sub-users'"

    user: Annotated[Words | None, describe("only the accounts of this user")] = None
    connector: Annotated[Words | None, describe("only accounts of this connector")] = None
    all: Annotated[bool, describe("include unlinked accounts")] = False
    cursor: Cursor = None
    limit: Limit = None


class ShowKey(Request[ConnectorKey]):
    """Show a linked chat account."""

    operation: ClassVar[str] = "user.key"
    route: ClassVar[str] = "GET /v1/keys/{keyId}"
    words: ClassVar[tuple[str, ...]] = ("keyId",)
    permission: ClassVar[str] = _PERSON

    key_id: Words
