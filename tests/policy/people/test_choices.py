"""Decisions from a chat: what is offered on each platform, and what a person's tap, reaction or reply means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.model.access.allowance import AllowanceScope
from scout.model.access.permission import build_observed_request, build_request
from scout.model.attention import Attention, AttentionKind, AttentionMove, ReturnPath, list_actions
from scout.model.people.chat import Button
from scout.model.people.chat_post import ChatChoice
from scout.policy.people.choices import (
    build_value,
    find_reaction,
    find_reply,
    list_choices,
    offer_choices,
    read_value,
    shorten_label,
    takes_reply,
)
from tests.model.samples import an_attention, ident

POST = ident("pst")


def an_item(
    kind: AttentionKind, *options: str, session: str | None = "ses_1", observed: bool = False
) -> Attention:
    wish = build_observed_request("rm", "") if observed else build_request("Bash", {"command": "npm test"})
    return an_attention(
        kind=kind,
        actions=list_actions(kind, options),
        return_path=ReturnPath(session_id=session),
        permission=wish if kind is AttentionKind.PERMISSION else None,
    )


def labels(choices: tuple[ChatChoice, ...]) -> list[str]:
    return [one.label for one in choices]


def test_a_permission_is_given_once_for_the_session_or_always() -> None:
    choices = list_choices(an_item(AttentionKind.PERMISSION))
    assert labels(choices) == ["Once", "This session", "Always", "Deny"]
    assert [one.scope for one in choices] == [None, AllowanceScope.SESSION, AllowanceScope.AGENT, None]
    assert [one.move for one in choices] == [AttentionMove.APPROVE] * 3 + [AttentionMove.DENY]
    assert labels(list_choices(an_item(AttentionKind.PERMISSION, session=None))) == ["Once", "Always", "Deny"]
    assert labels(list_choices(an_item(AttentionKind.PERMISSION, observed=True))) == ["Approve", "Deny"]


def test_options_are_answers_and_other_kinds_have_their_moves() -> None:
    choices = list_choices(an_item(AttentionKind.QUESTION, "red", "blue"))
    assert [(one.label, one.answer, one.word) for one in choices] == [
        ("red", "red", "1"),
        ("blue", "blue", "2"),
    ]
    many = list_choices(an_item(AttentionKind.QUESTION, *map(str, range(12))))
    assert [one.reaction for one in many][8:10] == ["9\ufe0f\u20e3", ""]
    assert list_choices(an_item(AttentionKind.QUESTION)) == ()
    assert takes_reply(an_item(AttentionKind.QUESTION))
    assert not takes_reply(an_item(AttentionKind.PERMISSION))


@pytest.mark.parametrize("kind", AttentionKind)
def test_every_choice_is_a_move_that_the_item_takes(kind: AttentionKind) -> None:
    for options in ((), ("red", "blue")):
        item = an_item(kind, *options)
        moves = {one.move for one in item.actions}
        assert {one.move for one in list_choices(item)} <= moves


def offer(
    choices: tuple[ChatChoice, ...], buttons: int, *, reactions: bool = False, replies: bool = False
) -> list[str]:
    made = offer_choices(POST, choices, buttons=buttons, label_limit=12, reactions=reactions, replies=replies)
    assert all(len(one.value.encode()) <= 64 and len(one.label) <= 12 for one in made.buttons)
    shown = made.buttons if buttons else ()
    assert [one.value for one in made.buttons if not shown] == [
        one.reaction for one in choices if one.reaction and reactions and not buttons
    ]
    return [*(f"[{one.label}]" for one in shown), *made.lines]


def test_what_has_no_button_can_be_typed_or_reacted() -> None:
    choices = list_choices(an_item(AttentionKind.PERMISSION))
    assert offer(choices, 8) == ["[Once]", "[This session]", "[Always]", "[Deny]"]
    assert offer(choices, 3) == ["[Once]", "[This session]", "[Deny]", "Reply always: Always"]
    assert offer(choices, 0, reactions=True) == ["👍 Once", "🔁 This session", "♾️ Always", "👎 Deny"]
    assert offer(choices, 1)[-1] == "Reply no: Deny"
    assert offer((), 3, replies=True) == ["Reply to this message to answer."]
    long = list_choices(an_item(AttentionKind.QUESTION, "a very long option", "b"))
    assert offer(long, 3) == ["[a very long…]", "[b]", "Reply 1: a very long option"]
    many = list_choices(an_item(AttentionKind.QUESTION, *(f"option {number}" for number in range(11))))
    assert offer(many, 0, reactions=True)[8:] == [
        "9\ufe0f\u20e3 option 8",
        "Reply 10: option 9",
        "Reply 11: option 10",
    ]
    assert shorten_label("abcdef", 4) == "abc…"


@given(st.integers(0, 999))
def test_a_value_names_the_post_and_the_choice(index: int) -> None:
    assert read_value(build_value(POST, index)) == (POST, index)


@pytest.mark.parametrize("value", ["", "x", "pst_1:", "pst_1:x", "pst_1:99999", "👍"])
def test_other_values_are_nothing(value: str) -> None:
    assert read_value(value) is None


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("once", "Once"), ("Yes!", "Once"), ("y", "Once"), ("OK.", "Once"), ("👍🏽", "Once"), ("session", "This session"),
        ("this session", "This session"), ("Always", "Always"), ("no", "Deny"), ("deny", "Deny"), ("N", "Deny"),
        ("maybe", None), ("", None), ("yes please delete it", None),
    ],
)  # fmt: skip
def test_a_reply_names_a_choice_or_none(text: str, label: str | None) -> None:
    found = find_reply(list_choices(an_item(AttentionKind.PERMISSION)), text)
    assert (found.label if found else None) == label


def test_a_number_answers_and_there_may_be_nothing_to_approve_or_deny() -> None:
    choices = list_choices(an_item(AttentionKind.QUESTION, "red", "blue"))
    found = find_reply(choices, "2")
    assert found is not None
    assert found.answer == "blue"
    assert find_reply(choices, "yes") is None
    assert find_reply(choices, "no") is None


def test_a_reaction_counts_in_any_skin_and_variant() -> None:
    choices = list_choices(an_item(AttentionKind.PERMISSION))
    assert [find_reaction(choices, sign) for sign in ("👍", "👍🏽", "♾", "👎\ufe0f", "❤️")] == [
        choices[0],
        choices[0],
        choices[2],
        choices[3],
        None,
    ]
    assert Button(label="a", value=build_value(POST, 1)).value.startswith("pst_")


def test_labels_that_would_look_the_same_on_buttons_begin_with_their_words() -> None:
    long = [f"deploy the new version to the {place} cluster" for place in ("northern", "southern")]
    offered = offer_choices(
        POST,
        list_choices(an_item(AttentionKind.QUESTION, *long)),
        buttons=4,
        label_limit=20,
        reactions=False,
        replies=True,
    )
    shown = [one.label for one in offered.buttons]
    assert len(set(shown)) == len(shown)
