"""What an event costs on its way to followers: one write for a commit group, encoded once for all."""

import asyncio
import contextlib
from typing import Any

from scout.api.asgi import Response
from scout.api.stream import Frames, follow
from scout.base.refusal import Diagnostic
from scout.protocol.log import Watch
from scout.protocol.talk import Send
from tests.api.tasks import count_tasks
from tests.broker.rig import Rig, as_test, wait_until

FOLLOWERS = 5
MESSAGES = 40


class Client:
    """One client of the stream: the writes that its connection got."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.gone = asyncio.Event()

    async def send(self, message: dict[str, Any]) -> None:
        if message.get("body"):
            self.writes.append(message["body"])

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    @property
    def text(self) -> bytes:
        return b"".join(self.writes)


def fail(error: Exception) -> Response:
    raise error


async def stream(rig: Rig, client: Client, frames: Frames, stopping: "asyncio.Future[Diagnostic]") -> None:
    scout = await rig.scout()
    with contextlib.suppress(ConnectionError):
        await follow(
            lambda wake: scout.follow(Watch(family="collab.message"), wake),
            client.send,
            client.receive,
            frames=frames,
            comment=60.0,
            stopping=stopping,
            fault=fail,
        )


@as_test
async def test_a_commit_group_is_one_write_for_each_follower_and_no_task(rig: Rig) -> None:
    await rig.register("arc")
    frames = Frames()
    clients = [Client() for _ in range(FOLLOWERS)]
    stopping: asyncio.Future[Diagnostic] = asyncio.get_running_loop().create_future()
    streams = [asyncio.create_task(stream(rig, client, frames, stopping)) for client in clients]
    await wait_until(lambda: all(client.writes for client in clients))
    await rig.operator(Send(to="@arc", body="warm"))
    await wait_until(lambda: all(b"warm" in client.text for client in clients))
    for client in clients:
        client.writes.clear()

    with count_tasks() as made:
        await asyncio.gather(*(rig.operator(Send(to="@arc", body=f"word {n}.")) for n in range(MESSAGES)))
        await wait_until(lambda: all(b"word 39." in client.text for client in clients))

    for client in clients:
        assert client.text.count(b"event: collab.message.posted") == MESSAGES
        assert len(client.writes) <= MESSAGES / 4  # they share a few commits
    assert {name.rpartition(".")[2] for name in made} <= {"operator", "_drain"}, "a follower made a task"
    assert frames.encoded == MESSAGES + 1

    for client in clients:
        client.gone.set()
    await asyncio.gather(*streams)
    assert len(rig.broker.hub) == 0
