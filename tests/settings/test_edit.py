"""Changing the config file: one key changes, every other line stays."""

import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scout.base.refusal import BadRequest, Refused
from scout.policy.tree.projects import ProjectRules, WorkTreeRules
from scout.protocol.operations import build_command_line
from scout.settings.edit import add_project, add_root, set_project, set_value
from scout.settings.load import flatten, load, read
from scout.settings.record import SETTINGS, nest


def change_file(folder: Path, before: str, key: str, text: str) -> str:
    file = folder / "config.toml"
    file.write_text(before)
    set_value(str(file), key, text)
    return file.read_text()


def expect_refusal(folder: Path, before: str, key: str, text: str) -> BadRequest:
    with pytest.raises(Refused) as caught:
        change_file(folder, before, key, text)
    assert (folder / "config.toml").read_text() == before
    problem = caught.value.diagnostic
    assert isinstance(problem, BadRequest)
    return problem


@pytest.mark.parametrize(
    ("before", "key", "text", "after"),
    [
        ("", "port", "1", "port = 1\n"),
        ("", "limits.fanOut", "3", "[limits]\nfanOut = 3\n"),
        ("# mine\nport = 1 # why\n", "port", "2", "# mine\nport = 2 # why\n"),
        ("harness = '#1' # one # two\n", "harness", "a", 'harness = "a" # one # two\n'),
        ("host = 'h'\n\n[limits]\nbody = 1\n", "port", "2", "host = 'h'\nport = 2\n\n[limits]\nbody = 1\n"),
        ("[limits]\nbody = 1\n", "port", "2", "port = 2\n\n[limits]\nbody = 1\n"),
        (
            "[limits]\nbody = 1\n\n[routing]\n",
            "limits.page",
            "9",
            "[limits]\nbody = 1\npage = 9\n\n[routing]\n",
        ),
        ("[limits]\n# none\n[routing]\n", "limits.page", "9", "[limits]\n# none\npage = 9\n[routing]\n"),
        ("limits.body = 1\n", "limits.page", "9", "limits.body = 1\nlimits.page = 9\n"),
        ("limits.body = 1\n", "limits.body", "9", "limits.body = 9\n"),
        (
            "[periods]\nsweeps.workOpen = 1\n",
            "periods.sweeps.workOpen",
            "2",
            "[periods]\nsweeps.workOpen = 2.0\n",
        ),
        ("limits = {body = 1}\n", "limits.body", "2", "limits = {body = 2}\n"),
        ("limits = {body = 1, page = 2}\n", "limits.body", "3", "limits = {body = 3, page = 2}\n"),
        ("roots = [\n  '/a', # first\n]\nport = 1\n", "roots", "/b:/c", 'roots = ["/b", "/c"]\nport = 1\n'),
        (
            "host = '''\n[limits]\n'''\n",
            "limits.body",
            "5",
            "host = '''\n[limits]\n'''\n\n[limits]\nbody = 5\n",
        ),
        ("[limits]\ntokensPerDay = 5\n", "limits.tokensPerDay", "none", "[limits]\n"),
        ("port = 1\n", "limits.tokensPerDay", "none", "port = 1\n"),
        ("limits = 1\n", "limits.tokensPerDay", "none", "limits = 1\n"),
        ("autostart = true", "autostart", "0", "autostart = false"),
        ("[limits]\nopenFlight = 4\n", "limits.openFlights", "4", "[limits]\nopenFlights = 4\n"),
        ("port = 'x'\nzzzz = 1\n", "port", "4", "port = 4\nzzzz = 1\n"),
    ],
)
def test_one_key_changes_and_the_rest_stays(
    tmp_path: Path, before: str, key: str, text: str, after: str
) -> None:
    assert change_file(tmp_path, before, key, text) == after


def test_what_it_refuses(tmp_path: Path) -> None:
    unknown = expect_refusal(tmp_path, "", "limits.openFlight", "3")
    assert unknown.candidates[0].address == "limits.openFlights"
    assert "SCOUT_HOME" in expect_refusal(tmp_path, "", "home", "/x").message
    wrong = expect_refusal(tmp_path, "", "port", "x")
    assert build_command_line(wrong.remedies[0]) == "scout config set port 7432"
    assert "line 1" in expect_refusal(tmp_path, "port =", "port", "1").message
    assert "limits must be a table" in expect_refusal(tmp_path, "limits = 1\n", "limits.body", "3").message


def test_the_file_is_private_and_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / "dotfiles/scout.toml").write_text("")
    file = tmp_path / "config.toml"
    file.symlink_to(tmp_path / "dotfiles/scout.toml")
    set_value(str(file), "port", "5")
    assert file.is_symlink()
    assert file.read_text() == "port = 5\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in (tmp_path / "dotfiles").iterdir()] == ["scout.toml"]
    set_value(str(tmp_path / "new/config.toml"), "port", "5")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_two_at_once_lose_nothing(tmp_path: Path) -> None:
    keys = [key for key in SETTINGS if key.startswith("limits.")]

    def write(key: str) -> None:
        set_value(str(tmp_path / "config.toml"), key, "7")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, keys))
    assert {key for key, _ in flatten(tomllib.loads((tmp_path / "config.toml").read_text()))} == set(keys)


def test_an_unwritable_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "config.toml", tmp_path / "file/config.toml"):
        with pytest.raises(Refused, match="cannot be changed"):
            set_value(str(path), "port", "1")


def test_a_root_is_added_once_under_its_real_name(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "code")
    (tmp_path / "config.toml").write_text("# roots of mine\nroots = ['~/old']\n")
    environ = {"SCOUT_HOME": str(tmp_path), "HOME": "/h"}
    found = load({}, environ).settings
    for _ in range(2):
        found = add_root(found, str(tmp_path / "link"))
    assert found.roots == ("/h/old", f"{tmp_path}/code") == load({}, environ).settings.roots
    assert (tmp_path / "config.toml").read_text().startswith('# roots of mine\nroots = ["~/old", ')
    for bad in ("/", str(tmp_path / "nobody"), str(tmp_path / "config.toml")):
        with pytest.raises(Refused):
            add_root(found, bad)


TEXTS = {
    "host": "h",
    "harness": 'a "b" \\ é\x7f',
    "roots": "/a:/b",
    "environment": "A_*:B",
    "logLevel": "error",
    "exitCheck": "nudge",
    "notify.webhooks": "http://127.0.0.1:1/a https://example.org",
    "notify.secretFile": "/a",
}


@settings(max_examples=15)
@given(st.lists(st.sampled_from(sorted(SETTINGS)), min_size=1, max_size=12))
def test_any_sequence_of_changes_reads_back(keys: list[str]) -> None:
    values = {key: SETTINGS[key].read(TEXTS.get(key, "1")) for key in keys}
    with tempfile.TemporaryDirectory() as home:
        for key in keys:
            set_value(f"{home}/config.toml", key, TEXTS.get(key, "1"))
        data = tomllib.loads(Path(home, "config.toml").read_text())
    assert data == nest({key: _as_read(one) for key, one in values.items()})


def _as_read(value: Any) -> Any:
    """A file has lists where a setting has a tuple."""
    return [*value] if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownVariableType] (of anything)


# -- projects ----------------------------------------------------------------------------------------


def projects(file: Path) -> Any:
    return read({}, {"SCOUT_HOME": str(file.parent)}).settings.projects


def test_a_project_is_known_once_and_its_settings_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("port = 1  # mine\n[limits]\nfanOut = 4\n")
    assert add_project(str(file), "/w/a.b c")
    assert not add_project(str(file), "/w/a.b c")
    set_project(str(file), "/w/a.b c", "worktree.setup", "npm ci")
    set_project(str(file), "/w/a.b c", "worktree.copy", ".env* conf/*")
    set_project(str(file), "/w/bow", "worktree.setupSeconds", "30")
    assert file.read_text().startswith("port = 1  # mine\n[limits]\nfanOut = 4\n")
    found = projects(file)
    assert found["/w/a.b c"].worktree == WorkTreeRules(setup="npm ci", copy=(".env*", "conf/*"))
    assert found["/w/bow"].worktree.setup_seconds == 30
    set_project(str(file), "/w/a.b c", "worktree.setup", "none")
    set_project(str(file), "/w/a.b c", "worktree.copy", "none")
    assert projects(file)["/w/a.b c"] == ProjectRules()
    assert not add_project(str(file), "/w/a.b c")


@pytest.mark.parametrize(
    ("key", "value", "command"),
    [
        ("worktree.setp", "npm ci", "scout project set --project /w worktree.setup 'npm ci'"),
        ("colour", "red", "scout project list"),
        ("worktree.setupSeconds", "soon", "scout project set --project /w worktree.setupSeconds 600"),
        ("worktree.copy", "/etc/*", "scout project set --project /w worktree.copy none"),
    ],
)
def test_a_wrong_project_setting_is_refused_and_nothing_is_written(
    tmp_path: Path, key: str, value: str, command: str
) -> None:
    file = tmp_path / "config.toml"
    with pytest.raises(Refused) as caught:
        set_project(str(file), "/w", key, value)
    assert build_command_line(caught.value.diagnostic.remedies[0]) == command
    assert not file.exists()


def test_projects_that_are_no_table_are_left_to_the_person(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("projects = 1\n")
    with pytest.raises(Refused, match="must be a table"):
        add_project(str(file), "/w")
    assert file.read_text() == "projects = 1\n"
