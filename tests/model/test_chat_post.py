"""A post in a chat: every attempt is counted before it is made, and what is shown is known by its parts."""

from typing import Any

import pytest

from scout.base.refusal import Refused
from scout.model.people.chat import ChatPlace
from scout.model.people.chat_post import (
    ChatPost,
    PostState,
    add_part,
    check_post,
    confirm_post,
    decide_post,
    delay_post,
    fail_post,
    is_due_post,
    is_edit,
    replace_post,
    retry_post,
    start_attempt,
)
from tests.model.samples import ALICE, T0, T1, ident


def a_post(**changes: Any) -> ChatPost:
    fields: dict[str, Any] = {"text": "hello", **changes}
    return ChatPost(
        id=ident("pst"),
        created_at=T0,
        updated_at=T0,
        connector="telegram",
        place=ChatPlace(chat_id="7"),
        user="ada",
        next_attempt_at=T0,
        created_by=ALICE,
        **fields,
    )


def test_a_post_has_one_source() -> None:
    assert check_post(a_post()).chat_id == "7"
    for bad in ({"text": ""}, {"message_id": "msg_1"}, {"message_id": "msg_1", "attention_id": "att_1"}):
        with pytest.raises(Refused, match="a chat post shows"):
            check_post(a_post(**bad))


def test_a_long_post_is_shown_part_by_part() -> None:
    post = a_post()
    assert is_due_post(post, T0)
    assert not is_due_post(post, T0.plus(-1))
    sending = start_attempt(post, T1)
    assert (sending.state, sending.attempts) == (PostState.SENDING, 1)
    assert not is_due_post(sending, T1)
    first = add_part(sending, "100", T1)
    sent = confirm_post(first, "101", T1)
    assert (sent.state, sent.parts) == (PostState.SENT, ("100", "101"))
    assert not is_edit(sent)
    assert confirm_post(first, None, T1).parts == ("100",)


def test_a_failed_attempt_is_repeated_later_and_says_whether_it_may_repeat() -> None:
    sending = start_attempt(a_post(), T0)
    again = retry_post(sending, "timeout", T1, T0, uncertain=True)
    assert (again.state, again.uncertain, again.problem) == (PostState.QUEUED, True, "timeout")
    assert not is_due_post(again, T0)
    assert is_due_post(again, T1)
    shown = confirm_post(start_attempt(again, T1), "1", T1)
    assert (shown.attempts, shown.uncertain, shown.problem) == (2, False, "")


def test_quiet_hours_delay_and_a_refusal_ends() -> None:
    later = delay_post(a_post(), T1, T0, reason="quiet hours")
    assert (later.next_attempt_at, later.attempts, later.problem) == (T1, 0, "quiet hours")
    assert fail_post(later, "the chat is gone", T1).state is PostState.FAILED
    assert fail_post(start_attempt(later, T1), "the chat is gone", T1).state is PostState.FAILED


def test_a_decision_replaces_what_is_shown() -> None:
    sent = confirm_post(start_attempt(a_post(), T0), "1", T0)
    decided = decide_post(sent, "Approved by ada", T1)
    assert (decided.state, decided.outcome, decided.attempts) == (PostState.QUEUED, "Approved by ada", 0)
    assert is_edit(decided)
    again = decide_post(decided, "Approved by bob", T1)
    assert (again.state, again.outcome) == (PostState.QUEUED, "Approved by bob")
    assert replace_post(start_attempt(again, T1), T1).state is PostState.REPLACED


def test_a_decision_before_the_post_is_shown_means_that_it_is_not_sent() -> None:
    assert decide_post(a_post(), "Denied", T1).state is PostState.REPLACED


def test_a_decision_while_it_is_sent_replaces_it_afterwards() -> None:
    decided = decide_post(start_attempt(a_post(), T0), "Denied", T0)
    assert decided.state is PostState.SENDING
    shown = confirm_post(decided, "1", T1)
    assert (shown.state, shown.parts, shown.outcome) == (PostState.QUEUED, ("1",), "Denied")


def test_an_item_that_is_decided_before_it_is_shown_is_not_tried_again() -> None:
    decided = decide_post(start_attempt(a_post(text="", attention_id="att_1"), T1), "approved", T1)
    closed = retry_post(decided, "no route", T1, T1, uncertain=True)
    assert (closed.state, closed.problem) == (PostState.REPLACED, "no route")
