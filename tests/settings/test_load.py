"""Defaults, file, environment, flags: who wins, and what is refused."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scout.base.refusal import BadRequest, Refused
from scout.policy.limits import Rules
from scout.policy.tree.projects import ProjectRules, WorkTreeRules
from scout.protocol.operations import build_command_line, check_remedy
from scout.settings.load import Loaded, load, read
from scout.settings.record import SETTINGS, Settings


def load_settings(
    home: Path, file: str | bytes = "", flags: dict[str, str] | None = None, **environ: str
) -> Loaded:
    (home / "config.toml").write_bytes(file.encode() if isinstance(file, str) else file)
    return load(flags or {}, {"SCOUT_HOME": str(home), "HOME": "/h", **environ})


def expect_refusal(home: Path, *given: Any, **environ: str) -> BadRequest:
    with pytest.raises(Refused) as caught:
        load_settings(home, *given, **environ)
    problem = caught.value.diagnostic
    assert isinstance(problem, BadRequest)
    assert problem.remedies
    assert [check_remedy(remedy) for remedy in problem.remedies] == [[]] * len(problem.remedies)
    return problem


def test_the_defaults(tmp_path: Path) -> None:
    found = load({}, {"SCOUT_HOME": str(tmp_path)})
    home = str(tmp_path)
    assert found.settings == Settings(home=home, config=f"{home}/config.toml", runtime=home)
    assert found.settings.rules == Rules()
    assert (found.settings.host, found.settings.port, found.settings.autostart) == ("127.0.0.1", 7432, True)
    assert {found.sources[key] for key in SETTINGS} == {"default"}
    assert found.sources["home"] == "environment SCOUT_HOME"
    files = (found.settings.database, found.settings.token, found.settings.node_key, found.settings.lock)
    assert files == (f"{home}/scout.db", f"{home}/token", f"{home}/node.key", f"{home}/lock")
    folders = (found.settings.blobs, found.settings.sessions, found.settings.logs, found.settings.socket)
    assert folders == (f"{home}/blobs", f"{home}/sessions", f"{home}/logs", f"{home}/scout.sock")


@pytest.mark.rows("R0-24")
def test_the_file_then_the_environment_then_flags(tmp_path: Path) -> None:
    file = "port = 1\n[limits]\nfanOut = 1\n"
    found = load_settings(tmp_path, file)
    assert (found.settings.port, found.sources["port"]) == (1, f"file {tmp_path}/config.toml")
    found = load_settings(tmp_path, file, SCOUT_PORT="2")
    assert (found.settings.port, found.sources["port"]) == (2, "environment SCOUT_PORT")
    assert (found.settings.rules.limits.fan_out, found.sources["limits.fanOut"][:5]) == (1, "file ")
    found = load_settings(tmp_path, file, {"port": "3", "logLevel": "debug"}, SCOUT_PORT="2")
    assert (found.settings.port, found.sources["port"]) == (3, "flag --port")
    assert (found.settings.log_level, found.sources["logLevel"]) == ("debug", "flag --log-level")
    assert load_settings(tmp_path, file, SCOUT_PORT="").settings.port == 1


@pytest.mark.rows("R0-24")
@pytest.mark.parametrize("key", SETTINGS)
def test_every_setting_has_its_variable(tmp_path: Path, key: str) -> None:
    row = SETTINGS[key]
    value = {
        "roots": "/a:/b",
        "environment": "OPENAI_*:FOO",
        "harness": "codex",
        "host": "::1",
        "logLevel": "ERROR",
        "exitCheck": "nudge",
        "notify.webhooks": "http://127.0.0.1:1/a https://example.org",
        "notify.secretFile": "~/secret",
        "telemetry.endpoint": "http://127.0.0.1:4318",
        "retention.archiveAfter": "200000",
    }.get(key)
    text = value or ("true" if row.default is False else "0" if row.default is True else "7")
    found = load_settings(tmp_path, "", None, **{row.environment: text})
    assert found.sources[key] == f"environment {row.environment}"
    assert {name for name in SETTINGS if found.sources[name] != "default"} == {key}


def test_the_words_of_the_environment(tmp_path: Path) -> None:
    found = load_settings(
        tmp_path,
        "",
        None,
        SCOUT_AUTOSTART="0",
        SCOUT_LIMITS_OPEN_FLIGHTS="5",
        SCOUT_LIMITS_TOKENS_PER_DAY="none",
        SCOUT_PERIODS_SWEEPS_WORK_OPEN="1.5",
        SCOUT_ROOTS=f"{tmp_path}:~/code",
    ).settings
    assert (found.autostart, found.rules.limits.open_flights) == (False, 5)
    assert found.rules.limits.tokens_per_day is None
    assert found.rules.periods.sweeps.work_open == 1.5
    assert found.roots == (str(tmp_path), "/h/code")


@pytest.mark.parametrize("name", ["AGENT", "TOKEN", "FLIGHT", "SOCKET", "URL", "SESSION", "HYPOTHESIS"])
def test_other_variables_are_none_of_its_business(tmp_path: Path, name: str) -> None:
    plain = load_settings(tmp_path)
    assert load_settings(tmp_path, "", None, **{f"SCOUT_{name}": "?"}) == plain


@pytest.mark.rows("R0-18")
@pytest.mark.parametrize(
    ("file", "near", "command"),
    [
        ("prot = 8000", "port", "scout config set port 8000"),
        ("[limits]\nopenFlight = 40", "limits.openFlights", "scout config set limits.openFlights 40"),
        ("[limit]\nfanOut = 'x'", "limits.fanOut", "scout config set limits.fanOut 8"),
        ("limits.open_flights = 4", "limits.openFlights", "scout config set limits.openFlights 4"),
        (
            "[periods.sweep]\nworkOpen = 4.5",
            "periods.sweeps.workOpen",
            "scout config set periods.sweeps.workOpen 4.5",
        ),
        ("log_level = 'debug'", "logLevel", "scout config set logLevel debug"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest(
    tmp_path: Path, file: str, near: str, command: str
) -> None:
    problem = expect_refusal(tmp_path, file)
    assert problem.candidates[0].address == near
    assert near in problem.message
    assert f"{tmp_path}/config.toml" in problem.message
    assert build_command_line(problem.remedies[0]) == command


@pytest.mark.rows("R0-18")
@pytest.mark.parametrize("file", ["zzzz = 4", "[zzzz]", "limits = 3", "[zzzz.yyyy]\nx = {}"])
def test_an_unknown_key_with_nothing_near(tmp_path: Path, file: str) -> None:
    assert expect_refusal(tmp_path, file).remedies[0].operation in ("config", "config.set")


@pytest.mark.rows("R0-43")
@pytest.mark.parametrize("name", ["workers", "processes", "threads", "workerProcesses", "concurrency"])
def test_no_setting_configures_worker_processes(tmp_path: Path, name: str) -> None:
    assert f"no setting is called {name}" in expect_refusal(tmp_path, f"{name} = 2").message
    words = ("worker", "process", "thread", "concurren", "pool")
    assert [key for key in SETTINGS if any(word in key.lower() for word in words)] == []


def test_unknown_variables_of_the_rules_are_refused(tmp_path: Path) -> None:
    problem = expect_refusal(tmp_path, "", SCOUT_LIMITS_OPEN_FLIGHT="3")
    assert problem.candidates[0].address == "SCOUT_LIMITS_OPEN_FLIGHTS"
    assert expect_refusal(tmp_path, "", SCOUT_PERIODS_ZZZ="3").field == "SCOUT_PERIODS_ZZZ"
    assert "--prot" in expect_refusal(tmp_path, "", {"prot": "3"}).message


@pytest.mark.parametrize(
    ("file", "environ", "key", "layer"),
    [
        ("port = 'x'", {}, "port", "config.toml"),
        ("[[port]]\nx = 1", {}, "port", "config.toml"),
        ("port = 70000", {}, "port", "config.toml"),
        ("port = 2020-01-01", {}, "port", "config.toml"),
        ("roots = ['here']", {}, "roots", "config.toml"),
        ("roots = '/a'", {}, "roots", "config.toml"),
        ("harness = ''", {}, "harness", "config.toml"),
        ("periods.lease = inf", {}, "periods.lease", "config.toml"),
        ("periods.lease = 1e300", {}, "periods.lease", "config.toml"),
        ("limits.body = 99999999999999999", {}, "limits.body", "config.toml"),
        ("limits.body = 0", {}, "limits.body", "config.toml"),
        ("", {"SCOUT_PORT": "x"}, "port", "environment SCOUT_PORT"),
        ("", {"SCOUT_PORT": "-1"}, "port", "environment SCOUT_PORT"),
        ("", {"SCOUT_AUTOSTART": "maybe"}, "autostart", "environment SCOUT_AUTOSTART"),
        ("", {"SCOUT_PERIODS_LEASE": "nan"}, "periods.lease", "environment SCOUT_PERIODS_LEASE"),
        ("", {"SCOUT_LOG_LEVEL": "loud"}, "logLevel", "environment SCOUT_LOG_LEVEL"),
        ("", {"SCOUT_HARNESS": "\udc80"}, "harness", "environment SCOUT_HARNESS"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key_and_layer(
    tmp_path: Path, file: str, environ: dict[str, str], key: str, layer: str
) -> None:
    problem = expect_refusal(tmp_path, file, **environ)
    assert problem.field == key
    assert layer in problem.message


@pytest.mark.parametrize(
    ("file", "line"),
    [("port = 1\nport =", "line 2"), ("a = 1\na = 2", "line 2"), (b"a = 1\n\nb = '\xff'", "line 3")],
)
def test_what_is_not_toml_is_refused_with_its_line(tmp_path: Path, file: str | bytes, line: str) -> None:
    assert line in expect_refusal(tmp_path, file).message


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(Refused, match="cannot be read"):
        load({}, {"SCOUT_HOME": str(tmp_path)})


def test_all_problems_at_once_and_the_layer_below_stays(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("port = 5\nzzzz = 1\n[limits]\nfanOut = 'x'\n")
    found = read({}, {"SCOUT_HOME": str(tmp_path), "SCOUT_PORT": "x"})
    assert [problem.field for problem in found.problems] == ["zzzz", "limits.fanOut", "port"]
    assert (found.settings.port, found.settings.rules) == (5, Rules())


@settings(max_examples=40)
@given(st.text(max_size=40), st.binary(max_size=40))
def test_any_file_and_any_variable_is_read_or_refused(text: str, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as home:
        for content in (text.encode("utf-8", "surrogatepass"), data):
            Path(home, "config.toml").write_bytes(content)
            environ = {"SCOUT_HOME": home, **{row.environment: text for row in SETTINGS.values()}}
            read({}, environ)


def test_only_this_machine_is_loopback() -> None:
    def reachable(host: str) -> bool:
        return not Settings(home="/h", config="/c", runtime="/h", host=host).is_loopback

    assert [host for host in ("127.0.0.1", "localhost", "::1", "127.1.2.3") if reachable(host)] == []
    assert reachable("0.0.0.0")
    assert reachable("127.example.org")


# -- projects ----------------------------------------------------------------------------------------

_PROJECT = """
[projects."/w/arc"]
worktree.setup = "npm ci"
worktree.copy = [".env*"]
[projects."/w/a.b c".worktree]
setupSeconds = 30
[projects."~/bow"]
[projects."/w/empty".worktree]
"""


def test_the_settings_of_projects(tmp_path: Path) -> None:
    found = load_settings(tmp_path, _PROJECT).settings.projects
    assert list(found) == ["/w/arc", "/w/a.b c", "/h/bow", "/w/empty"]
    assert found["/w/arc"].worktree == WorkTreeRules(setup="npm ci", copy=(".env*",))
    assert found["/w/a.b c"].worktree.setup_seconds == 30
    assert found["/h/bow"] == found["/w/empty"] == ProjectRules()


@pytest.mark.parametrize(
    ("file", "problem", "command"),
    [
        (
            '[projects."/w"]\nworktree.setp = "x"',
            "no setting of projects is called worktree.setp",
            "scout project list",
        ),
        ('[projects."/w"]\nother = 1', "they are worktree.setup, worktree.copy", "scout project list"),
        (
            '[projects."/w"]\nworktree.setupSeconds = 0',
            "worktree.setupSeconds = '0' of the project /w",
            "scout project set --project /w worktree.setupSeconds 600",
        ),
        (
            '[projects."/w"]\nworktree.copy = ["../x"]',
            "worktree.copy =",
            "scout project set --project /w worktree.copy none",
        ),
        ("[projects.arc]", "expected a table named by an absolute directory", "scout config"),
        ('projects."/w" = 1', "expected a table named by an absolute directory", "scout config"),
        ("projects = 1", "expected tables such as", "scout config"),
    ],
)
def test_a_wrong_setting_of_a_project_is_refused(
    tmp_path: Path, file: str, problem: str, command: str
) -> None:
    told = expect_refusal(tmp_path, file)
    assert problem in told.problem
    assert [build_command_line(one) for one in told.remedies] == [command]
