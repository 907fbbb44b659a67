from collections.abc import Callable
from typing import Any, Protocol

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.machine import Mutable, change_record, move_record
from scout.base.refusal import Refused, WrongRevision, WrongState
from scout.model import (
    agent,
    alias,
    attention,
    card,
    conversation,
    delivery,
    endpoint,
    flight,
    node,
    question,
    session,
    work_item,
)
from scout.model.access import grant, token
from scout.model.node import NODE, NodeMove, NodeState
from scout.model.people import binding, link_code, schedule, user
from scout.model.waiting import WaitingKind, WaitingOn
from tests.model.samples import (
    ASK,
    BACK_OFF,
    BOB,
    CAROL,
    OPERATOR,
    T0,
    T1,
    a_binding,
    a_card,
    a_conversation,
    a_delivery,
    a_flight,
    a_grant,
    a_key,
    a_link_code,
    a_member,
    a_node,
    a_question,
    a_schedule,
    a_session,
    a_token,
    a_user,
    a_work_item,
    an_agent,
    an_alias,
    an_attention,
    an_endpoint,
    ident,
)

ON = WaitingOn(kind=WaitingKind.ACTOR, ref=CAROL)
NEXT = schedule.NextRun(slot=T1.plus(60), at=T1.plus(61))
ERROR = flight.FlightError(code="x", message="x")
SPAWN = question.SpawnWork(title="x", owner_id=CAROL)
RUNNING = a_flight(state=flight.FlightState.RUNNING)
WAITING = a_flight(state=flight.FlightState.WAITING)
ANSWERED = a_question(state=question.QuestionState.ANSWERED)
W = work_item.WorkState


class _Change(Protocol):
    def __call__(self, r: Any, /, **k: Any) -> Any: ...


# noun, a record in the right state, a change of it at T1; `seen` is passed through
SEEN: dict[str, tuple[str, Mutable, _Change]] = {
    "move_agent": ("agent", an_agent(), lambda r, **k: agent.move_agent(r, agent.AgentMove.SLEEP, T1, **k)),
    "update_agent": ("agent", an_agent(), lambda r, **k: agent.update_agent(r, T1, working_dir="/x", **k)),
    "move_endpoint": (
        "endpoint",
        an_endpoint(),
        lambda r, **k: endpoint.move_endpoint(r, endpoint.EndpointMove.READY, T1, **k),
    ),
    "update_endpoint": (
        "endpoint",
        an_endpoint(),
        lambda r, **k: endpoint.update_endpoint(r, T1, preferred=True, **k),
    ),
    "end_session": ("session", a_session(), lambda r, **k: session.end_session(r, "over", T1, **k)),
    "resume_session": (
        "session",
        a_session(state=session.SessionState.ENDED),
        lambda r, **k: session.resume_session(r, T1, **k),
    ),
    "retarget_alias": (
        "alias",
        an_alias(),
        lambda r, **k: alias.retarget_alias(r, alias.AliasTarget(agent_id=BOB), T1, **k),
    ),
    "repair_alias": (
        "alias",
        an_alias(state=alias.AliasState.BROKEN),
        lambda r, **k: alias.repair_alias(r, T1, **k),
    ),
    "remove_alias": ("alias", an_alias(), lambda r, **k: alias.remove_alias(r, T1, **k)),
    "move_node": ("node", a_node(), lambda r, **k: node.move_node(r, NodeMove.LOSE, T1, **k)),
    "update_node": ("node", a_node(), lambda r, **k: node.update_node(r, T1, version="2", **k)),
    "set_policy": (
        "conversation",
        a_conversation(),
        lambda r, **k: conversation.set_policy(r, T1, quiet=True, **k),
    ),
    "archive_conversation": (
        "conversation",
        a_conversation(),
        lambda r, **k: conversation.archive_conversation(r, T1, **k),
    ),
    "start_flight": ("flight", a_flight(), lambda r, **k: flight.start_flight(r, T1, **k)),
    "wait_flight": (
        "flight",
        RUNNING,
        lambda r, **k: flight.wait_flight(r, ON, T1, next_move_owner_id=BOB, **k),
    ),
    "resume_flight": ("flight", WAITING, lambda r, **k: flight.resume_flight(r, T1, **k)),
    "complete_flight": ("flight", RUNNING, lambda r, **k: flight.complete_flight(r, "ok", T1, **k)),
    "empty_flight": ("flight", RUNNING, lambda r, **k: flight.complete_flight(r, "", T1, **k)),
    "fail_flight": ("flight", RUNNING, lambda r, **k: flight.fail_flight(r, ERROR, T1, **k)),
    "cancel_flight": ("flight", RUNNING, lambda r, **k: flight.cancel_flight(r, "", T1, **k)),
    "answer": ("question", a_question(), lambda r, **k: question.answer_question(r, "yes", T1, **k)),
    "answer_with_work": (
        "question",
        a_question(),
        lambda r, **k: question.answer_with_work(r, "yes", SPAWN, ident("wrk"), T1, **k)[0],
    ),
    "decline": ("question", a_question(), lambda r, **k: question.decline_question(r, "no", T1, **k)),
    "close": ("question", a_question(), lambda r, **k: question.close_question(r, T1, **k)),
    "reopen": ("question", ANSWERED, lambda r, **k: question.reopen_question(r, T1, **k)),
    "start_work": ("work item", a_work_item(), lambda r, **k: work_item.start_work(r, T1, **k)),
    "progress_work": (
        "work item",
        a_work_item(state=W.WORKING),
        lambda r, **k: work_item.update_progress(r, work_item.Progress(), T1, **k),
    ),
    "wait_work": ("work item", a_work_item(), lambda r, **k: work_item.wait_work(r, ON, CAROL, T1, **k)),
    "resume_work": (
        "work item",
        a_work_item(state=W.WAITING),
        lambda r, **k: work_item.resume_work(r, T1, **k),
    ),
    "submit_work": ("work item", a_work_item(), lambda r, **k: work_item.submit_work(r, T1, **k)),
    "accept_work": (
        "work item",
        a_work_item(state=W.REVIEW),
        lambda r, **k: work_item.accept_work(r, T1, **k),
    ),
    "reopen_work": (
        "work item",
        a_work_item(state=W.DONE),
        lambda r, **k: work_item.reopen_work(r, "", T1, **k),
    ),
    "hand_over_work": (
        "work item",
        a_work_item(),
        lambda r, **k: work_item.hand_over_work(r, CAROL, T1, **k),
    ),
    "cancel_work": ("work item", a_work_item(), lambda r, **k: work_item.cancel_work(r, "", T1, **k)),
    "update_work": ("work item", a_work_item(), lambda r, **k: work_item.update_work(r, T1, title="x", **k)),
    "decide_attention": (
        "attention item",
        an_attention(),
        lambda r, **k: attention.decide_attention(r, attention.AttentionMove.DENY, OPERATOR, T1, **k),
    ),
    "move_binding": (
        "binding",
        a_binding(),
        lambda r, **k: binding.move_binding(r, binding.BindingMove.CLOSE, T1, **k),
    ),
    "revoke_card": ("card", a_card(), lambda r, **k: card.revoke_card(r, T1, **k)),
    "move_user": ("user", a_user(), lambda r, **k: user.move_user(r, user.UserMove.RETIRE, T1, **k)),
    "rename_user": ("user", a_user(), lambda r, **k: user.rename_user(r, "Ann", T1, **k)),
    "free_key": ("connector key", a_key(), lambda r, **k: user.free_key(r, "", T1, **k)),
    "set_quiet_hours": ("connector key", a_key(), lambda r, **k: user.set_quiet_hours(r, None, T1, **k)),
    "revoke_token": ("token", a_token(), lambda r, **k: token.revoke_token(r, "", T1, **k)),
    "end_grant": ("grant", a_grant(), lambda r, **k: grant.end_grant(r, grant.GrantMove.REVOKE, T1, **k)),
    "change_schedule": (
        "schedule",
        a_schedule(),
        lambda r, **k: schedule.change_schedule(r, T1, body="x", **k),
    ),
    "pause_schedule": ("schedule", a_schedule(), lambda r, **k: schedule.pause_schedule(r, T1, **k)),
    "resume_schedule": (
        "schedule",
        a_schedule(state=schedule.ScheduleState.PAUSED),
        lambda r, **k: schedule.resume_schedule(r, NEXT, T1, **k),
    ),
    "end_schedule": ("schedule", a_schedule(), lambda r, **k: schedule.end_schedule(r, "", T1, **k)),
}

LEASED = delivery.lease(a_delivery(), "d", T0)
# Changes that only Scout itself makes: it has just read the record, so there is nothing to have seen.
UNSEEN: dict[str, tuple[Mutable, Callable[[Any], Mutable]]] = {
    "take_sub_index": (an_agent(), lambda r: agent.take_sub_index(r, T1)[0]),
    "take_search_index": (an_agent(), lambda r: agent.take_search_index(r, T1)[0]),
    "ready_session": (a_session(), lambda r: session.mark_ready(r, T1)),
    "lose_session": (a_session(), lambda r: session.lose_session(r, "", T1)),
    "check_class": (a_session(), lambda r: session.check_class(r, session.SessionClass.TERMINAL, T1)),
    "observe_session": (a_session(), lambda r: session.observe_session(r, T1)),
    "break_alias": (an_alias(), lambda r: alias.break_alias(r, "", T1)),
    "end_with_session": (
        an_alias(target=alias.AliasTarget(session_id="ses_1"), until_session_ends=True),
        lambda r: alias.end_with_session(r, "ses_1", T1),
    ),
    "leave": (a_member(), lambda r: conversation.leave(r, T1)),
    "join": (a_member(left_at=T0), lambda r: conversation.join(r, T1)),
    "mute": (a_member(), lambda r: conversation.mute(r, True, T1)),
    "advance_cursor": (a_member(), lambda r: conversation.advance_cursor(r, 5, T1)),
    "hold_flight": (a_flight(), lambda r: flight.hold_flight(r, ON, T1, next_move_owner_id=BOB)),
    "note_flight": (a_flight(), lambda r: flight.note_flight(r, flight.FlightPhase.CHECKING, T1)),
    "give_next_move": (a_work_item(), lambda r: work_item.give_next_move(r, CAROL, "", T1)),
    "relate_work": (
        a_work_item(),
        lambda r: work_item.relate_work(r, work_item.RelationKind.BLOCKS, "wrk_2", T1),
    ),
    "notify_attention": (an_attention(), lambda r: attention.notify_attention(r, T1)),
    "expire_attention": (an_attention(), lambda r: attention.expire_attention(r, T1)),
    "use_card": (a_card(), lambda r: card.use_card(r, T1)),
    "expire_card": (a_card(), lambda r: card.expire_card(r, T1)),
    "update_account": (a_key(), lambda r: user.update_account(r, "c", "Ann", T1)),
    "redeem_code": (a_link_code(), lambda r: link_code.redeem_code(r, "key_1", T1)),
    "revoke_code": (a_link_code(), lambda r: link_code.revoke_code(r, "", T1)),
    "expire_token": (a_token(), lambda r: token.expire_token(r, T1)),
    "fire_schedule": (
        a_schedule(),
        lambda r: schedule.fire_schedule(r, T1, ask_id=ASK, slot=T1, following=NEXT),
    ),
    "skip_run": (a_schedule(), lambda r: schedule.skip_run(r, T1, slot=T1, following=NEXT, reason="")),
    "hold_run": (a_schedule(), lambda r: schedule.hold_run(r, T1, slot=T1, following=NEXT, reason="")),
    "fail_run": (a_schedule(), lambda r: schedule.fail_run(r, T1, slot=T1, following=NEXT, reason="")),
    "release_run": (a_schedule(), lambda r: schedule.release_run(r, T1)),
    "lease": (a_delivery(), lambda r: delivery.lease(r, "d", T1)),
    "renew": (LEASED, lambda r: delivery.renew(r, "d", T1)),
    "ack": (LEASED, lambda r: delivery.ack(r, "d", T1)),
    "nack": (LEASED, lambda r: delivery.nack(r, "d", T1, rule=BACK_OFF)),
    "expire": (LEASED, lambda r: delivery.expire(r, T1, BACK_OFF)),
    "dead_letter": (LEASED, lambda r: delivery.dead_letter(r, "", T1)),
    "cancel_delivery": (LEASED, lambda r: delivery.cancel_delivery(r, "", T1)),
    "settle_uncertain": (
        LEASED,
        lambda r: delivery.settle_uncertain(r, delivery.InspectResult.TAKEN, T1, BACK_OFF),
    ),
}


def _check(before: Mutable, after: Mutable) -> None:
    assert after.revision == before.revision + 1
    assert (after.id, after.created_at, after.updated_at) == (before.id, before.created_at, T1)


@pytest.mark.rows("R2.2-4", "R2.2-5", "R2.2-6")
@pytest.mark.parametrize("name", SEEN)
def test_every_change_grows_the_revision_and_honours_the_one_that_was_seen(name: str) -> None:
    noun, record, change = SEEN[name]
    record = msgspec.structs.replace(record, revision=4)
    _check(record, change(record))
    assert change(record, seen=4) == change(record)
    with pytest.raises(Refused) as refused:
        change(record, seen=3)
    assert refused.value.diagnostic == WrongRevision(noun=noun, id=record.id, seen=3, current=4)


@pytest.mark.rows("R2.2-4")
@pytest.mark.parametrize("name", UNSEEN)
def test_so_does_every_change_that_scout_makes_itself(name: str) -> None:
    record, change = UNSEEN[name]
    _check(record, change(record))


def test_a_change_grows_the_revision_by_one_and_notes_the_time() -> None:
    after = change_record("node", a_node(revision=4), T1, version="2")
    assert (after.revision, after.updated_at, after.created_at, after.version) == (5, T1, T0, "2")


def test_the_record_itself_stays_as_it_was() -> None:
    before = a_node()
    change_record("node", before, T1, version="2")
    assert before == a_node()


def test_a_move_sets_the_state_and_the_changes() -> None:
    after = move_record(NODE, a_node(), NodeMove.LOSE, T1, url="x")
    assert (after.state, after.url, after.revision) == (NodeState.UNREACHABLE, "x", 2)


@given(st.integers(1, 5), st.none() | st.integers(0, 6))
def test_an_update_may_carry_the_revision_it_saw(current: int, seen: int | None) -> None:
    record = a_node(revision=current)
    if seen in (None, current):
        assert move_record(NODE, record, NodeMove.LOSE, T1, seen=seen).revision == current + 1
        return
    with pytest.raises(Refused) as refused:
        move_record(NODE, record, NodeMove.LOSE, T1, seen=seen)
    assert refused.value.diagnostic == WrongRevision(noun="node", id=record.id, seen=seen, current=current)


def test_an_illegal_move_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        move_record(NODE, a_node(), NodeMove.ADMIT, T1)
    assert isinstance(refused.value.diagnostic, WrongState)
