"""Deliveries from the broker to one target: leased, acked, retried, dead-lettered."""

from enum import StrEnum

import msgspec

from scout.base.machine import Machine, Mutable, change_record, move_record
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.model.problems.request import NotOwner

CLOCK_SLACK = 5.0  # seconds a clock may be corrected by without any effect


class DeliveryState(StrEnum):
    PENDING = "pending"
    LEASED = "leased"
    ACKED = "acked"
    DEAD_LETTERED = "dead_lettered"
    CANCELLED = "cancelled"


class DeliveryMove(StrEnum):
    LEASE = "lease"
    RENEW = "renew"
    ACK = "ack"
    NACK = "nack"
    EXPIRE = "expire"
    DEAD_LETTER = "dead_letter"
    CANCEL = "cancel"


DELIVERY = Machine(
    "delivery",
    DeliveryState.PENDING,
    {
        DeliveryState.PENDING: {
            DeliveryMove.LEASE: DeliveryState.LEASED,
            DeliveryMove.DEAD_LETTER: DeliveryState.DEAD_LETTERED,
            DeliveryMove.CANCEL: DeliveryState.CANCELLED,
        },
        DeliveryState.LEASED: {
            DeliveryMove.RENEW: DeliveryState.LEASED,
            DeliveryMove.ACK: DeliveryState.ACKED,
            DeliveryMove.NACK: DeliveryState.PENDING,
            DeliveryMove.EXPIRE: DeliveryState.PENDING,
            DeliveryMove.DEAD_LETTER: DeliveryState.DEAD_LETTERED,
            DeliveryMove.CANCEL: DeliveryState.CANCELLED,
        },
        DeliveryState.ACKED: {},
        DeliveryState.DEAD_LETTERED: {},
        DeliveryState.CANCELLED: {},
    },
)


class InspectResult(StrEnum):
    """The result of an adapter's `inspect` for a delivery that was leased when the broker died."""

    TAKEN = "taken"
    NOT_TAKEN = "not_taken"
    UNKNOWN = "unknown"


class Delivery(Mutable):
    """One delivery to one target. `wake` may start a program; `rule` and `reason` explain the target.

    `delegates`: the target is expected to act on a plain message, and is reminded if it does not.
    `carried_with`: the delivery whose turn also included this one.
    `attempts` counts leases, so attempt n is stored before the adapter is called for it.
    """

    sender: str
    target: str
    endpoint_id: str | None = None
    session_id: str | None = None
    conversation_id: str | None = None
    message_id: str | None = None
    ask_id: str | None = None
    flight_id: str | None = None
    work_item_id: str | None = None
    state: DeliveryState = DeliveryState.PENDING
    wake: bool = False
    delegates: bool = False
    rule: str = ""
    reason: str = ""
    attempts: int = 0
    may_repeat: bool = False
    carried_with: str | None = None
    leased_by: str | None = None
    leased_until: Time | None = None
    next_attempt_at: Time
    expires_at: Time | None = None
    problem: str = ""


class Backoff(Record):
    """The pause between failed attempts doubles from `first` to `most` seconds; `attempts` is the maximum."""

    first: float
    most: float
    attempts: int


class Bounce(Record):
    """The notice to the sender of an undeliverable message."""

    to: str
    delivery_id: str
    target: str
    address: str
    message_id: str | None
    ask_id: str | None
    attempts: int
    problem: str

    @property
    def text(self) -> str:
        often = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        return f"not delivered to {self.address} after {often}: {self.problem}"


def check_origin(delivery: Delivery) -> Delivery:
    """Return the delivery; refuse one without a message, ask or work item."""
    if not (delivery.message_id or delivery.ask_id or delivery.work_item_id):
        raise Refused(BadRequest(problem="a delivery derives from a message, an ask or a work item"))
    return delivery


def back_off(attempts: int, rule: Backoff) -> float:
    """Return the seconds before the next attempt, after this many attempts."""
    return min(rule.first * 2.0 ** min(max(attempts - 1, 0), 64), rule.most)


def is_due(delivery: Delivery, now: Time) -> bool:
    """Whether the delivery may be leased now."""
    return delivery.state is DeliveryState.PENDING and _has_passed(delivery, delivery.next_attempt_at, now)


def has_lease_ended(delivery: Delivery, now: Time) -> bool:
    """Whether the lease has expired."""
    until = delivery.leased_until
    return delivery.state is DeliveryState.LEASED and until is not None and _has_passed(delivery, until, now)


def is_ahead_of_clock(delivery: Delivery, now: Time) -> bool:
    """Whether the clock was set back since the last change, so that its waiting time is unknown."""
    return now.plus(CLOCK_SLACK) < delivery.updated_at


def _has_passed(delivery: Delivery, moment: Time, now: Time) -> bool:
    """Whether the moment has passed; always true if the clock was set back since the last change."""
    return moment <= now or is_ahead_of_clock(delivery, now)


def lease(delivery: Delivery, by: str, now: Time, *, seconds: float = 60) -> Delivery:
    """Start the next attempt; it is counted here, before the adapter is called."""
    return move_record(
        DELIVERY,
        delivery,
        DeliveryMove.LEASE,
        now,
        attempts=delivery.attempts + 1,
        leased_by=by,
        leased_until=now.plus(seconds),
    )


def hand_over(delivery: Delivery, node: str, now: Time) -> Delivery:
    """Record that another node is asked to deliver it; its receipt or the end of the envelope settles it."""
    if delivery.state is not DeliveryState.PENDING:
        return delivery
    attempts = delivery.attempts + 1
    return move_record(DELIVERY, delivery, DeliveryMove.LEASE, now, attempts=attempts, leased_by=node)


def settle_remotely(delivery: Delivery, now: Time) -> Delivery:
    """Record that the agent on the other node has it."""
    if delivery.state is DeliveryState.PENDING:  # the receipt came before the server's answer was recorded
        delivery = hand_over(delivery, "", now)
    if delivery.state is not DeliveryState.LEASED:
        return delivery
    return move_record(DELIVERY, delivery, DeliveryMove.ACK, now, problem="")


def renew(delivery: Delivery, by: str, now: Time, *, seconds: float = 60) -> Delivery:
    """Extend the lease of the current holder."""
    _check_holder(delivery, by)
    return move_record(DELIVERY, delivery, DeliveryMove.RENEW, now, leased_until=now.plus(seconds))


def ack(
    delivery: Delivery, by: str, now: Time, *, session_id: str | None = None, endpoint_id: str | None = None
) -> Delivery:
    """Record that the program took it; `session_id` and `endpoint_id` override the chosen ones."""
    _check_holder(delivery, by)
    return move_record(
        DELIVERY,
        delivery,
        DeliveryMove.ACK,
        now,
        session_id=session_id or delivery.session_id,
        endpoint_id=endpoint_id or delivery.endpoint_id,
        leased_until=None,
        problem="",
    )


def nack(
    delivery: Delivery,
    by: str,
    now: Time,
    *,
    problem: str = "",
    retry_after: float | None = None,
    rule: Backoff,
) -> Delivery:
    """Record a failed attempt: retry after `retry_after` or the back-off; dead-letter after the last."""
    _check_holder(delivery, by)
    if retry_after is not None and not 0 <= retry_after <= _LONGEST:
        raise Refused(BadRequest(problem=f"retryAfter is 0 to {_LONGEST} seconds", field="retryAfter"))
    return _retry(delivery, DeliveryMove.NACK, now, problem=problem, rule=rule, pause=retry_after)


def postpone(delivery: Delivery, until: Time, reason: str, now: Time) -> Delivery:
    """Set the next attempt to `until`; this does not count as an attempt."""
    DELIVERY.after(delivery.state, DeliveryMove.LEASE)
    return change_record("delivery", delivery, now, next_attempt_at=until, problem=reason)


def expire(delivery: Delivery, now: Time, rule: Backoff) -> Delivery:
    """Expire the lease. The target may have taken the delivery, so the next attempt may be a repeat."""
    after = _retry(delivery, DeliveryMove.EXPIRE, now, problem="the lease expired", rule=rule)
    return msgspec.structs.replace(after, may_repeat=True)


def dead_letter(delivery: Delivery, problem: str, now: Time) -> Delivery:
    """Give up, regardless of the number of attempts; the sender gets a bounce."""
    return move_record(DELIVERY, delivery, DeliveryMove.DEAD_LETTER, now, leased_until=None, problem=problem)


def cancel_delivery(delivery: Delivery, reason: str, now: Time) -> Delivery:
    """Cancel a delivery that is no longer needed."""
    return move_record(DELIVERY, delivery, DeliveryMove.CANCEL, now, leased_until=None, problem=reason)


def settle_uncertain(delivery: Delivery, found: InspectResult, now: Time, rule: Backoff) -> Delivery:
    """Settle a delivery after a restart: ack it, deliver it again, or redeliver once as a possible repeat."""
    if found is InspectResult.TAKEN:
        return move_record(DELIVERY, delivery, DeliveryMove.ACK, now, leased_until=None, problem="")
    if found is InspectResult.NOT_TAKEN:
        problem = "not accepted before the restart"
        return _retry(delivery, DeliveryMove.EXPIRE, now, problem=problem, rule=rule, pause=0)
    if delivery.may_repeat:
        return dead_letter(delivery, "uncertain twice whether it was accepted", now)
    return expire(delivery, now, rule)


def build_bounce(delivery: Delivery, address: str = "") -> Bounce:
    """Return the notice to the sender; `address` is the sender's name for the target."""
    return Bounce(
        to=delivery.sender,
        delivery_id=delivery.id,
        target=delivery.target,
        address=address or delivery.target,
        message_id=delivery.message_id,
        ask_id=delivery.ask_id,
        attempts=delivery.attempts,
        problem=delivery.problem,
    )


_LONGEST = 86_400


def _check_holder(delivery: Delivery, by: str) -> None:
    if delivery.state is DeliveryState.LEASED and delivery.leased_by != by:
        holder = delivery.leased_by or ""
        raise Refused(NotOwner(noun="delivery", id=delivery.id, owner_id=holder, needs=("the lease",)))


def _retry(
    delivery: Delivery,
    move: DeliveryMove,
    now: Time,
    *,
    problem: str,
    rule: Backoff,
    pause: float | None = None,
) -> Delivery:
    DELIVERY.after(delivery.state, move)
    if delivery.attempts >= rule.attempts:
        return dead_letter(delivery, problem, now)
    due = now.plus(back_off(delivery.attempts, rule) if pause is None else pause)
    return move_record(DELIVERY, delivery, move, now, leased_until=None, next_attempt_at=due, problem=problem)
