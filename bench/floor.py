"""The floor: a bare route that stores rows of the same number, size and order, and decides nothing.

`python -m bench.floor SOCKET FOLDER message|ask`
"""

import hashlib
import sys
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from scout.daemon.clock import SystemIds
from scout.store.database import Database
from scout.store.unit_of_work import UnitOfWork

# What one request stores, as (table, bytes of JSON); the sizes are those of the load's own rows.
_ROWS = {
    "message": (("events", 600), ("messages", 480), ("events", 1700), ("deliveries", 650)),
    "ask": (
        ("events", 700),
        ("messages", 560),
        ("events", 1000),
        ("asks", 800),
        ("events", 1100),
        ("flights", 900),
        ("sweeps", 0),
        ("events", 2000),
        ("deliveries", 750),
    ),
}
_INSERT = {
    "events": "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)",
    "messages": "INSERT INTO messages (id, conversation_id, sender, seq, data) VALUES (?, ?, ?, ?, ?)",
    "deliveries": (
        "INSERT INTO deliveries"
        " (id, target, state, wake, delegates, next_attempt_at, message_id, created_at, data)"
        " VALUES (?, ?, 'pending', 0, 0, ?, ?, ?, ?)"
    ),
    "asks": "INSERT INTO asks (id, message_id, sender, target, created_at, data) VALUES (?, ?, ?, ?, ?, ?)",
    "flights": (
        "INSERT INTO flights (id, ask_id, target, requester_id, state, next_check_at, data)"
        " VALUES (?, ?, ?, ?, 'queued', ?, ?)"
    ),
    "sweeps": "INSERT INTO sweeps VALUES (?, 'work_waiting', ?, 0, NULL, NULL)",
}


def _some(prefix: str, number: int) -> str:
    """One of a thousand ids that lie as far apart as real ones."""
    return f"{prefix}_{hashlib.sha256(str(number % 1000).encode()).hexdigest()[:26]}"


class Floor:
    """An ASGI application with one route."""

    def __init__(self, database: Database, kind: str) -> None:
        self.database = database
        self.rows = _ROWS[kind]
        self.ids = SystemIds()
        self.number = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = msgspec.json.decode((await receive())["body"])
        ident = await self.database.write(self.store)
        answer = msgspec.json.encode({"messageId": ident, "to": body.get("to")})
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def store(self, unit: UnitOfWork) -> str:
        self.number += 1
        ident = ""
        for place, (table, size) in enumerate(self.rows):
            ident = f"msg_{next(self.ids.series())}"
            values = self._values(table, ident, self.number * 16 + place, b"x" * size)
            unit.connection.execute(_INSERT[table], values)
        return ident

    def _values(self, table: str, ident: str, number: int, data: bytes) -> tuple[object, ...]:
        who, where = _some("agt", self.number), _some("cnv", self.number)
        sender = _some("agt", self.number % 64)
        match table:
            case "events":
                return (number, ident, number, "collab.message.posted", f"agent:{sender}", ident, data)
            case "messages":
                return (ident, where, sender, number, data)
            case "deliveries":
                return (ident, who, number, ident, number, data)
            case "asks":
                return (ident, ident, sender, who, number, data)
            case "sweeps":
                return (ident, number)
            case _:
                return (ident, ident, who, sender, number, data)


def main(socket: str, folder: str, kind: str) -> None:
    floor = Floor(Database(Path(folder) / "floor.db"), kind)
    uvicorn.run(floor, uds=socket, log_level="error", lifespan="off", interface="asgi3", access_log=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
