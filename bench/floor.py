"""The floor: a bare route that stores the same events as a message or an ask, and decides nothing.

`python -m bench.floor SOCKET FOLDER message|ask`

The events go through the store's own unit of work: one row of the log for each request, and the rows of its records,
as large as those of Scout. What is missing is everything else: who asks, who is meant, whether it is allowed, what
follows from it.
"""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from scout.base.time import Time
from scout.daemon.clock import SystemClock, SystemIds
from scout.model.ask import Ask
from scout.model.conversation import MessageKind
from scout.model.delivery import Delivery
from scout.model.events.asks import AskCreated, DeliveryRequested, FlightQueued
from scout.model.events.envelope import Changed, Event, Metadata, WakeFact
from scout.model.events.talk import MessagePosted, Posted
from scout.model.flight import create_flight
from scout.model.ref import Ref
from scout.store.database import Database
from scout.store.log import read_last_seq
from scout.store.unit_of_work import UnitOfWork

_TOKEN = "tok_01m7p5g72te66t8j0zd1xzqgwm"
_ADDRESS = "@reader1.node:mini"
_FACTS = Metadata(token_id=_TOKEN)


def _some(prefix: str, number: int) -> str:
    """One of a thousand ids that lie as far apart as real ones."""
    spread = int(hashlib.sha256(str(number % 1000).encode()).hexdigest(), 16)
    return f"{prefix}_0" + "".join(
        "0123456789abcdefghjkmnpqrstvwxyz"[spread >> 5 * n & 31] for n in range(25)
    )


class Floor:
    """An ASGI application with one route."""

    def __init__(self, database: Database, kind: str) -> None:
        self.database = database
        self.build = {"message": self._build_message, "ask": self._build_ask}[kind]
        self.ids = SystemIds()
        self.clock = SystemClock()
        self.number = 0
        self.seq = read_last_seq(database.glance())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = msgspec.json.decode((await receive())["body"])
        ident = await self.database.write(lambda unit: self.store(unit, body["body"]))
        answer = msgspec.json.encode({"messageId": ident, "to": body.get("to")})
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def store(self, unit: UnitOfWork, text: str) -> str:
        self.number += 1
        events = list(self.build(self.clock.now(), text))
        unit.events += events
        return events[0].payload.message_id

    def _build_message(self, now: Time, text: str) -> Iterator[Event]:
        talk, ident = _some("cnv", self.number), self._mint("msg")
        said = Posted(message_id=ident, text=text, kind=MessageKind.CHAT)
        yield MessagePosted(payload=said, **self._envelope(now, talk, self._describe_post()))
        yield self._build_delivery(now, talk, ident, cause="send")

    def _build_ask(self, now: Time, text: str) -> Iterator[Event]:
        talk, ident = _some("cnv", self.number), self._mint("msg")
        asker, target = _some("agt", self.number % 64), _some("agt", self.number)
        ask = Ask(
            id=self._mint("ask"),
            conversation_id=talk,
            message_id=ident,
            sender=asker,
            target=target,
            resolved=_ADDRESS,
            created_at=now,
            expires_at=now.plus(86_400),
        )
        flight = create_flight(self._mint("flt"), ask, now)
        said = Posted(message_id=ident, text=text, kind=MessageKind.CHAT, ask_id=ask.id, flight_id=flight.id)
        made = Changed(record=ask, move="create", by=asker)
        queued = Changed(record=flight, move="queue", by=asker, reason="accepted")
        yield MessagePosted(payload=said, **self._envelope(now, talk, self._describe_post()))
        yield AskCreated(payload=made, **self._envelope(now, ask.id))
        yield FlightQueued(payload=queued, **self._envelope(now, flight.id))
        yield self._build_delivery(now, talk, ident, cause="ask", ask_id=ask.id, flight_id=flight.id)

    def _describe_post(self) -> Metadata:
        return Metadata(target_agents=(_some("agt", self.number),), resolved=_ADDRESS, token_id=_TOKEN)

    def _build_wake(self, talk: str, cause: str) -> WakeFact:
        """The decision as Scout stores it, with what it was made from."""
        asker, target = _some("agt", self.number % 64), _some("agt", self.number)
        occasion = {
            "cause": cause,
            "sender": {"agentId": asker},
            "targets": [{"agentId": target}],
            "place": {"conversationId": talk, "kind": "dm"},
        }
        why_not = "no live session, and no harness is set for it"
        reach = {"agentId": target, "address": "@reader1", "wakeable": False, "whyNot": why_not}
        facts: dict[str, Any] = {"occasion": occasion, "reaches": [reach]}
        return WakeFact(agent_id=target, action="deliver", rule="explicit target", facts=facts)

    def _build_delivery(self, now: Time, talk: str, message_id: str, *, cause: str, **more: Any) -> Event:
        delivery = Delivery(
            id=self._mint("dlv"),
            created_at=now,
            updated_at=now,
            sender=_some("agt", self.number % 64),
            target=_some("agt", self.number),
            conversation_id=talk,
            message_id=message_id,
            rule="explicit target",
            next_attempt_at=now,
            **more,
        )
        changed = Changed(record=delivery, move="request", by=delivery.sender)
        facts = Metadata(token_id=_TOKEN, resolved=_ADDRESS, wake=self._build_wake(talk, cause))
        return DeliveryRequested(payload=changed, **self._envelope(now, delivery.id, facts))

    def _mint(self, prefix: str) -> str:
        return f"{prefix}_{next(self.ids.series())}"

    def _envelope(self, now: Time, target: str, facts: Metadata = _FACTS) -> dict[str, Any]:
        self.seq += 1
        return {
            "id": self._mint("evt"),
            "seq": self.seq,
            "time": now,
            "source": Ref.to(_some("agt", self.number % 64)),
            "target": Ref.to(target),
            "metadata": facts,
        }


def main(socket: str, folder: str, kind: str) -> None:
    floor = Floor(Database(Path(folder) / "floor.db"), kind)
    uvicorn.run(floor, uds=socket, log_level="error", lifespan="off", interface="asgi3", access_log=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
