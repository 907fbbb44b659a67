"""Git on a repository that is not trusted: nothing that the repository configures is read or run.

Anyone who can write to a folder can write `.git/config`, and git runs programs it names: filters, monitors,
hooks, text converters, transports. So git never sees that file. It works with a git folder of Scout's, made
fresh for each use: Scout's own config, a copy of the index, the repository's objects as alternates, and
attributes that switch off every attribute of the work tree. Submodules are removed from the index first,
because git starts itself inside submodules that it knows; it then records only the commit that each has
checked out.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

from scout.ports import GitFailed
from scout.settings.folder import make_private
from scout.tree.git import Repository, read_small_text

_CONFIG = """[core]
\trepositoryFormatVersion = 1
\tbare = false
\tfsmonitor = false
\thooksPath = /dev/null
\tattributesFile = /dev/null
\tsplitIndex = false
\tuntrackedCache = false
\tfsync = none
\tquotePath = false
{ignored}[advice]
\taddEmbeddedRepo = false
[diff]
\tignoreSubmodules = dirty
[submodule]
\trecurse = false
[gc]
\tauto = 0
[protocol]
\tallow = never
[extensions]
\tobjectFormat = {format}
"""
_ATTRIBUTES = "* !text !crlf !eol !filter !ident !diff !merge !whitespace !working-tree-encoding\n"
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_ADVICE": "0",
}
_FORMAT = re.compile(r"^\s*objectformat\s*=\s*\"?sha256\b", re.IGNORECASE | re.MULTILINE)
_SUBMODULE = b"160000 "
_SHARED_INDEXES = 16
_LARGEST = 64 << 20  # maximum bytes of one file in an object folder
_BLOCK = 512  # bytes, the unit of `ulimit -f`
_LIMITED = ("/bin/sh", "-c", f'ulimit -f {_LARGEST // _BLOCK}; exec "$@"', "sh")
_ANSWER = 1 << 20
_LISTED = 64 << 20


class Output(NamedTuple):
    """The output of git; `cut` if there was more."""

    text: str
    cut: bool


class IsolatedGit:
    """Git with a folder of Scout's in place of the repository's. `end`: deadline on the monotonic clock."""

    def __init__(self, top: str, environment: dict[str, str], end: float) -> None:
        self._top = top
        self._environment = environment
        self._end = end

    def run(self, *words: str, fine: tuple[int, ...] = (0,), given: bytes = b"") -> str:
        """Run a command and return its output."""
        return self._call(words, most=_ANSWER, fine=fine, given=given)[:_ANSWER].decode("utf-8", "replace")

    def read(self, *words: str, most: int) -> Output:
        """Run a command and return its output, up to `most` bytes in whole lines."""
        printed = self._call(words, most=most)
        text, cut = printed[:most].decode("utf-8", "replace"), len(printed) > most
        return Output(text.rpartition("\n")[0] + "\n" if cut else text, cut)

    def drop_submodules(self) -> None:
        """Remove submodules from the index: git would start itself inside them, with their configuration."""
        listed = self._call(("ls-files", "--stage", "-z"), most=_LISTED)
        if len(listed) > _LISTED:
            raise GitFailed("its index has too many files")
        lines = (line for line in listed.split(b"\0") if line.startswith(_SUBMODULE))
        if names := [line.partition(b"\t")[2] + b"\0" for line in lines]:
            self.run("update-index", "--force-remove", "-z", "--stdin", given=b"".join(names))

    def _call(
        self, words: tuple[str, ...], *, most: int, fine: tuple[int, ...] = (0,), given: bytes = b""
    ) -> bytes:
        """Run a command and return its output, up to one byte more than `most`."""
        with tempfile.TemporaryFile() as complaints, tempfile.TemporaryFile() as said:
            said.write(given)
            said.seek(0)
            try:
                process = subprocess.Popen(
                    [*_LIMITED, "git", *words],
                    cwd=self._top,
                    env=self._environment,
                    stdin=said,
                    stdout=subprocess.PIPE,
                    stderr=complaints,
                    start_new_session=True,
                    umask=0o077,
                )
            except OSError as error:
                raise GitFailed(f"git cannot be run in {self._top}: {error.strerror}") from None
            told, late = _read(process, most, self._end)
            if late:
                raise GitFailed("its work tree is too large for a snapshot in time")
            if process.returncode not in fine and len(told) <= most:
                complaints.seek(0)
                words_of_git = " ".join(complaints.read(2000).decode("utf-8", "replace").split())
                raise GitFailed(words_of_git[:300] or f"git exited with {process.returncode} in {self._top}")
        return told


@contextlib.contextmanager
def open_git(repository: Repository, folder: Path, end: float) -> Generator[IsolatedGit]:
    """Open git on this repository. New objects stay below `folder`; everything else is removed afterwards."""
    objects = folder / "objects"
    make_private(objects)
    own = Path(tempfile.mkdtemp(prefix="git-", dir=folder))
    try:
        _fill_folder(own, repository, end)
        yield IsolatedGit(repository.top, _build_environment(own, objects, repository), end)
    except OSError as error:
        raise GitFailed(f"its repository cannot be read: {error.strerror}") from None
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _fill_folder(own: Path, repository: Repository, end: float) -> None:
    """Fill the git folder with Scout's settings, a copy of the index, and the list of ignored files."""
    for name in ("refs", "info"):
        (own / name).mkdir(mode=0o700)
    (own / "HEAD").write_text("ref: refs/heads/none\n", "utf-8")
    uses_sha256 = _FORMAT.search(read_small_text(Path(repository.common, "config")) or "")
    config = _CONFIG.format(
        format="sha256" if uses_sha256 else "sha1", ignored=_find_global_ignores(own, end)
    )
    (own / "config").write_text(config, "utf-8")
    (own / "info" / "attributes").write_text(_ATTRIBUTES, "utf-8")
    ignored = read_small_text(Path(repository.common, "info", "exclude"))
    (own / "info" / "exclude").write_text(ignored or "", "utf-8")
    for path in (Path(repository.own, "index"), *_list_shared_indexes(repository)):
        if path.is_file():  # a repository without a commit has no index
            shutil.copyfile(path, own / path.name)


def _find_global_ignores(own: Path, end: float) -> str:
    """Return the setting that names the user's global list of ignored files."""
    environment = {
        **_list_passed_variables(),
        **_ENVIRONMENT,
        "PATH": _get_absolute_path(),
        "GIT_DIR": str(own),
    }
    del environment["GIT_CONFIG_GLOBAL"]
    words = ("config", "--global", "--type=path", "--get", "core.excludesFile")
    with contextlib.suppress(GitFailed):
        path = IsolatedGit(str(own), environment, end).run(*words, fine=(0, 1)).strip()
        return f"\texcludesFile = {_quote_for_config(path)}\n" if path else ""
    return ""


def _quote_for_config(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _list_shared_indexes(repository: Repository) -> list[Path]:
    """Return the files that a split index refers to: the newest, because git keeps old ones for a while."""
    found = sorted(Path(repository.own).glob("sharedindex.*"), key=lambda path: path.lstat().st_mtime)
    return found[-_SHARED_INDEXES:]


def _build_environment(own: Path, objects: Path, repository: Repository) -> dict[str, str]:
    return {
        **_list_passed_variables(),
        **_ENVIRONMENT,
        "PATH": _get_absolute_path(),
        "GIT_DIR": str(own),
        "GIT_WORK_TREE": repository.top,
        "GIT_INDEX_FILE": str(own / "index"),
        "GIT_OBJECT_DIRECTORY": str(objects),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quote_for_list(f"{repository.common}/objects"),
    }


def _list_passed_variables() -> dict[str, str]:
    return {name: value for name in ("HOME", "XDG_CONFIG_HOME") if (value := os.environ.get(name))}


def _get_absolute_path() -> str:
    """Return PATH without relative folders: the working directory is the work tree, which is not trusted."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if Path(folder).is_absolute()) or os.defpath


def _read(process: "subprocess.Popen[bytes]", most: int, end: float) -> tuple[bytes, bool]:
    """Read up to `most` bytes of a process's output, plus one; whether it was killed at the deadline."""
    late = threading.Event()

    def stop() -> None:
        late.set()
        _kill(process)

    timer = threading.Timer(max(0.01, end - time.monotonic()), stop)
    timer.start()
    with process:
        assert process.stdout is not None
        told = process.stdout.read(most + 1)
        if len(told) > most:
            _kill(process)
        process.wait()
        timer.cancel()
    return told, late.is_set()


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _quote_for_list(path: str) -> str:
    """Quote a path for a colon-separated list."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"' if set(path) & {":", '"'} else path
