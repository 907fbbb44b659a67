"""A chat platform in memory that does what a test says, for rules that no real platform shows on demand."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from scout.broker.people import links
from scout.broker.routing import users
from scout.model.people.chat import ChatPlace, Markup
from scout.model.people.user import UserKind
from scout.ports.connector import (
    Connector,
    ConnectorAccount,
    ConnectorCapabilities,
    ConnectorError,
    ConnectorSetup,
    ExternalSender,
    InboundEvent,
    InboundPress,
    InboundText,
    Inlet,
    OutboundText,
    RemoteFile,
    SentMessage,
    SetupField,
)
from scout.protocol.agents import ConfigureAgent
from tests.broker.rig import Rig, run_scene, wait_until

__all__ = ["ABLE", "PuppetChat", "PuppetKits", "play_chat"]

ABLE = ConnectorCapabilities(
    markup=Markup.PLAIN, text_limit=4000, buttons=8, label_limit=30, threads=True, edits=True, file_limit=1000
)
_FIELDS = (
    SetupField(name="token", question="Token", secret=True),
    SetupField(name="baseUrl", question="URL", default="http://127.0.0.1"),
)


class PuppetChat:
    """The platform and its connector in one. `fails` is raised by the next calls, in turn."""

    name = "telegram"

    def __init__(self, capabilities: ConnectorCapabilities = ABLE) -> None:
        self.capabilities = capabilities
        self.sent: list[OutboundText] = []
        self.edited: list[tuple[str, OutboundText]] = []
        self.notes: list[str] = []
        self.fails: list[ConnectorError] = []
        self.check_fails: list[ConnectorError] = []
        self.files: dict[str, bytes] = {}
        self.before_send: Callable[[OutboundText], Awaitable[None]] | None = None
        self.builds = 0
        self._events: asyncio.Queue[InboundEvent] = asyncio.Queue()
        self._count = 0

    # -- the port ----------------------------------------------------------------------------------

    async def check(self) -> ConnectorAccount:
        if self.check_fails:
            raise self.check_fails.pop(0)
        return ConnectorAccount(id="1", name="@puppet")

    async def run(self, inlet: Inlet) -> None:
        while True:
            event = await self._events.get()
            try:
                await inlet.receive(event)
            except ConnectorError:
                self._events.put_nowait(event)  # it is not acknowledged
                raise

    async def send(self, message: OutboundText) -> SentMessage:
        if self.before_send is not None:
            await self.before_send(message)
        if self.fails:
            raise self.fails.pop(0)
        self.sent.append(message)
        return SentMessage(message_id=f"sent-{len(self.sent)}")

    async def edit(self, message_id: str, message: OutboundText) -> None:
        if self.fails:
            raise self.fails.pop(0)
        self.edited.append((message_id, message))

    async def answer_press(self, press: InboundPress, text: str) -> None:
        self.notes.append(text)

    async def show_typing(self, place: ChatPlace) -> None:
        """Nobody looks."""

    async def fetch(self, file: RemoteFile, limit: int) -> bytes:
        if self.fails:
            raise self.fails.pop(0)
        return self.files[file.reference]

    async def close(self) -> None:
        """There is nothing to close."""

    # -- people ------------------------------------------------------------------------------------

    def say(self, text: str, *, person: str = "7", chat: str | None = None, **more: Any) -> str:
        """A person types in their private chat, or in a group."""
        self._count += 1
        ident = f"said-{self._count}"
        place = ChatPlace(chat_id=chat or person, group=chat is not None)
        fields: dict[str, Any] = {"addressed": chat is None, "place": place, **more}
        sender = ExternalSender(id=person, name=f"person {person}")
        self.push(InboundText(id=ident, sender=sender, message_id=ident, text=text, **fields))
        return ident

    def correct(
        self, message_id: str, text: str, *, person: str = "7", place: ChatPlace | None = None
    ) -> None:
        """An earlier message gets another text; on some platforms, anybody can claim that."""
        self._count += 1
        sender, where = ExternalSender(id=person), place or ChatPlace(chat_id=person)
        ident = f"edit-{self._count}"
        self.push(
            InboundText(
                id=ident, place=where, sender=sender, message_id=message_id, text=text, edits=message_id
            )
        )

    def press(self, message_id: str, value: str, *, person: str = "7", **more: Any) -> None:
        self._count += 1
        fields: dict[str, Any] = {"place": ChatPlace(chat_id=person), **more}
        sender = ExternalSender(id=person)
        self.push(
            InboundPress(
                id=f"press-{self._count}", sender=sender, message_id=message_id, value=value, **fields
            )
        )

    def push(self, event: InboundEvent) -> None:
        self._events.put_nowait(event)

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.sent]

    async def shows(self, text: str, count: int = 1) -> OutboundText:
        """The newest message that holds a text, once there are so many."""

        def look() -> OutboundText | None:
            found = [one for one in self.sent if text in one.text]
            return found[-1] if len(found) >= count else None

        try:
            return await wait_until(look)
        except AssertionError:
            raise AssertionError(f"'{text}' is not among {self.texts}") from None


class PuppetKits:
    """Kits with one connector, which is set up unless told otherwise."""

    def __init__(self, chat: PuppetChat, *, stored: bool = True) -> None:
        self.chat = chat
        setup = ConnectorSetup(connector="telegram", values={"token": "t"})
        self.stored: dict[str, ConnectorSetup] = {"telegram": setup} if stored else {}

    def list_known(self) -> dict[str, tuple[SetupField, ...]]:
        return {"telegram": _FIELDS}

    def list_stored(self) -> tuple[str, ...]:
        return tuple(self.stored)

    def read(self, connector: str) -> ConnectorSetup:
        return self.stored[connector]

    async def prepare(self, setup: ConnectorSetup) -> ConnectorSetup:
        return replace(setup, values={**setup.values, "prepared": "yes"})

    def store(self, setup: ConnectorSetup) -> None:
        self.stored[setup.connector] = setup

    def forget(self, connector: str) -> None:
        self.stored.pop(connector, None)

    def build(self, setup: ConnectorSetup) -> Connector:
        self.chat.builds += 1
        return self.chat


async def link(
    rig: Rig, chat: PuppetChat, user: str = "ada", person: str = "7", harness: str = "echo"
) -> None:
    """A person whose account is linked, and whose agent answers."""

    def issue(tx: Any) -> str:
        known = users.find_user(tx, user) or users.create_user(tx, user, kind=UserKind.PERSON)
        return links.issue_code(tx, known, "telegram")[1]

    code = await rig.broker.as_system(issue)
    before = len([one for one in chat.texts if "is linked to" in one])
    chat.say(code, person=person)
    await chat.shows("is linked to", before + 1)
    await rig.operator(ConfigureAgent(address=f"/{user}/telegram", config={"harness": harness}))


def play_chat(
    home: Path,
    scene: Callable[[Rig, PuppetChat], Awaitable[None]],
    capabilities: ConnectorCapabilities = ABLE,
    **options: Any,
) -> None:
    """Play a scene in which ada's account is linked."""
    chat = PuppetChat(capabilities)

    async def play(rig: Rig) -> None:
        await link(rig, chat)
        await scene(rig, chat)

    run_scene(play, home, kits=PuppetKits(chat), **options)
