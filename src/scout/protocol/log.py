"""Requests that read the log: pages of it, one agent's part of it, and the stream."""

from typing import Annotated, ClassVar

from scout.model.events.event_types import AnyEvent
from scout.protocol.parameters import Address, Limit, Words, describe
from scout.protocol.request import Page, Request


class ReadLog(Request[Page[AnyEvent]]):
    """Read the log, oldest first.

    `next` continues after the page; with `newest` or `before` it is the number to give as `before`.
    """

    operation: ClassVar[str] = "log"
    route: ClassVar[str] = "GET /v1/log"
    permission: ClassVar[str] = "only what you may read"

    after: Annotated[int, describe("only events after this sequence number")] = 0
    before: Annotated[
        int | None, describe("the newest events before this sequence number, instead of the oldest after one")
    ] = None
    newest: Annotated[bool, describe("start with the newest page")] = False
    agent: Annotated[Words | None, describe("only events about this agent")] = None
    conversation: Annotated[Words | None, describe("only this conversation")] = None
    work: Annotated[Words | None, describe("only this work item")] = None
    flight: Annotated[Words | None, describe("only this flight")] = None
    family: Annotated[Words | None, describe("only event types with this prefix, such as collab.flight")] = (
        None
    )
    limit: Limit = None


class Watch(Request[AnyEvent]):
    """Stream the log as server-sent events; each id is the sequence number."""

    operation: ClassVar[str] = "watch"
    route: ClassVar[str] = "GET /v1/events"
    permission: ClassVar[str] = "only what you may read"

    after: Annotated[int | None, describe("start after this sequence number; default: now")] = None
    agent: Annotated[Words | None, describe("only events about this agent")] = None
    conversation: Annotated[Words | None, describe("only this conversation")] = None
    work: Annotated[Words | None, describe("only this work item")] = None
    flight: Annotated[Words | None, describe("only this flight")] = None
    family: Annotated[Words | None, describe("only event types with this prefix, such as collab.flight")] = (
        None
    )
    subtree: Annotated[Words | None, describe("only agents at or below this path")] = None


class ReadFeed(Request[Page[AnyEvent]]):
    """Read an agent's history: messages, deliveries, flights and errors, oldest first."""

    operation: ClassVar[str] = "feed"
    route: ClassVar[str] = "GET /v1/agents/{address}/feed"
    words: ClassVar[tuple[str, ...]] = ("address",)
    permission: ClassVar[str] = "callers who may read it"

    address: Address
    after: Annotated[int, describe("only events after this sequence number")] = 0
    limit: Limit = None
