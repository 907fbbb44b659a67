"""Paths and addresses of Scout. Standard library only, because every command line call loads this."""
# ruff: noqa: PTH100, PTH112, PTH120, PTH123, PLC0415 (pathlib costs more than all of this; most imports wait)

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    T = TypeVar("T")

HOST = "127.0.0.1"
PORT = 7432
AUTOSTART = True

_SOCKET_BYTES = 100  # the system limit is 104 or 108
_TRUTHS = {"1": True, "true": True, "0": False, "false": False}
_WORDS = (b"autostart", b"host", b"port", b"\\")  # a key may be written with escapes


class Where:
    """The paths and addresses that a client needs to find the daemon."""

    __slots__ = ("autostart", "config", "home", "host", "port", "runtime", "socket", "token_file")

    def __init__(self, *, home: str, config: str, socket: str, host: str, port: int, autostart: bool) -> None:
        self.home = home
        self.config = config
        self.socket = socket
        self.runtime = os.path.dirname(socket)
        self.token_file = f"{home}/token"
        self.host = host
        self.port = port
        self.autostart = autostart


def find(environ: Mapping[str, str], platform: str = sys.platform) -> Where:
    """Return the folders, the socket and the start options; invalid values are left for `load` to refuse."""
    home, config = find_folders(environ, platform)
    file = _read_table(config)
    return Where(
        home=home,
        config=config,
        socket=choose_socket_path(home, environ),
        host=_pick(environ.get("SCOUT_HOST"), str, file.get("host"), HOST) or HOST,
        port=_pick(environ.get("SCOUT_PORT"), parse_port, _check_port(file.get("port")), PORT),
        autostart=_pick(environ.get("SCOUT_AUTOSTART"), parse_truth, file.get("autostart"), AUTOSTART),
    )


def find_folders(environ: Mapping[str, str], platform: str = sys.platform) -> tuple[str, str]:
    """Return the data folder and the config file: `SCOUT_HOME` for both, else the platform's folders."""
    if own := environ.get("SCOUT_HOME"):
        home = _make_absolute(own, environ)
        return home, f"{home.rstrip('/')}/config.toml"
    user = find_user_home(environ).rstrip("/")
    if platform == "darwin":
        data = config = f"{user}/Library/Application Support"
    else:
        data = _find_xdg_folder(environ, "XDG_DATA_HOME", f"{user}/.local/share")
        config = _find_xdg_folder(environ, "XDG_CONFIG_HOME", f"{user}/.config")
    return f"{data}/scout", f"{config}/scout/config.toml"


def find_user_home(environ: Mapping[str, str]) -> str:
    """Return the user's home folder."""
    home = environ.get("HOME", "")
    if home.startswith("/"):
        return os.path.abspath(home)
    import pwd

    return pwd.getpwuid(os.getuid()).pw_dir


def choose_socket_path(home: str, environ: Mapping[str, str]) -> str:
    """Return the socket in the data folder, or in the runtime folder if that path is too long for a socket.

    It depends on the real path, so that two spellings of one folder never lead to two sockets.
    """
    real = os.path.realpath(home)
    if _is_short_enough(path := f"{real.rstrip('/')}/scout.sock"):
        return path
    import hashlib

    mark = hashlib.sha256(os.fsencode(real)).hexdigest()[:8]
    name = f"scout-{os.getuid()}-{mark}/scout.sock"
    above = (environ.get("XDG_RUNTIME_DIR", ""), environ.get("TMPDIR", ""))
    paths = [f"{one.rstrip('/')}/{name}" for one in above if one.startswith("/") and os.path.isdir(one)]
    return next((path for path in paths if _is_short_enough(path)), f"/tmp/{name}")


def parse_truth(text: str) -> bool:
    """Parse a boolean from an environment variable or a flag."""
    if (word := text.lower()) not in _TRUTHS:
        raise ValueError("expected true, false, 1 or 0")
    return _TRUTHS[word]


def parse_whole(text: str) -> int:
    """Parse a whole number in plain digits."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
        raise ValueError("expected a whole number")
    return int(text)


def parse_port(text: str) -> int:
    """Parse a port; 0 lets the system choose one."""
    if _check_port(number := parse_whole(text)) is None:
        raise ValueError("expected a port, 0 to 65535")
    return number


def _check_port(value: object) -> object:
    return value if type(value) is int and 0 <= value <= 65535 else None


def _pick(text: str | None, read: Callable[[str], T], written: object, default: T) -> T:
    """Return the value from the environment, else from the file, else the default."""
    if text:
        try:
            return read(text)
        except ValueError:
            return default
    return written if isinstance(written, type(default)) else default


def _read_table(config: str) -> dict[str, object]:
    """Return the config file, parsed only if it sets a key needed here: the parser is slow to import."""
    try:
        with open(config, "rb") as file:
            data = file.read()
    except OSError:
        return {}
    if not any(word in data for word in _WORDS):
        return {}
    import tomllib

    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError):
        return {}


def _make_absolute(path: str, environ: Mapping[str, str]) -> str:
    if path == "~" or path.startswith("~/"):
        path = find_user_home(environ) + path[1:]
    return os.path.abspath(path)


def _find_xdg_folder(environ: Mapping[str, str], name: str, default: str) -> str:
    """Return an XDG folder; a relative path counts as not set."""
    folder = environ.get(name, "")
    return os.path.abspath(folder) if folder.startswith("/") else default


def _is_short_enough(path: str) -> bool:
    return len(os.fsencode(path)) <= _SOCKET_BYTES
