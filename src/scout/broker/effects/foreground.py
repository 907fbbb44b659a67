"""Messages of background agents to their user: the foreground agent gets them too (decision 0039).

The message is always in the person's inbox. In the same transaction it is delivered, without waking anything,
to the agent that the person is most likely to look at. If that agent is behind a chat, the chat sends it.
"""

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from scout.broker.routing import activity, posts
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent, Lifecycle
from scout.model.ask import Ask
from scout.model.conversation import Message
from scout.model.delivery import Delivery
from scout.policy.people.foreground import Foreground, choose_foreground, is_for_foreground

RULE = "foreground"
_MOST = 10  # agents that are compared, the most recently active first


def pass_on_messages(tx: Transaction) -> None:
    """Deliver mail from a background agent to its user to the foreground agent as well."""
    for delivery, message in list(_list_messages(tx)):
        pass_on_message(tx, message, delivery.target)


def _list_messages(tx: Transaction) -> Iterator[tuple[Delivery, Message]]:
    for delivery in tx.mail_to_people:
        person, message = tx.agent(delivery.target), tx.get(Message, delivery.message_id)
        if person is not None and message is not None and _is_from_background(tx, message, person):
            yield delivery, message


def _is_from_background(tx: Transaction, message: Message, person: Agent) -> bool:
    """Whether a message comes from a background agent of this user, and not in answer to the user."""
    sender, origin = tx.agent(message.sender), tx.agent(_find_origin(tx, message))
    return sender is not None and is_for_foreground(message.kind, sender, origin or sender, person)


def _find_origin(tx: Transaction, message: Message) -> str:
    """Return the agent that a message goes back to: the asker of an answer, or the author of a message."""
    ask = tx.get(Ask, message.ask_id)
    replied = tx.get(Message, message.in_reply_to)
    return ask.sender if ask is not None else replied.sender if replied is not None else message.sender


def pass_on_message(tx: Transaction, message: Message, person_id: str) -> Delivery | None:
    """Deliver a message to the user's foreground agent as mail; None if the user has none."""
    person = tx.agent(person_id)
    chosen = (
        choose_foreground_agent(tx, person.owner or "", besides=(message.sender,))
        if person is not None
        else None
    )
    if chosen is None or chosen.agent_id is None:
        return None
    mail = replace(message, ask_id=None, flight_id=None, work_item_id=None)  # nothing is expected of it
    return posts.create_delivery(tx, mail, chosen.agent_id, rule=RULE, reason=f"for your user: {chosen.rule}")


def choose_foreground_agent(tx: Transaction, user: str, besides: Collection[str] = ()) -> Foreground:
    """Choose a user's most recent foreground agent: an active one, else a sleeping one."""
    for lifecycle in (Lifecycle.ACTIVE, Lifecycle.SLEEPING):
        found = tx.ledger.many(Agent, "agents_in_front", owner=user, lifecycle=lifecycle, limit=_MOST)
        others = [activity.add_last_activity(tx, one) for one in found if one.id not in besides]
        chosen = choose_foreground(others)
        if chosen.agent_id is not None:
            return chosen
    return choose_foreground(())
