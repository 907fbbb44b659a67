"""Decisions: what it costs to say who is woken."""

from collections.abc import Iterator
from functools import partial

from bench.figure import Figure, microseconds
from scout.model.conversation import ConversationKind
from scout.policy.directory import Party
from scout.policy.obligation import Obligation
from scout.policy.wake import Cause, Occasion, Reach, WakeContext, decide_wake


def figures() -> Iterator[Figure]:
    for members in (2, 1_000):
        occasion, reaches = _channel(members)
        result = microseconds(partial(decide_wake, occasion, reaches))
        yield Figure(name=f"wake decision, channel of {members:,}", result=result, unit="us")


def _channel(members: int) -> tuple[Occasion, dict[str, Reach]]:
    """The sender owns the item and its next move is another's: three candidates are looked at."""
    names = [f"agt_{number}" for number in range(members)]
    place = WakeContext(
        conversation_id="cnv_1",
        kind=ConversationKind.CHANNEL,
        master_id=names[-1],
        channel_owner_id=names[-1],
        others=members - 1,
    )
    duty = Obligation(
        noun="work item", id="wrk_1", state="working", owner_id=names[0], next_move_owner_id=names[-1]
    )
    occasion = Occasion(cause=Cause.ASSIGNMENT, sender=Party(agent_id=names[0]), duty=duty, place=place)
    return occasion, {name: Reach(agent_id=name, address=f"@{name}") for name in names}
