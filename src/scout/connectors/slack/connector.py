"""The Slack connector."""

from typing import Any

from scout.connectors.setup_values import SetupValues
from scout.connectors.slack.blocks import build_message, find_thread
from scout.connectors.slack.events import SlackEnvelope, SlackReader
from scout.connectors.slack.fields import FIELDS
from scout.connectors.slack.socket import listen
from scout.connectors.slack.text import escape_text
from scout.connectors.slack.web_api import SlackApi
from scout.ports.connector import (
    ChatPlace,
    ConnectorAccount,
    ConnectorCapabilities,
    ConnectorSetup,
    InboundPress,
    Inlet,
    Markup,
    OutboundText,
    RemoteFile,
    SentMessage,
)

_CAPABILITIES = ConnectorCapabilities(
    markup=Markup.SLACK,
    text_limit=3000,  # of a section
    buttons=25,  # of a row
    label_limit=75,
    threads=True,
    edits=True,
    file_limit=100 * 1024 * 1024,
    private_notes=True,
)


def build(setup: ConnectorSetup) -> "SlackConnector":
    """Build the connector from what is set for it."""
    values = SetupValues(setup, FIELDS)
    api = SlackApi(values.get_url("baseUrl"), values.get_token("botToken"), values.get_token("appToken"))
    return SlackConnector(api)


class SlackConnector:
    """One bot in one workspace."""

    def __init__(self, api: SlackApi) -> None:
        self._api = api

    @property
    def name(self) -> str:
        return "slack"

    @property
    def capabilities(self) -> ConnectorCapabilities:
        return _CAPABILITIES

    async def check(self) -> ConnectorAccount:
        """Prove both tokens."""
        account = await self._api.get_account()
        await self._api.open_socket()
        return ConnectorAccount(id=account.user_id, name=account.user)

    async def run(self, inlet: Inlet) -> None:
        """Receive until cancelled."""
        account = await self._api.get_account()
        reader = SlackReader(account.user_id, account.bot_id)

        async def take(envelope: SlackEnvelope) -> None:
            for inbound in reader.read(envelope):
                await inlet.receive(inbound)

        while True:
            await listen(await self._api.open_socket(), take)

    async def send(self, message: OutboundText) -> SentMessage:
        """Send a text with its buttons, a note for one member, or a file."""
        if message.files:
            file = message.files[0]
            place = _build_target(message, "channel_id")
            return SentMessage(message_id=await self._api.upload(file.name, file.data, place))
        arguments: dict[str, Any] = {**_build_target(message), **build_message(message)}
        if message.only_for is not None:
            return SentMessage(
                message_id=await self._api.post_ephemeral({**arguments, "user": message.only_for})
            )
        quiet = {"unfurl_links": False, "unfurl_media": False}
        return SentMessage(message_id=await self._api.post({**arguments, **quiet}))

    async def edit(self, message_id: str, message: OutboundText) -> None:
        """Replace the text and the buttons."""
        await self._api.update({"channel": message.place.chat_id, "ts": message_id, **build_message(message)})

    async def answer_press(self, press: InboundPress, text: str) -> None:
        """Tell the person alone."""
        arguments = {"channel": press.place.chat_id, "user": press.sender.id, "text": escape_text(text)}
        if press.place.thread_id is not None:
            arguments["thread_ts"] = press.place.thread_id
        await self._api.post_ephemeral(arguments)

    async def show_typing(self, place: ChatPlace) -> None:
        """Slack has no such sign for apps."""

    async def fetch(self, file: RemoteFile, limit: int) -> bytes:
        """Return the bytes of a file."""
        return await self._api.download(file.reference, limit)

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()


def _build_target(message: OutboundText, channel: str = "channel") -> dict[str, str]:
    thread = find_thread(message)
    return {channel: message.place.chat_id, **({"thread_ts": thread} if thread else {})}
