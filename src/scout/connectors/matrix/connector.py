"""The Matrix connector."""

import hashlib
import re

from scout.connectors.matrix.content import build_edit, build_file, build_reaction, build_text
from scout.connectors.matrix.fields import FIELDS
from scout.connectors.matrix.homeserver import Homeserver
from scout.connectors.matrix.rooms import Rooms
from scout.connectors.matrix.sync import SyncLoop
from scout.connectors.setup_values import SetupValues
from scout.ports.connector import (
    ChatPlace,
    ConnectorAccount,
    ConnectorCapabilities,
    ConnectorError,
    ConnectorSetup,
    FailureKind,
    InboundPress,
    Inlet,
    Markup,
    OutboundText,
    RemoteFile,
    SentMessage,
)

_FILE = re.compile(r"mxc://([\w.:\[\]-]*\w\]?)/([\w-]+)", re.ASCII)
_CAPABILITIES = ConnectorCapabilities(
    markup=Markup.MATRIX,
    # An event has 65,536 bytes. An edit holds the text three times, at up to four bytes a character.
    text_limit=4000,
    reactions=True,
    threads=True,
    edits=True,
    typing=True,
    file_limit=50 * 1024 * 1024,
    repeats_safely=True,
)


def build(setup: ConnectorSetup) -> "MatrixConnector":
    """Build the connector from what is set for it."""
    values = SetupValues(setup, FIELDS)
    server = Homeserver(values.get_url("baseUrl"), values.get_token("accessToken"))
    inviters = {one.strip() for one in values.get_text("groupInvites").split(",")} - {""}
    return MatrixConnector(server, frozenset(inviters))


async def prepare(setup: ConnectorSetup) -> ConnectorSetup:
    """Return the set-up to store: with an access token, and without the password that it was made with."""
    values = SetupValues(setup, FIELDS)
    kept = {name: text for name, text in setup.values.items() if name != "password"}
    if not values.get_text("accessToken"):
        kept["accessToken"] = await _log_in(values)
    return ConnectorSetup(connector=setup.connector, values=kept)


async def _log_in(values: SetupValues) -> str:
    user, password = values.get_text("user"), values.get_text("password")
    server = Homeserver(values.get_url("baseUrl"), "", secrets=(password,))
    try:
        return (await server.log_in(user, password)).access_token
    except ConnectorError as error:
        if error.kind is FailureKind.REFUSED:
            raise ConnectorError(FailureKind.CREDENTIALS, error.reason) from None
        raise
    finally:
        await server.calls.close()


class MatrixConnector:
    """One bot on one homeserver."""

    def __init__(self, server: Homeserver, inviters: frozenset[str]) -> None:
        self._server = server
        self._inviters = inviters
        self._user_id = ""
        self._rooms: Rooms | None = None

    @property
    def name(self) -> str:
        return "matrix"

    @property
    def capabilities(self) -> ConnectorCapabilities:
        return _CAPABILITIES

    async def check(self) -> ConnectorAccount:
        """Prove the access token."""
        user_id = await self._get_user_id()
        name = await self._server.get_display_name(user_id)
        return ConnectorAccount(id=user_id, name=name, address=user_id)

    async def close(self) -> None:
        """Close the connections."""
        await self._server.calls.close()

    async def _get_user_id(self) -> str:
        self._user_id = self._user_id or await self._server.get_user_id()
        return self._user_id

    # -- in ------------------------------------------------------------------------------------------

    async def run(self, inlet: Inlet) -> None:
        """Receive until cancelled."""
        account = await self.check()
        self._rooms = Rooms(self._server, account.id)
        loop = SyncLoop(self._server, account, self._rooms, self._inviters, inlet)
        await loop.run()

    # -- out -----------------------------------------------------------------------------------------

    async def send(self, message: OutboundText) -> SentMessage:
        """Send a text with the reactions that it offers, or a file."""
        room = message.place.chat_id
        if message.only_for is not None:
            raise ConnectorError(FailureKind.REFUSED, "matrix: a message is shown to the whole room")
        await self._check_private(message)
        if message.files:
            return SentMessage(message_id=await self._send_file(message))
        event_id = await self._server.send_event(room, "m.room.message", message.id, build_text(message))
        for button in message.buttons:
            await self._react(room, message.id, event_id, button.value)
        return SentMessage(message_id=event_id)

    async def _react(self, room: str, ident: str, event_id: str, key: str) -> None:
        """Give a reaction to be tapped. One that is there already is no failure."""
        content = build_reaction(event_id, key)
        try:
            await self._server.send_event(room, "m.reaction", f"{ident}-{_digest(key)}", content)
        except ConnectorError as error:
            if "M_DUPLICATE_ANNOTATION" not in error.reason:
                raise

    async def _send_file(self, message: OutboundText) -> str:
        file = message.files[0]
        url = await self._server.upload(file.name, file.media_type, file.data)
        content = build_file(message, file, url)
        return await self._server.send_event(message.place.chat_id, "m.room.message", message.id, content)

    async def edit(self, message_id: str, message: OutboundText) -> None:
        """Replace a text. The same edit sent again is one edit."""
        await self._check_private(message)
        content = build_edit(message_id, message)
        transaction = f"edit-{_digest(f'{message_id} {message.text}')}"
        await self._server.send_event(message.place.chat_id, "m.room.message", transaction, content)

    async def _check_private(self, message: OutboundText) -> None:
        """Refuse to show something private in a room that others have entered, or were invited to."""
        if self._rooms is None:
            self._rooms = Rooms(self._server, await self._get_user_id())
        if not message.place.group and await self._rooms.has_others(message.place.chat_id):
            raise ConnectorError(FailureKind.REFUSED, "matrix: this room is not between two any more")

    async def answer_press(self, press: InboundPress, text: str) -> None:
        """Answer below the message that was reacted to; the room reads it, for want of a private note."""
        content = {
            "msgtype": "m.text",
            "body": f"{press.sender.name}: {text}" if press.place.group else text,
            "m.mentions": {"user_ids": [press.sender.id]},
            "m.relates_to": {"m.in_reply_to": {"event_id": press.message_id}},
        }
        await self._server.send_event(
            press.place.chat_id, "m.room.message", f"press-{_digest(press.id)}", content
        )

    async def show_typing(self, place: ChatPlace) -> None:
        """Show that the bot is writing."""
        await self._server.show_typing(place.chat_id, await self._get_user_id())

    async def fetch(self, file: RemoteFile, limit: int) -> bytes:
        """Return the bytes of a file."""
        found = _FILE.fullmatch(file.reference)
        if found is None:
            raise ConnectorError(FailureKind.REFUSED, "matrix: this is no file of a Matrix server")
        return await self._server.download(found[1], found[2], limit)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
