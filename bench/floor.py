"""The floor: a bare route that stores the same rows through the same writer, and decides nothing.

`python -m bench.floor SOCKET FOLDER message|ask`
"""

import sys
from pathlib import Path
from typing import Any

import msgspec
import uvicorn

from scout.store.database import Database

# How many events and which rows one request of each kind stores.
_ROWS = {
    "message": ("events", "messages", "events", "deliveries"),
    "ask": ("events", "messages", "events", "asks", "events", "flights", "events", "deliveries"),
}
_DATA = b"x" * 500


class Floor:
    """An ASGI application with one route."""

    def __init__(self, database: Database, kind: str) -> None:
        self.database = database
        self.rows = _ROWS[kind]
        self.number = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = msgspec.json.decode((await receive())["body"])
        ident = await self.database.write(self.store)
        answer = msgspec.json.encode({"messageId": ident, "to": body.get("to")})
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def store(self, connection: Any) -> str:
        self.number += 1
        ident = f"{self.number:032}"
        for place, table in enumerate(self.rows):
            connection.execute(_INSERT[table], _values(table, f"{ident}{place}", self.number * 8 + place))
        return ident


_INSERT = {
    "events": "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)",
    "messages": "INSERT INTO messages (id, conversation_id, sender, seq, data) VALUES (?, ?, ?, ?, ?)",
    "deliveries": (
        "INSERT INTO deliveries (id, target, state, wake, next_attempt_at, message_id, created_at, data)"
        " VALUES (?, ?, 'pending', 0, ?, ?, ?, ?)"
    ),
    "asks": "INSERT INTO asks (id, message_id, sender, target, created_at, data) VALUES (?, ?, ?, ?, ?, ?)",
    "flights": (
        "INSERT INTO flights (id, ask_id, target, requester_id, state, next_check_at, data)"
        " VALUES (?, ?, ?, ?, 'queued', ?, ?)"
    ),
}


def _values(table: str, ident: str, number: int) -> tuple[object, ...]:
    some = f"agt_{number % 1000}"
    match table:
        case "events":
            return (number, ident, number, "collab.message.posted", "agent:a", f"agent:{some}", _DATA)
        case "messages":
            return (ident, some, "a", number, _DATA)
        case "deliveries":
            return (ident, some, number, ident, number, _DATA)
        case "asks":
            return (ident, ident, "a", some, number, _DATA)
        case _:
            return (ident, ident, some, "a", number, _DATA)


def main(socket: str, folder: str, kind: str) -> None:
    floor = Floor(Database(Path(folder) / "floor.db"), kind)
    uvicorn.run(floor, uds=socket, log_level="error", lifespan="off", interface="asgi3", access_log=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
