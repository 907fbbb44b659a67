"""The command line's own reading of the settings: the same answers, from the standard library alone."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scout.settings.load import read
from scout.settings.where import choose_socket_path, find, find_folders

LONG = "x" * 90


@pytest.mark.rows("R0-16")
def test_scout_home_replaces_every_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = {"HOME": "/h", "XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "/c", "XDG_RUNTIME_DIR": "/r"}
    found = find({**other, "SCOUT_HOME": str(tmp_path)})
    assert (found.home, found.config) == (str(tmp_path), f"{tmp_path}/config.toml")
    assert (found.runtime, found.token_file) == (str(tmp_path), f"{tmp_path}/token")
    monkeypatch.chdir(tmp_path)
    assert find_folders({"SCOUT_HOME": "a/../b"})[0] == f"{tmp_path}/b"
    assert find_folders({"SCOUT_HOME": "~/s", "HOME": "/h"})[0] == "/h/s"


@pytest.mark.rows("R0-17")
def test_without_it_the_folders_of_the_platform() -> None:
    assert find_folders({"HOME": "/h"}, "linux") == ("/h/.local/share/scout", "/h/.config/scout/config.toml")
    xdg = {"HOME": "/h", "XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "/c", "SCOUT_HOME": ""}
    assert find_folders(xdg, "linux") == ("/d/scout", "/c/scout/config.toml")
    relative = {"HOME": "/h", "XDG_DATA_HOME": "d", "XDG_CONFIG_HOME": ""}
    assert find_folders(relative, "linux") == find_folders({"HOME": "/h"}, "linux")
    support = "/h/Library/Application Support/scout"
    assert find_folders({"HOME": "/h"}, "darwin") == (support, f"{support}/config.toml")
    assert find_folders({}, "linux")[0].startswith("/")


@pytest.mark.rows("R0-21")
def test_the_socket_moves_when_its_path_is_too_long(tmp_path: Path) -> None:
    runtime = {"XDG_RUNTIME_DIR": tempfile.gettempdir()}
    for length in (89, 90, 91, 300):
        home = "/" + "x" * (length - 1)
        path = choose_socket_path(home, runtime)
        assert len(path) <= 100
        assert (path == f"{home}/scout.sock") == (length + len("/scout.sock") <= 100)
    moved = choose_socket_path(f"/{LONG}", runtime)
    assert Path(moved).parts[-2].startswith(f"scout-{os.getuid()}-")
    assert len(Path(moved).parts[-2].rpartition("-")[2]) == 8
    assert moved != choose_socket_path(f"/{LONG}y", runtime)
    assert choose_socket_path("/" + "ä" * 46, {}).startswith("/tmp/scout-")


@pytest.mark.rows("R0-21")
def test_two_spellings_of_one_folder_have_one_socket(tmp_path: Path) -> None:
    deep = tmp_path / LONG / LONG
    deep.mkdir(parents=True)
    (tmp_path / "short").symlink_to(deep)
    gone = {"XDG_RUNTIME_DIR": f"{tmp_path}/nobody", "TMPDIR": "relative"}
    assert choose_socket_path(str(tmp_path / "short"), gone) == choose_socket_path(str(deep), gone)
    assert choose_socket_path(str(deep), gone).startswith("/tmp/scout-")
    assert choose_socket_path(str(deep), {"TMPDIR": str(deep)}).startswith("/tmp/scout-")


FILES = st.sampled_from(
    [
        None,
        "",
        "port = 1\nautostart = false\nhost = 'localhost'",
        "port = 70000\nautostart = 'no'\nhost = 3",
        '"p\\u006frt" = 7',
        "[limits]\nport = 3",
        "this is not toml: port",
        b"port = 5 # \xff",
        "port = true",
    ]
)
TEXTS = st.sampled_from(
    ["", "0", "1", "true", "FALSE", "yes", "007", "-0", "7.0", " 7", "1_0", "65536", "٣", "::1", "9" * 30]
)
ENVIRONS = st.fixed_dictionaries(
    {"HOME": st.sampled_from(["", "/", "/h/", "h"])},
    optional={
        "SCOUT_PORT": TEXTS,
        "SCOUT_AUTOSTART": TEXTS,
        "SCOUT_HOST": TEXTS,
        "XDG_DATA_HOME": st.sampled_from(["", "d", "/d", f"/{LONG}"]),
        "XDG_CONFIG_HOME": st.sampled_from(["", "c", "/c/../e"]),
        "XDG_RUNTIME_DIR": st.sampled_from(["", "/tmp", "/nobody", "r"]),
        "SCOUT_TOKEN": st.just("x"),
    },
)


@pytest.mark.rows("R0-24")
@settings(max_examples=80)
@given(environ=ENVIRONS, text=FILES, own=st.booleans())
def test_it_agrees_with_the_loader(environ: dict[str, str], text: str | bytes | None, own: bool) -> None:
    with tempfile.TemporaryDirectory() as home:
        environ = environ | ({"SCOUT_HOME": home} if own else {"XDG_CONFIG_HOME": home})
        file = Path(find_folders(environ)[1])
        if text is not None:
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(text.encode() if isinstance(text, str) else text)
        found, loaded = find(environ), read({}, environ)
    settings = loaded.settings
    assert (found.home, found.config, found.runtime) == (settings.home, settings.config, settings.runtime)
    assert (found.socket, found.token_file) == (settings.socket, settings.token)
    wrong = {problem.field for problem in loaded.problems}
    for name in ("port", "host", "autostart"):
        assert name in wrong or getattr(found, name) == getattr(settings, name)


def test_it_needs_nothing_but_the_standard_library(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[limits]\nfanOut = 3\n")
    code = (
        "import os, sys; from scout.settings.where import find; find(os.environ)\n"
        "slow = {'msgspec', 'asyncio', 'platformdirs', 'typing', 'pathlib', 'tomllib', 'hashlib', 'click'}\n"
        "print(sorted(slow & set(sys.modules)))"
    )
    env = {"SCOUT_HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-S", "-c", code]
    result = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=20)
    assert result.stdout == "[]\n"
