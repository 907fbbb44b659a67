"""The connectors at work: each is started, watched and restarted by itself, and none holds up the broker."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple

from scout.base.refusal import Refused, Remedy
from scout.base.time import Time
from scout.broker.people.chat_posts import find_origin
from scout.broker.people.chat_sender import ChatSender
from scout.broker.people.reception import Reception, ReceptionBroker
from scout.broker.routing import attention_items
from scout.broker.transaction import admission
from scout.broker.transaction.streams import Subscriptions
from scout.broker.transaction.transaction import Transaction
from scout.model.ask import Ask
from scout.model.attention import Attention, AttentionKind
from scout.model.delivery import back_off
from scout.model.events.asks import FlightEvent
from scout.model.events.chats import ChatPostEvent
from scout.model.flight import FlightState
from scout.model.people.chat import ChatPlace
from scout.model.people.chat_post import PostState
from scout.ports.connector import (
    Connector,
    ConnectorAccount,
    ConnectorError,
    ConnectorKits,
    FailureKind,
)
from scout.protocol.operations import build_command_line
from scout.protocol.people.connectors import ConnectorState

_LOG = logging.getLogger("scout.connectors")
_PATIENCE = 5.0  # seconds that a message has to be sent when a connector is stopped
_TYPING = 4.0  # seconds after which a platform stops showing that somebody writes


class Health(NamedTuple):
    """How a connector is; `since` when."""

    state: ConnectorState
    since: Time
    account: ConnectorAccount | None = None
    problem: str = ""


class _NotBuiltError(Exception):
    """The connector cannot run here: another attempt would not help."""


class _Lane:
    """One connector that is set up."""

    def __init__(self, name: str, health: Health) -> None:
        self.name = name
        self.health = health
        self.sender: ChatSender | None = None
        self.task: asyncio.Task[None] | None = None
        self.tried = asyncio.Event()
        self.typing: dict[str, ChatPlace] = {}  # where an answer is awaited, by flight

    async def finish(self) -> None:
        if self.sender is not None:
            await self.sender.finish()


class Connectors:
    """All connectors of this Scout. `kits` builds them and keeps what is set for them."""

    def __init__(self, broker: ReceptionBroker, kits: ConnectorKits | None) -> None:
        self._broker = broker
        self._services = broker.services
        self.kits = kits
        self._lanes: dict[str, _Lane] = {}

    # -- start and stop ----------------------------------------------------------------------------

    async def begin(self) -> None:
        """Start every connector that is set up."""
        if self.kits is not None:
            for name in await asyncio.to_thread(self.kits.list_stored):
                self.start(name)

    async def close(self) -> None:
        """Stop all of them."""
        for name in list(self._lanes):
            await self.stop(name)

    def start(self, name: str) -> None:
        """Start one that is set up; it is watched from now on."""
        lane = _Lane(name, Health(ConnectorState.STARTING, self._services.clock.now()))
        self._lanes[name] = lane
        self._services.connector_states[name] = lane.health.state
        lane.task = asyncio.get_running_loop().create_task(self._watch(lane))
        self._broker.renew_listeners()

    async def stop(self, name: str) -> None:
        """Stop one and let go of its connections."""
        lane = self._lanes.pop(name, None)
        self._services.connector_states.pop(name, None)
        self._broker.renew_listeners()
        if lane is not None and lane.task is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    await lane.finish()
            lane.task.cancel()
            await asyncio.gather(lane.task, return_exceptions=True)

    async def wait_for_start(self, name: str) -> None:
        """Wait until a connector works or has failed once, for a few seconds at most."""
        lane = self._lanes.get(name)
        if lane is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_PATIENCE):
                    await lane.tried.wait()

    def get_health(self, name: str) -> Health | None:
        """Return how a connector is; None if it is not set up."""
        lane = self._lanes.get(name)
        return lane.health if lane is not None else None

    def list_names(self) -> list[str]:
        return sorted(self._lanes)

    def check(self) -> None:
        """Look at the queues; the clock may have moved."""
        for lane in self._lanes.values():
            if lane.sender is not None:
                lane.sender.wake()

    # -- events ------------------------------------------------------------------------------------

    def subscriptions(self) -> Subscriptions:
        """Return what is listened to: nothing, if no connector is set up."""
        if not self._lanes:
            return ()
        return ((self._on_post, (ChatPostEvent,)), (self._on_flight, (FlightEvent,)))

    def _on_post(self, event: ChatPostEvent) -> None:
        lane = self._lanes.get(event.payload.record.connector)
        if lane is not None and lane.sender is not None and event.payload.record.state is PostState.QUEUED:
            lane.sender.wake()

    def _on_flight(self, event: FlightEvent) -> None:
        """Remember where an answer is awaited while a program works on it."""
        flight = event.payload.record
        for lane in self._lanes.values():
            lane.typing.pop(flight.id, None)
        if flight.state is FlightState.RUNNING:
            ledger = self._broker.glance()
            ask = ledger.get(Ask, flight.ask_id)
            system = admission.admit_system(self._services)
            tx = Transaction(self._services, ledger, system.actor, system.caller)
            origin = find_origin(tx, ask.message_id) if ask is not None else None
            lane = self._lanes.get(origin.payload.connector) if origin is not None else None
            if lane is not None and origin is not None:
                lane.typing[flight.id] = origin.payload.place

    # -- one connector -----------------------------------------------------------------------------

    async def _watch(self, lane: _Lane) -> None:
        """Run a connector until it is stopped or its credentials fail."""
        try:
            await self._keep_trying(lane, lambda: self._run(lane))
        except ConnectorError as error:
            await self._report_credentials(lane, error.reason)
        except _NotBuiltError as error:
            self._set(lane, ConnectorState.FAILED, problem=str(error))

    async def _keep_trying(self, lane: _Lane, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` again after each failure, with a growing pause. Failed credentials end it."""
        failures = 0
        while True:
            try:
                await work()
                problem = "it ended"
            except ConnectorError as error:
                if error.kind is FailureKind.CREDENTIALS:
                    raise
                problem = error.reason
            except _NotBuiltError:
                raise
            except Refused as refused:  # such as a full disk
                problem = refused.diagnostic.message
            except Exception as error:  # noqa: BLE001 (it is logged, and tried again)
                _LOG.exception("%s", lane.name)
                problem = f"an error of the connector: {type(error).__name__}"
            failures = 1 if lane.health.state is ConnectorState.RUNNING else failures + 1
            self._set(lane, ConnectorState.RETRYING, problem=problem)
            _LOG.warning("%s: %s", lane.name, problem)
            await asyncio.sleep(back_off(failures, self._services.rules.back_off))

    async def _run(self, lane: _Lane) -> None:
        """Build and check a connector; then receive and send, each with its own attempts."""
        connector = await self._build(lane.name)
        sender = ChatSender(self._broker, connector)
        inlet = Reception(self._broker, connector, sender.settle)

        async def receive() -> None:
            account = await connector.check()
            self._set(lane, ConnectorState.RUNNING, account=account)
            await self._close_item(lane)
            sender.resume()
            await connector.run(inlet)

        try:
            lane.sender = sender
            async with asyncio.TaskGroup() as group:
                group.create_task(self._keep_trying(lane, receive))
                group.create_task(sender.run())
                group.create_task(self._show_typing(lane, connector))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        finally:
            lane.sender = None
            await connector.close()

    async def _build(self, name: str) -> Connector:
        kits = self.kits
        assert kits is not None
        try:
            return await asyncio.to_thread(lambda: kits.build(kits.read(name)))
        except Refused as refused:
            raise _NotBuiltError(refused.diagnostic.message) from None

    async def _show_typing(self, lane: _Lane, connector: Connector) -> None:
        """Show in each chat that an answer is being written, as long as one is."""
        while connector.capabilities.typing:
            for place in {one.chat_id: one for one in lane.typing.values()}.values():
                with suppress(ConnectorError):
                    await connector.show_typing(place)
            await asyncio.sleep(_TYPING)
        await asyncio.Event().wait()  # such a platform shows nothing

    def _set(
        self,
        lane: _Lane,
        state: ConnectorState,
        *,
        account: ConnectorAccount | None = None,
        problem: str = "",
    ) -> None:
        known = account or lane.health.account
        same = state is lane.health.state
        since = lane.health.since if same else self._services.clock.now()
        lane.health = Health(state, since, known, problem)
        if self._lanes.get(lane.name) is lane:
            self._services.connector_states[lane.name] = state
        lane.tried.set()

    # -- credentials -------------------------------------------------------------------------------

    async def _report_credentials(self, lane: _Lane, reason: str) -> None:
        """Stop a connector whose credentials failed, and ask the operator once for others."""
        name = lane.name
        again = Remedy(operation="connector.add", parameters={"connector": name})

        def open_item(tx: Transaction) -> None:
            attention_items.open_item(
                tx,
                AttentionKind.SETUP,
                user=tx.services.operator,
                source=tx.services.system_agent,
                title=f"{name}: the credentials no longer work",
                body=f"{reason}\nNothing is sent or received there.\ntry: {build_command_line(again)}",
                dedupe=_dedupe(name),
            )

        await self._broker.as_system(open_item)
        self._set(lane, ConnectorState.CREDENTIALS, problem=reason)

    async def _close_item(self, lane: _Lane) -> None:
        """Close the item about failed credentials once they work."""
        dedupe = _dedupe(lane.name)
        if not self._broker.glance().many(Attention, "attention_about", dedupe=dedupe):
            return

        def close(tx: Transaction) -> None:
            for item in tx.ledger.many(Attention, "attention_about", dedupe=dedupe):
                attention_items.close_item(tx, item, "the credentials work again")

        await self._broker.as_system(close)


def _dedupe(name: str) -> str:
    return f"connector:{name}"
