"""Cards: an identity and return address for a limited number of uses. A card implies no running session."""

from enum import StrEnum

from msgspec.structs import replace

from scout.base.machine import Machine, Mutable, move_record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.model.problems.target import ExpiredCard

_DAY = 86_400


class CardState(StrEnum):
    ACTIVE = "active"
    USED = "used"
    EXPIRED = "expired"
    REVOKED = "revoked"


class CardMove(StrEnum):
    USE = "use"
    USE_UP = "use_up"
    EXPIRE = "expire"
    REVOKE = "revoke"


CARD = Machine(
    "card",
    CardState.ACTIVE,
    {
        CardState.ACTIVE: {
            CardMove.USE: CardState.ACTIVE,
            CardMove.USE_UP: CardState.USED,
            CardMove.EXPIRE: CardState.EXPIRED,
            CardMove.REVOKE: CardState.REVOKED,
        },
        CardState.USED: {},
        CardState.EXPIRED: {},
        CardState.REVOKED: {},
    },
)


class Card(Mutable):
    """One card. `max_uses`: None means unlimited; `cleanup_reason`: why it ended."""

    agent_id: str
    name: str | None = None
    created_by: str
    expires_at: Time | None = None
    max_uses: int | None = 1
    uses: int = 0
    reply_to_session_id: str | None = None
    conversation_id: str | None = None
    state: CardState = CardState.ACTIVE
    cleanup_reason: str | None = None


def get_default_max_uses(*, made_by_agent: bool) -> int | None:
    """Return the default: one use for a card made by an agent, unlimited for a person's."""
    return 1 if made_by_agent else None


def get_default_expiry(now: Time, *, made_by_agent: bool) -> Time | None:
    """Return the default: one day for a card made by an agent, none for a person's."""
    return now.plus(_DAY) if made_by_agent else None


def check_card(card: Card) -> Card:
    """Return the card; refuse one that could never be used."""
    if card.max_uses is not None and card.max_uses < 1:
        raise Refused(BadRequest(problem="a card has at least one use", field="maxUses"))
    return card


def use_card(card: Card, now: Time) -> Card:
    """Use the card once; the last use uses it up. Refuse a used, expired or revoked card."""
    if card.state is not CardState.ACTIVE:
        raise _build_refusal(card, card.state)
    if card.expires_at is not None and card.expires_at <= now:
        raise _build_refusal(card, CardState.EXPIRED)
    uses = card.uses + 1
    last = card.max_uses is not None and uses >= card.max_uses
    move = CardMove.USE_UP if last else CardMove.USE
    reason = "used up" if last else None
    return move_record(CARD, card, move, now, uses=uses, cleanup_reason=reason)


def get_effective_card(card: Card, now: Time) -> Card:
    """Return the card in its effective state: past its expiry it is expired, even before the sweep."""
    over = card.state is CardState.ACTIVE and card.expires_at is not None and card.expires_at <= now
    return replace(card, state=CardState.EXPIRED) if over else card


def expire_card(card: Card, now: Time) -> Card:
    """Mark the card as expired."""
    return move_record(CARD, card, CardMove.EXPIRE, now, cleanup_reason="expired")


def revoke_card(card: Card, now: Time, *, reason: str = "revoked", seen: int | None = None) -> Card:
    """Revoke the card."""
    return move_record(CARD, card, CardMove.REVOKE, now, seen=seen, cleanup_reason=reason)


def _build_refusal(card: Card, state: CardState) -> Refused:
    reason = card.cleanup_reason or ""
    return Refused(
        ExpiredCard(card_id=card.id, state=state, uses=card.uses, max_uses=card.max_uses, reason=reason)
    )
