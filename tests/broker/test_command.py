"""The harness `command` through the broker: what a program is given, and what becomes of its answer."""

import asyncio
from pathlib import Path

import pytest

from scout.base.refusal import Refused
from scout.model.flight import FlightState
from scout.protocol.agents import WhoAmI
from scout.protocol.asks import GetFlight, MakeAsk
from scout.protocol.talk import ListMessages, Reply
from tests.broker.rig import Rig, as_test, expect_refusal, wait_for_end, wait_until, write_program


@as_test
async def test_a_program_gets_its_prompt_and_its_facts(rig: Rig) -> None:
    command = write_program(
        rig.home,
        "tells",
        'cat >"$WORK/prompt"; printf %s "$SCOUT_CONTRACT" >"$WORK/contract";'
        ' unset SCOUT_CONTRACT; env | grep ^SCOUT_ | sort >"$WORK/env"; echo ok',
    )
    await rig.register("tells", command=command)
    asked = await rig.operator(MakeAsk(to="@tells", body="what is the word?", wait=20))
    assert asked.output == "ok"
    assert (rig.home / "prompt").read_text() == "what is the word?"
    contract = (rig.home / "contract").read_text()
    assert "Your final message is the reply" in contract
    assert "may be a repeat" not in contract
    facts = dict(line.split("=", 1) for line in (rig.home / "env").read_text().splitlines())
    assert facts["SCOUT_FLIGHT"] == asked.flight_id
    assert facts["SCOUT_AGENT"].startswith("/")
    assert facts["SCOUT_SESSION"].startswith("ses_")
    assert facts["SCOUT_DELIVERY"].startswith("dlv_")
    assert {"SCOUT_TOKEN", "SCOUT_URL", "SCOUT_SOCKET"} <= facts.keys()
    told = await expect_refusal(rig.scout(facts["SCOUT_TOKEN"]))
    assert told.code == "unauthenticated"


@pytest.mark.rows("R2.2-61")
@as_test
async def test_the_token_of_a_run_works_while_it_runs(rig: Rig) -> None:
    text = 'cat >/dev/null; echo "$SCOUT_TOKEN" >"$WORK/t.part"; mv "$WORK/t.part" "$WORK/token"; '
    text += 'until [ -e "$WORK/go" ]; do sleep 0.01; done; echo the final text'
    await rig.register("calls", command=write_program(rig.home, "calls", text))
    asked = await rig.operator(MakeAsk(to="@calls", body="x"))
    await wait_until((rig.home / "token").exists)
    secret = (rig.home / "token").read_text().strip()
    seat = await rig.scout(secret)
    me = await seat.call(WhoAmI())
    assert (me.agent_id, me.kind) == (asked.target, "agent")
    await seat.call(Reply(body="from inside", in_reply_to=asked.flight_id))
    view = await wait_for_end(rig, asked.flight_id)
    assert (view.output, view.completed_by) == ("from inside", "reply")
    (rig.home / "go").touch()
    await wait_until(lambda: has_note(rig, asked.conversation_id))
    await wait_until(lambda: has_token_ended(rig, secret))


async def has_token_ended(rig: Rig, secret: str) -> bool:
    try:
        await rig.scout(secret)
    except Refused as refusal:
        return refusal.diagnostic.code == "unauthenticated"
    return False


async def has_note(rig: Rig, conversation: str) -> bool:
    listed = await rig.operator(ListMessages(conversation=conversation))
    return ("status", "the final text") in [(one.kind, one.body) for one in listed.items]


@as_test
async def test_a_program_that_fails_says_how_and_where_its_log_is(rig: Rig) -> None:
    command = write_program(rig.home, "breaks", "cat >/dev/null; echo no more disk >&2; exit 3")
    await rig.register("breaks", command=command)
    view = await wait_for_end(rig, (await rig.operator(MakeAsk(to="@breaks", body="x"))).flight_id)
    assert (view.state, view.error and view.error.code) == (FlightState.FAILED, "session_failed")
    assert view.error is not None
    assert "exit 3: no more disk" in view.error.message
    assert view.error.log is not None
    assert "no more disk" in await asyncio.to_thread(Path(view.error.log).read_text)


@pytest.mark.slow
@as_test
async def test_what_it_writes_on_the_way_is_a_sign_of_life(rig: Rig) -> None:
    text = 'cat >/dev/null; for n in 1 2 3 4 5 6; do echo "step $n" >&2; sleep 0.3; done; echo done'
    await rig.register("steps", command=write_program(rig.home, "steps", text))
    asked = await rig.operator(MakeAsk(to="@steps", body="x"))
    await wait_until(lambda: stepping(rig, asked.flight_id))
    assert (await wait_for_end(rig, asked.flight_id)).output == "done"


async def stepping(rig: Rig, flight_id: str) -> bool:
    return (await rig.operator(GetFlight(flight_id=flight_id))).reason.startswith("step ")


@as_test
async def test_a_program_that_is_not_there_is_given_up_at_once(rig: Rig) -> None:
    await rig.register("gone", command=("no-such-program-at-all",))
    view = await wait_for_end(rig, (await rig.operator(MakeAsk(to="@gone", body="x"))).flight_id)
    assert view.error is not None
    assert view.error.code == "wake_failed"
    assert "no-such-program-at-all was not found" in view.error.message
    assert view.attempts == 1


@as_test
async def test_what_a_turn_cost_is_stored_with_its_end(rig: Rig) -> None:
    await rig.register("upper", command=("tr", "a-z", "A-Z"))
    statements: list[str] = []
    rig.broker._database.trace(statements.append)
    assert (await rig.operator(MakeAsk(to="@upper", body="x", wait=20))).output == "X"
    commits = "\n".join(statements).split("COMMIT")
    # A trace shows the bytes of a row of the log.
    (end,) = (text for text in commits if b"collab.flight.completed".hex() in text)
    assert b"collab.usage.reported".hex() in end
