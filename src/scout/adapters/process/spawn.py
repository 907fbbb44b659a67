"""Starting a program that outlives its broker.

A small shell runs the program in its own session, with files as input and output. The program keeps running
when the broker is killed, and its result is on disk for the next broker. The shell creates the file `pid`
before it starts the program and exits if the file exists, so a run never happens twice.
"""

import os
import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

MARK = "SCOUT_RUN"  # in the environment of everything that a run starts: the folder of the run

# A trap is not inherited: these signals end the program, and the shell stays to write its exit code.
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
# Signals that the broker ignores would be ignored by programs too.
_HEARD = {"SIGCHLD", "SIGHUP", "SIGINT", "SIGPIPE", "SIGQUIT", "SIGTERM", "SIGXFSZ"}
_DEFAULT_SIGNALS = [one for one in signal.Signals if one.name in _HEARD]
_CHILDREN: set[int] = set()


# The user, the language and the folders of programs. No credentials, no SCOUT_*.
ALLOWED = frozenset(
    {
        "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
        "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
    }
)  # fmt: skip


class Launch(NamedTuple):
    """The command to run. Its first word is a path: a shell may resolve a bare word differently."""

    command: tuple[str, ...]
    directory: str
    prompt: str
    environment: Mapping[str, str]


def spawn(launch: Launch, folder: Path) -> None:
    """Start a run in its folder. The shell outlives the broker."""
    words = ("sh", "-c", _SHELL, "sh", str(folder), launch.directory, *launch.command)
    pid = os.posix_spawn(
        "/bin/sh",
        words,
        {**launch.environment, MARK: str(folder)},
        file_actions=_list_file_actions(),
        setsid=True,
        setsigmask=(),
        setsigdef=_DEFAULT_SIGNALS,
    )
    _CHILDREN.add(pid)


def reap() -> None:
    """Reap children that have ended, so that no zombies are left."""
    for pid in list(_CHILDREN):
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                continue
        _CHILDREN.discard(pid)


def _list_file_actions() -> list[tuple[Any, ...]]:
    """Open /dev/null as standard streams, and close all descriptors that would be inherited."""
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    return [*null, *((os.POSIX_SPAWN_CLOSE, number) for number in _list_inheritable())]


def _list_inheritable() -> Iterator[int]:
    for number in map(int, os.listdir("/dev/fd")):  # noqa: PTH208 (names only)
        with suppress(OSError):  # the one that listed the others is closed by now
            if number > 2 and os.get_inheritable(number):
                yield number


def build_environment(
    given: Mapping[str, str],
    inherited: Mapping[str, str] = os.environ,
    also: Iterable[str] = (),
) -> dict[str, str]:
    """Return the environment of a program: allowed variables of the broker, then those `given` to this run.

    `also`: further allowed names; a `*` at the end matches any rest.
    """
    patterns = ("LC_*", *also)
    passed = {
        name: value
        for name, value in inherited.items()
        if name in ALLOWED or any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    return {"PATH": os.defpath, **passed, **given}
