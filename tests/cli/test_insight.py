"""Why, brief, usage and the review of stored decisions, typed at a real daemon; and their plots and lines."""

import json

import pytest

from scout.cli.output import insight
from scout.cli.output.results import show
from tests.cli.running import Shell


def account(tokens: int, estimated: int = 0, **counters: int) -> dict[str, object]:
    totals = {
        "reports": 1,
        "promptTokens": tokens,
        "completionTokens": 0,
        "totalTokens": tokens,
        "estimatedTokens": estimated,
    }
    return {"totals": totals, "exactTokens": tokens - estimated, "counters": counters}


REPORT = {
    "since": "2026-11-14T00:00:00.000Z",
    "until": "2026-11-16T09:00:00.000Z",
    "by": "day",
    "agent": None,
    "totals": {
        "harness_execution": account(2_500_000, 500_000),
        "protocol_overhead": account(1500, 1500, dispatchAttempts=3),
    },
    "trend": [
        {
            "key": f"2026-11-{day}",
            "harnessExecution": account(execution),
            "protocolOverhead": account(overhead, overhead),
        }
        for day, execution, overhead in ((14, 500_000, 1500), (15, 0, 0), (16, 2_000_000, 0))
    ],
}


def show_lines(capsys: pytest.CaptureFixture[str], operation: str, answer: object) -> list[str]:
    show(operation, answer)
    return capsys.readouterr().out.splitlines()


@pytest.mark.rows("R3.7-9")
def test_both_ledgers_are_plotted_each_by_its_own_measure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = show_lines(capsys, "usage", REPORT)
    assert lines == [
        "usage from 2026-11-14 to 2026-11-16, by day",
        "harness execution: 2.5M tokens in 1 reports, 500.0k of them estimated",
        "  2026-11-14  500.0k  █████",
        "  2026-11-16    2.0M  ██████████████████",
        "protocol overhead: 1.5k tokens in 1 reports, 1.5k of them estimated, dispatch attempts 3",
        "  2026-11-14    1.5k  ██████████████████",
    ]
    assert max(map(len, lines[2:4])) <= 40
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("COLUMNS", "10")
    assert "  2026-11-16    2.0M  ##################" in show_lines(capsys, "usage", REPORT)


def test_without_tokens_there_is_no_plot(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = {
        **REPORT,
        "agent": "@arc",
        "totals": {"harness_execution": account(0), "protocol_overhead": account(0)},
        "trend": [],
    }
    assert show_lines(capsys, "usage", nothing) == [
        "usage of @arc from 2026-11-14 to 2026-11-16, by day",
        "harness execution: 0 tokens in 1 reports",
        "protocol overhead: 0 tokens in 1 reports",
    ]
    assert insight.PRINTERS.keys() == {"why", "brief", "usage", "pause", "resume"}


def test_a_brief_is_short_however_much_is_owed(capsys: pytest.CaptureFixture[str]) -> None:
    flight = {
        "id": "flt_1",
        "state": "running",
        "requesterAddress": "@bow",
        "targetAddress": "@arc",
        "createdAt": "2026-11-16T09:00:00.000Z",
        "body": "Review this.\nAll of it.",
    }
    question = {"id": "qst_1", "askerAddress": "@bow", "body": "Which port?", "answer": "7432"}
    item = {"id": "wrk_1", "state": "open", "title": "Fix it"}
    need = {"id": "att_1", "title": "May I?"}
    step = {
        "operation": "flight.complete",
        "parameters": {"flightId": "flt_1", "output": "…"},
        "why": "@bow waits",
    }
    told = {
        "me": {
            "address": "@arc",
            "path": "/ada/agent/arc",
            "role": "dev",
            "project": "/p",
            "sessionId": "ses_1",
        },
        "flights": [flight] * 20,
        "questions": [question] * 20,
        "work": [item] * 20,
        "answered": [question] * 20,
        "asked": [flight] * 20,
        "awaited": [],
        "needs": [need] * 20,
        "waitingForMe": ["@bow", "@eve"],
        "unread": 7,
        "next": [step] * 5,
    }
    lines = show_lines(capsys, "brief", told)
    assert len(lines) == 25
    assert lines[0] == "You are @arc (/ada/agent/arc), role dev, project /p, session ses_1"
    assert lines[1].startswith("asked of you   flt_1  running  @bow, ")
    assert lines[1].endswith(": Review this.")
    assert lines[3].endswith(": Review this.  (and 17 more)")
    assert "waits for you: @bow, @eve; unread: 7" in lines
    assert lines[-1] == "next: scout flight complete flt_1 '…'  # @bow waits"


@pytest.mark.slow
@pytest.mark.rows("R3.7-9")
def test_an_ask_is_explained_briefed_and_accounted_for(shell: Shell) -> None:
    register = ("agent", "register", "weigher", "--command", "wc -c", "--project", ".")
    shell.say(*register, cwd=shell.project("weigher"))
    asked = shell.data("ask", "@weigher", "how long", "--wait", "20")
    told = shell.say("why", asked["flightId"])
    assert "@weigher" in told
    assert "was woken: it is the explicit target. The flight is completed." in told
    assert "decided  wake" in told
    assert "flight.completed" in told
    assert shell.data("why", asked["askId"])["decisions"][0]["differs"] == ""
    assert shell.type("why", "flt_none").returncode == 3
    own = {"SCOUT_TOKEN": shell.data("token", "create", "--agent", "@weigher")["secret"]}
    brief = shell.say("brief", **own)
    assert brief.startswith("You are @weigher (")
    assert "you owe nothing" in brief
    assert len(brief.splitlines()) <= 25
    report = shell.data("usage", "--agent", "@weigher", "--days", "2")
    assert report["totals"]["protocol_overhead"]["counters"] == {"dispatchAttempts": 1}
    assert "tokens in 1 reports" in shell.say("usage", "--by", "harness", "--agent", "@weigher")
    spent = ("usage", "report", "--prompt-tokens", "40", "--counters", "wakeFailures=1")
    assert shell.data(*spent, **own)["counters"] == {"wakeFailures": 1}
    assert shell.type("usage", "--days", "0").returncode == 2


@pytest.mark.slow
def test_stored_decisions_are_made_again_without_a_daemon(shell: Shell) -> None:
    shell.data("ask", "@arc", "hello", "--wait", "20")
    assert shell.say("verify", "--policy").endswith("clean: today's rules make the same decisions\n")
    report = json.loads(shell.say("verify", "--policy", "--json"))
    assert (report["clean"], report["differences"]) == (True, [])
    assert report["decisions"] >= 1
