"""Asks inside of asks: the chain is carried, a circle is refused and shown."""

import sys
from pathlib import Path
from types import FrameType

from scout.broker.local import LocalScout
from scout.policy.choose import choose
from scout.policy.limits import Limits
from scout.protocol.asks import GetAsk, MakeAsk, StartFlight
from scout.protocol.attention import ListAttention
from tests.broker.rig import Rig, as_test, expect_refusal, online_agent, run_scene


async def several(rig: Rig, *names: str) -> list[LocalScout]:
    return [await online_agent(rig, name) for name in names]


@as_test
async def test_a_circle_is_refused_with_its_chain_and_the_operator_is_told(rig: Rig) -> None:
    a, b, c = await several(rig, "a", "b", "c")
    first = await a.call(MakeAsk(to="@b", body="one"))
    await b.call(StartFlight(flight_id=first.flight_id))
    second = await b.call(MakeAsk(to="@c", body="two"))
    assert (await rig.operator(GetAsk(ask_id=second.ask_id))).ask.chain == (first.ask_id,)
    await c.call(StartFlight(flight_id=second.flight_id))
    before = rig.broker.glance().last_seq()
    told = await expect_refusal(c.call(MakeAsk(to="@a", body="three")))
    assert told.code == "ask_loop"
    assert told.chain == tuple(f"@{name}" for name in "abca")
    question = told.remedies[0]
    assert question.operation == "question.create"
    assert question.parameters["flightId"] == first.flight_id
    needs = (await rig.operator(ListAttention())).items
    assert [one.kind for one in needs] == ["failure"]
    assert "@a → @b → @c" in needs[0].title
    assert rig.broker.glance().last_seq() == before + 1
    await expect_refusal(c.call(MakeAsk(to="@b", body="four")))
    await expect_refusal(c.call(MakeAsk(to="@a", body="five")))
    assert len((await rig.operator(ListAttention())).items) == 1


@as_test
async def test_what_is_open_elsewhere_is_no_chain(rig: Rig) -> None:
    a, b = await several(rig, "a", "b")
    first = await a.call(MakeAsk(to="@b", body="one"))
    back = await b.call(MakeAsk(to="@a", body="not about that"))  # it has not begun with the first
    assert (await rig.operator(GetAsk(ask_id=back.ask_id))).ask.chain == ()
    assert first.flight_id


@as_test
async def test_the_flight_it_is_a_part_of_can_be_named(rig: Rig) -> None:
    a, b, _ = await several(rig, "a", "b", "c")
    one = await a.call(MakeAsk(to="@b", body="one"))
    two = await rig.operator(MakeAsk(to="@b", body="two"))
    for asked in (one, two):
        await b.call(StartFlight(flight_id=asked.flight_id))
    unclear = await b.call(MakeAsk(to="@c", body="which of both?"))
    assert (await rig.operator(GetAsk(ask_id=unclear.ask_id))).ask.chain == ()
    told = await expect_refusal(b.call(MakeAsk(to="@a", body="back", within=one.flight_id)))
    assert told.code == "ask_loop"
    inside = await b.call(MakeAsk(to="@a", body="fine", within=two.ask_id))
    assert (await rig.operator(GetAsk(ask_id=inside.ask_id))).ask.chain == (two.ask_id,)
    told = await expect_refusal(a.call(MakeAsk(to="@c", body="x", within=one.flight_id)))
    assert told.code == "not_found"


@as_test
async def test_the_same_ask_again_is_already_under_way(rig: Rig) -> None:
    a, b, _ = await several(rig, "a", "b", "c")
    first = await a.call(MakeAsk(to="@b", body="one"))
    await b.call(StartFlight(flight_id=first.flight_id))
    asked = await b.call(MakeAsk(to="@c", body="look this up"))
    told = await expect_refusal(b.call(MakeAsk(to="@c", body="look this up")))
    assert (told.code, told.remedies[0].operation) == ("ask_loop", "flight.wait")
    assert told.remedies[0].parameters["flightId"] == asked.flight_id
    await b.call(MakeAsk(to="@c", body="look that up"))


def test_a_chain_has_a_longest_length(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        names = ["a", "b", "c", "d"]
        seats = await several(rig, *names)
        for seat, target, following in zip(seats, names[1:], seats[1:], strict=False):
            request = MakeAsk(to=f"@{target}", body="further")
            if target == "d":
                told = await expect_refusal(seat.call(request))
                assert (told.code, told.limit, len(told.chain)) == ("ask_loop", 2, 4)
            else:
                asked = await seat.call(request)
                await following.call(StartFlight(flight_id=asked.flight_id))

    run_scene(scene, tmp_path, limits=Limits(ask_chain=2))


@as_test
async def test_an_ask_chooses_its_endpoint_once(rig: Rig) -> None:
    a, b = await several(rig, "a", "b")
    counted: list[str] = []

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is choose.__code__:
            counted.append(event)

    sys.setprofile(count)
    try:
        await a.call(MakeAsk(to="@b", body="one"))
        await b.call(MakeAsk(to="@a", body="two"))
    finally:
        sys.setprofile(None)
    assert len(counted) <= 2
