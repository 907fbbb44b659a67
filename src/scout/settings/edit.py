"""Editing `config.toml`: change one key and keep every other line."""

import contextlib
import fcntl
import os
import tempfile
import tomllib
from collections.abc import Callable, Generator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

import msgspec

from scout.base.codec import list_allowed_words
from scout.base.refusal import BadRequest, Candidate, Refused, Remedy
from scout.settings.load import PROJECTS, find_nearest, find_problems, find_project_setting, flatten, parse
from scout.settings.record import SETTINGS, Setting, Settings

_FIXED = frozenset({"home", "config", "runtime", "socket"})


def set_value(path: str, key: str, text: str, check: Callable[[Any], None] | None = None) -> Any:
    """Write one setting to the file and return its value; `none` removes an optional setting.

    `check` may refuse a well-formed value.
    """
    setting = _get_setting(key, text)
    value = _read(setting, text, {"key": key, "value": setting.format(setting.default)}, "config.set")
    if check is not None:
        check(value)
    with _lock_folder(path):
        _put(path, key, value)
    return value


def set_project(path: str, directory: str, key: str, text: str) -> None:
    """Write one setting of a project to the file; `none` restores the default."""
    setting = find_project_setting(key, directory, value=text)
    again = {"setting": key, "value": setting.format(setting.default) or "none", "projectPath": directory}
    value = setting.default if text.lower() == "none" else _read(setting, text, again, "project.set")
    with _lock_folder(path):
        _put_project(path, directory, key, None if value == setting.default else value)


def add_project(path: str, directory: str) -> bool:
    """Add a directory to the known projects; whether it was new. Its settings stay as they are."""
    with _lock_folder(path):
        known: object = parse(_read_bytes(path), path).get(PROJECTS, {})
        if isinstance(known, dict) and directory in known:
            return False
        _put_project(path, directory)
        return True


def add_root(settings: Settings, directory: str) -> Settings:
    """Add a directory to the allowed roots, in the file and in the returned settings."""
    root = os.path.realpath(directory)
    if root == "/" or not Path(root).is_dir():
        why = "is the root of the file system" if root == "/" else "is not a directory"
        remedy = Remedy(operation="config.roots", parameters={}, why="list the allowed roots")
        raise Refused(BadRequest(problem=f"{root} {why}", field="roots", remedies=(remedy,)))
    with _lock_folder(settings.config):
        kept: object = parse(_read_bytes(settings.config), settings.config).get("roots", [])
        roots = cast(list[str], kept) if isinstance(kept, list) else []
        if root not in (*settings.roots, *roots):
            _put(settings.config, "roots", (*roots, root))
    return msgspec.structs.replace(settings, roots=tuple(dict.fromkeys((*settings.roots, root))))


def _read(setting: Setting, text: str, again: dict[str, Any], operation: str) -> Any:
    """Return the value of a text; the refusal offers the nearest allowed word, or the default."""
    try:
        return setting.read(text)
    except ValueError as error:
        near = get_close_matches(text[:60], list_allowed_words(setting.kind), n=1)
        parameters = {**again, "value": near[0]} if near else again
        why = "the nearest" if near else "the default"
        remedy = Remedy(operation=operation, parameters=parameters, why=why)
        problem = f"{setting.key} = {text[:60]!r}: {error}"
        raise Refused(BadRequest(problem=problem, field=setting.key, remedies=(remedy,))) from None


def _get_setting(key: str, text: str) -> Setting:
    if key in SETTINGS:
        return SETTINGS[key]
    near = find_nearest(key)
    again = [Remedy(operation="config.set", parameters={"key": one, "value": text[:200]}) for one in near[:1]]
    problem = f"no setting is called {key[:80]}" + (f"; the nearest is {near[0]}" if near else "")
    if key in _FIXED:
        problem = f"{key} is not a setting: SCOUT_HOME in the environment sets the data folder"
    remedy = Remedy(operation="config", parameters={}, why="every setting")
    candidates = tuple(Candidate(address=one) for one in near)
    remedies = (*again, remedy) if key not in _FIXED else (remedy,)
    raise Refused(BadRequest(problem=problem, field="key", candidates=candidates, remedies=remedies))


def _put(path: str, key: str, value: Any) -> None:
    """Write one key and keep every other line; mistyped forms of the key are removed."""
    import tomlkit  # noqa: PLC0415 (only writing a setting needs it)

    before = _read_bytes(path)
    data = parse(before, path)
    document = tomlkit.parse(before.decode())
    for typo, _ in flatten(data):
        if typo not in SETTINGS and find_nearest(typo)[:1] == [key]:
            _remove(document, typo.split("."))
    if value is None:
        _remove(document, key.split("."))
    else:
        _assign(document, key.split("."), list(cast(Any, value)) if isinstance(value, tuple) else value)
    after = document.as_string()
    _check(data, tomllib.loads(after), path)
    _replace(path, after)


def _put_project(path: str, directory: str, key: str = "", value: Any = None) -> None:
    """Write the table of a project, with one key if it is given; None removes the key."""
    import tomlkit  # noqa: PLC0415 (only writing a setting needs it)

    before = _read_bytes(path)
    data, document = parse(before, path), tomlkit.parse(before.decode())
    projects = document.setdefault(PROJECTS, tomlkit.table(is_super_table=True))
    if not isinstance(projects, dict):
        raise Refused(BadRequest(problem=f"{PROJECTS} must be a table; correct it by hand", field=PROJECTS))
    table: dict[str, Any] = cast(dict[str, Any], projects).setdefault(directory, tomlkit.table())
    if value is not None:
        _assign(table, key.split("."), list(cast(Any, value)) if isinstance(value, tuple) else value)
    elif key:
        _remove(table, key.split("."))
    after = document.as_string()
    _check(data, tomllib.loads(after), path)
    _replace(path, after)


def _assign(table: dict[str, Any], parts: list[str], value: Any) -> None:
    *tables, name = parts
    for one in tables:
        inner = table.setdefault(one, {})
        if not isinstance(inner, dict):
            raise Refused(BadRequest(problem=f"{one} must be a table; correct it by hand", field=one))
        table = cast(dict[str, Any], inner)
    table[name] = value


def _remove(table: dict[str, Any], parts: list[str]) -> None:
    *tables, name = parts
    for one in tables:
        inner = table.get(one)
        if not isinstance(inner, dict):
            return
        table = cast(dict[str, Any], inner)
    table.pop(name, None)


def _check(before: dict[str, Any], after: dict[str, Any], path: str) -> None:
    """Refuse a change that makes a setting wrong; settings that were already wrong may stay."""
    old = find_problems(before, path)
    if new := [one for one in find_problems(after, path) if one not in old]:
        raise Refused(new[0])


# -------------------------------------------------------------------------------------- the file


def _read_bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise _build_refusal(path, error) from None


@contextlib.contextmanager
def _lock_folder(path: str) -> Generator[None]:
    """Lock the file's folder against other writers; the file cannot be the lock because it is replaced."""
    try:
        folder = Path(path).parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise _build_refusal(path, error) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _replace(path: str, text: str) -> None:
    """Replace the file atomically, readable only by its owner; a symbolic link to the file is kept."""
    real = os.path.realpath(path)
    try:
        handle, new = tempfile.mkstemp(dir=Path(real).parent, prefix=".config-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(new).replace(real)
        except BaseException:
            Path(new).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise _build_refusal(path, error) from None


def _build_refusal(path: str, error: OSError) -> Refused:
    remedy = Remedy(operation="config", parameters={}, why="where the file is expected")
    problem = f"{path} cannot be changed: {error.strerror}"
    return Refused(BadRequest(problem=problem, field="config.toml", remedies=(remedy,)))
