"""A setting that is changed while the daemon runs is in force for the next request."""

import shlex
from collections.abc import Generator

import pytest

from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import Daemon
from tests.stories.refusals import read_code, tries

pytestmark = pytest.mark.slow


@pytest.fixture
def shell() -> Generator[Shell]:
    with a_shell() as shell:
        start_daemon(shell)
        yield shell


@pytest.fixture(scope="module")
def shared() -> Generator[Shell]:
    """One daemon for the tests that only meet refusals."""
    with a_shell() as shell:
        start_daemon(shell)
        yield shell


def ask(shell: Shell, name: str, *words: str) -> str:
    done = shell.type("ask", f"@{name}", "hello", *words)
    return done.stdout + done.stderr


def test_a_limit_and_the_default_harness_are_in_force_at_once(shell: Shell) -> None:
    arc = shell.project("arc")
    shell.say("agent", "register", "arc", "--project", ".", "--harness", "echo", cwd=arc)
    shell.say("session", "start", "--agent", "@arc")
    pid = shell.data("status")["pid"]

    changed = shell.type("config", "set", "limits.openFlights", "0")
    assert changed.returncode == 2, changed.stderr
    changed = shell.type("config", "set", "limits.openFlights", "1")
    assert "the running daemon uses it from now on" in changed.stderr
    shell.say("pause")
    assert "flt_" in ask(shell, "arc", "--no-wait")
    assert "limit" in ask(shell, "arc", "--no-wait")
    assert shell.data("config", "set", "limits.openFlights", "9")["takesEffect"] == "now"
    assert "flt_" in ask(shell, "arc", "--no-wait")
    shell.say("resume")

    shell.say("config", "set", "harness", "echo")
    asked = shell.type("ask", "--project", ".", "hello", cwd=shell.project("bow"))
    assert asked.returncode == 0, asked.stderr
    assert "hello" in asked.stdout
    assert shell.data("status")["pid"] == pid


@pytest.mark.parametrize(
    ("key", "value", "problem", "offered"),
    [
        ("harness", "claud", "there is no harness 'claud'", "scout config set harness claude"),
        ("harness", "zzz", "there is no harness 'zzz'", "scout runtimes"),
        (
            "limits.openFlight",
            "9",
            "the nearest is limits.openFlights",
            "scout config set limits.openFlights 9",
        ),
        (
            "logLevel",
            "debgu",
            "expected one of debug, error, info, warning",
            "scout config set logLevel debug",
        ),
        (
            "router",
            "no-such-program -x",
            "there is no program 'no-such-program'",
            "scout config set router none",
        ),
        ("router", "'", "cannot be read as a command line", "scout config set router none"),
        (
            "host",
            "no-host.invalid",
            "the host 'no-host.invalid' has no address",
            "scout config set host 127.0.0.1",
        ),
        ("limits.openFlights", "-1", "expected `int` >= 1", "scout config set limits.openFlights 32"),
        (
            "notify.webhooks",
            "ftp://x",
            "an address that begins with http://",
            "scout config set notify.webhooks ''",
        ),
        ("environment", "A B", "expected the name of a variable", "scout config set environment ''"),
        ("roots", "code", "expected a path that begins with / or ~/", "scout config set roots ''"),
        ("roots", "/no/such/folder", "/no/such/folder is no directory", "scout config set roots ''"),
        ("roots", "/usr:/no/such/folder", "/no/such/folder is no directory", "scout config set roots /usr"),
    ],
)
def test_a_setting_that_names_what_does_not_exist_is_refused(
    shared: Shell, key: str, value: str, problem: str, offered: str
) -> None:
    file = shared.home / "config.toml"
    before = file.read_text()
    refused = shared.type("config", "set", key, value)
    assert refused.returncode == 2
    assert problem in refused.stderr
    assert tries(refused.stderr)[0] == offered
    assert file.read_text() == before
    shared.say(*shlex.split(offered)[1:])
    file.write_text(before)


def test_a_harness_that_does_not_exist_is_named_wherever_it_was_set(shell: Shell) -> None:
    shown = shell.type("config", SCOUT_HARNESS="clode")
    assert shown.returncode == 2
    assert "there is no harness 'clode'" in shown.stderr
    assert "environment SCOUT_HARNESS" in shown.stderr

    (shell.home / "config.toml").write_text(f"harness = 'claud'\nroots = ['{shell.folder}/work']\n")
    assert "there is no harness 'claud'" in shell.type("doctor").stdout
    shell.say("restart")
    refused = shell.type("ask", "--project", ".", "hello", cwd=shell.project("bow"))
    assert "it is the default in the settings" in refused.stderr
    assert tries(refused.stderr)[0] == "scout config set harness claude"

    own = shell.project("cat")
    (own / ".scout" / "project.toml").write_text("name = 'cat'\nharness = 'codx'\n")
    refused = shell.type("ask", "--project", ".", "hello", cwd=own)
    assert f"there is no harness 'codx': it is named in .scout/project.toml of {own}" in refused.stderr


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("agent config @arc --set harness=claud", "scout agent config --set harness=claude @arc"),
        ("agent config @arc --set wakePolicy=on_demnd", "scout agent config --set wakePolicy=on_demand @arc"),
        ("agent config @arc --set wakePolic=manual", "scout agent config --set wakePolicy=manual @arc"),
        ("agent register bow --harness claud", "scout agent register --harness claude bow"),
        ("session start --agent @arc --harness ecko", "scout session start --agent @arc --harness echo"),
        ("ask '@arc#ecko' hello", "scout ask '@arc#echo' hello"),
        ("wake '@arc#ecko'", "scout wake '@arc#echo'"),
    ],
)
def test_a_misspelt_word_is_corrected_in_the_callers_command(shell: Shell, typed: str, offered: str) -> None:
    shell.say("agent", "register", "arc", "--harness", "echo", cwd=shell.project("arc"))
    refused = shell.type(*shlex.split(typed))
    assert refused.returncode != 0
    assert tries(refused.stderr)[0] == offered, refused.stderr
    again = shell.type(*shlex.split(offered)[1:])
    assert read_code(again.stderr) != "bad_request", again.stderr
    assert "there is no harness" not in again.stderr


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("runtimes --check claud", ["scout runtimes --check claude", "scout runtimes"]),
        ("topology --harness claud", ["scout topology --harness claude", "scout runtimes"]),
        ("work list --state opn", ["scout work list --state open"]),
        ("agent register bow --wake-policy manul", ["scout agent register bow --wake-policy manual"]),
        ("grant add reed --agent @arc", ["scout grant add read --agent @arc"]),
    ],
)
def test_every_line_that_is_offered_for_a_misspelt_word_is_another_command(
    shared: Shell, typed: str, offered: list[str]
) -> None:
    refused = shared.type(*shlex.split(typed))
    assert list(dict.fromkeys(tries(refused.stderr))) == offered, refused.stderr


def test_an_empty_name_means_nothing(shell: Shell) -> None:
    scout = Daemon(shell.home, start_daemon(shell))
    token = scout.register("raiser")["token"]
    scout.call("POST", "/v1/attention", {"title": "May I?", "kind": "permission"}, token=token)
    for typed in (
        *("approve ''", "deny ''", "approve --all-of ''", "session stop ''", "agent retire ''", "wait ''"),
        *("send '' hello", "session list --agent ''", "flight cancel ''", "show ''"),
    ):
        refused = shell.type(*shlex.split(typed))
        assert refused.returncode == 2, typed
        assert "an address or id is empty" in refused.stderr, typed
    (item,) = shell.data("attention")["items"]
    assert item["state"] == "open"


def test_a_word_that_is_none_of_the_allowed_ones_is_refused_with_them_over_http(shell: Shell) -> None:
    scout = Daemon(shell.home, start_daemon(shell))
    told = scout.call("POST", "/v1/agents", {"definitionId": "bow", "wakePolicy": "on_demnd"}).json
    assert told["problem"] == "expected one of manual, on_demand, keep_warm; got 'on_demnd'"
    assert [one["address"] for one in told["candidates"]] == ["on_demand"]


def test_a_setting_of_the_sockets_needs_a_restart_and_a_wrong_file_changes_nothing(shell: Shell) -> None:
    assert "until: scout restart" in shell.type("config", "set", "logLevel", "debug").stderr
    assert shell.type("config", "set", "logLevel", "info").stderr == ""  # as the daemon has it
    (shell.home / "config.toml").write_text("[limits\n")
    assert shell.type("who").returncode == 0
