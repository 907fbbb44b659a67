"""What comes while a turn runs: said into that turn, where the harness can. An ask gets a turn of its own."""

from typing import NamedTuple

from scout.broker.delivery.opening import Prepared
from scout.broker.delivery.prompts import speaker
from scout.broker.delivery.turn_record import HOLDER
from scout.broker.effects import flight_state
from scout.broker.transaction.transaction import Turn
from scout.model.agent import Agent
from scout.model.ask import Ask
from scout.model.conversation import Message
from scout.model.delivery import Delivery, DeliveryMove, DeliveryState, ack, is_due, lease, nack
from scout.policy.handover import Mail, mail_text

__all__ = ["Steered", "given", "may_be_steered", "taken"]


class Steered(NamedTuple):
    """What is said into a turn for one delivery."""

    delivery_id: str
    text: str


def may_be_steered(delivery: Delivery, prepared: Prepared) -> bool:
    """Whether something for an agent can be said into the turn that it is at: once, and in that session."""
    fits = delivery.session_id in (None, prepared.spec.session_id)
    new = delivery.attempts == 0 and delivery.state is DeliveryState.PENDING
    return fits and new and prepared.accepted and not prepared.done and delivery.id != prepared.delivery_id


def given(turn: Turn, ident: str, prepared: Prepared) -> Steered | None:
    """Lease it for the turn; nothing if it begins an ask, or somebody else has it by now."""
    delivery = turn.need(Delivery, "delivery", ident)
    message = turn.ledger.get(Message, delivery.message_id)
    ask = turn.ledger.get(Ask, delivery.ask_id)
    if message is None or not is_due(delivery, turn.now) or (ask and ask.message_id == message.id):
        return None
    leased = lease(delivery, HOLDER, turn.now, seconds=turn.rules.periods.lease)
    flight_state.delivered(turn, delivery, leased, DeliveryMove.LEASE)
    agent = turn.need(Agent, "agent", delivery.target)
    mail = Mail(sender=speaker(turn, agent, message.sender), message_id=message.id, body=message.body)
    return Steered(delivery.id, mail_text([mail], prepared.harness))


def taken(turn: Turn, ident: str, *, was_taken: bool) -> None:
    """The program has it, or it goes the usual way."""
    delivery = turn.need(Delivery, "delivery", ident)
    if delivery.state is not DeliveryState.LEASED:
        return
    if was_taken:
        flight_state.delivered(turn, delivery, ack(delivery, HOLDER, turn.now), DeliveryMove.ACK)
        return
    back = nack(
        delivery, HOLDER, turn.now, problem="the turn was over", retry_after=0, rule=turn.rules.back_off
    )
    flight_state.delivered(turn, delivery, back, DeliveryMove.NACK)
