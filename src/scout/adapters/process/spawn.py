"""Starting a program that outlives its broker.

A small shell holds the program, with files for its input and output and in a session of its own: it goes
on when the broker is killed, and its result is on disk for the next one. That shell makes the file `pid`
before it starts the program and gives up if there is one, so a run never happens twice.
"""

import os
import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

MARK = "SCOUT_RUN"  # in the environment of everything that a run starts: the folder of the run

# A trap is not handed down: the program itself dies of these signals, the shell stays to say so.
_SHELL = r"""
run=$1 where=$2; shift 2
mask=$(umask); umask 077
since() { shift 19; began=$1; }
if read -r stat </proc/$$/stat; then since ${stat##*) }; read -r boot </proc/sys/kernel/random/boot_id
else began=$(LC_ALL=C ps -o lstart= -p $$); began=$(echo $began); fi 2>/dev/null
trap : HUP INT TERM
set -C; printf '%s\n' "$$" "$began" "$boot" >"$run/pid" || exit; set +C
umask "$mask"
(cd -- "$where" && exec "$@") <"$run/prompt" >>"$run/stdout" 2>>"$run/stderr"
code=$?
umask 077; echo "$code" >"$run/exit"
"""
# What the broker ignores, a program would ignore as well.
_HEARD = {"SIGCHLD", "SIGHUP", "SIGINT", "SIGPIPE", "SIGQUIT", "SIGTERM", "SIGXFSZ"}
_DEFAULT_SIGNALS = [one for one in signal.Signals if one.name in _HEARD]
_CHILDREN: set[int] = set()


# Who and where the user is, how to speak and where programs keep their own files. No credentials, no SCOUT_*.
ALLOWED = frozenset(
    {
        "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
        "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
    }
)  # fmt: skip


class Launch(NamedTuple):
    """What to run. The first word of `command` is a path: a shell has other ideas about bare words."""

    command: tuple[str, ...]
    directory: str
    prompt: str
    environment: Mapping[str, str]


def spawn(launch: Launch, folder: Path) -> None:
    """Begin a run in its folder. The shell is the broker's child only as long as there is that broker."""
    words = ("sh", "-c", _SHELL, "sh", str(folder), launch.directory, *launch.command)
    pid = os.posix_spawn(
        "/bin/sh",
        words,
        {**launch.environment, MARK: str(folder)},
        file_actions=_own_files(),
        setsid=True,
        setsigmask=(),
        setsigdef=_DEFAULT_SIGNALS,
    )
    _CHILDREN.add(pid)


def reap() -> None:
    """Let go of children that have ended: no zombies."""
    for pid in list(_CHILDREN):
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                continue
        _CHILDREN.discard(pid)


def _own_files() -> list[tuple[Any, ...]]:
    """Nothing of the broker's stays open in a run, not even what the broker itself was handed."""
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    return [*null, *((os.POSIX_SPAWN_CLOSE, number) for number in _handed_down())]


def _handed_down() -> Iterator[int]:
    for number in map(int, os.listdir("/dev/fd")):  # noqa: PTH208 (names only)
        with suppress(OSError):  # the one that listed the others is closed by now
            if number > 2 and os.get_inheritable(number):
                yield number


def environment_for(
    given: Mapping[str, str],
    inherited: Mapping[str, str] = os.environ,
    also: Iterable[str] = (),
) -> dict[str, str]:
    """The environment of a program: what is allowed of the broker's, then what is `given` to this run.

    `also`: names beyond the common ones; a `*` at the end stands for any rest.
    """
    patterns = ("LC_*", *also)
    passed = {
        name: value
        for name, value in inherited.items()
        if name in ALLOWED or any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    return {"PATH": os.defpath, **passed, **given}
