"""`scout up --install`: the unit file that lets the system start the daemon, and its way back."""

import os
import sys
from pathlib import Path

from scout.cli.connection.text import note, out, out_text
from scout.daemon.unit import unit_text
from scout.settings.record import SETTINGS

_NEXT = {
    "systemd": (
        "systemctl --user daemon-reload",
        "systemctl --user enable --now scout",
        "loginctl enable-linger    # to keep it running when you are logged out",
    ),
    "launchd": ("launchctl load -w {file}",),
}
_BACK = {
    "systemd": ("systemctl --user disable --now scout", "systemctl --user daemon-reload"),
    "launchd": ("launchctl remove scout",),
}


def place(platform: str = sys.platform) -> tuple[str, Path]:
    """Which kind of unit this system has, and where it belongs."""
    if platform == "darwin":
        return "launchd", Path.home() / "Library/LaunchAgents/scout.plist"
    return "systemd", Path.home() / ".config/systemd/user/scout.service"


def _environment(home: str) -> dict[str, str]:
    """The PATH and the settings in force: the system's own environment has neither."""
    names = ("PATH", *(one.environment for one in SETTINGS.values()))
    return {"SCOUT_HOME": home, **{name: os.environ[name] for name in names if os.environ.get(name)}}


def install(home: str, printed: bool) -> int:
    """Write the unit file, or print it, and say what to do next."""
    kind, file = place()
    text = unit_text(kind, sys.executable, _environment(home))
    if printed:
        out_text(text.rstrip("\n"))
        return 0
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
    out(f"written: {file}")
    out("now:")
    for line in _NEXT[kind]:
        out(f"  {line.format(file=file)}")
    note("undo: scout up --uninstall")
    return 0


def uninstall() -> int:
    """Take the unit file away; stopping what runs is the system's own command."""
    kind, file = place()
    there = file.exists()
    file.unlink(missing_ok=True)
    out(f"removed: {file}" if there else f"there was no {file}")
    out("if it still runs:")
    for line in _BACK[kind]:
        out(f"  {line}")
    return 0
