"""A connection that dies in silence: noticed within seconds, and whole again after it heals."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

from tests.mesh.relay import relaying
from tests.mesh.stage import founded, play, until
from tests.mesh.test_link import send_all


def test_a_partition_is_noticed_and_healed_without_loss(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            mini = await stage.admit(here, "nod_mini")
            port = urlsplit(stage.config.url).port
            assert port is not None
            async with relaying(port) as relay, mini.linked(stage.see(port=relay.port)) as there:
                await there.beat(b"beat", 2)
                await until(lambda: stage.founder.inlet.beats.get(mini.id) == b"beat")
                sender = asyncio.create_task(send_all(here, mini.id, 400))
                answers = asyncio.create_task(send_all(there, stage.founder.id, 400))
                await until(lambda: len(mini.inlet.taken) > 50)
                relay.cut()
                noticed = await until(lambda: not there.status.connected)
                await until(lambda: stage.founder.inlet.beats[mini.id] is None)
                await sender
                relay.heal()
                healed = await until(lambda: there.status.connected)
                await answers
                whole = await until(lambda: len(mini.inlet.taken) == 400)
                await until(lambda: len(stage.founder.inlet.taken) == 400)
                print(f"noticed in {noticed:.1f} s, reconnected in {healed:.1f} s, whole {whole:.1f} s later")
                assert noticed < 5
                assert healed < 5
                assert mini.inlet.taken == [b"%d" % number for number in range(400)]
                assert stage.founder.inlet.taken == [b"%d" % number for number in range(400)]

    play(story())
