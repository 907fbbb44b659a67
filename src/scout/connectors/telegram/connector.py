"""The Telegram connector."""

import asyncio
import logging
import time
from typing import Any

import msgspec

from scout.base.codec import decode
from scout.base.refusal import Refused
from scout.connectors.calls import decode_body
from scout.connectors.setup_values import SetupValues
from scout.connectors.telegram.bot_api import BotApi
from scout.connectors.telegram.fields import FIELDS
from scout.connectors.telegram.updates import Bot, Update, read_update
from scout.connectors.wire import WireRecord
from scout.ports.connector import (
    Button,
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

_LOG = logging.getLogger("scout.connectors.telegram")
_PAUSE = 0.5  # seconds between two requests for updates, at least
_NOTE = 200  # characters of the answer to a pressed button
_ROW = 2  # buttons beside each other
_WIDE = 14  # characters of a label that needs a separate row
_CAPABILITIES = ConnectorCapabilities(
    markup=Markup.TELEGRAM,
    text_limit=4096,
    buttons=8,
    label_limit=40,
    threads=True,
    edits=True,
    typing=True,
    file_limit=20 * 1024 * 1024,  # of a file that a bot may fetch
)


def build(setup: ConnectorSetup) -> "TelegramConnector":
    """Build the connector from what is set for it."""
    values = SetupValues(setup, FIELDS)
    return TelegramConnector(BotApi(values.get_url("baseUrl"), values.get_token("token")))


class _Numbered(WireRecord):
    update_id: int


class TelegramConnector:
    """One bot. Forum topics are threads."""

    def __init__(self, api: BotApi) -> None:
        self._api = api

    @property
    def name(self) -> str:
        return "telegram"

    @property
    def capabilities(self) -> ConnectorCapabilities:
        return _CAPABILITIES

    async def check(self) -> ConnectorAccount:
        """Prove the token."""
        bot = await self._api.get_me()
        return ConnectorAccount(id=str(bot.id), name=f"@{bot.username}" if bot.username else bot.first_name)

    async def close(self) -> None:
        """Close the connections."""
        await self._api.calls.close()

    # -- in ----------------------------------------------------------------------------------------

    async def run(self, inlet: Inlet) -> None:
        """Receive until cancelled.

        Without an offset the platform returns what is not acknowledged, so none is stored. An old one would
        be wrong: after a week of silence the platform begins to count anywhere.
        """
        bot = await self._api.get_me()
        await self._api.delete_webhook()
        offset: int | None = None
        while True:
            found = await self._poll(offset)
            offset = None
            for raw in found:
                offset = await _hand_over(raw, bot, inlet) + 1

    async def _poll(self, offset: int | None) -> list[msgspec.Raw]:
        """Wait for updates. A server that does not wait is not asked again at once."""
        began = time.monotonic()
        found = await self._api.get_updates(offset)
        if not found and time.monotonic() - began < _PAUSE:
            await asyncio.sleep(_PAUSE)
        return found

    # -- out ---------------------------------------------------------------------------------------

    async def send(self, message: OutboundText) -> SentMessage:
        """Send a text with its buttons, or a file."""
        if message.only_for is not None:
            raise ConnectorError(FailureKind.REFUSED, "telegram: a message is shown to the whole chat")
        where = _write_place(message)
        if message.files:
            return SentMessage(message_id=await self._api.send_document(message.files[0], **where))
        wish = {**where, **_write_text(message)}
        try:
            sent = await self._api.send_message(**wish)
        except ConnectorError as error:
            sent = await self._api.send_message(**_make_plain(wish, message, error))
        return SentMessage(message_id=sent)

    async def edit(self, message_id: str, message: OutboundText) -> None:
        """Replace a text and its buttons. The same text again is no failure."""
        wish = {
            "chat_id": _to_number(message.place.chat_id),
            "message_id": _to_number(message_id),
            **_write_text(message),
        }
        try:
            await self._api.edit_message_text(**wish)
        except ConnectorError as error:
            if "message is not modified" not in error.reason:
                await self._api.edit_message_text(**_make_plain(wish, message, error))

    async def answer_press(self, press: InboundPress, text: str) -> None:
        """Show a note to the person who pressed; after a while the platform takes none."""
        note = text if len(text) <= _NOTE else f"{text[: _NOTE - 1]}…"
        try:
            await self._api.answer_callback_query(
                callback_query_id=press.reference, text=note, show_alert=len(note) > 40
            )
        except ConnectorError as error:
            if error.kind is not FailureKind.REFUSED:
                raise

    async def show_typing(self, place: ChatPlace) -> None:
        """Show that the bot is writing, for five seconds."""
        thread = _to_number(place.thread_id) if place.thread_id else None
        await self._api.send_chat_action(
            chat_id=_to_number(place.chat_id), message_thread_id=thread, action="typing"
        )

    async def fetch(self, file: RemoteFile, limit: int) -> bytes:
        """Return the bytes of a file."""
        if file.size is not None and file.size > limit:
            raise ConnectorError(FailureKind.REFUSED, f"telegram: the file has more than {limit} bytes")
        return await self._api.download(file.reference, limit)


async def _hand_over(raw: msgspec.Raw, bot: Bot, inlet: Inlet) -> int:
    """Hand over one update and return its number. One that cannot be read is skipped."""
    try:
        update = decode(bytes(raw), Update)
    except Refused as refused:
        _LOG.warning("skipped an update: %s", refused)
        return decode_body(bytes(raw), _Numbered).update_id
    inbound = read_update(update, bot)
    if inbound is not None:
        await inlet.receive(inbound)
    return update.update_id


def _make_plain(wish: dict[str, Any], message: OutboundText, error: ConnectorError) -> dict[str, Any]:
    """Return the message without formatting, if that was refused; raise any other failure."""
    if "can't parse entities" not in error.reason:
        raise error
    return {**wish, "text": message.plain, "parse_mode": None}


def _to_number(ident: str) -> int:
    try:
        return int(ident)
    except ValueError:
        raise ConnectorError(FailureKind.REFUSED, f"telegram: '{ident[:40]}' is no id of a chat") from None


def _write_place(message: OutboundText) -> dict[str, Any]:
    place, answered = message.place, message.reply_to
    reply = {"message_id": _to_number(answered), "allow_sending_without_reply": True} if answered else None
    return {
        "chat_id": _to_number(place.chat_id),
        "message_thread_id": _to_number(place.thread_id) if place.thread_id else None,
        "reply_parameters": reply,
    }


def _write_text(message: OutboundText) -> dict[str, Any]:
    return {
        "text": message.text,
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": True},
        "reply_markup": _write_buttons(message.buttons),
    }


def _write_buttons(buttons: tuple[Button, ...]) -> dict[str, Any] | None:
    """Return the keyboard: short labels beside each other, long ones below each other."""
    rows: list[list[dict[str, str]]] = []
    wide = any(len(one.label) > _WIDE for one in buttons)
    for button in buttons:
        if not rows or wide or len(rows[-1]) == _ROW:
            rows.append([])
        rows[-1].append({"text": button.label, "callback_data": button.value})
    return {"inline_keyboard": rows} if rows else None
