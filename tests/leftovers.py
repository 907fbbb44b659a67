"""What a run of the tests leaves behind: nothing, neither a process nor a file nor a network.

A run has a temporary folder of its own: by its name all that belongs to the run is known, also beside others.
"""

import os
import shutil
import tempfile
import time
from pathlib import Path

__all__ = ["clear", "list_left", "own_folder"]

_OURS = ("sct-", "scout-")  # other programs have habits of their own, and go away with the whole folder
_WAIT = 10.0  # seconds that ending programs have


def own_folder() -> Path:
    """The temporary folder of this run, from now on everybody's; those of its workers have it already."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="st-")  # short: the path of a socket is
        tempfile.tempdir = None
    return Path(tempfile.gettempdir())


def list_left(folder: Path) -> list[str]:
    """Processes and files of the run, once what is about to end has had its time."""
    until = time.monotonic() + _WAIT
    while True:
        found = [*_processes(os.fsencode(folder)), *_files(folder), *_networks(folder.name)]
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.1)


def clear(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _files(folder: Path) -> list[str]:
    return sorted(str(one) for one in folder.iterdir() if one.name.startswith(_OURS))


def _networks(name: str) -> list[str]:
    """Network namespaces, which have the name of the folder in front."""
    return sorted(f"network {one.name}" for one in Path("/run/netns").glob(f"{name}-*"))


def _processes(word: bytes) -> list[str]:
    """Those that say the folder in their command line or environment, or are in it; not this one."""
    found = list[str]()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            line = (entry / "cmdline").read_bytes()
            place = os.fsencode((entry / "cwd").readlink())
            told = line + (entry / "environ").read_bytes() + place
        except OSError:
            continue
        if word in told and int(entry.name) not in (os.getpid(), os.getppid()):
            words = line.replace(b"\0", b" ").decode("utf-8", "replace")
            found.append(f"process {entry.name} in {os.fsdecode(place)}: {words[:200]}")
    return found
