"""Attachments: stored once by their hash, named in messages."""

import hashlib
from pathlib import Path

import pytest

from scout.policy.limits import Limits
from scout.protocol.talk import GetBlob, GetMessage, PutBlob, Send
from tests.broker.rig import Rig, played, refused, staged


@pytest.mark.rows("R0-71")
@staged
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


@staged
async def test_a_key_holds_for_files_too(rig: Rig) -> None:
    first = await rig.operator(PutBlob(name="a", data=b"one", idempotency_key="k"))
    assert await rig.operator(PutBlob(name="a", data=b"one", idempotency_key="k")) == first
    other = PutBlob(name="a", data=b"two", idempotency_key="k")
    assert (await refused(rig.operator(other))).code == "key_reused"


@pytest.mark.rows("R0-73")
def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        assert (await rig.operator(PutBlob(name="fits", data=b"x" * 100))).size == 100
        problem = await refused(rig.operator(PutBlob(name="large", data=b"x" * 101)))
        assert (problem.code, problem.size, problem.limit) == ("too_large", 101, 100)
        assert len([path for path in (rig.home / "blobs").rglob("*") if path.is_file()]) == 1

    played(scene, tmp_path, limits=Limits(attachment=100))


@staged
async def test_what_was_never_stored_cannot_be_named(rig: Rig) -> None:
    await rig.register("arc")
    for name in ("0" * 64, "../../token", "", "é" * 64, "A" * 64):
        assert (await refused(rig.operator(GetBlob(sha256=name)))).code == "not_found"
        wish = Send(to="@arc", body="see", attachments=(name,))
        assert (await refused(rig.operator(wish))).code == "not_found"
