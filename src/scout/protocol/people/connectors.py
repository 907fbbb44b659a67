"""Requests about connectors, the chat platforms on which Scout is reached, and about posts to people."""

from enum import StrEnum
from typing import Annotated, ClassVar

from scout.base.record import Record
from scout.base.time import Time
from scout.model.people.chat_post import ChatPost
from scout.protocol.parameters import Body, Cursor, Limit, Words, describe
from scout.protocol.people.users import UserName
from scout.protocol.request import Page, Request, Write

_OPERATOR = "the operator"
ConnectorName = Annotated[Words, describe("telegram, whatsapp, matrix or slack")]


class ConnectorState(StrEnum):
    """How a connector is."""

    OFF = "off"  # not set up
    STARTING = "starting"
    RUNNING = "running"
    RETRYING = "retrying"  # the platform does not answer
    CREDENTIALS = "credentials"  # the platform refuses the secret
    FAILED = "failed"  # it cannot be loaded


class ConnectorField(Record):
    """A value that a connector needs. `value` is set now; a secret is never shown."""

    name: str
    question: str
    secret: bool = False
    default: str | None = None
    value: str | None = None


class ConnectorView(Record):
    """A connector: whether it works, as which account, and what waits to be sent there."""

    connector: str
    state: ConnectorState
    account: str = ""
    problem: str = ""
    since: Time | None = None
    waiting: int = 0
    fields: tuple[ConnectorField, ...] = ()


class AddConnector(Write[ConnectorView]):
    """Set up a connector and start it. Its credentials are proved first."""

    operation: ClassVar[str] = "connector.add"
    route: ClassVar[str] = "POST /v1/connectors"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("connector",)
    flags: ClassVar[dict[str, str]] = {"values": "set"}
    secret_field: ClassVar[str] = "values"
    permission: ClassVar[str] = _OPERATOR

    connector: ConnectorName
    values: Annotated[dict[str, str], describe("the values of its fields, secrets included")] = {}


class ListConnectors(Request[Page[ConnectorView]]):
    """List the connectors that are set up, and with --all the others too."""

    operation: ClassVar[str] = "connector.list"
    route: ClassVar[str] = "GET /v1/connectors"
    permission: ClassVar[str] = "any person"

    all: Annotated[bool, describe("include connectors that are not set up")] = False


class ShowConnector(Request[ConnectorView]):
    """Show a connector and the values that it needs."""

    operation: ClassVar[str] = "connector.show"
    route: ClassVar[str] = "GET /v1/connectors/{connector}"
    words: ClassVar[tuple[str, ...]] = ("connector",)
    permission: ClassVar[str] = _OPERATOR

    connector: ConnectorName


class ProveConnector(Write[ConnectorView]):
    """Prove the credentials of a connector, and send a message to your own chats there."""

    operation: ClassVar[str] = "connector.test"
    route: ClassVar[str] = "POST /v1/connectors/{connector}/test"
    words: ClassVar[tuple[str, ...]] = ("connector",)
    permission: ClassVar[str] = _OPERATOR

    connector: ConnectorName
    text: Annotated[Words, describe("the message")] = "Scout is connected."


class RemoveConnector(Write[ConnectorView]):
    """Stop a connector and forget its secrets. Linked accounts stay linked."""

    operation: ClassVar[str] = "connector.remove"
    route: ClassVar[str] = "POST /v1/connectors/{connector}/remove"
    words: ClassVar[tuple[str, ...]] = ("connector",)
    permission: ClassVar[str] = _OPERATOR

    connector: ConnectorName


# -- posts -------------------------------------------------------------------------------------------


class PostedToUser(Record):
    """The message, and the chats that it is shown in. Without any, it waits in the user's inbox."""

    message_id: str
    conversation_id: str
    user: str
    posts: tuple[ChatPost, ...] = ()


class PostToUser(Write[PostedToUser]):
    """Post a message to a user, in every chat in which they are reached."""

    operation: ClassVar[str] = "post"
    route: ClassVar[str] = "POST /v1/users/{user}/post"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("user", "body")
    flags: ClassVar[dict[str, str]] = {"attachments": "attach"}
    permission: ClassVar[str] = "callers who may address the user"

    user: UserName
    body: Body
    attachments: Annotated[
        tuple[Words, ...], describe("stored files, each as SHA256 or SHA256:NAME; maximum 32")
    ] = ()


class ListPosts(Request[Page[ChatPost]]):
    """List what was shown in chats, newest first."""

    operation: ClassVar[str] = "connector.posts"
    route: ClassVar[str] = "GET /v1/posts"
    words: ClassVar[tuple[str, ...]] = ("user",)
    permission: ClassVar[str] = "the operator sees all; a person sees their own"

    user: Annotated[Words | None, describe("only posts to this user")] = None
    cursor: Cursor = None
    limit: Limit = None
