import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.ids import parse_prefix
from scout.base.refusal import BadRequest, Refused
from scout.model.conversation import (
    BODY_LIMIT,
    Attachment,
    ConversationKind,
    MessageKind,
    SoftMentions,
    advance_cursor,
    archive_conversation,
    check_body,
    check_kind,
    derive_broadcast_id,
    derive_channel_id,
    derive_dm_id,
    derive_member_id,
    derive_thread_id,
    join,
    leave,
    make_storable,
    mute,
    redact,
    set_policy,
    shorten,
)
from scout.model.problems.request import TooLarge
from tests.model.samples import ALICE, BOB, T0, T1, a_conversation, a_member, a_message


@given(st.text(), st.text())
def test_a_pair_has_one_dm_whoever_writes_first(one: str, other: str) -> None:
    assert derive_dm_id(one, other) == derive_dm_id(other, one)
    assert parse_prefix(derive_dm_id(one, other)) == "cnv"


def test_other_pairs_have_other_dms() -> None:
    assert (
        len(
            {
                derive_dm_id("a", "b"),
                derive_dm_id("a", "c"),
                derive_dm_id("a", "a"),
                derive_channel_id("a", "b"),
            }
        )
        == 4
    )


def test_these_ids_never_change_between_versions() -> None:
    assert derive_dm_id("b", "a") == "cnv_0feb4yhx0nhk59v52rcdw1xtsk"
    assert derive_channel_id("u1", "dev") == "cnv_2dtr69vz0zg70a02d8tcwggfg2"


def test_a_channel_is_its_owner_and_name() -> None:
    assert derive_channel_id("u1", "dev") == derive_channel_id("u1", "dev")
    assert (
        len({derive_channel_id("u1", "dev"), derive_channel_id("u2", "dev"), derive_channel_id("u1", "ops")})
        == 3
    )


def test_an_agent_is_once_in_a_conversation() -> None:
    assert derive_member_id("cnv_1", ALICE) == derive_member_id("cnv_1", ALICE)
    assert (
        len(
            {
                derive_member_id("cnv_1", ALICE),
                derive_member_id("cnv_1", BOB),
                derive_member_id("cnv_2", ALICE),
            }
        )
        == 3
    )
    assert parse_prefix(derive_member_id("cnv_1", ALICE)) == "mbr"


@given(st.text())
def test_a_body_is_kept_as_given(body: str) -> None:
    if "\0" in body:
        with pytest.raises(Refused):
            check_body(body)
    else:
        assert check_body(body) is body


@pytest.mark.parametrize(
    "body", ["", "  spaces \r\n\t", "e\u0301", "\ufeffbom", "x" * BODY_LIMIT, "é" * (BODY_LIMIT // 2)]
)
def test_a_body_may_be_any_text_up_to_256_kib(body: str) -> None:
    assert check_body(body) is body


@pytest.mark.parametrize("body", ["x" * (BODY_LIMIT + 1), "é" * (BODY_LIMIT // 2) + "x"])
def test_a_larger_body_is_refused_with_attaching_as_the_remedy(body: str) -> None:
    with pytest.raises(Refused) as refused:
        check_body(body)
    problem = refused.value.diagnostic
    assert isinstance(problem, TooLarge)
    assert (problem.size, problem.limit) == (262_145, 262_144)
    assert [remedy.operation for remedy in problem.remedies] == ["send"]
    assert "attachments" in problem.remedies[0].parameters


@pytest.mark.parametrize(
    ("body", "problem"), [("ab\0", "a NUL at character 2"), ("a\ud800", "a lone surrogate at character 1")]
)
def test_a_body_that_is_no_text_is_refused(body: str, problem: str) -> None:
    with pytest.raises(Refused) as refused:
        check_body(body)
    diagnostic = refused.value.diagnostic
    assert isinstance(diagnostic, BadRequest)
    assert diagnostic.problem.startswith(problem)
    assert diagnostic.remedies


@pytest.mark.parametrize("kind", [ConversationKind.DM, ConversationKind.BROADCAST])
def test_a_dm_or_broadcast_needs_nothing_more(kind: ConversationKind) -> None:
    conversation = a_conversation(kind=kind)
    assert check_kind(conversation) is conversation


def test_a_channel_needs_name_and_owner_and_a_thread_its_parent() -> None:
    for lacking in (
        a_conversation(kind=ConversationKind.CHANNEL, name="dev"),
        a_conversation(kind=ConversationKind.CHANNEL, owner="u1"),
        a_conversation(kind=ConversationKind.THREAD),
    ):
        with pytest.raises(Refused, match="needs"):
            check_kind(lacking)
    channel = a_conversation(kind=ConversationKind.CHANNEL, name="dev", owner="u1")
    thread = a_conversation(kind=ConversationKind.THREAD, parent_id=channel.id)
    assert (check_kind(channel), check_kind(thread)) == (channel, thread)


def test_a_policy_changes_only_what_is_given() -> None:
    loud = a_conversation(master_id=ALICE, quiet=True)
    changed = set_policy(loud, T1, seen=1, soft_mentions=SoftMentions.WAKE)
    assert (changed.master_id, changed.soft_mentions, changed.quiet) == (ALICE, SoftMentions.WAKE, True)
    again = set_policy(changed, T1, master_id=BOB, quiet=False)
    assert (again.master_id, again.soft_mentions, again.quiet) == (BOB, SoftMentions.WAKE, False)
    alone = set_policy(again, T1, no_master=True)
    assert (alone.master_id, alone.soft_mentions, alone.quiet) == (None, SoftMentions.WAKE, False)
    assert a_conversation().soft_mentions is SoftMentions.RECORD


def test_archiving_happens_once() -> None:
    archived = archive_conversation(a_conversation(), T1)
    assert (archived.archived_at, archived.revision) == (T1, 2)
    assert archive_conversation(archived, T1.plus(1)) is archived


def test_leaving_and_joining_keep_the_cursor() -> None:
    member = a_member(read_seq=5)
    assert join(member, T1) is member
    left = leave(member, T1)
    assert (left.left_at, left.read_seq) == (T1, 5)
    assert leave(left, T1.plus(1)) is left
    back = join(left, T1.plus(1))
    assert (back.left_at, back.read_seq, back.revision) == (None, 5, 3)


def test_muting_is_noted_once() -> None:
    muted = mute(a_member(), True, T1)
    assert (muted.muted, muted.revision) == (True, 2)
    assert mute(muted, True, T1) is muted
    assert mute(muted, False, T1).muted is False


@given(st.lists(st.integers(0, 50)))
def test_a_cursor_never_goes_back(seqs: list[int]) -> None:
    member = a_member()
    for seq in seqs:
        before = member.read_seq
        member = advance_cursor(member, seq, T1)
        assert member.read_seq == max(before, seq)
    assert member.revision == 1 + len({max(seqs[: n + 1]) for n in range(len(seqs))} - {0})


def test_a_message_has_a_kind_and_may_want_a_follow_up() -> None:
    message = a_message()
    assert (message.kind, message.follow_up) == (MessageKind.CHAT, False)
    assert {str(kind) for kind in MessageKind} == {"chat", "status", "final", "question", "answer"}


def test_redaction_takes_the_body_and_keeps_the_rest() -> None:
    file = Attachment(sha256="0" * 64, name="a.txt", size=3)
    gone = redact(a_message(mentions=("@hudson",), attachments=(file,)), T1)
    assert (gone.body, gone.attachments, gone.redacted_at) == ("", (), T1)
    assert (gone.mentions, gone.sender, gone.created_at) == (("@hudson",), ALICE, T0)


def test_broadcasts_and_threads_have_ids_of_their_own() -> None:
    assert (
        len(
            {
                derive_broadcast_id("me"),
                derive_broadcast_id("u1"),
                derive_thread_id("me"),
                derive_channel_id("me", "me"),
            }
        )
        == 4
    )
    assert {parse_prefix(derive_broadcast_id("me")), parse_prefix(derive_thread_id("msg_1"))} == {"cnv"}


@given(st.text(st.characters(codec=None), max_size=200))
def test_whatever_a_program_writes_can_be_stored(text: str) -> None:
    assert check_body(make_storable(text)) == make_storable(text)


def test_what_cannot_be_stored_is_made_visible() -> None:
    assert make_storable("important\0tail\udc80.") == "important␀tail�."
    assert make_storable("é 😀\n") == "é 😀\n"


@given(st.text(max_size=100), st.integers(0, 400))
def test_a_shortened_text_is_the_beginning_and_fits(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert text.startswith(short)
    assert len(short.encode()) <= limit
    assert short == text or len(text[: len(short) + 1].encode()) > limit
