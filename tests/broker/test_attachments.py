"""Attachments: stored once by their hash, named in messages."""

import hashlib
from pathlib import Path

import pytest

from scout.base.refusal import Refused
from scout.broker.local import LocalScout
from scout.model.problems.request import NotFound
from scout.policy.limits import Limits
from scout.protocol.asks import MakeAsk
from scout.protocol.channels import CreateChannel, JoinChannel
from scout.protocol.talk import GetBlob, GetMessage, PutBlob, RedactMessage, Send
from tests.broker.rig import Rig, as_test, expect_refusal, run_scene


@pytest.mark.rows("R0-71")
@as_test
async def test_a_file_is_stored_under_its_hash(rig: Rig) -> None:
    arc = await rig.agent("arc")
    data = b"\x00\xff" * 1000
    put = await arc.call(PutBlob(name="core.bin", data=data))
    assert (put.sha256, put.size) == (hashlib.sha256(data).hexdigest(), 2000)
    files = [path for path in (rig.home / "blobs").rglob("*") if path.is_file()]
    assert [path.name for path in files] == [put.sha256]
    assert files[0].read_bytes() == data
    again = await rig.operator(PutBlob(name="other.bin", data=data))
    assert again.sha256 == put.sha256
    got = await rig.operator(GetBlob(sha256=put.sha256))
    assert got.data == data
    sent = await arc.call(Send(to="operator", body="see", attachments=(f"{put.sha256}:core.bin",)))
    shown = await rig.operator(GetMessage(message_id=sent.message_id))
    assert [(one.sha256, one.name, one.size) for one in shown.attachments] == [(put.sha256, "core.bin", 2000)]


@as_test
async def test_a_key_holds_for_files_too(rig: Rig) -> None:
    first = await rig.operator(PutBlob(name="a", data=b"one", idempotency_key="k"))
    assert await rig.operator(PutBlob(name="a", data=b"one", idempotency_key="k")) == first
    other = PutBlob(name="a", data=b"two", idempotency_key="k")
    assert (await expect_refusal(rig.operator(other))).code == "key_reused"


@pytest.mark.rows("R0-73")
def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        assert (await rig.operator(PutBlob(name="fits", data=b"x" * 100))).size == 100
        problem = await expect_refusal(rig.operator(PutBlob(name="large", data=b"x" * 101)))
        assert (problem.code, problem.size, problem.limit) == ("too_large", 101, 100)
        assert len([path for path in (rig.home / "blobs").rglob("*") if path.is_file()]) == 1

    run_scene(scene, tmp_path, limits=Limits(attachment=100))


@as_test
async def test_what_was_never_stored_cannot_be_named(rig: Rig) -> None:
    await rig.register("arc")
    for name in ("0" * 64, "../../token", "", "é" * 64, "A" * 64):
        assert (await expect_refusal(rig.operator(GetBlob(sha256=name)))).code == "not_found"
        wish = Send(to="@arc", body="see", attachments=(name,))
        assert (await expect_refusal(rig.operator(wish))).code == "not_found"


# -- who may read -------------------------------------------------------------------------------------


async def put(seat: LocalScout, data: bytes) -> str:
    return (await seat.call(PutBlob(name="plan.txt", data=data))).sha256


async def reads(seat: LocalScout, sha256: str) -> bool:
    """Whether it gets the file; otherwise there is no such file for it, in the very words for any hash."""
    try:
        return (await seat.call(GetBlob(sha256=sha256))).attachment.sha256 == sha256
    except Refused as refusal:
        assert refusal.diagnostic == NotFound(noun="attachment", id=sha256)
        return False


@as_test
async def test_a_file_is_read_by_those_who_stored_it_and_by_the_operator(rig: Rig) -> None:
    ann, bob = await rig.agent("ann"), await rig.agent("bob")
    sha256 = await put(ann, b"the plan")
    assert await reads(ann, sha256)
    assert await reads(await rig.scout(), sha256)
    assert not await reads(bob, sha256)
    assert await put(bob, b"the plan") == sha256  # bob has the same bytes, and so may read them
    assert await reads(bob, sha256)


@as_test
async def test_a_file_is_read_by_those_who_may_read_a_message_with_it(rig: Rig) -> None:
    ann, bob, eve = await rig.agent("ann"), await rig.agent("bob"), await rig.agent("eve")
    sha256 = await put(ann, b"for bob")
    assert not await reads(bob, sha256)
    sent = await ann.call(Send(to="@bob", body="see", attachments=(sha256,)))
    assert (await reads(bob, sha256), await reads(eve, sha256)) == (True, False)
    await rig.operator(RedactMessage(message_id=sent.message_id))
    assert (await reads(bob, sha256), await reads(ann, sha256)) == (False, True)


@as_test
async def test_a_file_in_a_channel_is_for_its_members_and_one_for_all_is_for_all(rig: Rig) -> None:
    ann, bob, eve = await rig.agent("ann"), await rig.agent("bob"), await rig.agent("eve")
    await ann.call(CreateChannel(name="build"))
    await bob.call(JoinChannel(name="build"))
    sha256 = await put(ann, b"for the channel")
    await ann.call(Send(channel="build", body="see", attachments=(sha256,)))
    assert (await reads(bob, sha256), await reads(eve, sha256)) == (True, False)
    await ann.call(Send(broadcast=True, body="see", attachments=(sha256,)))
    assert await reads(eve, sha256)


@as_test
async def test_a_file_that_one_may_not_read_cannot_be_attached(rig: Rig) -> None:
    ann, eve = await rig.agent("ann"), await rig.agent("eve")
    await rig.register("bob", harness="echo")
    sha256 = await put(ann, b"not for eve")
    said = await expect_refusal(eve.call(Send(to="@eve", body="mine", attachments=(sha256,))))
    asked = await expect_refusal(eve.call(MakeAsk(to="@bob", body="read it", attachments=(sha256,))))
    assert said == asked == NotFound(noun="attachment", id=sha256)
    assert not await reads(eve, sha256)


@as_test
async def test_a_file_is_stored_for_whoever_sends_it_again(rig: Rig) -> None:
    """The receiver of a file may pass it on: it may read it."""
    ann, bob, eve = await rig.agent("ann"), await rig.agent("bob"), await rig.agent("eve")
    sha256 = await put(ann, b"pass it on")
    await ann.call(Send(to="@bob", body="see", attachments=(sha256,)))
    await bob.call(Send(to="@eve", body="see", attachments=(sha256,)))
    assert await reads(eve, sha256)


@as_test
async def test_storing_the_same_twice_is_one_fact(rig: Rig) -> None:
    ann = await rig.agent("ann")
    before = rig.broker.glance().last_seq()
    for _ in range(3):
        await put(ann, b"once")
    assert rig.broker.glance().last_seq() == before + 1
