"""`scout config`, as a person or a script would run it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from scout.cli.main import scout
from scout.settings.record import SETTINGS


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for row in SETTINGS.values():
        monkeypatch.delenv(row.environment, raising=False)
    monkeypatch.setenv("SCOUT_HOME", str(tmp_path))
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(scout, ["config", *words])


def answer(*words: str) -> dict[str, Any]:
    return json.loads(run(*words).stdout)


@pytest.mark.rows("R0-25")
def test_every_value_with_the_layer_that_set_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "config.toml").write_text("autostart = false\nroots = ['/a']\n[limits]\nfanOut = 3\n")
    monkeypatch.setenv("SCOUT_PORT", "99")
    rows = {line.split()[0]: line.split(maxsplit=2)[1:] for line in run().stdout.splitlines()}
    assert list(rows) == ["home", "config", "socket", *SETTINGS]
    assert rows["home"] == [str(home), "environment SCOUT_HOME"]
    assert rows["port"] == ["99", "environment SCOUT_PORT"]
    assert rows["autostart"] == ["false", f"file {home}/config.toml"]
    assert rows["roots"] == ["/a", f"file {home}/config.toml"]
    assert rows["limits.fanOut"] == ["3", f"file {home}/config.toml"]
    assert rows["periods.lease"] == ["60", "default"]
    assert rows["limits.tokensPerDay"] == ["none", "default"]
    told = answer("--json")
    assert told["problems"] == []
    assert told["settings"]["port"] == {"value": 99, "source": "environment SCOUT_PORT"}
    assert told["settings"]["roots"]["value"] == ["/a"]
    assert list(told["settings"]) == list(rows)


@pytest.mark.rows("R0-18", "R0-25")
def test_problems_are_told_beside_what_holds(home: Path) -> None:
    (home / "config.toml").write_text("prot = 1\nport = 'x'\n")
    result = run()
    assert result.exit_code == 2
    assert "no setting is called prot" in result.stderr
    assert "scout config set port 1" in result.stderr
    assert [problem["field"] for problem in answer("--json")["problems"]] == ["prot", "port"]
    assert run("set", "port", "1").exit_code == 0
    assert (run().exit_code, (home / "config.toml").read_text()) == (0, "port = 1\n")


def test_set(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = f"file {home}/config.toml"
    assert run("set", "limits.openFlights", "64").stdout.split(maxsplit=2) == [
        "limits.openFlights",
        "64",
        f"{source}\n",
    ]
    told = answer("set", "periods.lease", "30", "--json")
    assert told == {"key": "periods.lease", "value": 30.0, "source": source}
    monkeypatch.setenv("SCOUT_PORT", "99")
    assert "environment SCOUT_PORT takes precedence" in run("set", "port", "5").stderr
    result = run("set", "limits.openFlight", "64")
    assert (result.exit_code, "limits.openFlights" in result.stderr) == (2, True)
    assert answer("set", "port", "x", "--json")["error"]["code"] == "bad_request"


def test_roots(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "scout config roots --add DIR" in run("roots").stderr
    (home / "code").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    assert run("roots", "--add", "code").stdout == f"{home}/code\n"
    assert answer("roots", "--add", "~/code", "--json") == {"roots": [f"{home}/code"]}
    assert run("roots").stdout == f"{home}/code\n"
    result = run("roots", "--add", "nobody")
    assert (result.exit_code, "is not a directory" in result.stderr) == (2, True)
