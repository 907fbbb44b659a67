"""Git on a repository that is not trusted: nothing that the repository configures is read or run.

Anyone who can write to a folder can write `.git/config`, and git runs programs it names: filters, monitors,
hooks, text converters, merge drivers, transports. So git never sees that file. It works with a git folder of
Scout's, made fresh for each use: Scout's own config, the repository's objects as alternates, and an index.

There are two manners. For snapshots (`open_git`), everything that is written stays in a folder of Scout's:
the index is a copy, and all attributes of the work tree are switched off, so that files are stored as they
are. For agent trees (`open_isolated`), attributes such as `text` and `eol` hold, because users see these
files; filters and drivers that attributes name do not exist here. Objects and the index are the repository's
own where the result must stay, and git's own locks protect them.

Git starts itself inside submodules that it knows. Snapshots remove submodules from the index first, and
record only the commit that each has checked out; other commands are told to ignore them.
"""

import contextlib
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

from scout.ports import GitFailed
from scout.settings.folder import make_private
from scout.tree.git.process import ENVIRONMENT, GitProcess, build_passed_environment, read_global_config
from scout.tree.git.repository import Repository, read_small_text

_CONFIG = """[core]
\trepositoryFormatVersion = 1
\tbare = false
\tfsmonitor = false
\thooksPath = /dev/null
\tattributesFile = /dev/null
\tsplitIndex = false
\tuntrackedCache = false
\tfsync = {fsync}
\tquotePath = false
\tsparseCheckout = {sparse}
{more}[advice]
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
_NO_ATTRIBUTES = "* !text !crlf !eol !filter !ident !diff !merge !whitespace !working-tree-encoding\n"
_LINES = re.IGNORECASE | re.MULTILINE
_FORMAT = re.compile(r"^\s*objectformat\s*=\s*\"?sha256\b", _LINES)
_SHARED = re.compile(
    r"^\s*sharedrepository\s*=\s*\"?(group|true|1|all|world|everybody|2|3|0[0-7]{3})\b",
    _LINES,
)
_SPARSE = re.compile(r"^\s*sparsecheckout\s*(=\s*\"?(true|yes|on|1)\b|$)", _LINES)
_ENDINGS = re.compile(r"^\s*(autocrlf|eol)\s*=\s*\"?(true|false|input|lf|crlf|native)\b", _LINES)
_SUBMODULE = b"160000 "
_SHARED_INDEXES = 16
_LISTED = 64 << 20
_REMEMBERED = 10.0  # seconds for which the user's global list of ignored files is not looked up again


class Isolation(NamedTuple):
    """What an isolated git works with. `head`: the commit that HEAD names.

    `copy_index`: changes go to a copy of the index, not to the work tree's. `keep_objects`: new objects must
    survive a power cut. `new_objects`: new objects go to a folder that is removed, not to the repository.
    """

    head: str | None = None
    copy_index: bool = False
    keep_objects: bool = False
    new_objects: bool = False


class IsolatedGit(GitProcess):
    """Git with a folder of Scout's in place of the repository's."""

    def list_submodules(self) -> list[bytes]:
        """Return the lines of submodules, as `ls-files --stage` prints them."""
        listed = self.call(("ls-files", "--stage", "-z"), most=_LISTED)
        if len(listed) > _LISTED:
            raise GitFailed("its index has too many files")
        return [line for line in listed.split(b"\0") if line.startswith(_SUBMODULE)]

    def drop_submodules(self) -> list[bytes]:
        """Remove submodules from the index: git would start itself inside them, with their configuration.

        Return their lines, as `update-index --index-info` takes them.
        """
        lines = self.list_submodules()
        if names := [line.partition(b"\t")[2] + b"\0" for line in lines]:
            self.run("update-index", "--force-remove", "-z", "--stdin", given=b"".join(names))
        return lines


@contextlib.contextmanager
def open_git(repository: Repository, folder: Path, end: float) -> Generator[IsolatedGit]:
    """Open git for snapshots. New objects stay below `folder`; everything else is removed afterwards."""
    objects = folder / "objects"
    make_private(objects)
    with _make_own_folder(folder) as own:
        _fill_folder(own, repository, _find_global_ignores(own, end), fsync="none", attributes=_NO_ATTRIBUTES)
        _copy_index(own, repository)
        environment = _build_environment(own, objects, repository)
        late = "its work tree is too large for a snapshot in time"
        yield IsolatedGit(repository.top, environment, end, private=True, limited=True, late=late)


@contextlib.contextmanager
def open_isolated(
    repository: Repository, folder: Path, end: float, isolation: Isolation = Isolation()
) -> Generator[IsolatedGit]:
    """Open git for an agent tree; `folder` holds temporary files, which are removed afterwards."""
    with _make_own_folder(folder) as own:
        kept = isolation.keep_objects
        more = _find_global_ignores(own, end) + _read_plain_settings(repository)
        _fill_folder(own, repository, more, fsync="all" if kept else "none", attributes=None)
        _write_head(own, isolation.head)
        _copy_shallow(own, repository)
        objects = Path(repository.common, "objects")
        if isolation.new_objects:
            objects = own / "objects"
            objects.mkdir(mode=0o700)
        environment = _build_environment(own, objects, repository)
        if isolation.copy_index:
            _copy_index(own, repository)
        else:
            environment["GIT_INDEX_FILE"] = f"{repository.own}/index"
            for path in _list_shared_indexes(repository):
                (own / path.name).symlink_to(path)
        yield IsolatedGit(repository.top, environment, end, private=isolation.new_objects)


class SharedFolders:
    """Git folders of Scout's that the work trees of one repository share, one for each thread.

    To make and remove a folder takes about as long as git takes for the status of a small work tree.
    """

    def __init__(self, folder: Path, end: float) -> None:
        self._folder = folder
        self._end = end
        self._threads = threading.local()
        self._made = contextlib.ExitStack()

    def open(self, repository: Repository, head: str | None) -> IsolatedGit | None:
        """Return git for a work tree with this commit; None if the work tree needs a separate folder."""
        if is_sparse(repository) or _list_shared_indexes(repository):
            return None
        own: Path | None = getattr(self._threads, "own", None)
        if own is None:
            own = self._threads.own = self._make(repository)
        _write_head(own, head)
        environment = _build_environment(own, Path(repository.common, "objects"), repository)
        environment["GIT_INDEX_FILE"] = f"{repository.own}/index"
        return IsolatedGit(repository.top, environment, self._end)

    def _make(self, repository: Repository) -> Path:
        own = self._made.enter_context(_make_own_folder(self._folder))
        more = _find_global_ignores(own, self._end) + _read_plain_settings(repository)
        _fill_folder(own, repository, more, fsync="none", attributes=None)
        _copy_shallow(own, repository)
        return own

    def close(self) -> None:
        """Remove the folders."""
        self._made.close()


@contextlib.contextmanager
def _make_own_folder(folder: Path) -> Generator[Path]:
    """Make a git folder of Scout's, and remove it afterwards."""
    make_private(folder)
    own = Path(tempfile.mkdtemp(prefix="git-", dir=folder))
    try:
        yield own
    except OSError as error:
        raise GitFailed(f"its repository cannot be read: {error.strerror}") from None
    finally:
        shutil.rmtree(own, ignore_errors=True)


def is_sparse(repository: Repository) -> bool:
    """Whether a work tree is a sparse checkout."""
    files = (Path(repository.own, "config.worktree"), Path(repository.common, "config"))
    return any(_SPARSE.search(read_small_text(file) or "") for file in files)


def get_object_bytes(repository: Repository) -> int:
    """Return the length of an object id in bytes."""
    return 32 if _FORMAT.search(read_small_text(Path(repository.common, "config")) or "") else 20


def _fill_folder(own: Path, repository: Repository, more: str, *, fsync: str, attributes: str | None) -> None:
    """Fill the git folder with Scout's settings, and the lists of ignored files and sparse patterns."""
    (own / "refs").mkdir(mode=0o700)
    _write_head(own, None)
    sparse = is_sparse(repository)
    config = _CONFIG.format(
        format="sha256" if get_object_bytes(repository) == 32 else "sha1",
        fsync=fsync,
        sparse="true" if sparse else "false",
        more=more,
    )
    (own / "config").write_text(config, "utf-8")
    patterns = read_small_text(Path(repository.own, "info", "sparse-checkout")) if sparse else None
    ignored = read_small_text(Path(repository.common, "info", "exclude")) or ""
    told = any(line.strip() and not line.startswith("#") for line in ignored.splitlines())
    info = {"attributes": attributes, "exclude": ignored if told else None, "sparse-checkout": patterns}
    _write_info(own / "info", {name: text for name, text in info.items() if text is not None})


def _write_head(own: Path, commit: str | None) -> None:
    (own / "HEAD").write_text(f"{commit or 'ref: refs/heads/none'}\n", "utf-8")


def _copy_shallow(own: Path, repository: Repository) -> None:
    """Copy the list of commits at which the history of a shallow clone ends."""
    shallow = Path(repository.common, "shallow")
    if shallow.is_file():
        shutil.copyfile(shallow, own / "shallow")


def _write_info(folder: Path, texts: dict[str, str]) -> None:
    if texts:
        folder.mkdir(mode=0o700)
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")


def _read_plain_settings(repository: Repository) -> str:
    """Return the settings of the repository that are plain values: line endings and file modes."""
    text = read_small_text(Path(repository.common, "config")) or ""
    shared = _SHARED.search(text)
    found = {name.lower(): value.lower() for name, value in _ENDINGS.findall(text)}
    if shared is not None:
        found["sharedRepository"] = shared[1]
    return "".join(f"\t{name} = {value}\n" for name, value in found.items())


_excludes: tuple[float, tuple[str | None, ...], str] | None = None


def _find_global_ignores(own: Path, end: float) -> str:
    """Return the setting that names the user's global list of ignored files."""
    global _excludes  # noqa: PLW0603 (a short memory of one value)
    user = tuple(os.environ.get(name) for name in ("HOME", "XDG_CONFIG_HOME"))
    if _excludes and _excludes[0] > time.monotonic() and _excludes[1] == user:
        return _excludes[2]
    path = read_global_config(str(own), end, "--type=path", "--get", "core.excludesFile").strip()
    line = f"\texcludesFile = {_quote_for_config(path)}\n" if path else ""
    _excludes = (time.monotonic() + _REMEMBERED, user, line)
    return line


def _quote_for_config(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _copy_index(own: Path, repository: Repository) -> None:
    """Copy the index with its time: git reads again what was written in the same second as the index."""
    for path in (Path(repository.own, "index"), *_list_shared_indexes(repository)):
        if path.is_file():  # a repository without a commit has no index
            seen = path.stat()
            shutil.copyfile(path, own / path.name)
            os.utime(own / path.name, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def _list_shared_indexes(repository: Repository) -> list[Path]:
    """Return the files that a split index refers to: the newest, because git keeps old ones for a while."""
    found = sorted(Path(repository.own).glob("sharedindex.*"), key=lambda path: path.lstat().st_mtime)
    return found[-_SHARED_INDEXES:]


def _build_environment(own: Path, objects: Path, repository: Repository) -> dict[str, str]:
    return {
        **build_passed_environment(),
        **ENVIRONMENT,
        "GIT_DIR": str(own),
        "GIT_WORK_TREE": repository.top,
        "GIT_INDEX_FILE": str(own / "index"),
        "GIT_OBJECT_DIRECTORY": str(objects),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quote_for_list(f"{repository.common}/objects"),
    }


def _quote_for_list(path: str) -> str:
    """Quote a path for a colon-separated list."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"' if set(path) & {":", '"'} else path
