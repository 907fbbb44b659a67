"""Scout as one caller sees it: every request is answered in the caller's name."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Diagnostic, Refused
from scout.broker import references
from scout.broker.handlers import HANDLERS, Handler, Manner
from scout.broker.mesh.requests import MeshCallBroker
from scout.broker.nearby_projects import add_projects
from scout.broker.operations import overview, waits
from scout.broker.past.archives import ArchiveBroker
from scout.broker.past.moments import show_past
from scout.broker.people.connectors import ConnectorBroker
from scout.broker.routing import attachments
from scout.broker.transaction.admission import Admitted
from scout.broker.transaction.call import CallContext, run_once
from scout.broker.transaction.streams import Feed, Hub
from scout.broker.transaction.transaction import Transaction
from scout.broker.tree.finish_steps import FinishBroker
from scout.model.events.envelope import Event
from scout.model.problems.request import TooLarge
from scout.model.problems.session import HarnessUnavailable
from scout.model.problems.target import UnknownTarget
from scout.policy.limits import check_attachments, check_streams
from scout.policy.permit import check_operation
from scout.ports import Surroundings
from scout.protocol.correction import correct_remedies
from scout.protocol.log import Watch
from scout.protocol.request import Request, Write
from scout.protocol.route_operator import apply_route

T = TypeVar("T")
R = TypeVar("R", bound=Request[Any])
_PAGE = 500


class LocalBroker(FinishBroker, ConnectorBroker, MeshCallBroker, ArchiveBroker, Protocol):
    """The broker as a LocalScout needs it."""

    hub: Hub

    async def wait_for_probe(self) -> None: ...
    async def became_ready(self, harness: str) -> bool: ...
    def tally(self, name: str) -> None: ...


class LocalScout:
    """Answers requests for one caller, by the handler table."""

    def __init__(self, broker: LocalBroker, who: Admitted) -> None:
        self._broker = broker
        self.who = who

    async def call(self, request: Request[T]) -> T:
        """Answer a request. A change is on disk before the answer is given."""
        try:
            request = apply_route(request)
            return await self._answer_when_ready(request)
        except Refused as refusal:
            self._broker.tally("refused")
            self.open_call().count("diagnostics_generated", refusal.diagnostic.message)
            problem = await self._add_projects(refusal.diagnostic)
            raise Refused(await self._correct_remedies(request, problem)) from None

    async def _answer_when_ready(self, request: Request[Any]) -> Any:
        """Answer a request. A harness may be ready since its last check: it was installed or logged in."""
        try:
            return await self._answer(request)
        except Refused as refusal:
            problem = refusal.diagnostic
            if not isinstance(problem, HarnessUnavailable):
                raise
            if not await self._broker.became_ready(problem.harness):
                raise
        return await self._answer(request)

    async def _answer(self, request: Request[Any]) -> Any:
        check_operation(self.who.actor, request.operation)
        request = await self._resolve_folder(await self._expand_references(request))
        call = self.open_call(await self._find_surroundings(request))
        handler = HANDLERS[type(request)]
        if handler.after_probe:
            await self._broker.wait_for_probe()
        if handler.past is not None and getattr(request, "at", None) is not None:
            return await show_past(call, request, handler.past)
        if handler.wait is not None and getattr(request, "wait", 0):
            return await handler.wait(call, request)
        return await self._perform(call, request)

    async def _perform(self, call: CallContext[LocalBroker], request: Request[Any]) -> Any:
        """Run a request in the manner of its row."""
        handler = HANDLERS[type(request)]
        self._broker.tally("writes" if request.writes else "reads")
        match handler.manner:
            case Manner.READ:
                return await call.read(lambda tx: handler.function(tx, request))
            case Manner.WRITE:
                return await self._write(call, request, handler)
            case Manner.DISK:
                return await self._use_disk(call, request, handler)
            case Manner.ASYNC:
                return await handler.function(call, request)

    async def _write(self, call: CallContext[LocalBroker], request: Request[Any], handler: Handler) -> Any:
        files = await self._read_attachment_sizes(request)

        def run(tx: Transaction) -> Any:
            tx.files = files
            if isinstance(request, Write):
                return run_once(tx, request, handler.function)
            return handler.function(tx, request)

        return await call.write(run)

    async def _use_disk(self, call: CallContext[LocalBroker], request: Request[Any], handler: Handler) -> Any:
        answer = await asyncio.to_thread(handler.function, call.glance(), request)
        if not isinstance(request, Write) or request.idempotency_key is None:
            return answer
        return await call.write_once(request, lambda _, __: answer)

    def open_call(self, surroundings: Surroundings | None = None) -> CallContext[LocalBroker]:
        """Return a call in the caller's name, for work between transactions."""
        return CallContext(self._broker, self.who, surroundings, self._perform)

    # -- looked up before the transaction ----------------------------------------------------------

    async def _expand_references(self, request: R) -> R:
        """Return the request with whole ids."""
        if not references.needs_expansion(request):
            return request
        return await self.open_call().read(lambda tx: references.expand_references(tx, request))

    async def _resolve_folder(self, request: R) -> R:
        """Return the request with the real path of the folder in the agent settings it gives."""
        if not request.settings_field:
            return request
        config: Mapping[str, Any] = getattr(request, request.settings_field) or {}
        folder = config.get("workspaceDir")
        if not isinstance(folder, str):
            return request
        await self.open_call().check_folder(folder)
        real = await asyncio.to_thread(self._broker.services.places.real_path, folder, self.who.base)
        await self.open_call().check_folder(real)
        return replace(request, **{request.settings_field: {**config, "workspaceDir": real}})

    async def _find_surroundings(self, request: Request[Any]) -> Surroundings | None:
        """Look at the folder that the request names."""
        folder = getattr(request, request.folder_field) if request.folder_field else None
        if folder is None:
            return None
        await self.open_call().check_folder(folder)
        found = await asyncio.to_thread(self._broker.services.places.locate, folder, self.who.base)
        await self.open_call().check_folder(found.directory)
        return found

    async def _read_attachment_sizes(self, request: Request[Any]) -> Mapping[str, int]:
        """Look up the sizes of the stored files that the request names."""
        named: tuple[str, ...] = getattr(request, "attachments", ())
        if not named:
            return {}
        check_attachments(named)
        return await asyncio.to_thread(attachments.read_sizes, self._broker.services.blobs, named)

    async def _correct_remedies(self, request: Request[Any], problem: Diagnostic) -> Diagnostic:
        if isinstance(problem, TooLarge):  # a long text is hashed
            return await asyncio.to_thread(correct_remedies, request, problem)
        return correct_remedies(request, problem)

    async def _add_projects(self, problem: Diagnostic) -> Diagnostic:
        """Add the projects nearby to the refusal of an unknown name: one of them may be meant."""
        theirs = self.who.actor.user in (None, self._broker.services.operator)
        if not isinstance(problem, UnknownTarget) or not theirs:
            return problem
        return await asyncio.to_thread(add_projects, problem, self._broker.services, self.who.caller)

    # -- streams -----------------------------------------------------------------------------------

    async def credential_ended(self) -> None:
        """Return when the credential has ended: revoked or expired."""
        await waits.wait_for_credential_end(self.open_call())

    async def watch(self, request: Watch) -> AsyncGenerator[Event]:
        """Yield the events that the caller may read, as they are committed."""
        news = asyncio.Event()
        feed = await self.follow(request, news.set)
        try:
            async for past in feed.read_past():
                for event in past:
                    yield event
            while not feed.is_closed:
                news.clear()
                for event in feed.take():
                    yield event
                await news.wait()
        finally:
            feed.close()

    async def follow(self, request: Watch, notify: Callable[[], None]) -> Feed:
        """Open a stream of the events that the caller may read; `notify` tells that there are new ones."""
        check_operation(self.who.actor, request.operation)
        call, broker, after = self.open_call(), self._broker, request.after
        request = await self._expand_references(request)
        if after is not None and after < 0:
            raise Refused(BadRequest(problem="log numbers start at 1", field="after"))
        wanted = await call.read(lambda tx: overview.build_event_filter(tx, request, broker.glance))
        client = self.who.actor.token_id or "the broker"
        check_streams(client, broker.hub.count(client), broker.services.rules.limits)
        if after is not None:
            await call.read(lambda tx: overview.check_left(tx, after and after + 1, request))
        if after is None:
            return broker.hub.open(client, wanted, notify, place=broker.glance().last_seq())
        return broker.hub.open(client, wanted, notify, place=after, read=self._read_events)

    async def _read_events(self, after: int) -> list[Event]:
        return await self._broker.read(lambda ledger: list(ledger.log.read_after(after, _PAGE)))
