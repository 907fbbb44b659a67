"""Surroundings of a directory: its real path, project, agent name and branch."""

import difflib
import itertools
import os
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from scout.base.codec import decode
from scout.base.record import Record
from scout.base.refusal import PLACEHOLDER, BadRequest, Candidate, Refused, Remedy
from scout.identity.address import fold
from scout.policy.permit import check_project
from scout.ports import Surroundings, WorkTreePath
from scout.tree.git.repository import Repository, find_repository, read_small_text

_FIELD = "projectPath"
_LISTED = 1000  # maximum names compared to find a similar one


class _Project(Record):
    """The fields of `.scout/project.toml`. Other fields have no effect."""

    name: str | None = None
    harness: str | None = None
    model: str | None = None


class _File(Record):
    folder: str
    says: _Project


class Disk:
    """The real disk. The home folder and temporary roots are never projects, whatever they contain."""

    def __init__(self, home: str | None = None, temporary: tuple[str, ...] | None = None) -> None:
        self._home = os.path.realpath(home or Path.home())
        roots = (tempfile.gettempdir(), "/tmp", "/var/tmp") if temporary is None else temporary
        self._temporary = tuple(dict.fromkeys(os.path.realpath(root) for root in roots))

    @property
    def home(self) -> str:
        return self._home

    @property
    def temporary(self) -> tuple[str, ...]:
        return self._temporary

    def locate(self, directory: str, base: str | None = None) -> Surroundings:
        """Describe a directory; a relative one is relative to `base`. Refused if it does not exist."""
        real = self.real_path(directory, base)
        folders = self._list_upward(real)
        repository = find_repository(folders)
        own = _find_project_file(_limit_to_work_tree(folders, repository))
        root = own.folder if own else repository.top if repository else real
        check_project(root, self._home, self._temporary)
        file = self._find_shared_file(repository) or own
        named = _choose_name_folder(root, repository, file)
        says = file.says if file else _Project()
        return Surroundings(
            directory=real,
            project_root=root,
            definition=_choose_definition(says.name, named, real),
            parent_folder=Path(named).parent.name,
            branch=repository.branch if repository else None,
            workspace=_choose_workspace(repository),
            repository=repository.top if repository else None,
            configured_name=says.name,
            harness=says.harness,
            model=says.model,
        )

    def real_path(self, directory: str, base: str | None = None) -> str:
        """Return the directory without links. Refused if it does not exist."""
        return _resolve_path(self._make_absolute(directory, base))

    def find_work_tree(self, path: str, base: str | None = None) -> WorkTreePath:
        """Return in which work tree a file or directory is; it does not have to exist yet."""
        wished = Path(os.path.normpath(self._make_absolute(path, base)))
        named, real = os.path.realpath(wished.parent / "_")[:-1] + wished.name, os.path.realpath(wished)
        if not _is_text(named + real):
            raise _build_refusal("the real path is not UTF-8 text")
        folders = self._list_upward(real if _is_folder(real) else str(Path(named).parent))
        found = find_repository(folders)
        common = os.path.realpath(found.common) if found else None
        return WorkTreePath(path=named, real=real, top=found.top if found else None, common=common)

    def _make_absolute(self, directory: str, base: str | None) -> str:
        """Return the absolute path of a given directory."""
        if not directory or "\0" in directory or not _is_text(directory):
            raise _build_refusal("expected the path of a directory, as UTF-8 text")
        if directory == "~" or directory.startswith("~/"):
            directory = self._home + directory[1:]
        if not directory.startswith("/") and base is None:
            problem = f"{directory:.120} is relative, but the caller has no directory"
            raise _build_refusal(problem, at=f"/{directory}")
        return directory if base is None else f"{base}/{directory}" if directory[0] != "/" else directory

    def _list_upward(self, real: str) -> list[str]:
        """Return the directory and its parents, without folders that cannot be a project."""
        none = {"/", self._home, *self._temporary}
        return [folder for folder in map(str, (Path(real), *Path(real).parents)) if folder not in none]

    def _find_shared_file(self, repository: Repository | None) -> _File | None:
        """Return the project file of the main repository, which names its linked work trees."""
        main = repository.main if repository else None
        return _find_project_file(self._list_upward(main)) if main else None


def _resolve_path(path: str) -> str:
    try:
        real = os.path.realpath(path, strict=True)
        if not Path(real).is_dir():
            problem = f"{real} is a file, not a directory"
            raise _build_refusal(problem, at=str(Path(real).parent))
    except (FileNotFoundError, NotADirectoryError):
        raise _build_missing(path) from None
    except OSError as error:
        raise _build_refusal(f"{path:.200} cannot be read: {error.strerror}") from None
    if not _is_text(real):
        raise _build_refusal("the real path of the directory is not UTF-8 text")
    return real


def _build_missing(path: str) -> Refused:
    """Build the refusal of a missing directory, with its first missing part and similar names."""
    parts = [part for part in os.path.normpath(path).split("/") if part]
    above = Path("/")
    for part in parts:
        if not (above / part).is_dir():
            near = difflib.get_close_matches(part, _list_folders(above), n=3, cutoff=0.5)
            found = [str(above / name) for name in near]
            what = "is a file, not a directory" if (above / part).exists() else "does not exist"
            problem = f"{str(above / part)[:200]} {what}"
            return _build_refusal(problem, at=found[0] if found else str(above), near=found)
        above = above / part
    return _build_refusal(f"{path:.200} does not exist")


def _list_folders(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            found = itertools.islice(entries, _LISTED)
            return sorted(entry.name for entry in found if entry.is_dir() and _is_text(entry.name))
    except OSError:
        return []


def _limit_to_work_tree(folders: list[str], repository: Repository | None) -> list[str]:
    """Drop the folders above a linked work tree: a project file above it does not apply to it."""
    if repository is None or repository.main is None:
        return folders
    return folders[: folders.index(repository.top) + 1]


def _find_project_file(folders: list[str]) -> _File | None:
    """Return the nearest project file of these folders. An unreadable file is refused, not skipped."""
    for folder in folders:
        path = Path(folder, ".scout", "project.toml")
        if path.exists():
            return _File(folder=folder, says=_read_project(path))
    return None


def _read_project(path: Path) -> _Project:
    text = read_small_text(path)
    if text is None:
        raise _build_refusal(f"{path} is not a readable text file")
    try:
        says = decode(tomllib.loads(text), _Project)
    except Refused as refusal:
        raise _build_refusal(f"{path}: {refusal.diagnostic.message}") from None
    except (ValueError, RecursionError) as error:
        raise _build_refusal(f"{path} is not TOML: {str(error)[:200]}") from None
    if says.name is not None and not fold(says.name):
        raise _build_refusal(f"{path}: nothing is left of the name {says.name[:60]!r} when it is folded")
    return says


def _choose_name_folder(root: str, repository: Repository | None, file: _File | None) -> str:
    """Return the folder that gives the name: the project file's, the main repository's, or the project's."""
    if file is not None:
        return file.folder
    return repository.main if repository and repository.main else root


def _choose_definition(configured: str | None, folder: str, directory: str) -> str:
    """Return the configured name or the folder's, folded. The broker checks whether it is free."""
    if name := fold(configured or Path(folder).name):
        return name
    problem = f'the name of {folder} has no letter or digit; give it one in .scout/project.toml: name = "…"'
    register = {"definitionId": "NAME", "projectRoot": directory}
    remedy = Remedy(operation="agent.register", parameters=register, why="or name the agent yourself")
    raise Refused(BadRequest(problem=problem, field=_FIELD, remedies=(remedy,)))


def _choose_workspace(repository: Repository | None) -> str | None:
    """Return the branch of a linked work tree, also during a rebase; the folder's name if detached."""
    if repository is None or repository.main is None:
        return None
    branch = repository.branch or repository.origin or ""
    return fold(branch) or fold(Path(repository.top).name) or "detached"


def _is_folder(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except OSError:  # a name that is too long
        return False


def _is_text(text: str) -> bool:
    """Whether a text is valid Unicode: file names may be any bytes, but records hold text."""
    return not any("\ud800" <= sign <= "\udfff" for sign in text)


def _build_refusal(problem: str, at: str = "", near: Sequence[str] = ()) -> Refused:
    again = {"projectPath": at, "body": PLACEHOLDER}
    remedy = Remedy(operation="ask", parameters=again, why="an existing directory")
    return Refused(
        BadRequest(
            problem=problem,
            field=_FIELD,
            candidates=tuple(Candidate(address=one) for one in near),
            remedies=(remedy,) if at else (),
        )
    )
