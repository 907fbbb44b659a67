"""The broker against a small model of itself: whatever is done in whatever order, and however it dies."""

import asyncio
import os
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from scout.adapters.echo import Echo
from scout.broker.broker import Broker
from scout.broker.upkeep import housekeeping
from scout.daemon.time_zones import SystemZones
from scout.model.delivery import back_off
from scout.model.endpoint import EndpointState, Transport
from scout.model.flight import FlightState
from scout.model.waiting import WaitingKind
from scout.policy.limits import Limits, Rules
from scout.protocol.asks import CancelFlight, CompleteFlight, GetFlight, MakeAsk, RetryFlight
from scout.protocol.endpoints import Heartbeat, RegisterEndpoint
from scout.protocol.inbox import AckInbox, ClaimInbox, GetDelivery, ListDeliveries, NackInbox, RenewInbox
from scout.protocol.talk import GetMessage, Send
from scout.store.blobs import FolderBlobs
from scout.store.database import Database
from scout.store.integrity.verify import verify
from scout.tree.place import Disk
from tests.broker.rig import SECRET, STATUS, MovedClock, Rig, SystemIds, expect_refusal

T = TypeVar("T")
ATTEMPTS = 3
LEASE = 60.0
PULLS = ("pull-one", "pull-two")
HOLDERS = (*PULLS, "by-hand")
OPEN = (FlightState.QUEUED, FlightState.RUNNING)
MOST = 80_000.0
some = st.integers(min_value=0, max_value=10_000)


@dataclass
class Carried:
    """A delivery, as it should be."""

    target: str
    flight: str | None = None
    message: str = ""
    state: str = "pending"
    attempts: int = 0
    due: float = 0.0
    until: float = 0.0


@dataclass
class Asked:
    """A flight, as it should be."""

    target: str
    ask: str
    state: FlightState = FlightState.QUEUED
    output: str | None = None


@dataclass
class Model:
    deliveries: dict[str, Carried] = field(default_factory=dict[str, Carried])
    flights: dict[str, Asked] = field(default_factory=dict[str, Asked])

    def end(self, ident: str, state: FlightState, output: str | None = None) -> None:
        flight = self.flights[ident]
        flight.state, flight.output = state, output
        for one in self.deliveries.values():
            if one.flight == ident and one.state in ("pending", "leased"):
                one.state = "cancelled"

    def give_back(self, ident: str, due: float) -> None:
        one = self.deliveries[ident]
        one.state, one.due = "pending", due
        if one.attempts >= ATTEMPTS:
            one.state = "dead_lettered"
            if one.flight is not None and self.flights[one.flight].state in OPEN:
                self.end(one.flight, FlightState.FAILED)

    def take(self, ident: str) -> None:
        one = self.deliveries[ident]
        one.attempts += one.state == "pending"
        one.state = "acked"
        if one.flight is not None and self.flights[one.flight].state is FlightState.QUEUED:
            self.flights[one.flight].state = FlightState.RUNNING


class Life(RuleBasedStateMachine):
    """One broker after the other on the same files."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="scout-life-")
        self.home = Path(self.folder.name)
        self.runner = asyncio.Runner()
        self.clock = MovedClock()
        self.model = Model()
        self.abandoned: list[Database] = []
        self.endpoints: dict[str, str] = {}
        self.open()
        self.rig = Rig(self.broker, self.clock, self.home)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def open(self) -> None:
        self.database = Database(self.home / "scout.db")
        limits = Limits(attempts=ATTEMPTS, wakes_per_hour=1000)
        self.broker = Broker(
            self.database,
            rules=Rules(limits=limits),
            roots=(str(self.home),),
            default_harness=None,
            clock=self.clock,
            ids=SystemIds(),
            places=Disk(home=str(self.home / "home"), temporary=()),
            blobs=FolderBlobs(self.home / "blobs", limits.attachment),
            zones=SystemZones(),
            harnesses={"echo": Echo()},
            version="0",
        )
        self.run(self.broker.start(SECRET, "ada", "mini", STATUS))

    @initialize()
    def people(self) -> None:
        async def enter() -> None:
            for name in PULLS:
                seat = await self.rig.agent(name)
                wish = RegisterEndpoint(transport=Transport.PULL, state=EndpointState.IDLE)
                self.endpoints[name] = (await seat.call(wish)).id
            await self.rig.register("by-hand", harness="echo", wake_policy="manual")
            await self.rig.register("parrot", harness="echo")

        self.run(enter())

    def one_of(self, idents: list[str], pick: int) -> str:
        return sorted(idents)[pick % len(idents)]

    def those(self, *states: str) -> list[str]:
        return [ident for ident, one in self.model.deliveries.items() if one.state in states]

    async def alive(self, name: str) -> None:
        if name in self.endpoints:
            seat = await self.rig.agent(name)
            await seat.call(Heartbeat(endpoint_id=self.endpoints[name]))

    async def newest(self, name: str) -> str:
        return (await self.rig.operator(ListDeliveries(target=f"@{name}", limit=1))).items[0].id

    # -- what people do ------------------------------------------------------------------------------

    @rule(name=st.sampled_from(HOLDERS))
    def send(self, name: str) -> None:
        receipt = self.run(self.rig.operator(Send(to=f"@{name}", body="hello")))
        (delivery,) = receipt.deliveries
        self.model.deliveries[delivery.delivery_id] = Carried(name, message=receipt.message_id)

    @rule(name=st.sampled_from(HOLDERS))
    def ask(self, name: str) -> None:
        async def do() -> None:
            await self.alive(name)
            asked = await self.rig.operator(MakeAsk(to=f"@{name}", body="do it"))
            self.model.flights[asked.flight_id] = Asked(name, asked.ask_id)
            carried = Carried(name, asked.flight_id, asked.message_id)
            self.model.deliveries[await self.newest(name)] = carried

        self.run(do())

    @rule(text=st.text("abc", min_size=1))
    def ask_a_program(self, text: str) -> None:
        async def do() -> None:
            asked = await self.rig.operator(MakeAsk(to="@parrot", body=text, wait=20))
            assert (asked.state, asked.output) == ("completed", text)
            self.model.flights[asked.flight_id] = Asked("parrot", asked.ask_id, FlightState.COMPLETED, text)
            carried = Carried("parrot", asked.flight_id, asked.message_id, "acked", 1)
            self.model.deliveries[await self.newest("parrot")] = carried

        self.run(do())

    @rule(name=st.sampled_from(HOLDERS), most=st.integers(min_value=1, max_value=3))
    def claim(self, name: str, most: int) -> None:
        async def do() -> list[str]:
            claimed = await (await self.rig.agent(name)).call(ClaimInbox(limit=most))
            return [item.delivered.id for item in claimed.items]

        now = self.clock.ahead
        mine = self.model.deliveries
        due = sorted(i for i in self.those("pending") if mine[i].target == name and mine[i].due <= now)
        taken = self.run(do())
        assert taken == due[:most]
        for ident in taken:
            mine[ident].state, mine[ident].until = "leased", now + LEASE
            mine[ident].attempts += 1

    @precondition(lambda self: self.those("pending", "leased"))
    @rule(pick=some)
    def acknowledge(self, pick: int) -> None:
        ident = self.one_of(self.those("pending", "leased"), pick)
        self.by_target(ident, AckInbox(delivery_ids=(ident,)))
        self.model.take(ident)
        self.check_one(ident)

    @precondition(lambda self: self.those("leased"))
    @rule(pick=some, pause=st.sampled_from((0, 1000)))
    def give_back(self, pick: int, pause: int) -> None:
        ident = self.one_of(self.those("leased"), pick)
        self.by_target(ident, NackInbox(delivery_ids=(ident,), retry_after=pause))
        self.model.give_back(ident, self.clock.ahead + pause)
        self.check_one(ident)

    @precondition(lambda self: self.those("leased"))
    @rule(pick=some)
    def renew(self, pick: int) -> None:
        ident = self.one_of(self.those("leased"), pick)
        self.by_target(ident, RenewInbox(delivery_ids=(ident,)))
        self.model.deliveries[ident].until = self.clock.ahead + LEASE

    @precondition(lambda self: self.those("leased", "pending"))
    @rule(pick=some)
    def steal(self, pick: int) -> None:
        ident = self.one_of(self.those("leased", "pending"), pick)

        async def do() -> None:
            other = next(name for name in HOLDERS if name != self.model.deliveries[ident].target)
            told = await expect_refusal((await self.rig.agent(other)).call(AckInbox(delivery_ids=(ident,))))
            assert told.code == "not_owner"

        self.run(do())

    def by_target(self, ident: str, request: Any) -> None:
        async def do() -> None:
            await (await self.rig.agent(self.model.deliveries[ident].target)).call(request)

        self.run(do())

    @precondition(lambda self: self.model.flights)
    @rule(pick=some)
    def cancel(self, pick: int) -> None:
        ident = self.one_of(list(self.model.flights), pick)
        request = self.rig.operator(CancelFlight(flight_id=ident))
        if self.model.flights[ident].state in OPEN:
            self.run(request)
            self.model.end(ident, FlightState.CANCELLED)
        else:
            assert self.run(expect_refusal(request)).code == "wrong_state"

    @precondition(lambda self: self.model.flights)
    @rule(pick=some, text=st.sampled_from(("done", " ")))
    def complete(self, pick: int, text: str) -> None:
        ident = self.one_of(list(self.model.flights), pick)
        flight = self.model.flights[ident]

        async def do() -> None:
            seat = await self.rig.agent(flight.target)
            request = seat.call(CompleteFlight(flight_id=ident, output=text))
            if flight.state not in OPEN:
                assert (await expect_refusal(request)).code == "wrong_state"
                return
            await request
            for one in [i for i, each in self.model.deliveries.items() if each.flight == ident]:
                if self.model.deliveries[one].state in ("pending", "leased"):
                    self.model.take(one)
            done = text.strip()
            self.model.end(ident, FlightState.COMPLETED if done else FlightState.FAILED, done or None)

        self.run(do())

    @precondition(lambda self: self.model.flights)
    @rule(pick=some)
    def retry(self, pick: int) -> None:
        ident = self.one_of(list(self.model.flights), pick)
        flight = self.model.flights[ident]
        newest = max(i for i, one in self.model.flights.items() if one.ask == flight.ask)

        async def do() -> None:
            await self.alive(flight.target)
            request = self.rig.operator(RetryFlight(flight_id=ident))
            if self.model.flights[newest].state not in (FlightState.FAILED, FlightState.CANCELLED):
                assert (await expect_refusal(request)).code == "wrong_state"
                return
            again = await request
            assert again.ask_id == flight.ask
            self.model.flights[again.flight_id] = Asked(flight.target, flight.ask)
            carried = Carried(flight.target, again.flight_id, again.message_id)
            self.model.deliveries[await self.newest(flight.target)] = carried

        self.run(do())

    # -- what happens to everybody -------------------------------------------------------------------

    @rule(seconds=st.sampled_from((31.0, 500.0, 5000.0)))
    def time_goes_on(self, seconds: float) -> None:
        """Less than a day in all: what gives no sign of life for longer is lost."""
        self.clock.ahead += min(seconds, MOST - self.clock.ahead)
        self.run(housekeeping.tidy(self.broker))
        for ident in self.those("leased"):
            one = self.model.deliveries[ident]
            if one.until <= self.clock.ahead:
                self.model.give_back(ident, self.clock.ahead + back_off(one.attempts, Rules().back_off))

    @rule()
    def restart(self) -> None:
        self.run(self.broker.close())
        self.run(self.database.close())
        self.again()

    @rule()
    def crash(self) -> None:
        """Nothing is said any more: what is on disk has to do."""
        keeper = self.broker._keeper
        if keeper is not None:
            keeper.cancel()
        self.run(self.broker.dispatcher.close())
        self.abandoned.append(self.database)
        self.again()

    def again(self) -> None:
        self.open()
        self.rig.broker = self.broker
        self.check()

    # -- what must be true ---------------------------------------------------------------------------

    def check_one(self, ident: str) -> None:
        one, stored = (
            self.model.deliveries[ident],
            self.run(self.rig.operator(GetDelivery(delivery_id=ident))),
        )
        assert (stored.state, stored.attempts) == (one.state, one.attempts)

    def check(self) -> None:
        for ident, one in self.model.deliveries.items():
            self.check_one(ident)
            self.run(self.rig.operator(GetMessage(message_id=one.message)))
        for ident, flight in self.model.flights.items():
            view = self.run(self.rig.operator(GetFlight(flight_id=ident)))
            silent = view.waiting_on is not None and view.waiting_on.kind is WaitingKind.PEER
            state = FlightState.RUNNING if view.state is FlightState.WAITING and silent else view.state
            assert (state, view.output) == (flight.state, flight.output)

    def teardown(self) -> None:
        try:
            self.check()
            for name in HOLDERS:
                listed = self.run(self.rig.operator(ListDeliveries(target=f"@{name}", limit=200)))
                known = {i for i, one in self.model.deliveries.items() if one.target == name}
                assert {one.id for one in listed.items} == known
        finally:
            self.run(self.broker.close())
            for database in (self.database, *self.abandoned):
                self.run(database.close())
            self.runner.close()
            with self.folder:
                report = verify(self.home / "scout.db")
        assert report.clean, report


_QUICK = os.environ.get("SCOUT_HYPOTHESIS", "full") != "full"
TestLife = pytest.mark.slow(Life.TestCase)
TestLife.settings = settings(max_examples=6 if _QUICK else 30, stateful_step_count=30, deadline=None)
