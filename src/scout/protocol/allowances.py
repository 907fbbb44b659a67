"""Requests about standing decisions: what programs may do without asking again."""

from typing import Annotated, ClassVar

from scout.base.time import Time
from scout.model.access.allowance import Allowance
from scout.protocol.attention import AttentionView
from scout.protocol.parameters import Address, Cursor, Limit, Words, describe
from scout.protocol.request import Page, Request, Write

AllowanceId = Annotated[Words, describe("the standing decision's id")]


class AllowanceView(Allowance):
    """A standing decision, whether it expired, and what it allowed last."""

    agent_address: str = ""
    expired: bool = False
    let_through: tuple[AttentionView, ...] = ()


class AddAllowance(Write[AllowanceView]):
    """Allow programs something without asking: an exact command, a tool, or a tool on some files."""

    operation: ClassVar[str] = "allow.add"
    route: ClassVar[str] = "POST /v1/allowances"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("command",)
    permission: ClassVar[str] = "a person"
    folder_field: ClassVar[str] = "project"

    command: Annotated[Words | None, describe("this exact command")] = None
    tool: Annotated[Words | None, describe("this tool, by the name its program uses")] = None
    path: Annotated[
        Words | None, describe("files that match this absolute pattern, such as /work/src/**")
    ] = None
    agent: Annotated[Address | None, describe("for this agent")] = None
    project: Annotated[Words | None, describe("or this project")] = None
    everywhere: Annotated[bool, describe("or all your agents")] = False
    until: Annotated[Time | None, describe("expiry time; default: until revoked")] = None
    reason: Annotated[Words, describe("why")] = ""


class ListAllowances(Request[Page[AllowanceView]]):
    """List standing decisions, newest first."""

    operation: ClassVar[str] = "allow.list"
    route: ClassVar[str] = "GET /v1/allowances"
    permission: ClassVar[str] = "a person"

    all: Annotated[bool, describe("include revoked and expired ones")] = False
    cursor: Cursor = None
    limit: Limit = None


class GetAllowance(Request[AllowanceView]):
    """Show a standing decision and what it allowed."""

    operation: ClassVar[str] = "allow.show"
    route: ClassVar[str] = "GET /v1/allowances/{allowanceId}"
    words: ClassVar[tuple[str, ...]] = ("allowanceId",)
    permission: ClassVar[str] = "a person"

    allowance_id: AllowanceId


class RevokeAllowance(Write[AllowanceView]):
    """Revoke a standing decision. You are asked again from now on."""

    operation: ClassVar[str] = "allow.revoke"
    route: ClassVar[str] = "POST /v1/allowances/{allowanceId}/revoke"
    words: ClassVar[tuple[str, ...]] = ("allowanceId",)
    permission: ClassVar[str] = "a person"

    allowance_id: AllowanceId
    reason: Annotated[Words, describe("why")] = "revoked"
