"""Identity and return address, handed out for a number of uses. It implies no running session."""

from enum import StrEnum

from msgspec.structs import replace

from scout.base.machine import Machine
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.model.change import Mutable, moved
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
    """`max_uses` None is any number; `cleanup_reason` says why it ended."""

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


def default_max_uses(*, made_by_agent: bool) -> int | None:
    """A card that an agent makes is for one use; a person's is not limited."""
    return 1 if made_by_agent else None


def default_expiry(now: Time, *, made_by_agent: bool) -> Time | None:
    """A card that an agent makes lasts a day; a person's lasts until it is revoked."""
    return now.plus(_DAY) if made_by_agent else None


def check_card(card: Card) -> Card:
    """The same card, or the refusal of one that could never be used."""
    if card.max_uses is not None and card.max_uses < 1:
        raise Refused(BadRequest(problem="a card has at least one use", field="maxUses"))
    return card


def use_card(card: Card, now: Time) -> Card:
    """One use of the card; the last one uses it up. A card that is over is refused."""
    if card.state is not CardState.ACTIVE:
        raise _over(card, card.state)
    if card.expires_at is not None and card.expires_at <= now:
        raise _over(card, CardState.EXPIRED)
    uses = card.uses + 1
    last = card.max_uses is not None and uses >= card.max_uses
    move = CardMove.USE_UP if last else CardMove.USE
    reason = "used up" if last else None
    return moved(CARD, card, move, now, uses=uses, cleanup_reason=reason)


def shown_card(card: Card, now: Time) -> Card:
    """The card as it counts now: one whose time is over has expired, swept or not."""
    over = card.state is CardState.ACTIVE and card.expires_at is not None and card.expires_at <= now
    return replace(card, state=CardState.EXPIRED) if over else card


def expire_card(card: Card, now: Time) -> Card:
    """Its time is over."""
    return moved(CARD, card, CardMove.EXPIRE, now, cleanup_reason="expired")


def revoke_card(card: Card, now: Time, *, reason: str = "revoked", seen: int | None = None) -> Card:
    """Taken back by the one who made it."""
    return moved(CARD, card, CardMove.REVOKE, now, seen=seen, cleanup_reason=reason)


def _over(card: Card, state: CardState) -> Refused:
    reason = card.cleanup_reason or ""
    return Refused(
        ExpiredCard(card_id=card.id, state=state, uses=card.uses, max_uses=card.max_uses, reason=reason)
    )
