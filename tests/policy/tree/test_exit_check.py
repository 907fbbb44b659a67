"""What an agent that stops is told: once, with the calls of its harness."""

import pytest
from msgspec.structs import replace

from scout.policy.limits import ExitCheck
from scout.policy.tree.exit_check import (
    ExitDecision,
    OpenObligations,
    OwedAnswer,
    OwedAsk,
    OwedWork,
    decide_exit,
    format_obligations,
)

OWED = OpenObligations(
    asks=(OwedAsk(flight_id="flt_1", message_id="msg_1", sender="@arc"),),
    questions=(OwedAnswer(question_id="qst_1", asker="@bo", body="Which\ncolour?"),),
    work=(OwedWork(work_item_id="wrk_1", title="x" * 100),),
    folder="/wood/.scout/worktrees/api",
    files=("a.txt", "b.txt"),
)


def test_every_obligation_is_named_with_its_call() -> None:
    assert format_obligations(OWED, "claude").splitlines() == [
        "Scout: before you stop, you still owe:",
        '- the answer to @arc (flt_1): `messages_reply {body, inReplyTo: "msg_1"}`',
        '- an answer to @bo, who asks: Which colour? `question_answer {questionId: "qst_1", answer}`',
        (
            f"- the work item wrk_1 ({'x' * 80}…): "
            '`work_update {workItemId: "wrk_1", state: "review", summary}`, '
            'or `work_update {workItemId: "wrk_1", state: "waiting", waitingOn}`'
        ),
        "- a commit of the changes in /wood/.scout/worktrees/api: a.txt, b.txt",
        "Settle these now, or mark work as waiting. If you cannot, stop again: this notice is sent once.",
    ]


def test_a_shell_gets_commands() -> None:
    text = format_obligations(OWED, "tmux")
    for call in (
        "`scout reply --to msg_1 TEXT`",
        "`scout question answer qst_1 TEXT`",
        "`scout work submit wrk_1 TEXT`",
        "`scout work wait wrk_1 --on actor --ref ADDRESS`",
    ):
        assert call in text


def test_many_files_are_counted() -> None:
    many = OpenObligations(folder="/w", files=tuple("abcdefg"), more_files=13)
    assert "a, b, c, d, e and 15 more" in format_obligations(many, "codex")


@pytest.mark.parametrize(("check", "blocks"), [("block", True), ("nudge", False)])
def test_the_setting_decides_whether_it_continues(check: ExitCheck, blocks: bool) -> None:
    decision = decide_exit(OWED, (), check, "claude")
    assert (decision.blocks, decision.told) == (blocks, ("flt_1", "qst_1", "wrk_1", "files"))
    assert decision.text == format_obligations(OWED, "claude")


def test_clean_says_nothing() -> None:
    assert decide_exit(OWED, (), "clean", "claude") == ExitDecision()


def test_the_same_obligations_are_told_once() -> None:
    told = decide_exit(OWED, (), "block", "claude").told
    assert decide_exit(OWED, told, "block", "claude") == ExitDecision(told=told)
    # Fewer are no news, and what was settled is forgotten.
    fewer = replace(OWED, asks=(), files=())
    assert decide_exit(fewer, told, "block", "claude") == ExitDecision(told=("qst_1", "wrk_1"))
    # Another one is.
    more = replace(OWED, work=(*OWED.work, OwedWork(work_item_id="wrk_2", title="new")))
    assert "wrk_2" in decide_exit(more, told, "block", "claude").text


def test_an_agent_that_owes_nothing_stops() -> None:
    assert decide_exit(OpenObligations(), ("wrk_1",), "block", "claude") == ExitDecision()
