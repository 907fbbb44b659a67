"""A disk that is full when a turn ends, and has room again: the flight ends truthfully, without a restart."""

from pathlib import Path

from scout.base.refusal import Refused
from scout.model.flight import FlightState
from scout.model.problems.request import StoreFull
from scout.policy.limits import Periods
from scout.protocol.asks import MakeAsk
from scout.protocol.talk import Send
from tests.broker.rig import Rig, expect_refusal, run_scene, wait_for_end, wait_until, write_program


def set_pages(rig: Rig, most: int) -> None:
    """How large the store may become: a disk without more room, for everybody who writes."""
    rig.broker._database._connection.execute(f"PRAGMA max_page_count = {most}")


async def fill(rig: Rig) -> None:
    """Write until nothing more fits."""
    set_pages(rig, 1)  # SQLite takes what the file has now
    while True:
        try:
            await rig.operator(Send(to="@slow", body="x" * 20_000))
        except Refused as refusal:
            assert isinstance(refusal.diagnostic, StoreFull)
            return


def test_what_could_not_be_recorded_is_recorded_when_there_is_room(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        text = 'cat >/dev/null; touch "$WORK/began"; until [ -e "$WORK/go" ]; do sleep 0.01; done; '
        text += 'echo "the work is done"; touch "$WORK/ended"'
        await rig.register("slow", command=write_program(rig.home, "slow", text))
        asked = await rig.operator(MakeAsk(to="@slow", body="go"))
        await wait_until((rig.home / "began").exists)
        await fill(rig)
        (rig.home / "go").touch()
        await wait_until((rig.home / "ended").exists)
        full = await expect_refusal(rig.operator(Send(to="@slow", body="x" * 20_000)))
        assert full.code == "store_full"
        set_pages(rig, 1_000_000)
        view = await wait_for_end(rig, asked.flight_id)
        assert (view.state, view.output) == (FlightState.COMPLETED, "the work is done")

    run_scene(scene, tmp_path, periods=Periods(back_off_first=0.05, back_off_most=0.1))
