"""Requests about names and rights: aliases, cards, tokens and grants."""

from typing import Annotated, ClassVar

from scout.base.record import Record
from scout.base.time import Time
from scout.model.access.grant import Action, Grant
from scout.model.access.token import Token, TokenKind
from scout.model.alias import Alias
from scout.model.card import Card
from scout.protocol.parameters import Address, Cursor, Limit, Revision, Seconds, Words, describe
from scout.protocol.request import Page, Request, Write


class AliasView(Alias):
    """An alias with its canonical address."""

    means: str


class SetAlias(Write[AliasView]):
    """Create or change an alias for an agent or session."""

    operation: ClassVar[str] = "alias.set"
    route: ClassVar[str] = "POST /v1/aliases"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("name", "target")
    permission: ClassVar[str] = "the operator"

    name: Annotated[Words, describe("the alias")]
    target: Annotated[Words, describe("an address, optionally with harness, model and node, or a session")]
    revision: Revision = None


class ListAliases(Request[Page[AliasView]]):
    """List your aliases, newest first."""

    operation: ClassVar[str] = "alias.list"
    route: ClassVar[str] = "GET /v1/aliases"

    cursor: Cursor = None
    limit: Limit = None


class ShowAlias(Request[AliasView]):
    """Show an alias and its target."""

    operation: ClassVar[str] = "alias.show"
    route: ClassVar[str] = "GET /v1/aliases/{name}"
    words: ClassVar[tuple[str, ...]] = ("name",)

    name: Words


class RemoveAlias(Write[AliasView]):
    """Remove an alias."""

    operation: ClassVar[str] = "alias.remove"
    route: ClassVar[str] = "POST /v1/aliases/{name}/remove"
    words: ClassVar[tuple[str, ...]] = ("name",)
    permission: ClassVar[str] = "the operator"

    name: Words


class RepairAlias(Write[AliasView]):
    """Repair a broken alias with its old target or a new one."""

    operation: ClassVar[str] = "alias.repair"
    route: ClassVar[str] = "POST /v1/aliases/{name}/repair"
    words: ClassVar[tuple[str, ...]] = ("name", "target")
    permission: ClassVar[str] = "the operator"

    name: Words
    target: Annotated[Words | None, describe("the new target; default: the old one")] = None


class CreateCard(Write[Card]):
    """Create a card: a return address that others can use a limited number of times."""

    operation: ClassVar[str] = "card.create"
    route: ClassVar[str] = "POST /v1/cards"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("agent",)
    permission: ClassVar[str] = "the agent itself, or callers who control it"

    agent: Annotated[Words | None, describe("the agent it reaches; default: you")] = None
    name: Annotated[Words | None, describe("the card's name")] = None
    expires_in: Annotated[Seconds | None, describe("expires after this many seconds")] = None
    max_uses: Annotated[int | None, describe("maximum number of uses; default 1 for agents")] = None
    reply_to_session_id: Annotated[Words | None, describe("the live session that receives the replies")] = (
        None
    )


class ListCards(Request[Page[Card]]):
    """List your cards, newest first."""

    operation: ClassVar[str] = "card.list"
    route: ClassVar[str] = "GET /v1/cards"

    cursor: Cursor = None
    limit: Limit = None


class ShowCard(Request[Card]):
    """Show a card."""

    operation: ClassVar[str] = "card.show"
    route: ClassVar[str] = "GET /v1/cards/{cardId}"
    words: ClassVar[tuple[str, ...]] = ("cardId",)

    card_id: Words


class RevokeCard(Write[Card]):
    """Revoke a card."""

    operation: ClassVar[str] = "card.revoke"
    route: ClassVar[str] = "POST /v1/cards/{cardId}/revoke"
    words: ClassVar[tuple[str, ...]] = ("cardId",)
    permission: ClassVar[str] = "its creator, or the operator"

    card_id: Words
    reason: Annotated[Words, describe("why")] = "revoked"


class TokenView(Token):
    """A token without its secret; `hashed` is empty."""

    address: str | None = None


class Minted(Record):
    """A token and its secret, which is shown only once."""

    token: TokenView
    secret: str


class CreateToken(Write[Minted]):
    """Create a token. Its secret is shown once."""

    operation: ClassVar[str] = "token.create"
    route: ClassVar[str] = "POST /v1/tokens"
    status: ClassVar[int] = 201
    permission: ClassVar[str] = "the operator"

    kind: Annotated[TokenKind, describe("operator, agent, host, node, connector or guest")] = TokenKind.AGENT
    agent: Annotated[Words | None, describe("the agent that uses it")] = None
    user: Annotated[Words | None, describe("or the user who uses it, in person")] = None
    session_id: Annotated[Words | None, describe("the only session it is valid for")] = None
    node: Words | None = None
    connector: Words | None = None
    label: Annotated[Words, describe("a note about its purpose")] = ""
    expires_in: Annotated[Seconds | None, describe("expires after this many seconds")] = None


class ListTokens(Request[Page[TokenView]]):
    """List tokens, newest first, without their secrets."""

    operation: ClassVar[str] = "token.list"
    route: ClassVar[str] = "GET /v1/tokens"
    permission: ClassVar[str] = "the operator"

    cursor: Cursor = None
    limit: Limit = None


class RevokeToken(Write[TokenView]):
    """Revoke a token."""

    operation: ClassVar[str] = "token.revoke"
    route: ClassVar[str] = "POST /v1/tokens/{tokenId}/revoke"
    words: ClassVar[tuple[str, ...]] = ("tokenId",)
    permission: ClassVar[str] = "the operator, or the token itself"

    token_id: Words
    reason: Annotated[Words, describe("why")] = "revoked"


class RotateToken(Write[Minted]):
    """Replace a token with a new one for the same identity. The old one is revoked."""

    operation: ClassVar[str] = "token.rotate"
    route: ClassVar[str] = "POST /v1/tokens/{tokenId}/rotate"
    words: ClassVar[tuple[str, ...]] = ("tokenId",)
    permission: ClassVar[str] = "the operator, or the token itself"

    token_id: Words


class WebLink(Record):
    """A link that signs a browser in, once, until `expires_at`."""

    url: str
    expires_at: Time


class OpenWeb(Write[WebLink]):
    """Create a link that opens the web page. It works once, within a minute."""

    operation: ClassVar[str] = "web"
    route: ClassVar[str] = "POST /v1/web/links"
    status: ClassVar[int] = 201
    permission: ClassVar[str] = "the operator"


class GrantView(Grant):
    """A grant with the address of the agent that holds it, if it is held by one."""

    address: str | None = None


class AddGrant(Write[GrantView]):
    """Grant an agent a right it does not have by default."""

    operation: ClassVar[str] = "grant.add"
    route: ClassVar[str] = "POST /v1/grants"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("action",)
    permission: ClassVar[str] = "the operator"

    action: Annotated[Action, describe("address, ask, spawn, read or control")]
    agent: Annotated[Address | None, describe("the agent that receives the right")] = None
    holder: Annotated[Words | None, describe("or all agents of this user")] = None
    node: Annotated[Words | None, describe("or all agents of this guest machine")] = None
    path: Annotated[Words | None, describe("applies to this path and everything below it")] = None
    channel: Annotated[Words | None, describe("or to this channel")] = None
    project: Annotated[Words | None, describe("or this project")] = None
    user: Annotated[Words | None, describe("or to everything of this user")] = None
    expires_in: Annotated[Seconds | None, describe("expires after this many seconds")] = None
    reason: Annotated[Words, describe("why")] = ""


class ListGrants(Request[Page[GrantView]]):
    """List grants, newest first."""

    operation: ClassVar[str] = "grant.list"
    route: ClassVar[str] = "GET /v1/grants"
    permission: ClassVar[str] = "the operator"

    cursor: Cursor = None
    limit: Limit = None


class RevokeGrant(Write[GrantView]):
    """Revoke a grant."""

    operation: ClassVar[str] = "grant.revoke"
    route: ClassVar[str] = "POST /v1/grants/{grantId}/revoke"
    words: ClassVar[tuple[str, ...]] = ("grantId",)
    permission: ClassVar[str] = "the operator"

    grant_id: Words
    reason: Annotated[Words, describe("why")] = "revoked"
