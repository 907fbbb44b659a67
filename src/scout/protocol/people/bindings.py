"""Requests about bindings: chats that are bound to a conversation or an agent."""

from typing import Annotated, ClassVar

from scout.model.people.binding import Binding
from scout.protocol.parameters import Address, Cursor, Limit, Revision, Words, describe
from scout.protocol.request import Page, Request, Write

_WHO = "the operator, or a person for their own chats, channels and agents"


class BindingView(Binding):
    """A binding with the name of the channel or agent that it leads to."""

    target: str


class AddBinding(Write[BindingView]):
    """Bind a chat, or a thread in it, to a channel, a conversation or an agent."""

    operation: ClassVar[str] = "binding.add"
    route: ClassVar[str] = "POST /v1/bindings"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("connector", "chat")
    flags: ClassVar[dict[str, str]] = {"topicId": "thread", "conversationId": "conversation"}
    permission: ClassVar[str] = _WHO

    connector: Annotated[Words, describe("telegram, whatsapp, matrix or slack")]
    chat: Annotated[Words, describe("the chat's id there")]
    topic_id: Annotated[Words | None, describe("only this thread of the chat")] = None
    channel: Annotated[Words | None, describe("a channel: the chat and the channel see the same talk")] = None
    conversation_id: Annotated[Words | None, describe("or any conversation, by its id")] = None
    agent: Annotated[Address | None, describe("or the agent that answers plain text in the chat")] = None


class ListBindings(Request[Page[BindingView]]):
    """List bindings, newest first."""

    operation: ClassVar[str] = "binding.list"
    route: ClassVar[str] = "GET /v1/bindings"
    permission: ClassVar[str] = "the operator sees all; others see their own"

    all: Annotated[bool, describe("include closed bindings")] = False
    cursor: Cursor = None
    limit: Limit = None


class ShowBinding(Request[BindingView]):
    """Show a binding."""

    operation: ClassVar[str] = "binding.show"
    route: ClassVar[str] = "GET /v1/bindings/{bindingId}"
    words: ClassVar[tuple[str, ...]] = ("bindingId",)
    permission: ClassVar[str] = _WHO

    binding_id: Words


class CloseBinding(Write[BindingView]):
    """Close a binding: the chat and the conversation no longer see each other."""

    operation: ClassVar[str] = "binding.close"
    route: ClassVar[str] = "POST /v1/bindings/{bindingId}/close"
    words: ClassVar[tuple[str, ...]] = ("bindingId",)
    permission: ClassVar[str] = _WHO

    binding_id: Words
    reason: Annotated[Words, describe("why")] = "closed"
    revision: Revision = None


class ReopenBinding(Write[BindingView]):
    """Reopen a closed binding."""

    operation: ClassVar[str] = "binding.reopen"
    route: ClassVar[str] = "POST /v1/bindings/{bindingId}/reopen"
    words: ClassVar[tuple[str, ...]] = ("bindingId",)
    permission: ClassVar[str] = _WHO

    binding_id: Words
    revision: Revision = None
