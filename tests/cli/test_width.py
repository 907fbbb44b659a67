"""Every list fits the terminal: one item, one line, never longer than the terminal is wide."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from scout.cli.connection import text
from tests.cli.running import Shell, read_terminal
from tests.cli.test_clean_text import TYPIST

_LONG = "語 a word that goes on " * 12
_COLOURS = re.compile("\x1b\\[[0-9;]*m")

LISTS: tuple[list[str], ...] = (
    [],
    *([verb] for verb in ("now", "who", "inbox", "latest", "log", "watch --count 20 --after 0", "config")),
    *([noun] for noun in ("work", "question", "flight", "session", "token", "card", "delivery", "grant")),
    *([noun] for noun in ("conversation", "channel", "alias", "agent", "node", "runtimes", "message")),
    ["feed", "@long-named-agent-for-the-test"],
    ["search", "word"],
    ["help", "all"],
    ["--help"],
    ["usage"],
)


def _fill(shell: Shell) -> None:
    """A little of everything, and all of it long."""
    name = "long-named-agent-for-the-test"
    project = shell.project(name)
    shell.say("agent", "register", name, "--project", ".", "--harness", "echo", cwd=project)
    lines = [
        ["ask", f"@{name}", _LONG],
        ["ask", f"@{name}", "!hang", "--no-wait"],
        ["send", f"@{name}", _LONG],
        ["work", "create", _LONG, "--owner", f"@{name}"],
        ["question", "create", f"@{name}", _LONG],
        ["need", "--no-wait", _LONG],
        ["channel", "create", "a-channel-with-a-long-name", "--member", f"@{name}"],
        ["alias", "set", "another-name-of-some-length", f"@{name}"],
        ["card", "create", "--name", _LONG],
        ["token", "create", "--agent", f"@{name}", "--label", _LONG],
        ["grant", "add", "read", "--agent", f"@{name}", "--channel", "a-channel-with-a-long-name"],
    ]
    done = subprocess.run(
        [sys.executable, "-c", TYPIST, json.dumps(lines)],
        env=shell.environ,
        cwd=project,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr


def _show_all(shell: Shell, columns: int) -> list[str]:
    """What a terminal of so many columns is sent by every list, in one process."""
    near, far = pty.openpty()
    fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    words = [" ".join(one).split() for one in LISTS]
    process = subprocess.Popen(
        [sys.executable, "-c", TYPIST, json.dumps(words)],
        env={**shell.environ, "TERM": "xterm"},
        cwd=shell.folder,
        stdin=far,
        stdout=far,
        stderr=far,
    )
    os.close(far)
    shown = b""
    try:
        while data := read_terminal(near):
            shown += data
    finally:
        os.close(near)
        process.wait(60)
    return _COLOURS.sub("", shown.decode()).replace("\r\n", "\n").split("\n")


@pytest.mark.rows("R4.1-10", "R4.1-22")
@pytest.mark.slow
def test_no_list_is_wider_than_the_terminal(fresh: Shell) -> None:
    fresh.say("up")
    _fill(fresh)
    for columns in (80, 60):
        lines = _show_all(fresh, columns)
        assert len(lines) > 150
        assert [line for line in lines if text.measure_width(line) > columns and "scout " not in line] == []
    piped = fresh.say("flight", "list")
    assert " ".join(_LONG.split()) in piped  # nothing is cut in a pipe
    narrow = fresh.say("flight", "list", COLUMNS="70").splitlines()
    assert max(map(text.measure_width, narrow)) <= 70


# -- the parts --------------------------------------------------------------------------------------


def test_a_text_is_cut_by_what_it_takes_on_the_screen() -> None:
    assert text.cut("abcdef", 4) == "abc…"
    assert text.cut("語語語", 4) == "語…"
    assert text.cut("abc", 3) == "abc"
    assert text.cut("abc", None) == "abc"
    assert text.measure_width(text.cut("e\u0301" * 9, 5)) == 5


def test_ids_are_short_and_longer_where_they_would_be_the_same() -> None:
    one, two, other = "flt_01m7k485naef3a55", "flt_01m7k485nbef3a55", "flt_01m7k485nbef3b55"
    assert text.shorten_id(one) == "flt_01m7k485na"
    assert text.shorten_ids([one, two, other]) == {
        one: "flt_01m7k485na",
        two: "flt_01m7k485nbef3a",
        other: "flt_01m7k485nbef3b",
    }


def test_the_last_column_gives_way_first_and_ids_never(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    rows = [["flt_01m7k485na", "@arc", "x" * 60], ["flt_01m7k485nb", "@a", None]]
    text.print_out(text.format_table(("flight", "to", "asked"), rows))
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "FLIGHT          TO    ASKED",
        "flt_01m7k485na  @arc  xxxxxxxxxxxxxxxxx…",
        "flt_01m7k485nb  @a    -",
    ]


def test_times_are_those_of_a_clock_here(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        now = 1_800_000_000.0  # 2027-01-15T08:00:00Z, which is 13:30 there
        assert text.format_local_time("2027-01-15T07:00:00Z", now) == "12:30"
        assert text.format_local_time("2027-01-14T07:00:00Z", now) == "Jan 14 12:30"
        assert text.format_local_time("2026-12-31T07:00:00Z", now) == "2026 Dec 31 12:30"
        assert text.format_local_time(None) == "-"
        assert [
            text.format_age("2027-01-15T07:00:00Z", now),
            text.format_age("2027-01-15T08:00:00Z", now),
        ] == [
            "1h ago",
            "now",
        ]
    finally:
        monkeypatch.undo()
        time.tzset()
