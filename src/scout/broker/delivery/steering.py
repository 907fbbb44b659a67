"""What comes while a turn runs: said into that turn, where the harness can. An ask gets a turn of its own."""

from typing import NamedTuple

from scout.broker.delivery.opening import PreparedTurn
from scout.broker.delivery.prompts import describe_sender
from scout.broker.delivery.turn_record import HOLDER
from scout.broker.effects import flight_state
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.ask import Ask
from scout.model.conversation import Message
from scout.model.delivery import Delivery, DeliveryMove, DeliveryState, ack, is_due, lease, nack
from scout.policy.host_text import Mail, mail_text


class Steered(NamedTuple):
    """What is said into a turn for one delivery."""

    delivery_id: str
    text: str


def may_be_steered(delivery: Delivery, prepared: PreparedTurn) -> bool:
    """Whether something for an agent can be said into the turn that it is at: once, and in that session."""
    fits = delivery.session_id in (None, prepared.spec.session_id)
    new = delivery.attempts == 0 and delivery.state is DeliveryState.PENDING
    return fits and new and prepared.accepted and not prepared.done and delivery.id != prepared.delivery_id


def lease_for_turn(tx: Transaction, ident: str, prepared: PreparedTurn) -> Steered | None:
    """Lease it for the turn; nothing if it begins an ask, or somebody else has it by now."""
    delivery = tx.need(Delivery, "delivery", ident)
    message = tx.get(Message, delivery.message_id)
    ask = tx.get(Ask, delivery.ask_id)
    if message is None or not is_due(delivery, tx.now) or (ask and ask.message_id == message.id):
        return None
    leased = lease(delivery, HOLDER, tx.now, seconds=tx.rules.periods.lease)
    flight_state.record_delivery(tx, delivery, leased, DeliveryMove.LEASE)
    agent = tx.need(Agent, "agent", delivery.target)
    mail = Mail(sender=describe_sender(tx, agent, message.sender), message_id=message.id, body=message.body)
    return Steered(delivery.id, mail_text([mail], prepared.harness))


def settle_steering(tx: Transaction, ident: str, *, was_taken: bool) -> None:
    """The program has it, or it goes the usual way."""
    delivery = tx.need(Delivery, "delivery", ident)
    if delivery.state is not DeliveryState.LEASED:
        return
    if was_taken:
        flight_state.record_delivery(tx, delivery, ack(delivery, HOLDER, tx.now), DeliveryMove.ACK)
        return
    back = nack(delivery, HOLDER, tx.now, problem="the turn was over", retry_after=0, rule=tx.rules.back_off)
    flight_state.record_delivery(tx, delivery, back, DeliveryMove.NACK)
