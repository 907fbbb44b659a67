"""Every command: it exists, has help with examples, takes what the table says, and leads to the next one."""

import json
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from scout.base.refusal import Family
from scout.cli.connection.catalogue import COMMANDS, GROUPS, OPERATIONS_OF, is_command
from scout.cli.connection.refusal import LOCAL_CODES, RefusalError, get_exit_code, list_tries
from scout.cli.main import scout
from scout.cli.operations.build import build_command
from scout.cli.operations.examples import EXAMPLES
from scout.cli.operations.table import FILES, find_operation
from scout.protocol.operations import OPERATIONS


def run(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(scout, words, input=stdin)


def paths() -> Iterator[tuple[str, ...]]:
    for name in COMMANDS:
        yield (name,)
        yield from ((name, word) for word in GROUPS.get(name, ()))


@pytest.mark.rows("R4.1-1")
@pytest.mark.parametrize("path", list(paths()), ids=" ".join)
def test_help_ends_with_examples_and_needs_no_daemon(path: tuple[str, ...]) -> None:
    shown = run(*path, "--help")
    assert (shown.exit_code, shown.stderr) == (0, "")
    _, _, examples = shown.stdout.partition("Examples:")
    assert f"scout {path[0]}" in examples or "scout " in examples
    own_output = path[0] in ("hook", "mcp", "statusline")
    assert "--json" in shown.stdout or own_output or path in [(name,) for name in GROUPS]


def test_every_operation_of_the_daemon_has_a_command() -> None:
    # An ask is shown by its flights, looking marks the look, `config set` reloads the settings, and Ctrl-C
    # stops a check.
    hidden = {"ask.show", "now.seen", "settings.reload", "runtimes.stop"}
    missing = {name for name, row in OPERATIONS.items() if row.request is not None and not is_command(name)}
    assert missing == hidden


def test_examples_are_of_commands_that_exist() -> None:
    words = {".".join(path) for path in paths()}
    assert set(EXAMPLES) <= words
    for lines in EXAMPLES.values():
        assert all("scout" in line for line in lines)


@pytest.mark.parametrize("operation", [name for name, row in OPERATIONS.items() if row.request is not None])
def test_every_parameter_can_be_given(operation: str) -> None:
    command = build_command(operation, tuple(operation.split(".")))
    given = {option for one in command.params for option in one.opts}
    for parameter in OPERATIONS[operation].parameters:
        assert (parameter.name if parameter.positional else parameter.option) in given


def test_aliases_of_commands_name_operations() -> None:
    assert set(OPERATIONS_OF.values()) <= set(OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_row_of_an_operation_is_the_same_wherever_it_is_found(operation: str) -> None:
    assert find_operation(operation) == OPERATIONS[operation]


@pytest.mark.parametrize("name", ["nonsense", "work.nonsense", ""])
def test_an_operation_that_does_not_exist_has_no_row(name: str) -> None:
    with pytest.raises(KeyError):
        find_operation(name)


@pytest.mark.parametrize(
    "words", ["work list --help", "agent retire --help", "down --help", "token create --help"]
)
def test_a_command_imports_only_the_requests_of_its_noun(words: str) -> None:
    code = "import sys; from scout.__main__ import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code, *words.split()], capture_output=True, text=True, check=True
    )
    loaded = {*done.stderr.split()}
    assert not loaded & {"scout.protocol.operations", "scout.model.events.event_types"}
    files = {f"scout.protocol.{file}" for file in FILES.values()}
    assert len(files & loaded) < 5, files & loaded


# -- without a daemon ---------------------------------------------------------------------------


@pytest.mark.rows("R0-35", "R4.1-15")
@pytest.mark.parametrize(
    "words",
    [
        ("send", "@arc", "hi"),
        ("ask", "@arc", "hi"),
        ("@arc", "hi"),
        ("who",),
        ("inbox",),
        ("inbox", "claim"),
        ("flight", "get", "flt_1"),
        ("status",),
        (),
    ],
    ids=" ".join,
)
def test_autostart_can_be_turned_off_and_the_refusal_says_what_to_do(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/token").write_text("secret")
    result = run(*words)
    assert result.exit_code == Family.UNREACHABLE.exit_code == LOCAL_CODES["not_running"][0]
    assert result.stderr.startswith("not_running: no daemon ")
    assert result.stderr.endswith("\ntry: scout up\n")
    assert not (tmp_path / "home/lock").exists()


def test_a_refusal_as_data() -> None:
    result = run("status", "--json")
    told = json.loads(result.stdout)["error"]
    assert (told["code"], told["remedies"][0]["command"]) == ("not_running", "scout up")


def test_a_local_code_is_explained_too() -> None:
    assert "scout up" in run("explain", "not_running").stdout
    assert json.loads(run("explain", "not_running", "--json").stdout)["exitCode"] == 5


@pytest.mark.parametrize("mark", ["SCOUT_SESSION", "SCOUT_AGENT", "CLAUDECODE", "CODEX_SANDBOX"])
def test_inside_a_session_the_operator_is_never_spoken_for(
    mark: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/token").write_text("operator's")
    monkeypatch.setenv(mark, "1")
    monkeypatch.setenv("SCOUT_AUTOSTART", "1")
    result = run("send", "@arc", "hi")
    assert result.exit_code == Family.CREDENTIAL.exit_code
    assert result.stderr.startswith("unauthenticated: ")
    assert mark in result.stderr
    assert result.stderr.endswith("\ntry: scout explain unauthenticated\n")


def test_a_missing_token_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCOUT_URL", "http://127.0.0.1:9")
    result = run("who")
    assert result.exit_code == Family.CREDENTIAL.exit_code
    assert result.stderr.endswith("\ntry: scout doctor\n")


def test_a_bad_url_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCOUT_URL", "localhost")
    result = run("who")
    assert (result.exit_code, "http://HOST:PORT" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    "words", [("send", "@arc"), ("ask", "@arc"), ("reply",), ("send", "--file", "no-such-file", "@arc")]
)
def test_no_text_is_said(words: tuple[str, ...]) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == f"try: scout {words[0]} --help"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("show",), "try: scout show --help"),
        (("flight", "lsit"), "try: scout flight list"),
        (("who", "--nline"), "try: scout who --help"),
        (("nonsense-entirely",), "try: scout --help"),
        (("flight", "block", "flt_1", "--on", "rain"), "try: scout flight block --help"),
    ],
)
def test_a_slip_ends_with_a_line_to_paste(words: tuple[str, ...], says: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == says


def test_bytes_that_are_no_text_are_said(tmp_path: Path) -> None:
    (tmp_path / "odd").write_bytes(b"\xff")
    for result in (
        CliRunner().invoke(scout, ["send", "@arc", "-"], input=b"\xff"),
        run("send", "@arc", "--file", str(tmp_path / "odd")),
    ):
        assert (result.exit_code, "is not UTF-8 text" in result.stderr) == (2, True)


@pytest.mark.parametrize("words", ["explain", "explain --json"])
def test_nobody_reads_any_more(words: str) -> None:
    typed = f"{shlex.quote(sys.executable)} -m scout {words} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", typed], capture_output=True, text=True, check=False, timeout=30)
    assert (done.returncode in (0, 1, 141), done.stderr) == (True, "")


def test_an_editor_that_writes_nothing_sends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from scout.cli.operations.verbs import _edit_body

    monkeypatch.setenv("EDITOR", "true")
    with pytest.raises(RefusalError, match="nothing was written"):
        _edit_body()
    monkeypatch.setenv("EDITOR", "sh -c 'printf hello > \"$1\"' -")
    assert _edit_body() == "hello"
    monkeypatch.delenv("EDITOR")
    with pytest.raises(RefusalError, match="EDITOR is not set"):
        _edit_body()


# -- problems -----------------------------------------------------------------------------------


def test_remedies_that_are_no_command_here_are_left_out() -> None:
    told = {
        "code": "no_session",
        "remedies": [
            {"operation": "moon.status", "command": "scout moon status"},
            {"operation": "who", "command": "scout who", "why": "who is there"},
        ],
    }
    assert list_tries(told) == ["try: scout who  # who is there"]
    assert list_tries({**told, "remedies": told["remedies"][:1]}) == ["try: scout explain no_session"]
    assert list_tries({"code": "internal"}) == ["try: scout doctor"]
    meaning = {"operation": "explain", "command": "scout explain bad_request"}
    assert list_tries({"code": "bad_request", "remedies": [meaning]}, fall_back=False) == []


def test_an_unknown_code_is_a_failure() -> None:
    assert get_exit_code("from_the_future") == Family.FAILURE.exit_code


# -- what is loaded -----------------------------------------------------------------------------


def test_importing_scout_loads_no_client() -> None:
    probe = "import sys, scout; print(*sys.modules); assert scout.Scout.__name__ == 'Scout'"
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=30
    )
    assert "httpx2" not in done.stdout.split()


def test_context_of_click_is_not_needed_to_look_up_a_command() -> None:
    assert scout.get_command(click.Context(scout), "who") is not None
