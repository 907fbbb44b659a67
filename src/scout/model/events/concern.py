"""Whom and what a fact concerns: the ids by which streams and the log are filtered."""

from scout.model.events.envelope import Event, record_of

__all__ = ["concerned_agents", "concerns"]

_FIELDS = (
    "id",
    "agent_id",
    "sender",
    "target",
    "requester_id",
    "owner_id",
    "next_move_owner_id",
    "holder_id",
    "asker_id",
    "responder_id",
    "conversation_id",
    "session_id",
    "flight_id",
    "ask_id",
    "work_item_id",
    "message_id",
)


def concerns(event: Event) -> frozenset[str]:
    """The ids of every agent, conversation and record that a fact is about."""
    found = {event.source.id, event.target.id, *event.metadata.target_agents}
    record = record_of(event)
    for name in _FIELDS:
        value = getattr(record, name, None)
        if isinstance(value, str):
            found.add(value)
    return frozenset(found)


def concerned_agents(event: Event) -> list[str]:
    """The agents among them, in a fixed order."""
    return sorted(ident for ident in concerns(event) if ident.startswith("agt_"))
