"""The WhatsApp connector."""

import asyncio
import contextlib
from collections import OrderedDict

from scout.connectors.setup_values import SetupValues
from scout.connectors.whatsapp.content import (
    build_choices,
    build_file,
    build_message,
    build_text,
    choose_kind,
    choose_media_type,
    needs_own_text,
)
from scout.connectors.whatsapp.fields import FIELDS
from scout.connectors.whatsapp.graph import GraphApi
from scout.connectors.whatsapp.listener import ListenAddress, WebhookListener
from scout.connectors.whatsapp.webhook import MetaWebhook, WebhookSecrets
from scout.ports.connector import (
    ChatPlace,
    ConnectorAccount,
    ConnectorCapabilities,
    ConnectorError,
    ConnectorSetup,
    FailureKind,
    InboundEvent,
    InboundPress,
    InboundText,
    Inlet,
    Markup,
    OutboundText,
    RemoteFile,
    SentMessage,
)

_MOST_CHATS = 1024
_CHECKING = 300.0  # seconds
_CAPABILITIES = ConnectorCapabilities(
    markup=Markup.WHATSAPP,
    text_limit=4096,
    buttons=10,
    label_limit=20,
    typing=True,
    file_limit=100 * 1024 * 1024,
    window=24 * 3600.0,
)


def build(setup: ConnectorSetup) -> "WhatsAppConnector":
    """Build the connector from what is set for it."""
    values = SetupValues(setup, FIELDS)
    token, secret, verify = (values.get_token(name) for name in ("accessToken", "appSecret", "verifyToken"))
    phone = values.get_token("phoneNumberId")
    secrets = WebhookSecrets(app_secret=secret, verify_token=verify, phone_number_id=phone)
    api = GraphApi(values.get_url("baseUrl"), token, phone, secret, verify)
    address = ListenAddress(
        host=values.get_text("host"),
        port=values.get_number("port", 1, 65535),
        path=f"/{values.get_text('path').strip('/')}",
        public_host=values.get_text("publicHost").lower(),
    )
    return WhatsAppConnector(api, secrets, address)


class WhatsAppConnector:
    """One phone number of the bot."""

    def __init__(self, api: GraphApi, secrets: WebhookSecrets, address: ListenAddress) -> None:
        self._api = api
        self._secrets = secrets
        self._address = address
        self._doubtful = asyncio.Event()  # whether the platform still answers
        self._latest = OrderedDict[str, str]()  # chat → the last message of the person there

    @property
    def name(self) -> str:
        return "whatsapp"

    @property
    def capabilities(self) -> ConnectorCapabilities:
        return _CAPABILITIES

    async def check(self) -> ConnectorAccount:
        """Prove the access token. Only Meta can prove the webhook, by calling it."""
        return await self._api.get_account()

    async def run(self, inlet: Inlet) -> None:
        """Receive until cancelled."""

        async def take(inbound: InboundEvent) -> None:
            await inlet.receive(inbound)
            if isinstance(inbound, InboundText):
                self._note(inbound)

        await self.check()
        listener = WebhookListener(self._address, MetaWebhook(self._secrets, take).answer)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(listener.serve())
                group.create_task(self._keep_checking())
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _keep_checking(self) -> None:
        """Look now and then whether the platform answers, because nothing else is asked of it for long.

        A message that could not be sent is a reason to look at once.
        """
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CHECKING):
                    await self._doubtful.wait()
            self._doubtful.clear()
            await self.check()

    def _note(self, text: InboundText) -> None:
        self._latest[text.place.chat_id] = text.message_id
        self._latest.move_to_end(text.place.chat_id)
        if len(self._latest) > _MOST_CHATS:
            self._latest.popitem(last=False)

    async def send(self, message: OutboundText) -> SentMessage:
        """Send a text with its choices, or a file."""
        try:
            sending = self._send_file(message) if message.files else self._send_text(message)
            return SentMessage(message_id=await sending)
        except ConnectorError as error:
            if error.kind is not FailureKind.REFUSED and error.retry_after is None:
                self._doubtful.set()
            raise

    async def _send_text(self, message: OutboundText) -> str:
        chat, reply_to = message.place.chat_id, message.reply_to
        if not message.buttons:
            return await self._api.send(build_message(chat, "text", build_text(message.text), reply_to))
        words = message.text
        if needs_own_text(message):
            await self._api.send(build_message(chat, "text", build_text(message.text), reply_to))
            words = "Please choose:"
        choices = build_message(chat, "interactive", build_choices(words, message.buttons), reply_to)
        return await self._api.send(choices)

    async def _send_file(self, message: OutboundText) -> str:
        file = message.files[0]
        kind = choose_kind(file)
        media_id = await self._api.upload(file.name, choose_media_type(file), file.data)
        content = build_file(kind, media_id, file.name)
        return await self._api.send(build_message(message.place.chat_id, kind, content, message.reply_to))

    async def edit(self, message_id: str, message: OutboundText) -> None:
        """Messages on WhatsApp stay as they were sent."""
        raise ConnectorError(FailureKind.REFUSED, "whatsapp: a message that was sent cannot be changed")

    async def answer_press(self, press: InboundPress, text: str) -> None:
        """Answer in the chat, which is of this person alone."""
        answer = build_message(press.place.chat_id, "text", build_text(text), press.message_id)
        await self._api.send(answer)

    async def show_typing(self, place: ChatPlace) -> None:
        """Show that an answer to the last message is being written."""
        if (latest := self._latest.get(place.chat_id)) is not None:
            await self._api.show_typing(latest)

    async def fetch(self, file: RemoteFile, limit: int) -> bytes:
        """Return the bytes of a file."""
        return await self._api.download(file.reference, limit)

    async def close(self) -> None:
        """Close the connections."""
        await self._api.calls.close()
