"""One somebody's view of Scout: what they ask is done in their name."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Diagnostic, Refused
from scout.broker import references
from scout.broker.handlers import HANDLERS, config_of, directory_of
from scout.broker.long_polls import AWAITED
from scout.broker.nearby_projects import with_projects
from scout.broker.operations import endpoints, inbox, overview
from scout.broker.operations.agents import who_am_i
from scout.broker.routing import attachments, unread
from scout.broker.sessions.control import CONDUCTED, SessionBroker, SessionControl
from scout.broker.sessions.observation import LOOKS, Observer
from scout.broker.transaction.admission import Admitted
from scout.broker.transaction.cache import Cache
from scout.broker.transaction.idempotency import run_once
from scout.broker.transaction.streams import Hub
from scout.broker.transaction.transaction import Transaction
from scout.model.conversation import Attachment
from scout.model.delivery import Delivery
from scout.model.endpoint import Endpoint, heard_from
from scout.model.events.envelope import Event
from scout.model.flight import FLIGHT, Flight
from scout.model.problems.target import UnknownTarget
from scout.model.token import Token, TokenKind, is_valid, require_valid
from scout.policy.limits import check_attachments, check_streams
from scout.policy.permit import check_operation
from scout.ports import Surroundings
from scout.protocol.agents import Heartbeat, Identity, WhoAmI
from scout.protocol.asks import GetFlight, MakeAsk
from scout.protocol.correction import correct_remedies
from scout.protocol.inbox import AckInbox, ClaimInbox
from scout.protocol.insight import ShowBrief
from scout.protocol.overview import ReloadSettings, Watch
from scout.protocol.request import Request, Write, result_of
from scout.protocol.route_operator import apply_route
from scout.protocol.talk import Blob, GetBlob, PutBlob, Send
from scout.store.ledger import Ledger

T = TypeVar("T")
_PAGE = 500
_SOON = 0.05
_LOOK = 60.0  # seconds between looks at a credential of which nothing is told
_IDENTITIES = 10_000


class CallBroker(SessionBroker, Protocol):
    """The broker with what answers a call."""

    hub: Hub
    signs_of_life: dict[str, Endpoint]
    cache: Cache
    identities: dict[tuple[str | None, ...], Identity]

    async def looked_round(self) -> None: ...
    def glance(self) -> Ledger: ...
    def tally(self, name: str) -> None: ...
    def count(self, agent_id: str, what: str, text: str = "") -> None: ...


class LocalScout:
    """One somebody's view: what they ask is done in their name."""

    def __init__(self, broker: CallBroker, who: Admitted) -> None:
        self._broker = broker
        self.who = who

    async def call(self, request: Request[T]) -> T:
        """Answer a request. What changes something is on disk before the answer is given."""
        try:
            request = apply_route(request)
            answer = await self._answer(request)
            if isinstance(request, ShowBrief):
                self._count("orientation_commands_avoided")
            return answer
        except Refused as refusal:
            self._broker.tally("refused")
            self._count("diagnostics_generated", refusal.diagnostic.message)
            problem = await self._with_projects(refusal.diagnostic)
            raise Refused(correct_remedies(request, problem)) from None

    async def _with_projects(self, problem: Diagnostic) -> Diagnostic:
        """A name that nobody answers to may be that of a project nearby."""
        if not isinstance(problem, UnknownTarget):
            return problem
        services = self._broker.services
        return await asyncio.to_thread(with_projects, problem, services, self.who.caller)

    def _count(self, what: str, text: str = "") -> None:
        """What an agent is told costs it tokens; a person's time is not counted."""
        actor = self.who.actor
        if actor.kind is TokenKind.AGENT and actor.agent_id is not None:
            self._broker.count(actor.agent_id, what, text)

    async def _answer(self, request: Request[Any]) -> Any:
        check_operation(self.who.actor, request.operation)
        request = await self._with_real_folder(await self._written_out(request))
        place = await self._place(request)
        if isinstance(request, MakeAsk | Send):
            await self._broker.looked_round()
        match request:
            case PutBlob() | GetBlob():
                return await self._file(request)
            case ReloadSettings():
                return await self._answer_outside(request)
            case Heartbeat():
                return await self._heartbeat(request)
            case _ if isinstance(request, CONDUCTED):
                self._broker.tally("writes" if request.writes else "reads")
                return await SessionControl(self._broker, self.who, place).answer(request)
            case WhoAmI():
                return self._identity(request)
            case GetFlight() if request.wait:
                return await self._wait_for(request)
            case ClaimInbox() if request.wait:
                return await self._claim(request)
            case MakeAsk() if request.wait:
                return await self._ask_and_wait(request, place)
            case _ if type(request) in LOOKS:
                self._broker.tally("reads")
                return await LOOKS[type(request)](Observer(self._broker.services, self._read), request)
            case _ if getattr(request, "wait", 0) and result_of(type(request)) in AWAITED:
                return await self._answered(request)
            case _:
                return await self._plain(request, place)

    async def _written_out(self, request: Request[T]) -> Request[T]:
        """The request with whole ids."""
        if not references.needs_expansion(request):
            return request
        return await self._read(lambda tx: references.expand(tx, request))

    async def _plain(self, request: Request[T], place: Surroundings | None = None) -> T:
        handler = await self._with_files(request, HANDLERS[type(request)])
        if not request.writes:
            self._broker.tally("reads")
            return await self._read(lambda tx: handler(tx, request), place)
        self._broker.tally("writes")
        if isinstance(request, Write) and request.idempotency_key is not None:
            return await self._broker.write(self.who, lambda tx: run_once(tx, request, handler), place)
        return await self._broker.write(self.who, lambda tx: handler(tx, request), place)

    async def _with_files(
        self, request: Request[Any], handler: Callable[[Transaction, Any], Any]
    ) -> Callable[[Transaction, Any], Any]:
        """The handler; one whose request names stored files is given their sizes, looked up off the loop."""
        named: tuple[str, ...] = getattr(request, "attachments", ())
        if not named:
            return handler
        check_attachments(named)
        files = await asyncio.to_thread(attachments.sizes_of, self._broker.services.blobs, named)

        def handle(tx: Transaction, asked: Any) -> Any:
            tx.files = files
            return handler(tx, asked)

        return handle

    async def _read(self, work: Callable[[Transaction], T], place: Surroundings | None = None) -> T:
        who, services = self.who, self._broker.services
        return await self._broker.read(
            lambda ledger: work(
                Transaction(services, ledger, who.actor, who.caller, here=who.here, place=place)
            )
        )

    def _identity(self, request: WhoAmI) -> Identity:
        """Asked with every MCP message: a short look from the loop itself, good until somebody is renamed."""
        self._broker.tally("reads")
        who, known = self.who, self._broker.identities
        key = (who.actor.token_id, who.actor.agent_id, who.caller.project_root)
        if key not in known:
            if len(known) >= _IDENTITIES:
                known.clear()
            tx = Transaction(
                self._broker.services, self._broker.glance(), who.actor, who.caller, here=who.here
            )
            known[key] = who_am_i(tx, request)
        return known[key]

    async def _place(self, request: Request[Any]) -> Surroundings | None:
        directory = directory_of(request)
        if directory is None:
            return None
        places = self._broker.services.places
        return await asyncio.to_thread(places.locate, directory, self.who.base)

    async def _with_real_folder(self, request: Request[T]) -> Request[T]:
        """The request with the real path of the folder that an agent's settings name."""
        field, config = config_of(request)
        folder = config.get("workspaceDir")
        if not isinstance(folder, str):
            return request
        real = await asyncio.to_thread(self._broker.services.places.real_path, folder, self.who.base)
        return replace(request, **{field: {**config, "workspaceDir": real}})

    async def _file(self, request: PutBlob | GetBlob) -> Attachment | Blob:
        return await (self._store_file(request) if isinstance(request, PutBlob) else self._read_file(request))

    async def _read_file(self, request: GetBlob) -> Blob:
        """The bytes, for those who may have them."""
        await self._read(lambda tx: attachments.check_readable(tx, request))
        return await asyncio.to_thread(self._outside, request)

    async def _store_file(self, request: PutBlob) -> Attachment:
        """Store the bytes off the loop, then note who did; under its key a file is known by its hash."""
        stored: Attachment = await asyncio.to_thread(self._outside, request)
        named = replace(request, data=stored.sha256.encode())
        return await self._broker.write(
            self.who, lambda tx: run_once(tx, named, lambda one, _: attachments.record_upload(one, stored))
        )

    async def _answer_outside(self, request: Request[Any]) -> Any:
        """Answer what touches files, off the loop; asked again under its key, the first answer."""
        answer = await asyncio.to_thread(self._outside, request)
        if not isinstance(request, Write) or request.idempotency_key is None:
            return answer
        return await self._broker.write(self.who, lambda tx: run_once(tx, request, lambda _, __: answer))

    def _outside(self, request: Request[Any]) -> Any:
        """What touches files and not the store."""
        tx = Transaction(self._broker.services, self._broker.glance(), self.who.actor, self.who.caller)
        return HANDLERS[type(request)](tx, request)

    # -- waiting -----------------------------------------------------------------------------------

    async def _wait_for(self, request: GetFlight) -> Any:
        """Until it is finished, asks the caller or is another than was seen, or for as long as was asked."""
        view = await self._plain(request)
        if self._is_open(request, view):
            await self._finished(request, view.id)
            view = await self._plain(GetFlight(flight_id=view.id))
        if self.who.actor.kind is TokenKind.OPERATOR and view.state in FLIGHT.terminal:
            await self._mark_answer_read(view.id)
        return view

    async def _mark_answer_read(self, flight_id: str) -> None:
        """A person who waited for an answer has it: it is no mail any more."""
        mail = await self._read(lambda tx: inbox.answers_to(tx, flight_id))
        if mail:
            await self._plain(AckInbox(delivery_ids=mail))

    async def _finished(self, request: GetFlight, flight_id: str, *, fresh: bool = False) -> Flight:
        """An asker who waits here is told here: the flight is known to be awaited all the while.

        `fresh`: it was made just now, so that there is nothing to see yet.
        """
        end = self._end(request.wait)
        news = flight_id if request.seen is not None else f"end of {flight_id}"
        with self._broker.waiters.listening(news, f"{flight_id} {self._me}", self._token) as listener:
            if fresh:
                await listener.wait(self._left(end))
            while True:
                self._require_credential()
                flight = self._broker.glance().get(Flight, flight_id)
                assert flight is not None  # it was seen before
                if not self._is_open(request, flight) or not await listener.wait(self._left(end)):
                    return flight

    def _is_open(self, request: GetFlight, flight: Flight) -> bool:
        """Not for one whom the flight asks something: it would wait for itself."""
        if request.seen is not None:
            return flight.state not in FLIGHT.terminal and request.seen == flight.revision
        asks_me = flight.is_asking and flight.next_move_owner_id == self._me
        return flight.state not in FLIGHT.terminal and not asks_me

    def _end(self, wait: float) -> float:
        services = self._broker.services
        return services.clock.monotonic() + min(wait, services.rules.periods.long_poll)

    def _left(self, end: float) -> float:
        return end - self._broker.services.clock.monotonic()

    async def credential_ended(self) -> None:
        """Comes back when the credential has ended: revoked or expired."""
        with self._broker.waiters.listening(self._token) as listener:
            while self._ended_token() is None:
                await listener.wait(_LOOK)

    def _require_credential(self) -> None:
        """Refuse to continue for somebody whose credential has ended since the request began."""
        ended = self._ended_token()
        if ended is not None:
            require_valid(ended, self._broker.services.clock.now())

    def _ended_token(self) -> Token | None:
        """The credential as it is now, if it has ended; the broker itself has none."""
        token = self._broker.glance().get(Token, self._token) if self._token else None
        return token if token is not None and not is_valid(token, self._broker.services.clock.now()) else None

    @property
    def _token(self) -> str:
        return self.who.actor.token_id or ""

    @property
    def _me(self) -> str:
        return self.who.actor.agent_id or self._broker.services.system_agent

    async def _claim(self, request: ClaimInbox) -> Any:
        end = self._end(request.wait)
        while True:
            places = await self._read(lambda tx: tuple(unread.talks_of(tx, tx.sender)))
            with self._broker.waiters.listening(f"inbox {self._me}", self._token, *places) as listener:
                self._require_credential()
                claimed = await self._plain(request)
                left = self._left(end)
                if claimed.items or left <= 0:
                    return claimed
                await listener.wait(min(left, await self._read(_due_in)))

    async def _ask_and_wait(self, request: MakeAsk, place: Surroundings | None) -> Any:
        receipt = await self._plain(request, place)
        wait = GetFlight(flight_id=receipt.flight_id, wait=request.wait)
        view = await self._finished(wait, receipt.flight_id, fresh=request.idempotency_key is None)
        return replace(receipt, state=view.state, phase=view.phase, reason=view.reason, output=view.output)

    async def _answered(self, request: Request[Any]) -> Any:
        """What is made or shown, once it is answered or after as long as was asked; then as it is.

        Who waits here is told here: the record is known to be awaited by the caller all the while.
        """
        shown = await self._plain(request)
        awaited, end = AWAITED[type(shown)], self._end(getattr(request, "wait", 0))
        with self._broker.waiters.listening(shown.id, f"{shown.id} {self._me}", self._token) as listener:
            while awaited.is_unanswered(self._broker.glance(), shown.id):
                if not await listener.wait(self._left(end)):
                    break
                self._require_credential()
        return await self._plain(awaited.show(shown.id))

    async def _heartbeat(self, request: Heartbeat) -> Any:
        """A sign of life that is no news stays in memory for a while."""
        broker = self._broker
        seen = broker.signs_of_life.get(request.endpoint_id)
        endpoint = await self._read(lambda tx: _quiet(tx, request, seen))
        if endpoint is None:
            broker.signs_of_life.pop(request.endpoint_id, None)  # what is written now is newer
            return await self._plain(request)
        broker.signs_of_life[endpoint.id] = endpoint
        broker.cache.refresh(endpoint)
        return endpoint

    # -- watching ----------------------------------------------------------------------------------

    async def watch(self, request: Watch) -> AsyncGenerator[Event]:
        """The facts of the log that the caller may read, as they are committed."""
        check_operation(self.who.actor, request.operation)
        if references.needs_expansion(request):
            request = await self._read(lambda tx: references.expand(tx, request))
        broker = self._broker
        client = self.who.actor.token_id or "the broker"
        after = request.after
        if after is not None and after < 0:
            raise Refused(BadRequest(problem="numbers of the log begin with 1", field="after"))
        look = broker.glance
        wanted = await self._read(lambda tx: overview.event_filter(tx, request, look))

        async def read(place: int) -> list[Event]:
            return await broker.read(
                lambda ledger: list(ledger.facts("events_after", after=place, limit=_PAGE))
            )

        check_streams(client, broker.hub.count(client), broker.services.rules.limits)
        async with aclosing(broker.hub.follow(client, wanted, after, read, look().last_seq())) as events:
            async for event in events:
                yield event


def _due_in(tx: Transaction) -> float:
    """Seconds until something in the caller's inbox can be claimed, without any news of it."""
    waiting = tx.ledger.many(Delivery, "inbox", agent=tx.sender, after="", limit=_PAGE)
    moments = [one.leased_until or one.next_attempt_at for one in waiting if not one.wake]
    return max(min(moments, default=tx.now.plus(_PAGE)).since(tx.now), _SOON)


def _quiet(tx: Transaction, request: Heartbeat, seen: Endpoint | None) -> Endpoint | None:
    endpoint = tx.need(Endpoint, "endpoint", request.endpoint_id)
    if seen is not None and seen.revision == endpoint.revision:
        endpoint = seen
    return heard_from(endpoint, tx.now) if endpoints.is_quiet(tx, endpoint) else None
