"""Nobody reads or reaches what belongs to another user, except by a grant: over random trees and grants."""

import random
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from scout.base.codec import encode
from scout.base.refusal import Refused
from scout.broker.local import LocalScout
from scout.protocol.attention import Notify
from scout.protocol.log import Watch
from scout.protocol.request import Request
from tests.broker.rig import Rig, run_scene
from tests.broker.subtrees import (
    OWNERS,
    World,
    build_requests,
    build_world,
    draw_grants,
    find_marks,
    find_reach,
    names_records,
)
from tests.seeds import run_seed

pytestmark = pytest.mark.slow


async def read(seat: LocalScout, request: Request[Any]) -> str:
    """All that an answer or a refusal tells, without what the caller typed."""
    try:
        told = encode(await seat.call(request)).decode()
    except Refused as refusal:
        told = encode(refusal.diagnostic).decode() + str(refusal)
    return told


def draw_callers(world: World, draw: random.Random) -> list[str]:
    """The person or a program of each user, and both of one of them."""
    paths = [draw.choice((paths[0], draw.choice(paths[1:]))) for paths in world.agents.values()]
    return list(dict.fromkeys((*paths, *draw.choice(list(world.agents.values()))[:2])))


@pytest.mark.rows("R9.users-7", "R9.users-8", "R7-10")
@pytest.mark.parametrize("number", range(3))
def test_no_answer_shows_records_outside_the_reach(tmp_path: Path, number: int) -> None:
    draw = random.Random(run_seed() + number)

    async def scene(rig: Rig) -> None:
        world = await build_world(rig, draw)
        await draw_grants(world, draw, number * 3)
        for path in draw_callers(world, draw):
            seat, reach = await world.seat(path), find_reach(world, path)
            for about in OWNERS:
                for request in build_requests(world, about, writes=False):
                    told = await read(seat, request)
                    typed = find_marks(request)
                    leaked = find_marks(told) - reach - typed
                    assert not leaked, (path, request, sorted(leaked), world.grants, told[:2000])

    run_scene(scene, tmp_path)


@pytest.mark.rows("R9.users-7")
@pytest.mark.parametrize("number", range(2))
def test_no_request_changes_records_outside_the_reach(tmp_path: Path, number: int) -> None:
    draw = random.Random(run_seed() + 100 + number)

    async def scene(rig: Rig) -> None:
        world = await build_world(rig, draw)
        for path in draw_callers(world, draw):
            seat, reach = await world.seat(path), find_reach(world, path)
            for about in sorted(set(OWNERS) - reach):
                for request in build_requests(world, about, writes=True):
                    if names_records(request):
                        last = rig.broker.glance().last_seq()
                        told = await read(seat, request)
                        assert rig.broker.glance().last_seq() == last, (path, request, told)
                        assert not find_marks(told) - reach - find_marks(request), (path, request, told)

    run_scene(scene, tmp_path)


@pytest.mark.rows("R9.users-7")
def test_no_stream_shows_events_outside_the_reach(tmp_path: Path) -> None:
    draw = random.Random(run_seed() + 200)

    async def scene(rig: Rig) -> None:
        world = await build_world(rig, draw)
        for path in draw_callers(world, draw):
            seat, reach = await world.seat(path), find_reach(world, path)
            last = rig.broker.glance().last_seq()
            await seat.call(Notify(message="the end"))
            async with aclosing(seat.watch(Watch(after=0))) as events:
                async for event in events:
                    assert find_marks(encode(event).decode()) <= reach, (path, event)
                    if event.seq > last:
                        break

    run_scene(scene, tmp_path)
