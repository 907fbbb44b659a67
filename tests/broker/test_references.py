"""Ids as people write them: a unique beginning, `last`, `only`, an agent's address."""

from scout.model.access.grant import Action
from scout.protocol.access import AddGrant, CreateToken, RevokeGrant, RevokeToken
from scout.protocol.asks import CancelFlight, GetAsk, GetFlight, MakeAsk
from scout.protocol.attention import AnswerAttention, GetAttention, Need
from scout.protocol.inbox import GetDelivery
from scout.protocol.log import ReadLog
from scout.protocol.sessions import GetSession, ListSessions, StopSession
from scout.protocol.talk import GetMessage, Send
from scout.protocol.work import CreateWork, GetWork
from tests.broker.rig import Rig, as_test, expect_refusal, online_agent


@as_test
async def test_a_unique_beginning_stands_for_the_whole_id(rig: Rig) -> None:
    await online_agent(rig)
    asked = await rig.operator(MakeAsk(to="@live", body="one"))
    assert (await rig.operator(GetFlight(flight_id=asked.flight_id[:17]))).id == asked.flight_id
    assert (await rig.operator(GetFlight(flight_id=asked.ask_id[:17]))).id == asked.flight_id
    assert (await rig.operator(GetMessage(message_id=asked.message_id[:17]))).id == asked.message_id
    for wrong in ("flt_zzzz", "flt_", "flt_01", "nothing_at_all"):
        assert (await expect_refusal(rig.operator(GetFlight(flight_id=wrong)))).code == "not_found"


@as_test
async def test_several_are_candidates_that_work_in_the_same_request(rig: Rig) -> None:
    await online_agent(rig)
    asked = [await rig.operator(MakeAsk(to="@live", body=text)) for text in ("one", "two")]
    ids = [one.flight_id for one in asked]
    told = await expect_refusal(
        rig.operator(CancelFlight(flight_id=ids[0][:8], reason="why not", idempotency_key="once"))
    )
    assert (told.code, told.noun, told.count) == ("ambiguous_target", "flight", 2)
    assert [one.address for one in told.candidates] == ids
    assert told.remedies[0].operation == "flight.cancel"
    assert told.remedies[0].parameters == {"flightId": ids[0], "reason": "why not"}
    assert "matches 2 flights" in told.message


@as_test
async def test_last_only_and_an_agent_stand_for_a_flight(rig: Rig) -> None:
    await online_agent(rig)
    await online_agent(rig, "other")
    assert (await expect_refusal(rig.operator(GetFlight(flight_id="only")))).remedies[
        0
    ].operation == "flight.list"
    first = await rig.operator(MakeAsk(to="@live", body="one"))
    assert (await rig.operator(GetFlight(flight_id="only"))).id == first.flight_id
    second = await rig.operator(MakeAsk(to="@other", body="two"))
    assert (await rig.operator(GetFlight(flight_id="last"))).id == second.flight_id
    assert (await rig.operator(GetFlight(flight_id="@live"))).id == first.flight_id
    told = await expect_refusal(rig.operator(GetFlight(flight_id="only")))
    assert [one.why for one in told.candidates] == ["two", "one"]
    assert (await rig.operator(CancelFlight(flight_id="@live"))).id == first.flight_id
    assert (await rig.operator(GetFlight(flight_id="only"))).id == second.flight_id
    assert (await expect_refusal(rig.operator(GetFlight(flight_id="@nobody")))).code == "unknown_target"


@as_test
async def test_a_session_is_named_by_its_agent(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    await rig.operator(MakeAsk(to="@parrot", body="hello", wait=20))
    (session,) = (await rig.operator(ListSessions(live=True))).items
    for text in ("@parrot", "parrot", "only", "last", session.id[:17]):
        assert (await rig.operator(GetSession(session_id=text))).id == session.id


@as_test
async def test_what_needs_a_person_is_answered_by_the_name_of_the_agent(rig: Rig) -> None:
    arc, bow = await rig.agent("arc"), await rig.agent("bow")
    first = await arc.call(Need(question="which port?"))
    second = await bow.call(Need(question="which host?"))
    assert (await rig.operator(GetAttention(attention_id="@arc"))).id == first.id
    assert (await rig.operator(GetAttention(attention_id="last"))).id == second.id
    await rig.operator(AnswerAttention(attention_id="@bow", answer="this one"))
    assert (await rig.operator(AnswerAttention(attention_id="only", answer="80"))).id == first.id


@as_test
async def test_nobody_finds_more_than_they_may_read(rig: Rig) -> None:
    arc, bow = await rig.agent("arc"), await rig.agent("bow")
    mine = await arc.call(Need(question="which port?"))
    theirs = await bow.call(Need(question="which host?"))
    assert (await bow.call(GetAttention(attention_id=theirs.id[:8]))).id == theirs.id
    told = await expect_refusal(bow.call(GetAttention(attention_id=mine.id[:17])))
    assert (told.code, told.candidates) == ("not_found", ())


@as_test
async def test_the_log_and_a_list_take_a_beginning_too(rig: Rig) -> None:
    await rig.agent("arc")
    sent = await rig.operator(Send(to="@arc", body="hi"))
    item = await rig.operator(CreateWork(title="ship it", owner_id="@arc"))
    short = await rig.operator(ReadLog(conversation=sent.conversation_id[:14]))
    assert short.items == (await rig.operator(ReadLog(conversation=sent.conversation_id))).items
    assert (await rig.operator(GetWork(work_item_id="only"))).id == item.id


@as_test
async def test_an_agent_stands_for_its_newest_flight_and_session_once_none_is_open(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    assert (
        await expect_refusal(rig.operator(GetFlight(flight_id="@parrot")))
    ).message == "@parrot has no open flight"
    for text in ("one", "two"):
        asked = await rig.operator(MakeAsk(to="@parrot", body=text, wait=20))
    session = (await rig.operator(StopSession(session_id="@parrot"))).id
    assert (await rig.operator(GetFlight(flight_id="@parrot"))).id == asked.flight_id
    assert (await rig.operator(GetSession(session_id="@parrot"))).id == session
    # Nothing is done to what has ended: that it is still there does not mean that it was meant.
    told = await expect_refusal(rig.operator(CancelFlight(flight_id="@parrot")))
    assert (told.code, told.message) == ("not_found", "@parrot has no open flight")
    told = await expect_refusal(rig.operator(StopSession(session_id="@parrot")))
    assert (told.code, told.message) == ("not_found", "@parrot has no live session")


@as_test
async def test_last_is_the_newest_of_every_noun_that_is_listed(rig: Rig) -> None:
    arc = await rig.agent("arc")
    await rig.register("parrot", harness="echo")
    asked = await rig.operator(MakeAsk(to="@parrot", body="hello", wait=20))
    assert (await rig.operator(GetAsk(ask_id="last"))).ask.id == asked.ask_id
    sent = await rig.operator(Send(to="@arc", body="hi"))
    assert (await rig.operator(GetMessage(message_id="last"))).id == sent.message_id
    assert (await arc.call(GetDelivery(delivery_id="last"))).message_id == sent.message_id
    made = [(await rig.operator(CreateToken(agent="@arc"))).token.id for _ in range(2)]
    for ident in reversed(made):
        assert (await rig.operator(RevokeToken(token_id="last"))).id == ident
    grant = await rig.operator(AddGrant(action=Action.READ, agent="@arc", path="/me/agent/parrot"))
    assert (await rig.operator(RevokeGrant(grant_id="last"))).id == grant.id
    assert (
        await expect_refusal(rig.operator(RevokeGrant(grant_id="last")))
    ).message == "there is no grant yet"
