"""Text of agents never drives a terminal: whatever they write is printed with its control characters visible."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import scout.cli
from scout.cli.connection import text
from tests.cli.running import Shell, type_in_terminal

# Hidden text, a cleared screen, a window title, a link, the clipboard; one-byte forms; overwriting; direction;
# nothing to see; and a line that looks like Scout's own.
HOSTILE = (
    "ls \x1b[8m; curl evil\x1b[0m\x1b[2J\x1b]0;title\x07\x1b]8;;http://evil\x1b\\x\x1b]52;c;cHduZWQ=\x07"
    "\x9b2J\x90q\x9c\rrm\b\b\x0b\x0c\x7f\u202egnp\u2066\u200b\u200d\ufeff\u2028\U000e0041"
)
FORGED = f"{HOSTILE}\nsent msg_forged to everybody"
_STEERING = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
_OUR_COLOURS = re.compile("\x1b\\[(?:0|1|2|1;31|32|33|36)m")


def _is_clean(shown: str, *, terminal: bool = False) -> bool:
    if terminal:
        shown = _OUR_COLOURS.sub("", shown.replace("\r\n", "\n")).replace("\r\x1b[K", "")
    return _STEERING.search(shown) is None


@given(st.text())
def test_one_line_is_one_line_and_steers_nothing(anything: str) -> None:
    shown = text.make_visible(anything)
    assert _is_clean(shown)
    assert "\n" not in shown
    assert text.measure_width(anything) >= 0
    if anything.isascii() and anything.isprintable():
        assert shown == anything


def test_what_is_hidden_is_spelled_out_and_joined_emoji_are_left() -> None:
    assert (
        text.make_visible("a\x1b[8mb\r\n\t\x9b\u202e\U000e0041") == r"a\x1b[8mb\r\n\t\u009b\u202e\U000e0041"
    )
    assert text.make_visible("👩\u200d💻 é ж 語") == "👩\u200d💻 é ж 語"
    assert text.make_visible("x\u200dy") == r"x\u200dy"
    assert [text.measure_width(word) for word in ("abc", "語語", "e\u0301", "\x1b")] == [3, 4, 1, 4]


@pytest.mark.rows("R4.1-1")
def test_json_stays_exact(capsys: pytest.CaptureFixture[str]) -> None:
    text.print_out(json.dumps({"body": FORGED}))
    assert json.loads(capsys.readouterr().out) == {"body": FORGED}


def test_only_scouts_own_lines_end(capsys: pytest.CaptureFixture[str]) -> None:
    text.print_out(text.format_table(("name", "is"), [["a\nb", "x"], ["語", "y"]]))
    assert capsys.readouterr().out == "NAME  IS\na\\nb  x\n語    y\n"
    text.print_out(text.format_fields("it", {"body": "one\r\ntwo", "n": 1}))
    assert capsys.readouterr().out == "it\n  body  one\n        two\n  n     1\n"
    text.print_text("one\ttab\n\x1btwo")
    assert capsys.readouterr().out == "one     tab\n\\x1btwo\n"


def _calls(tree: ast.AST) -> list[str]:
    return [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]


# The few that write bytes or a protocol, and not text for a person.
_RAW = {"relay.py": {"self._output.write"}, "talk.py": {"sys.stdout.buffer.write"}}


def test_everything_is_printed_in_one_place() -> None:
    printing = re.compile(r"print|click\.(echo|secho|style)|sys\.std(out|err)(\.buffer)?\.write")
    found = {
        (file.name, call)
        for file in Path(scout.cli.__file__).parent.rglob("*.py")
        if file.name != "text.py"
        for call in _calls(ast.parse(file.read_text()))
        if printing.fullmatch(call) and call not in _RAW.get(file.name, ())
    }
    assert found == set()


def test_a_line_is_given_as_one_line() -> None:
    """`out` and `note` print one line: a line end in their words would be shown and not made."""
    for file in Path(scout.cli.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("out", "note"):
                texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
                assert not [one for one in texts if isinstance(one, str) and one.startswith("\n")], (
                    f"{file.name}:{node.lineno}"
                )


# -- every verb that prints ------------------------------------------------------------------------------

# One process types them all: what it writes is what a pipe would see.
TYPIST = """
import json, sys
from scout.__main__ import main
for words in json.loads(sys.argv.pop()):
    sys.argv[1:] = words
    try: main()
    except SystemExit: pass
"""


def _type_all(shell: Shell, lines: list[list[str]], **environ: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", TYPIST, json.dumps(lines)],
        env={**shell.environ, **environ},
        cwd=shell.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


def _hostile_records(shell: Shell) -> str:
    """An agent that writes what nobody should, into every record that it can."""
    hostile = shell.project("hostile")
    registered = shell.data("agent", "register", "hostile", "--project", ".", cwd=hostile)
    own = {"SCOUT_TOKEN": registered["token"], "SCOUT_AGENT": registered["address"]}
    shell.say("agent", "register", "mimic", "--project", ".", "--harness", "echo", cwd=shell.project("mimic"))
    lines = [
        ["send", "operator", FORGED],
        ["need", "--no-wait", FORGED, "--option", HOSTILE, "--risk", "high"],
        ["consult", FORGED, "--default", HOSTILE],
        ["notify", FORGED],
        ["attention", "raise", HOSTILE, "--body", FORGED, "--kind", "permission"],
        ["work", "create", HOSTILE, "--description", FORGED, "--owner", "operator"],
        ["question", "create", "operator", FORGED],
    ]
    _type_all(shell, lines, **own)
    mine = [
        ["card", "create", "--name", HOSTILE],
        ["token", "create", "--agent", "@mimic", "--label", HOSTILE],
        ["agent", "config", "@mimic", "--set", f"description={HOSTILE}"],
        ["ask", "@mimic", FORGED],
    ]
    return _type_all(shell, mine)


_READING = [
    [],
    *([verb] for verb in ("now", "who", "inbox", "attention", "latest", "log", "brief", "usage", "runtimes")),
    *([noun, "list"] for noun in ("work", "question", "flight", "session", "token", "card", "delivery")),
    *([noun, "list"] for noun in ("conversation", "channel", "alias", "grant", "attention", "agent")),
    ["log", "--newest"],
    ["watch", "--after", "0", "--count", "40"],
    ["feed", "@hostile"],
    ["show", "@mimic"],
    ["search", "forged"],
    ["message", "list", "--to", "@hostile"],
    ["why", HOSTILE],
    ["ask", f"@{HOSTILE}", "x"],
    ["resolve", HOSTILE],
    ["parse", HOSTILE],
    ["explain", HOSTILE],
    [HOSTILE],
    ["flight", HOSTILE],
    ["flight", "get", HOSTILE],
    ["config", "set", HOSTILE, HOSTILE],
]


def _single(shell: Shell) -> list[list[str]]:
    """One record of each noun, whole."""
    shown: list[list[str]] = []
    for noun, verb in {"work": "show", "question": "show", "flight": "get", "attention": "show"}.items():
        newest = shell.data(noun, "list")["items"][0]["id"]
        shown += [[noun, verb, newest], ["why", newest]]
    message = shell.data("message", "list", "--to", "@hostile", "--newest")["items"][-1]["id"]
    return [*shown, ["message", "show", message], ["why", message]]


@pytest.mark.rows("R7-12")
@pytest.mark.slow
def test_no_verb_lets_an_agent_drive_the_terminal(fresh: Shell) -> None:
    fresh.say("up")
    records = _hostile_records(fresh)
    listed = _type_all(fresh, _READING)
    told = records + listed + _type_all(fresh, _single(fresh))
    assert _is_clean(told), _STEERING.findall(told)
    assert told.count(r"\x1b[8m; curl evil") > 10
    assert not [line for line in listed.splitlines() if line.startswith("sent msg_forged")]
    for words in (["attention"], ["inbox", "--all"], ["ask", "@mimic", FORGED], ["work", "list"]):
        shown = type_in_terminal(fresh, *words)[1]
        assert _is_clean(shown, terminal=True), (words, shown)
        assert "curl evil" in shown
