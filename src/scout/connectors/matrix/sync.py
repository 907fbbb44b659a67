"""The sync loop of a Matrix homeserver: invitations, and the events of each room."""

import logging
from collections import Counter
from typing import Any

from scout.connectors.matrix.events import InvitedRoom, JoinedRoom, Mentioned, RoomEvent, find_invitation
from scout.connectors.matrix.homeserver import Homeserver, build_filter
from scout.connectors.matrix.inbound import InboundReader
from scout.connectors.matrix.rooms import Rooms, accept_refusal
from scout.ports.connector import ConnectorAccount, ConnectorError, FailureKind, Inlet

_LOG = logging.getLogger("scout.connectors.matrix")
_NEWEST = 50  # events of a room in one sync
_MOST_TRIES = 5  # to answer an invitation
_ENCRYPTED = (
    "I cannot read this room, because it is encrypted. "
    "Please start a room without encryption and invite me there."
)


class SyncLoop:
    """One run of the connector. `inviters`: the users whose invitations to groups are accepted, or `*`."""

    def __init__(
        self,
        server: Homeserver,
        account: ConnectorAccount,
        rooms: Rooms,
        inviters: frozenset[str],
        inlet: Inlet,
    ) -> None:
        self._server = server
        self._user_id = account.id
        self._inviters = inviters
        self._inlet = inlet
        self._rooms = rooms
        self._reader = InboundReader(self._rooms, Mentioned(user_id=account.id, display_name=account.name))
        self._invited = dict[str, InvitedRoom]()
        self._tries = Counter[str]()
        self._told = set[str]()  # encrypted rooms in which the bot said that it cannot read them

    async def run(self) -> None:
        """Receive until cancelled."""
        since = self._inlet.get_cursor() or await self._begin()
        while True:
            since = await self._receive(since)

    async def _begin(self) -> str:
        """Take the present as the first position: older messages were not for Scout. Invitations count."""
        first = await self._server.sync(None, build_filter(1))
        self._invited |= first.rooms.invite
        await self._answer_invitations()
        await self._inlet.move_cursor(first.next_batch)
        return first.next_batch

    async def _receive(self, since: str) -> str:
        """Take the events since a position, and return the next position."""
        found = await accept_refusal(self._server.sync(since, build_filter(_NEWEST)), None)
        if found is None:
            _LOG.warning("the homeserver does not know position %s; continuing with new messages", since)
            return await self._begin()
        self._invited |= found.rooms.invite
        await self._answer_invitations()
        for room, joined in found.rooms.join.items():
            await self._receive_room(room, joined, since)
        if found.next_batch != since:
            await self._inlet.move_cursor(found.next_batch)
        return found.next_batch

    async def _receive_room(self, room: str, joined: JoinedRoom, since: str) -> None:
        for event in await self._rooms.list_new(room, joined, since):
            self._rooms.note(room, event)
            if event.type == "m.room.encrypted":
                await self._tell_encrypted(room)
            elif (inbound := await self._reader.read(room, event)) is not None:
                await self._inlet.receive(inbound)

    async def _tell_encrypted(self, room: str) -> None:
        if room not in self._told:
            self._told.add(room)
            content: dict[str, Any] = {"msgtype": "m.notice", "body": _ENCRYPTED, "m.mentions": {}}
            sending = self._server.send_event(room, "m.room.message", f"encrypted-{room}", content)
            await accept_refusal(sending, None)

    # -- invitations ---------------------------------------------------------------------------------

    async def _answer_invitations(self) -> None:
        """Answer the open invitations. A room that cannot be joined now must not hold up the others."""
        for room, invitation in [*self._invited.items()]:
            try:
                await self._answer(room, invitation)
            except ConnectorError as error:
                if error.kind is FailureKind.CREDENTIALS:
                    raise
                self._tries[room] += 1
                _LOG.warning("the invitation to %s is not answered yet: %s", room, error)
                if error.kind is FailureKind.RETRY and self._tries[room] < _MOST_TRIES:
                    continue
            del self._invited[room], self._tries[room]

    async def _answer(self, room: str, invitation: InvitedRoom) -> None:
        event = find_invitation(invitation, self._user_id)
        accepts = event is not None and self._may_invite(event)
        await (self._server.join(room) if accepts else self._server.leave(room))

    def _may_invite(self, event: RoomEvent) -> bool:
        """Anybody may start a direct room, to type a link code there; a group needs a person who is named."""
        return event.content.is_direct or not self._inviters.isdisjoint({"*", event.sender})
