"""From events of a Matrix room to what the port reports."""

from scout.connectors.matrix.events import (
    Content,
    Mentioned,
    RoomEvent,
    is_message,
    read_files,
    read_replacement,
    read_text,
)
from scout.connectors.matrix.rooms import Rooms
from scout.ports.connector import ChatPlace, ExternalSender, InboundEvent, InboundPress, InboundText


class InboundReader:
    """Reads events as texts and presses of people. The bot's own events are nothing new."""

    def __init__(self, rooms: Rooms, mentioned: Mentioned) -> None:
        self._rooms = rooms
        self._mentioned = mentioned

    async def read(self, room: str, event: RoomEvent) -> InboundEvent | None:
        """Return what an event reports, if anything."""
        if event.sender == self._mentioned.user_id or not event.event_id:
            return None
        if event.type == "m.reaction":
            return await self._read_reaction(room, event)
        if not is_message(event):
            return None
        replacement = read_replacement(event)
        return await self._read_message(room, event, replacement)

    async def _read_reaction(self, room: str, event: RoomEvent) -> InboundPress | None:
        relation = event.content.relation
        if relation.rel_type != "m.annotation" or not await self._rooms.is_own(room, relation.event_id):
            return None
        return InboundPress(
            id=event.event_id,
            place=ChatPlace(chat_id=room, group=await self._rooms.is_group(room)),
            sender=await self._read_sender(room, event),
            message_id=relation.event_id,
            value=relation.key,
        )

    async def _read_message(self, room: str, event: RoomEvent, replacement: Content | None) -> InboundText:
        content = replacement or event.content
        edited = event.content.relation.event_id if replacement is not None else None
        thread, reply_to = await self._read_relation(room, event)
        group = await self._rooms.is_group(room)
        is_named = self._mentioned.is_in(content)
        text = read_text(content, is_reply=reply_to is not None)
        return InboundText(
            id=event.event_id,
            place=ChatPlace(chat_id=room, thread_id=thread, group=group),
            sender=await self._read_sender(room, event),
            message_id=edited or event.event_id,
            text=self._mentioned.remove_from(text) if is_named else text,
            addressed=not group or is_named or await self._rooms.is_own(room, reply_to or ""),
            reply_to=reply_to,
            edits=edited,
            files=read_files(content),
        )

    async def _read_relation(self, room: str, event: RoomEvent) -> tuple[str | None, str | None]:
        """Return the thread of a message and the message that it answers.

        In a thread below a message of the bot, every message answers the bot.
        """
        relation = event.content.relation
        answered = relation.in_reply_to.event_id or None
        if relation.rel_type != "m.thread":
            return None, answered
        if not relation.is_falling_back:
            return relation.event_id, answered
        return relation.event_id, relation.event_id if await self._rooms.is_own(
            room, relation.event_id
        ) else None

    async def _read_sender(self, room: str, event: RoomEvent) -> ExternalSender:
        """Return the sender. By convention, programs send notices, and never answer one."""
        return ExternalSender(
            id=event.sender,
            name=await self._rooms.get_name(room, event.sender),
            program=event.content.msgtype == "m.notice",
        )
