"""The first start says whose machine this is; later ones find it again."""

import asyncio
from pathlib import Path

import pytest

from scout.base.refusal import Refused
from scout.protocol.access import ListTokens, RevokeToken, RotateToken
from scout.protocol.agents import WhoAmI
from scout.protocol.log import ReadLog
from scout.protocol.overview import ListNodes, ShowStatus
from scout.store.integrity.verify import verify
from tests.broker.rig import SECRET, Rig, expect_refusal, open_rig, run_scene


@pytest.mark.rows("R0-57", "R0-60")
def test_another_login_or_host_changes_nothing(tmp_path: Path) -> None:
    async def first(made: Rig) -> object:
        return await made.operator(WhoAmI()), await made.operator(ReadLog(limit=200))

    async def second(made: Rig) -> object:
        assert (await made.operator(ShowStatus())).node == "mini"
        assert [one.name for one in (await made.operator(ListNodes())).items] == ["mini"]
        return await made.operator(WhoAmI()), await made.operator(ReadLog(limit=200))

    before = run_scene(first, tmp_path)
    assert run_scene(second, tmp_path, login="grace", host="Studio.local") == before


@pytest.mark.parametrize(
    ("login", "user"), [("Ada Lovelace", "ada-lovelace"), ("root", "me"), ("operator", "me")]
)
def test_the_operator_is_called_by_their_login(tmp_path: Path, login: str, user: str) -> None:
    async def scene(made: Rig) -> None:
        assert (await made.operator(WhoAmI())).path == f"/{user}/direct"

    run_scene(scene, tmp_path, login=login)


def test_another_text_in_the_token_file_ends_the_old_one(tmp_path: Path) -> None:
    async def scene() -> None:
        async with open_rig(tmp_path) as made:
            me = await made.operator(WhoAmI())
        async with open_rig(tmp_path, secret="sct_another") as made:
            assert (await expect_refusal(made.scout(SECRET))).code == "unauthenticated"
            seat = await made.scout("sct_another")
            other = await seat.call(WhoAmI())
            assert (other.agent_id, other.token_id != me.token_id) == (me.agent_id, True)
            assert [one.state for one in (await seat.call(ListTokens())).items] == ["active", "revoked"]

    asyncio.run(scene())
    assert verify(tmp_path / "scout.db").clean


def test_the_token_of_the_file_ends_only_with_the_file_and_stays_ended(tmp_path: Path) -> None:
    async def scene() -> None:
        async with open_rig(tmp_path) as made:
            me = await made.operator(WhoAmI())
            revoked = await expect_refusal(made.operator(RevokeToken(token_id=me.token_id)))
            rotated = await expect_refusal(made.operator(RotateToken(token_id=me.token_id)))
            assert "this is the token in" in revoked.message
            assert "this is the token in" in rotated.message
        async with open_rig(tmp_path, secret="sct_another") as made:
            assert (await expect_refusal(made.scout(SECRET))).code == "unauthenticated"
            assert (await (await made.scout("sct_another")).call(WhoAmI())).agent_id == me.agent_id
        with pytest.raises(Refused, match="was revoked"):
            async with open_rig(tmp_path):
                pass

    asyncio.run(scene())
    assert verify(tmp_path / "scout.db").clean
