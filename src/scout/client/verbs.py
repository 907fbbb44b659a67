"""The main operations as methods: each makes one request of `scout.protocol` and returns its typed result."""

import time
from collections.abc import Sequence
from typing import Any, TypeVar

from scout.model.ask import AskReceipt, IfUnreachable, ReplyMode, SessionPolicy
from scout.model.conversation import MessageKind, Receipt
from scout.model.flight import FLIGHT
from scout.protocol.agents import (
    AgentDetail,
    AgentView,
    Identity,
    RegisterAgent,
    Registered,
    Resolve,
    Resolved,
    ShowAgent,
    Who,
    WhoAmI,
)
from scout.protocol.asks import CancelFlight, FlightView, GetFlight, MakeAsk, RetryFlight
from scout.protocol.inbox import AckInbox, Claimed, ClaimInbox, InboxItem, ListInbox, NackInbox, Settled
from scout.protocol.request import Page, Request
from scout.protocol.talk import Hit, Reply, Search, Send

T = TypeVar("T")
_POLL = 30.0  # seconds of one long poll


class Verbs:
    """The operations that most programs need. All others go through `call`."""

    async def call(self, request: Request[T]) -> T:
        """Return the result of a request."""
        raise NotImplementedError

    async def whoami(self) -> Identity:
        """Return the identity behind the token."""
        return await self.call(WhoAmI())

    async def who(self, query: str | None = None, *, online: bool = False) -> Page[AgentView]:
        """Return the visible agents, newest first."""
        return await self.call(Who(query=query, online=online))

    async def show(self, address: str) -> AgentDetail:
        """Return one agent and the ways to reach it."""
        return await self.call(ShowAgent(address=address))

    async def resolve(self, address: str) -> Resolved:
        """Resolve an address and explain the result."""
        return await self.call(Resolve(address=address))

    async def register(self, name: str, **details: Any) -> Registered:
        """Register an agent in the directory; `details` are the fields of `RegisterAgent`."""
        return await self.call(RegisterAgent(definition_id=name, **details))

    async def send(
        self,
        to: str | None,
        body: str,
        *,
        channel: str | None = None,
        conversation_id: str | None = None,
        kind: MessageKind = MessageKind.CHAT,
        wake: bool = False,
        attachments: Sequence[str] = (),
    ) -> Receipt:
        """Post a durable message; it starts no program unless `wake` is true."""
        return await self.call(
            Send(
                to=to,
                body=body,
                channel=channel,
                conversation_id=conversation_id,
                kind=kind,
                wake=wake,
                attachments=tuple(attachments),
            )
        )

    async def ask(
        self,
        to: str | None,
        body: str,
        *,
        project_path: str | None = None,
        harness: str | None = None,
        model: str | None = None,
        session_policy: SessionPolicy | None = None,
        reply_mode: ReplyMode = ReplyMode.INLINE,
        if_unreachable: IfUnreachable = IfUnreachable.REFUSE,
        within: str | None = None,
    ) -> AskReceipt:
        """Create an ask, tracked as a flight; `wait` on the receipt's flight returns the result."""
        return await self.call(
            MakeAsk(
                to=to,
                body=body,
                project_path=project_path,
                harness=harness,
                model=model,
                session_policy=session_policy,
                reply_mode=reply_mode,
                if_unreachable=if_unreachable,
                within=within,
            )
        )

    async def reply(self, body: str, in_reply_to: str | None = None) -> Receipt:
        """Answer a message, ask or flight; by default the latest you received."""
        return await self.call(Reply(body=body, in_reply_to=in_reply_to))

    async def flight(self, flight_id: str) -> FlightView:
        """Return a flight as it is now."""
        return await self.call(GetFlight(flight_id=flight_id))

    async def wait(self, flight_id: str, timeout: float | None = None) -> FlightView:  # noqa: ASYNC109 (a budget of the wait, not of the work)
        """Return the flight when finished or asking you something, or as it is after `timeout` seconds.

        The work is never cancelled.
        """
        began = time.monotonic()
        while True:
            left = _POLL if timeout is None else timeout - (time.monotonic() - began)
            flight = await self.call(GetFlight(flight_id=flight_id, wait=max(0.0, min(left, _POLL))))
            over = timeout is not None and time.monotonic() - began >= timeout
            asks = flight.is_asking and flight.next_move_owner_id == flight.requester_id
            if flight.state in FLIGHT.terminal or asks or over:
                return flight

    async def cancel(self, flight_id: str, reason: str = "") -> FlightView:
        """Cancel a flight that is no longer needed."""
        return await self.call(CancelFlight(flight_id=flight_id, reason=reason))

    async def retry(self, flight_id: str) -> AskReceipt:
        """Retry a failed or cancelled ask in a new flight."""
        return await self.call(RetryFlight(flight_id=flight_id))

    async def inbox(self, *, everything: bool = False) -> Page[InboxItem]:
        """Return the unread items of your inbox; nothing is claimed."""
        return await self.call(ListInbox(all=everything))

    async def claim(self, limit: int | None = None, wait: float = 0) -> Claimed:
        """Claim the items of your inbox for the duration of a lease."""
        return await self.call(ClaimInbox(limit=limit, wait=wait))

    async def ack(self, *delivery_ids: str) -> Settled:
        """Acknowledge deliveries."""
        return await self.call(AckInbox(delivery_ids=delivery_ids))

    async def nack(self, *delivery_ids: str, problem: str = "", retry_after: float | None = None) -> Settled:
        """Reject deliveries for now."""
        return await self.call(NackInbox(delivery_ids=delivery_ids, problem=problem, retry_after=retry_after))

    async def search(self, query: str) -> Page[Hit]:
        """Search messages and work for these words, newest first."""
        return await self.call(Search(query=query))
