"""Requests about names and rights: aliases, cards, tokens, grants."""

from typing import Annotated, ClassVar

from scout.base.record import Record
from scout.model.alias import Alias
from scout.model.card import Card
from scout.model.grant import Action, Grant
from scout.model.token import Token, TokenKind
from scout.protocol.parameters import Address, Cursor, Limit, Revision, Seconds, Words, says
from scout.protocol.request import Page, Request, Write

__all__ = [
    "AddGrant",
    "AliasView",
    "CreateCard",
    "CreateToken",
    "ListAliases",
    "ListCards",
    "ListGrants",
    "ListTokens",
    "Minted",
    "RemoveAlias",
    "RepairAlias",
    "RevokeCard",
    "RevokeGrant",
    "RevokeToken",
    "RotateToken",
    "SetAlias",
    "ShowAlias",
    "ShowCard",
    "TokenView",
]


class AliasView(Alias):
    """An alias and the canonical address it stands for."""

    means: str


class SetAlias(Write[AliasView]):
    """Give an agent or session a short name of your own."""

    operation: ClassVar[str] = "alias.set"
    route: ClassVar[str] = "POST /v1/aliases"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("name", "target")
    permission: ClassVar[str] = "people: the operator"

    name: Annotated[Words, says("the short name")]
    target: Annotated[Words, says("an address, with harness, model and node if they matter, or a session")]
    revision: Revision = None


class ListAliases(Request[Page[AliasView]]):
    """List your user's aliases, newest first."""

    operation: ClassVar[str] = "alias.list"
    route: ClassVar[str] = "GET /v1/aliases"

    cursor: Cursor = None
    limit: Limit = None


class ShowAlias(Request[AliasView]):
    """Show what an alias stands for."""

    operation: ClassVar[str] = "alias.show"
    route: ClassVar[str] = "GET /v1/aliases/{name}"
    words: ClassVar[tuple[str, ...]] = ("name",)

    name: Words


class RemoveAlias(Write[AliasView]):
    """Remove an alias."""

    operation: ClassVar[str] = "alias.remove"
    route: ClassVar[str] = "POST /v1/aliases/{name}/remove"
    words: ClassVar[tuple[str, ...]] = ("name",)
    permission: ClassVar[str] = "people: the operator"

    name: Words


class RepairAlias(Write[AliasView]):
    """Use a broken alias again, with the target it had or with another."""

    operation: ClassVar[str] = "alias.repair"
    route: ClassVar[str] = "POST /v1/aliases/{name}/repair"
    words: ClassVar[tuple[str, ...]] = ("name", "target")
    permission: ClassVar[str] = "people: the operator"

    name: Words
    target: Annotated[Words | None, says("what it means now; default: what it meant")] = None


class CreateCard(Write[Card]):
    """Make a return address that others can use, once or a number of times."""

    operation: ClassVar[str] = "card.create"
    route: ClassVar[str] = "POST /v1/cards"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("agent",)
    permission: ClassVar[str] = "the agent itself, or who controls it"

    agent: Annotated[Words | None, says("whom it stands for; you unless said")] = None
    name: Annotated[Words | None, says("what it is called")] = None
    expires_in: Annotated[Seconds | None, says("seconds until it is over")] = None
    max_uses: Annotated[int | None, says("how often it may be used; once, if an agent makes it")] = None
    reply_to_session_id: Annotated[Words | None, says("the live session that wants the answers")] = None


class ListCards(Request[Page[Card]]):
    """List the cards you made, newest first."""

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
    """Take a card back."""

    operation: ClassVar[str] = "card.revoke"
    route: ClassVar[str] = "POST /v1/cards/{cardId}/revoke"
    words: ClassVar[tuple[str, ...]] = ("cardId",)
    permission: ClassVar[str] = "who made it, or the operator"

    card_id: Words
    reason: Annotated[Words, says("why")] = "revoked"


class TokenView(Token):
    """A credential without its secret; `hashed` is left empty."""

    address: str | None = None


class Minted(Record):
    """A credential and its secret, which is shown this once."""

    token: TokenView
    secret: str


class CreateToken(Write[Minted]):
    """Make a credential; its secret is shown once."""

    operation: ClassVar[str] = "token.create"
    route: ClassVar[str] = "POST /v1/tokens"
    status: ClassVar[int] = 201
    permission: ClassVar[str] = "the operator"

    kind: Annotated[TokenKind, says("operator, agent, host, node, connector or guest")] = TokenKind.AGENT
    agent: Annotated[Words | None, says("the agent it stands for")] = None
    session_id: Annotated[Words | None, says("the one session it is for")] = None
    node: Words | None = None
    connector: Words | None = None
    label: Annotated[Words, says("what it is for")] = ""
    expires_in: Annotated[Seconds | None, says("seconds until it is over")] = None


class ListTokens(Request[Page[TokenView]]):
    """List credentials, newest first, without their secrets."""

    operation: ClassVar[str] = "token.list"
    route: ClassVar[str] = "GET /v1/tokens"
    permission: ClassVar[str] = "the operator"

    cursor: Cursor = None
    limit: Limit = None


class RevokeToken(Write[TokenView]):
    """End a credential."""

    operation: ClassVar[str] = "token.revoke"
    route: ClassVar[str] = "POST /v1/tokens/{tokenId}/revoke"
    words: ClassVar[tuple[str, ...]] = ("tokenId",)
    permission: ClassVar[str] = "the operator, or the credential itself"

    token_id: Words
    reason: Annotated[Words, says("why")] = "revoked"


class RotateToken(Write[Minted]):
    """Replace a credential by a new one that stands for the same; the old one ends."""

    operation: ClassVar[str] = "token.rotate"
    route: ClassVar[str] = "POST /v1/tokens/{tokenId}/rotate"
    words: ClassVar[tuple[str, ...]] = ("tokenId",)
    permission: ClassVar[str] = "the operator, or the credential itself"

    token_id: Words


class AddGrant(Write[Grant]):
    """Allow an agent something it may not do by default."""

    operation: ClassVar[str] = "grant.add"
    route: ClassVar[str] = "POST /v1/grants"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("action",)
    permission: ClassVar[str] = "the operator"

    action: Annotated[Action, says("address, ask, spawn, read or control")]
    agent: Annotated[Address | None, says("who may")] = None
    holder: Annotated[Words | None, says("or every agent of this user")] = None
    path: Annotated[Words | None, says("on this path and all below it")] = None
    channel: Annotated[Words | None, says("or in this channel")] = None
    project: Annotated[Words | None, says("or in this project")] = None
    user: Annotated[Words | None, says("or on everything of this user")] = None
    expires_in: Annotated[Seconds | None, says("seconds until it is over")] = None
    reason: Annotated[Words, says("why")] = ""


class ListGrants(Request[Page[Grant]]):
    """List grants, newest first."""

    operation: ClassVar[str] = "grant.list"
    route: ClassVar[str] = "GET /v1/grants"
    permission: ClassVar[str] = "the operator"

    cursor: Cursor = None
    limit: Limit = None


class RevokeGrant(Write[Grant]):
    """Take a grant back."""

    operation: ClassVar[str] = "grant.revoke"
    route: ClassVar[str] = "POST /v1/grants/{grantId}/revoke"
    words: ClassVar[tuple[str, ...]] = ("grantId",)
    permission: ClassVar[str] = "the operator"

    grant_id: Words
    reason: Annotated[Words, says("why")] = "revoked"
