"""What a connector hands over: each event becomes its records in one transaction, then people are told."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.broker.operations import talk
from scout.broker.people import accounts, chat_decisions
from scout.broker.people import inbound as texts
from scout.broker.people.chat_commands import ChatCaller, answer_command
from scout.broker.people.chat_decisions import NOT_LINKED, describe_refused_press
from scout.broker.people.chat_places import find_group_key
from scout.broker.people.chat_posts import find_origin
from scout.broker.people.chat_sender import SendingBroker, give_up
from scout.broker.people.inbound import ChatFacts
from scout.broker.people.links import NotLinked
from scout.broker.routing import attention_items
from scout.broker.transaction import admission
from scout.broker.transaction.admission import Admitted
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.ask import Ask
from scout.model.conversation import Attachment
from scout.model.events.chats import Meaning
from scout.model.people.chat import ChatPlace
from scout.model.people.chat_post import ChatPost, PostState
from scout.model.people.user import ConnectorKey
from scout.policy.people.chat_texts import describe_pairing
from scout.policy.people.inbound import clean_file_name, read_command
from scout.policy.people.text_parts import format_text
from scout.ports import Surroundings
from scout.ports.connector import (
    Connector,
    ConnectorError,
    FailureKind,
    InboundEvent,
    InboundFailure,
    InboundPress,
    InboundText,
    OutboundText,
    RemoteFile,
)
from scout.protocol.asks import FlightView
from scout.store.ledger import Ledger

T = TypeVar("T")
_LOG = logging.getLogger("scout.connectors")
_FILES = 10  # files of one message
_ATTEMPTS = 3  # to fetch a file
_AT_ONCE = 50  # posts that are being sent
_FOR_AGENTS = frozenset({Meaning.CORRECTION, Meaning.BOUND, Meaning.MENTION, Meaning.PLAIN})


class ReceptionBroker(SendingBroker, Protocol):
    """The broker as a reception needs it."""

    async def write(
        self, who: Admitted, work: Callable[[Transaction], T], place: Surroundings | None = None
    ) -> T: ...
    async def wait_for_probe(self) -> None: ...
    def glance(self) -> Ledger: ...
    def open_chat(self, who: Admitted) -> ChatCaller: ...
    def renew_listeners(self) -> None: ...


class _KeyChanged(Exception):  # noqa: N818 (a signal between two methods)
    """The account was linked or unlinked since it was looked up."""


class Reception:
    """The inlet of one connector."""

    def __init__(
        self, broker: ReceptionBroker, connector: Connector, settle: Callable[[], Awaitable[None]]
    ) -> None:
        self._broker = broker
        self._services = broker.services
        self._connector = connector
        self._name = connector.name
        self._settle = settle  # returns when what is being sent now is recorded
        self._fetched: dict[str, int] = {}  # failed attempts to fetch files, by event

    # -- the port ----------------------------------------------------------------------------------

    async def receive(self, inbound: InboundEvent) -> None:
        """Take an event. It is on disk when this returns; a repeated one has no effect."""
        while True:
            try:
                await self._take(inbound)
            except _KeyChanged:
                continue
            return

    def get_cursor(self) -> str | None:
        return self._broker.glance().read_cursor(self._name)

    async def move_cursor(self, cursor: str) -> None:
        await self._broker.as_system(lambda tx: tx.ledger.move_cursor(self._name, cursor))

    async def _take(self, event: InboundEvent) -> None:
        if isinstance(event, InboundFailure):
            await self._broker.as_system(lambda tx: self._take_failure(tx, event))
        elif not texts.is_taken(self._glance(), self._name, event.id):
            await (self._take_press(event) if isinstance(event, InboundPress) else self._take_text(event))

    def _glance(self) -> Transaction:
        """Return a transaction for short looks from the event loop, as the broker."""
        system = admission.admit_system(self._services)
        return Transaction(self._services, self._broker.glance(), system.actor, system.caller)

    # -- texts -------------------------------------------------------------------------------------

    async def _take_text(self, text: InboundText) -> None:
        text = replace(text, files=tuple(_clean_name(file) for file in text.files[:_FILES]))
        facts = texts.look_at_text(self._glance(), self._name, text)
        if text.reply_to is not None and facts.post is None:
            await self._settle()  # it may answer what was shown a moment ago
            facts = texts.look_at_text(self._glance(), self._name, text)
        if facts.meaning is Meaning.IGNORED:
            return
        if facts.meaning is Meaning.LINK:
            await self._redeem(text)
        elif facts.key is None:
            await self._greet_stranger(text)
        else:
            await self._take_known(text, facts, facts.key)

    async def _redeem(self, text: InboundText) -> None:
        result = await self._broker.as_system(lambda tx: texts.take_code(tx, self._name, text))
        if isinstance(result, NotLinked):
            await self._say(text.place, result.reason, text.message_id)

    async def _greet_stranger(self, text: InboundText) -> None:
        """Tell somebody unknown once a day how to be linked. What is sent to them is not stored."""
        sender = text.sender.id
        if texts.is_greeted(self._glance(), self._name, sender):
            return
        await self._broker.as_system(lambda tx: texts.take_stranger(tx, self._name, sender))
        await self._say(text.place, describe_pairing(self._name), text.message_id, only_for=sender)

    async def _take_known(self, text: InboundText, facts: ChatFacts, key: ConnectorKey) -> None:
        who = self._admit(key, facts.group)
        await self._broker.wait_for_probe()
        try:
            if facts.meaning is Meaning.COMMAND:
                await self._answer_command(text, facts, who)
            elif facts.meaning is Meaning.DECISION:
                await self._write(who, text, key, lambda tx: self._decide(tx, text, facts))
            else:
                files = await self._fetch_files(text, who)
                await self._write(who, text, key, lambda tx: self._take_for_agent(tx, text, facts, files))
        except Refused as refusal:
            problem = refusal.diagnostic
            await self._write(
                who, text, key, lambda tx: texts.take_refusal(tx, self._name, text, facts, problem)
            )

    def _admit(self, key: ConnectorKey, group: ConnectorKey | None) -> Admitted:
        """Return the person of an account as a caller."""
        tx = self._glance()
        person = tx.need(Agent, "agent", attention_items.find_person(tx, key.user))
        services, ledger = self._services, self._broker.glance()
        return admission.admit_chat(services, ledger, person, key.id, group.user if group else None)

    async def _write(
        self, who: Admitted, text: InboundText, key: ConnectorKey, work: Callable[[Transaction], None]
    ) -> None:
        """Run `work` once for this event, if the account is still that of the same user."""

        def run(tx: Transaction) -> None:
            if texts.is_taken(tx, self._name, text.id):
                return
            now = accounts.find_key(tx, self._name, text.sender.id)
            if now is None or now.id != key.id:
                raise _KeyChanged
            work(tx)

        await self._broker.write(who, run)

    def _decide(self, tx: Transaction, text: InboundText, facts: ChatFacts) -> None:
        chat_decisions.decide_by_reply(tx, self._name, text, facts)

    def _take_for_agent(
        self, tx: Transaction, text: InboundText, facts: ChatFacts, files: tuple[Attachment, ...]
    ) -> None:
        tx.files = {file.sha256: file.size for file in files}
        for file in files:
            talk.record_upload(tx, file)
        named = tuple(f"{file.sha256}:{file.name}" for file in files)
        texts.take_text(tx, self._name, text, facts, named)

    async def _answer_command(self, text: InboundText, facts: ChatFacts, who: Admitted) -> None:
        command, key = read_command(text.text), facts.key
        assert command is not None
        assert key is not None
        answer = await answer_command(
            self._broker.open_chat(who),
            command,
            lambda flight: self._came_from(flight, text.place),
            group=text.place.group,
        )

        def record(tx: Transaction) -> None:
            texts.answer_in_chat(tx, self._name, text, facts, answer)
            texts.record_received(tx, self._name, text, Meaning.COMMAND, key)

        await self._write(who, text, key, record)

    def _came_from(self, flight: FlightView, place: ChatPlace) -> bool:
        """Whether a flight was asked for in this chat, and in this thread if it is in one."""
        tx = self._glance()
        ask = tx.ledger.get(Ask, flight.ask_id)
        origin = find_origin(tx, ask.message_id) if ask is not None else None
        return origin is not None and (origin.payload.connector, origin.payload.place) == (self._name, place)

    # -- files -------------------------------------------------------------------------------------

    async def _fetch_files(self, text: InboundText, who: Admitted) -> tuple[Attachment, ...]:
        """Fetch and store the files of a message; one that cannot be had is left out after some attempts."""
        found: list[Attachment] = []
        for file in text.files:
            try:
                found.append(await self._fetch_file(file))
            except ConnectorError as error:
                self._fetched[text.id] = self._fetched.get(text.id, 0) + 1
                if error.kind is not FailureKind.REFUSED and self._fetched[text.id] < _ATTEMPTS:
                    raise
                _LOG.warning("%s: a file was left out: %s", self._name, error.reason)
        self._fetched.pop(text.id, None)
        return tuple(found)

    async def _fetch_file(self, file: RemoteFile) -> Attachment:
        limit = min(self._services.rules.limits.attachment, self._connector.capabilities.file_limit)
        data = await self._connector.fetch(file, limit)
        try:
            stored = await asyncio.to_thread(self._services.blobs.put, data)
        except Refused as refusal:
            raise ConnectorError(FailureKind.REFUSED, refusal.diagnostic.message) from None
        return Attachment(sha256=stored, name=file.name, size=len(data), media_type=file.media_type)

    # -- pressed buttons ---------------------------------------------------------------------------

    async def _take_press(self, press: InboundPress) -> None:
        if press.sender.program:
            return
        if chat_decisions.find_pressed_post(self._glance(), self._name, press) is None:
            await self._settle()
        tx = self._glance()
        key = accounts.find_key(tx, self._name, press.sender.id)
        if chat_decisions.find_pressed_post(tx, self._name, press) is None:
            return  # a reaction on something else
        note = await self._press(press, key) if key is not None else NOT_LINKED
        await self._note(press, note)

    async def _press(self, press: InboundPress, key: ConnectorKey) -> str:
        group = find_group_key(self._glance(), self._name, press.place)

        def run(tx: Transaction) -> str:
            if texts.is_taken(tx, self._name, press.id):
                return ""
            now = accounts.find_key(tx, self._name, press.sender.id)
            if now is None or now.id != key.id:
                raise _KeyChanged
            return chat_decisions.decide_by_press(tx, self._name, press, key)

        try:
            return await self._broker.write(self._admit(key, group), run)
        except Refused as refusal:
            return describe_refused_press(refusal.diagnostic)

    async def _note(self, press: InboundPress, note: str) -> None:
        """Tell the person who pressed; it is no part of the decision, so a failure is only logged."""
        if not note:
            return
        try:
            await self._connector.answer_press(press, note)
        except ConnectorError as error:
            _LOG.warning("%s: a press was not answered: %s", self._name, error.reason)

    # -- telling -----------------------------------------------------------------------------------

    async def _say(
        self, place: ChatPlace, text: str, reply_to: str | None, only_for: str | None = None
    ) -> None:
        """Show somebody whose account is not linked a text, without storing it. A failure is only logged."""
        able = self._connector.capabilities
        (part, *_) = await asyncio.to_thread(format_text, text, able.markup, able.text_limit)
        hidden = only_for if able.private_notes and place.group else None
        message = OutboundText(
            id=f"greeting-{self._services.clock.monotonic()}",
            place=place,
            text=part.text,
            plain=part.plain,
            reply_to=reply_to,
            only_for=hidden,
        )
        try:
            await self._connector.send(message)
        except ConnectorError as error:
            _LOG.warning("%s: a greeting was not sent: %s", self._name, error.reason)

    def _take_failure(self, tx: Transaction, failure: InboundFailure) -> None:
        """Record that the platform did not deliver a post that it had accepted.

        The report may overtake the answer to the post. Then it is not taken, and the platform repeats it.
        """
        where = failure.place.chat_id
        post = texts.find_shown_post(tx, self._name, where, failure.message_id)
        if post is not None and post.state is PostState.SENT:
            give_up(tx, post, failure.reason)
        elif self._is_sending(tx, where):
            raise ConnectorError(FailureKind.RETRY, f"{self._name}: a message there is still being sent")

    def _is_sending(self, tx: Transaction, chat_id: str) -> bool:
        sending = tx.ledger.many(ChatPost, "chat_posts_sending", connector=self._name, limit=_AT_ONCE)
        return any(one.chat_id == chat_id for one in sending)


def _clean_name(file: RemoteFile) -> RemoteFile:
    return replace(file, name=clean_file_name(file.name))
