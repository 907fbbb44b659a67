"""Answers are never thrown away: too long, with NUL, with a token in it, or from a program that is missing."""

from pathlib import Path

from scout.model.conversation import BODY_LIMIT
from scout.model.flight import FlightState
from scout.policy.limits import Limits
from scout.protocol.asks import CompleteFlight, GetFlight, MakeAsk
from scout.protocol.operations import build_command_line
from scout.protocol.talk import GetBlob, GetMessage, PutBlob, Reply, Send
from tests.broker.rig import (
    Rig,
    as_test,
    expect_refusal,
    online_agent,
    run_scene,
    wait_for_end,
    write_program,
)


async def get_answer(rig: Rig, text: str) -> tuple[str, str | None]:
    """The output of an agent whose program runs this, and the message that holds it."""
    await rig.register("says", command=write_program(rig.home, "says", text))
    asked = await rig.operator(MakeAsk(to="@says", body="go", wait=20))
    view = await rig.operator(GetFlight(flight_id=asked.flight_id))
    assert view.state is FlightState.COMPLETED, view
    return view.output or "", view.output_message_id


@as_test
async def test_a_long_answer_is_attached_and_begins_in_the_message(rig: Rig) -> None:
    output, message_id = await get_answer(rig, "cat >/dev/null; head -c 1000000 /dev/zero | tr '\\0' x")
    assert len(output.encode()) <= BODY_LIMIT
    assert output.startswith("x" * 200_000)
    message = await rig.operator(GetMessage(message_id=message_id or ""))
    (attached,) = message.attachments
    assert (attached.size, attached.name) == (1_000_000, "answer.txt")
    assert output.endswith(
        f"[This answer has 1000000 bytes. All of it: scout attachment get {attached.sha256}]"
    )
    assert (await rig.operator(GetBlob(sha256=attached.sha256))).data == b"x" * 1_000_000


def test_of_an_answer_longer_than_an_attachment_the_beginning_is_attached(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        output, message_id = await get_answer(rig, "cat >/dev/null; head -c 1000000 /dev/zero | tr '\\0' x")
        message = await rig.operator(GetMessage(message_id=message_id or ""))
        assert message.attachments[0].size == 400_000
        assert "This answer has 1000000 bytes. The first 400000 bytes of it: scout attach" in output

    run_scene(scene, tmp_path, limits=Limits(attachment=400_000))


@as_test
async def test_nul_and_bytes_that_are_no_text_are_made_visible(rig: Rig) -> None:
    output, _ = await get_answer(rig, "cat >/dev/null; printf 'important\\0tail \\377 end'")
    assert output == "important␀tail � end"


@as_test
async def test_a_live_token_in_an_answer_is_hidden(rig: Rig) -> None:
    text = 'cat >/dev/null; echo "$SCOUT_TOKEN" >"$WORK/token"; echo "my token is $SCOUT_TOKEN, sct_shown"'
    output, message_id = await get_answer(rig, text)
    secret = (rig.home / "token").read_text().strip()
    assert output == "my token is sct_…, sct_shown"
    stored = b"".join(path.read_bytes() for path in rig.home.glob("scout.db*"))
    assert secret.encode() not in stored
    assert (await rig.operator(GetMessage(message_id=message_id or ""))).body == output


@as_test
async def test_a_live_token_in_a_reply_or_a_result_is_hidden(rig: Rig) -> None:
    seat, secret = await online_agent(rig), "sct_" + "x" * 43
    await rig.register("other")
    other = rig.tokens["other"]
    for number, finish in enumerate((Reply, CompleteFlight)):
        asked = await rig.operator(MakeAsk(to="@live", body="go", idempotency_key=str(number)))
        text = f"{other} and {secret}"
        if finish is Reply:
            await seat.call(Reply(body=text, in_reply_to=asked.flight_id))
        else:
            await seat.call(CompleteFlight(flight_id=asked.flight_id, output=text))
        view = await wait_for_end(rig, asked.flight_id)
        assert view.output == f"sct_… and {secret}"


@as_test
async def test_the_attachments_of_a_reply_to_an_ask_are_kept(rig: Rig) -> None:
    seat = await online_agent(rig)
    stored = await seat.call(PutBlob(name="report.txt", data=b"all of it"))
    asked = await rig.operator(MakeAsk(to="@live", body="go"))
    await seat.call(
        Reply(body="see there", in_reply_to=asked.flight_id, attachments=(f"{stored.sha256}:report.txt",))
    )
    view = await wait_for_end(rig, asked.flight_id)
    message = await rig.operator(GetMessage(message_id=view.output_message_id or ""))
    assert [(one.name, one.size) for one in message.attachments] == [("report.txt", 9)]


@as_test
async def test_a_missing_program_is_not_retried_but_set(rig: Rig) -> None:
    await rig.register("gone", command=("/nowhere/at/all",))
    asked = await rig.operator(MakeAsk(to="@gone", body="go", wait=20))
    view = await rig.operator(GetFlight(flight_id=asked.flight_id))
    assert view.state is FlightState.FAILED
    assert view.error is not None
    assert "failed once in the process: the program /nowhere/at/all was not found" in view.error.message
    commands = [build_command_line(one) for one in view.error.remedies]
    assert len(commands) == 1
    assert commands[0].startswith("scout agent config")


@as_test
async def test_attachments_are_counted_and_named_once(rig: Rig) -> None:
    seat = await online_agent(rig)
    stored = await seat.call(PutBlob(name="a", data=b"a" * 100))
    receipt = await seat.call(Send(to="@live", body="hi", attachments=(stored.sha256,) * 32))
    message = await rig.operator(GetMessage(message_id=receipt.message_id))
    assert [one.size for one in message.attachments] == [100]
    told = await expect_refusal(seat.call(Send(to="@live", body="hi", attachments=(stored.sha256,) * 33)))
    assert told.message == "a message has 33 attachments; the maximum is 32 (at attachments)"
    told = await expect_refusal(seat.call(Send(to="@live", body="hi", attachments=("0" * 64,))))
    assert told.code == "not_found"
