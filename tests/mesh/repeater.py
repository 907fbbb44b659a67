"""A program that publishes every envelope of a mesh again, the last one first: `python -m tests.mesh.repeater HOME`.

It logs in as the node that founded the mesh, whose home it is given, and runs until it is killed.
"""

import asyncio
import sys
import time
from pathlib import Path

from nats.aio.msg import Msg

from scout.base.time import Time
from scout.daemon.mesh import StoredMesh
from scout.mesh.connection import Connection, connect
from scout.ports.mesh import MeshDown

_TOGETHER = 4  # envelopes that are repeated in the wrong order
_PAUSE = 0.2


async def repeat(connection: Connection, mesh_id: str) -> None:
    """Publish again what others publish, until the connection is lost."""
    known, waiting = set[bytes](), list[Msg]()

    async def take(message: Msg) -> None:
        if message.data in known:
            return
        known.add(message.data)
        waiting.append(message)
        if len(waiting) >= _TOGETHER:
            while waiting:
                last = waiting.pop()
                await connection.publish(last.subject, last.data)

    await connection.subscribe(f"scout.{mesh_id}.to.>", take)
    await connection.watch()


async def run(home: Path) -> None:
    kit = StoredMesh(home / "mesh", home / "node.key", lambda: Time(time.time_ns() // 1000))
    config = kit.read()
    assert config is not None
    while True:
        try:
            connection = await connect(kit._build_login(config, "repeater"))
            print("connected", flush=True)
            await repeat(connection, config.mesh_id)
        except MeshDown:
            await asyncio.sleep(_PAUSE)


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1])))
