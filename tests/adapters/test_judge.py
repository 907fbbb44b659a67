"""What a program in a pane does, judged from recorded screens of the real programs and from their reports."""

import json
import os
from pathlib import Path

import pytest

from scout.adapters.process.process_table import ProcessId, list_processes
from scout.adapters.tmux.hooks import HookFile, HookReport, runs_below
from scout.adapters.tmux.judge import Evidence, judge
from scout.adapters.tmux.pane import Shown
from scout.adapters.tmux.programs import (
    PROGRAMS,
    find_known_name,
    is_input_empty,
    read_answer,
    read_body,
    read_draft,
    read_progress,
)
from scout.adapters.tmux.screen import split_lines
from scout.model.endpoint import ProgramState

RECORDED = Path(__file__).parents[1] / "data" / "harness" / "tmux"
CLAUDE, CODEX = "claude-2.1.325", "codex-0.166.0"
QUIET, HEIGHT = 2.0, 50
IDLE, WORKING, WAITING, UNKNOWN = (
    ProgramState.IDLE,
    ProgramState.WORKING,
    ProgramState.WAITING,
    ProgramState.UNKNOWN,
)


def read_screen(name: str) -> Shown:
    """A recorded screen; its first line has the place of the cursor."""
    head, _, text = (RECORDED / f"{name}.screen").read_text().partition("\n")
    x, y = head.split(" ")[0].split(",")
    rows = text.split("\n")[:-1]
    return Shown(split_lines(text), tuple(rows[-HEIGHT:]), (int(x), int(y)))


def judge_screen(
    name: str, still: float, event: str = "", last: ProgramState = ProgramState.UNKNOWN
) -> ProgramState:
    report = HookReport(event=event, process=(1, "1")) if event else None
    program = PROGRAMS[name.partition("-")[0]]
    return judge(Evidence(program, read_screen(name), still, report, last), QUIET)


@pytest.mark.parametrize(
    ("screen", "still", "event", "does"),
    [
        (f"{CLAUDE}-ready", 2, "", IDLE),
        (f"{CLAUDE}-ready", 1, "", UNKNOWN),  # one look at a prompt is not enough
        (f"{CLAUDE}-ready", 1, "stop", IDLE),  # the program itself says that its turn has ended
        (f"{CLAUDE}-ready", 8, "prompt_submit", WORKING),  # it says that it works, whatever the screen shows
        (f"{CLAUDE}-ready", 10, "tool_use", IDLE),  # interrupted: there is no report of that
        (f"{CLAUDE}-working", 60, "", WORKING),
        (f"{CLAUDE}-working", 60, "stop", WORKING),  # another turn began
        (f"{CLAUDE}-working-draft", 60, "", WORKING),  # a person types; the footer says nothing then
        (f"{CLAUDE}-asks", 1, "", WAITING),
        (f"{CLAUDE}-asks", 0, "permission_request", WAITING),
        (f"{CLAUDE}-asks", 0, "", UNKNOWN),
        (f"{CODEX}-idle", 2, "", IDLE),
        (f"{CODEX}-answered", 2, "stop", IDLE),
        (f"{CODEX}-failed", 10, "prompt_submit", IDLE),
        (f"{CODEX}-working", 60, "", WORKING),
        (f"{CODEX}-permission", 1, "prompt_submit", WAITING),
        (f"{CODEX}-permission", 0, "tool_use", WORKING),
        (f"{CODEX}-draft", 2, "", IDLE),
    ],
)
def test_evidence_decides(screen: str, still: float, event: str, does: ProgramState) -> None:
    assert judge_screen(screen, still, event) is does


@pytest.mark.parametrize("last", [IDLE, WORKING])
def test_until_there_is_more_evidence_the_last_state_counts(last: ProgramState) -> None:
    assert judge_screen(f"{CLAUDE}-ready", 1, last=last) is last
    assert judge_screen(f"{CLAUDE}-ready", 1, last=WAITING) is UNKNOWN  # the question is gone


def test_a_screen_that_nobody_knows_is_unknown() -> None:
    pager = Shown(("a page", "(END)"), ("a page", "(END)"), (5, 1))
    for program in (PROGRAMS["claude"], None):
        assert judge(Evidence(program, pager, 60, None, IDLE), QUIET) is UNKNOWN
    assert judge(Evidence(PROGRAMS["claude"], pager, 1, None, IDLE), QUIET) is UNKNOWN
    assert judge(Evidence(PROGRAMS["claude"], pager, 1, None, WORKING), QUIET) is WORKING


@pytest.mark.parametrize(
    ("line", "still", "does"),
    [("$", 2, IDLE), ("$", 1, WORKING), ("Go on? [y/N]", 1, WAITING), ("compiling", 60, UNKNOWN)],
)
def test_of_any_other_program_only_a_prompt_or_a_question_says_something(
    line: str, still: float, does: ProgramState
) -> None:
    shown = Shown((line,), (line,), (2, 0))
    assert judge(Evidence(None, shown, still, None, WORKING), QUIET) is does


# -- what else is read off these screens -------------------------------------------------------------


@pytest.mark.parametrize(
    ("screen", "empty", "draft"),
    [
        (f"{CLAUDE}-ready", True, ""),
        (f"{CLAUDE}-restored", False, "stall <<stall 30>>"),
        (f"{CLAUDE}-asks", None, ""),
        (f"{CODEX}-idle", True, "Ask Codex to do anything"),
        (f"{CODEX}-draft", False, "half typed"),
        (f"{CODEX}-permission", None, ""),
    ],
)
def test_a_prompt_is_typed_only_into_an_empty_input_line(screen: str, empty: bool | None, draft: str) -> None:
    program, shown = PROGRAMS[screen.partition("-")[0]], read_screen(screen)
    assert is_input_empty(program, shown) is empty
    assert read_draft(program, shown) == draft


def test_a_status_line_with_a_clock_does_not_look_like_work() -> None:
    shown = read_screen(f"{CLAUDE}-ready")
    later = shown._replace(visible=(*shown.visible[:-1], "  12:31"))
    assert read_body(PROGRAMS["claude"], shown) == read_body(PROGRAMS["claude"], later)
    assert read_body(None, shown) != read_body(None, later)


def test_a_mark_that_blinks_beside_a_question_does_not_look_like_work() -> None:
    shown = read_screen(f"{CLAUDE}-asks")
    row = next(at for at, line in enumerate(shown.visible) if line[1:].startswith((" Making", " Running")))
    blinks = [shown._replace(visible=_put(shown.visible, row, mark)) for mark in ("●", " ")]
    assert read_body(PROGRAMS["claude"], blinks[0]) == read_body(PROGRAMS["claude"], blinks[1])


def _put(lines: tuple[str, ...], row: int, mark: str) -> tuple[str, ...]:
    return (*lines[:row], f"{mark}{lines[row][1:]}", *lines[row + 1 :])


def test_the_answer_and_the_progress_on_a_screen() -> None:
    assert read_answer(PROGRAMS["codex"], read_screen(f"{CODEX}-answered")) == "done slowly"
    failed = read_answer(PROGRAMS["codex"], read_screen(f"{CODEX}-failed"))
    assert failed.startswith("■ ")
    assert PROGRAMS["codex"].failed.match(failed)
    assert read_progress(PROGRAMS["codex"], read_screen(f"{CODEX}-working")) == "Working"
    assert read_progress(PROGRAMS["claude"], read_screen(f"{CLAUDE}-working")).endswith("…")
    assert read_progress(PROGRAMS["claude"], read_screen(f"{CLAUDE}-ready")) == ""
    assert read_progress(None, Shown(("a", "b", ""), (), (0, 0))) == "b"


def test_a_program_is_known_by_any_word_of_its_command() -> None:
    assert find_known_name(("env", "A=1", "/opt/bin/claude", "--continue")) == "claude"
    assert find_known_name(("/bin/bash", "-l")) == "bash"
    assert find_known_name(()) == ""


# -- reports -----------------------------------------------------------------------------------------


def test_reports_are_read_in_order_and_what_is_no_report_is_left_out(tmp_path: Path) -> None:
    file = HookFile(tmp_path)
    assert (file.read(), file.size) == ([], 0)
    lines = [{"event": event, "pid": 7, "started": "9", "text": "é"} for event in ("prompt_submit", "stop")]
    text = f"{json.dumps(lines[0])}\nno JSON\n[1]\n{{}}\n{json.dumps(lines[1])}\n{{"
    file.path.write_text(text)
    first, second = file.read()
    assert (first.event, second.event, second.text, second.process) == (
        "prompt_submit",
        "stop",
        "é",
        (7, "9"),
    )
    assert first.number < second.number < file.size
    file.trim()
    assert len(file.read()) == 2
    file.path.write_text(text + "x" * 2_000_000)
    file.trim()
    assert file.size == 0
    file.forget()
    assert not file.path.exists()


def test_only_what_runs_in_the_pane_reports_for_it() -> None:
    me, parent = list_processes()[os.getpid()].identity, list_processes()[os.getppid()].identity
    assert runs_below(me, me)
    assert runs_below(me, parent)
    assert not runs_below(parent, me)
    assert not runs_below((me.pid, "0"), me)
    assert not runs_below((-1, "0"), ProcessId(1, "0"))
