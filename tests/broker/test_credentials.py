"""Credentials: made by the operator, shown once, ended for good."""

from scout.model.access.token import TokenKind, TokenState
from scout.protocol.access import (
    CreateToken,
    ListTokens,
    RevokeToken,
    RotateToken,
    SetAlias,
)
from scout.protocol.agents import ShowAgent, Who, WhoAmI
from scout.protocol.channels import CreateChannel, JoinChannel, ShowChannel
from scout.protocol.endpoints import RegisterEndpoint
from scout.protocol.inbox import ClaimInbox
from scout.protocol.log import ReadLog
from scout.protocol.overview import MarkLooked, ShowNow
from scout.protocol.talk import ListMessages, PutBlob, Send
from tests.broker.neighbours import draw_requests
from tests.broker.rig import SECRET, Rig, as_test, expect_refusal


@as_test
async def test_a_secret_is_shown_once_and_nowhere_else(rig: Rig) -> None:
    await rig.register("arc")
    minted = await rig.operator(CreateToken(agent="@arc", label="for a test"))
    assert minted.token.hashed == ""
    listed = (await rig.operator(ListTokens())).items
    assert listed[0] == minted.token
    assert all(one.hashed == "" for one in listed)
    log = repr(await rig.operator(ReadLog(limit=200)))
    assert minted.secret not in log
    assert rig.tokens["arc"] not in log
    assert SECRET not in log


@as_test
async def test_credentials_are_the_operators_to_make_and_list(rig: Rig) -> None:
    arc = await rig.agent("arc")
    assert (await expect_refusal(arc.call(ListTokens()))).code == "forbidden"
    assert (await expect_refusal(arc.call(CreateToken(kind=TokenKind.OPERATOR)))).code == "forbidden"
    operator = (await rig.operator(WhoAmI())).token_id
    assert (await expect_refusal(arc.call(RevokeToken(token_id=operator)))).code == "forbidden"
    assert (await expect_refusal(arc.call(RotateToken(token_id="tok_nothing")))).code == "forbidden"
    assert (await expect_refusal(rig.operator(RevokeToken(token_id="tok_nothing")))).code == "not_found"
    assert (await expect_refusal(rig.operator(CreateToken()))).code == "bad_request"
    unknown = CreateToken(agent="@arc", session_id="ses_nothing")
    assert (await expect_refusal(rig.operator(unknown))).code == "not_found"


@as_test
async def test_what_was_revoked_stays_so(rig: Rig) -> None:
    arc = await rig.agent("arc")
    mine = (await arc.call(WhoAmI())).token_id
    gone = await arc.call(RevokeToken(token_id=mine, reason="lost"))
    assert (gone.state, gone.reason) == (TokenState.REVOKED, "lost")
    problem = await expect_refusal(rig.scout(rig.tokens["arc"]))
    assert problem.code == "unauthenticated"
    assert (await rig.operator(RevokeToken(token_id=mine, reason="again"))).reason == "lost"
    assert (await expect_refusal(rig.operator(RotateToken(token_id=mine)))).code == "wrong_state"


@as_test
async def test_a_guest_only_looks(rig: Rig) -> None:
    await rig.register("arc")
    await rig.operator(CreateChannel(name="ops"))
    for wish in draw_requests(
        CreateToken(kind=TokenKind.GUEST), CreateToken(kind=TokenKind.GUEST, agent="@arc")
    ):
        guest = await rig.scout((await rig.operator(wish)).secret)
        before = await rig.operator(ReadLog(limit=200))
        assert (await guest.call(Who())).items
        assert (await guest.call(ShowAgent(address="@arc"))).definition_id == "arc"
        assert (await guest.call(ShowChannel(name="ops"))).name == "ops"
        assert (await guest.call(ListMessages(channel="ops"))).items == ()
        assert (await guest.call(ShowNow())).agents > 0
        for change in draw_requests(
            Send(channel="ops", body="psst"),
            Send(broadcast=True, body="psst"),
            Send(to="@arc", body="psst"),
            CreateChannel(name="mine"),
            JoinChannel(name="ops"),
            RegisterEndpoint(),
            SetAlias(name="a", target="@arc"),
            PutBlob(name="a", data=b"a"),
        ):
            assert (await expect_refusal(guest.call(change))).code == "forbidden", change
        assert await rig.operator(ReadLog(limit=200)) == before


@as_test
async def test_nothing_is_done_in_the_name_of_a_credential_without_an_agent(rig: Rig) -> None:
    await rig.operator(CreateChannel(name="ops"))
    for wish in draw_requests(
        CreateToken(kind=TokenKind.HOST),
        CreateToken(kind=TokenKind.NODE, node="other"),
        CreateToken(kind=TokenKind.CONNECTOR, connector="telegram"),
    ):
        seat = await rig.scout((await rig.operator(wish)).secret)
        for change in draw_requests(
            Send(channel="ops", body="psst"),
            CreateChannel(name="mine"),
            ClaimInbox(),
            MarkLooked(at=rig.clock.now()),
        ):
            assert (await expect_refusal(seat.call(change))).code == "forbidden", change
