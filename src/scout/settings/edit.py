"""Changing `config.toml`: one key, and every other line stays as its owner wrote it."""

import contextlib
import fcntl
import json
import os
import tempfile
import tomllib
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from scout.base.refusal import BadRequest, Candidate, Refused, Remedy
from scout.settings.load import flat, nearest, parse, problems_in
from scout.settings.record import SETTINGS, Setting, Settings

_FIXED = frozenset({"home", "config", "runtime", "socket"})


def set_value(path: str, key: str, text: str) -> Any:
    """Write one setting into the file and return its value; `none` takes an optional one out."""
    setting = _setting(key)
    try:
        value = setting.read(text)
    except ValueError as error:
        parameters = {"key": key, "value": setting.written(setting.default)}
        remedy = Remedy(operation="config.set", parameters=parameters, why="the default")
        raise Refused(
            BadRequest(problem=f"{key} = {text[:60]!r}: {error}", field=key, remedies=(remedy,))
        ) from None
    with _locked(path):
        _put(path, key, value)
    return value


def add_root(settings: Settings, directory: str) -> Settings:
    """Allow programs below a directory, in the file and in the settings that are returned."""
    root = os.path.realpath(directory)
    if root == "/" or not Path(root).is_dir():
        why = "is the whole disk" if root == "/" else "is no directory"
        remedy = Remedy(operation="config.roots", parameters={}, why="the roots there are")
        raise Refused(BadRequest(problem=f"{root} {why}", field="roots", remedies=(remedy,)))
    with _locked(settings.config):
        kept: object = parse(_bytes(settings.config), settings.config).get("roots", [])
        roots = cast(list[str], kept) if isinstance(kept, list) else []
        if root not in (*settings.roots, *roots):
            _put(settings.config, "roots", (*roots, root))
    return msgspec.structs.replace(settings, roots=tuple(dict.fromkeys((*settings.roots, root))))


def _setting(key: str) -> Setting:
    if key in SETTINGS:
        return SETTINGS[key]
    near = nearest(key)
    problem = f"no setting is called {key[:80]}" + (f"; the nearest is {near[0]}" if near else "")
    if key in _FIXED:
        problem = f"{key} is no setting: SCOUT_HOME in the environment says where Scout keeps its files"
    remedy = Remedy(operation="config", parameters={}, why="every setting")
    candidates = tuple(Candidate(address=one) for one in near)
    raise Refused(BadRequest(problem=problem, field="key", candidates=candidates, remedies=(remedy,)))


def _put(path: str, key: str, value: Any) -> None:
    """The first way of writing it that changes exactly this key; mistyped forms of the key give way to it."""
    before = _bytes(path)
    data = parse(before, path)
    text = before.decode()
    for typo in (one for one, _ in flat(data) if one not in SETTINGS and nearest(one)[:1] == [key]):
        text = next(_without(text, typo), text)
    wanted = {name: one for name, one in flat(tomllib.loads(text)) if name != key}
    if value is not None:
        wanted[key] = list(cast(tuple[str, ...], value)) if isinstance(value, tuple) else value
    for after in _ways(text, key, value):
        if _reads(after) == wanted:
            _check(data, tomllib.loads(after), path)
            return _replace(path, after)
    problem = f"{path} writes {key} in a way that only a person can change"
    raise Refused(BadRequest(problem=problem, field=key))


def _check(before: dict[str, Any], after: dict[str, Any], path: str) -> None:
    """What was wrong already may stay wrong; nothing may become wrong."""
    old = problems_in(before, path)
    if new := [one for one in problems_in(after, path) if one not in old]:
        raise Refused(new[0])


def _reads(text: str) -> dict[str, Any] | None:
    try:
        return dict(flat(tomllib.loads(text)))
    except ValueError:
        return None


# ----------------------------------------------------------------------------------- lines of TOML


class _Line(NamedTuple):
    """A statement: its lines, the table it stands in, and its key there (empty for the header itself)."""

    start: int
    end: int
    table: tuple[str, ...]
    key: tuple[str, ...]


def _ways(text: str, key: str, value: Any) -> Iterator[str]:
    if value is None:
        yield text
        yield from _without(text, key)
        return
    *section, name = key.split(".")
    lines, found = text.split("\n"), list(_statements(text))
    for one in found:
        if ".".join((*one.table, *one.key)) == key:
            written = f"{'.'.join(one.key)} = {_toml(value)}{_comment(lines, one)}"
            yield "\n".join((*lines[: one.start], written, *lines[one.end :]))
    inside = [one.end for one in found if one.table == tuple(section)]
    if inside or not section:
        yield _inserted(lines, max(inside, default=0), f"{name} = {_toml(value)}")
    yield "\n".join(
        (text.rstrip("\n"), "", f"[{'.'.join(section)}]", f"{name} = {_toml(value)}", "")
    ).lstrip()
    first = max((one.end for one in found if not one.table), default=0)
    yield _inserted(lines, first, f"{key} = {_toml(value)}")


def _without(text: str, key: str) -> Iterator[str]:
    lines = text.split("\n")
    for one in _statements(text):
        if one.key and ".".join((*one.table, *one.key)) == key:
            yield "\n".join((*lines[: one.start], *lines[one.end :]))


def _inserted(lines: list[str], at: int, line: str) -> str:
    tail = lines[at:]
    if not tail or (at == 0 and tail[0].startswith("[")):
        tail = ["", *tail]
    return "\n".join((*lines[:at], line, *tail))


def _statements(text: str) -> Iterator[_Line]:
    """The headers and assignments of a valid TOML text. A value goes on until it can be read."""
    lines, at, table = text.split("\n"), 0, ()
    while at < len(lines):
        end, words = at + 1, lines[at].strip()
        if words and not words.startswith("#"):
            while (read := _read(lines[at:end])) is None and end < len(lines):
                end += 1
            key = _path(read or {})
            if words.startswith("["):
                table, key = key, ()
            yield _Line(at, end, table, key)
        at = end


def _read(lines: list[str]) -> dict[str, Any] | None:
    try:
        return tomllib.loads("\n".join(lines))
    except ValueError:
        return None


def _path(data: dict[str, Any]) -> tuple[str, ...]:
    """The key of one assignment or header."""
    path: tuple[str, ...] = ()
    while len(data) == 1:
        name, value = next(iter(data.items()))
        path, data = (*path, name), cast(dict[str, Any], value) if isinstance(value, dict) else {}
    return path


def _comment(lines: list[str], one: _Line) -> str:
    """What stands behind the value on its last line."""
    *above, last = lines[one.start : one.end]
    marks = (at for at, sign in enumerate(last) if sign == "#")
    return next((f"  {last[at:]}" for at in marks if _read([*above, last[:at]])), "")


def _toml(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(one) for one in cast(tuple[Any, ...], value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower()


# -------------------------------------------------------------------------------------- the file


def _bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise _unwritable(path, error) from None


@contextlib.contextmanager
def _locked(path: str) -> Generator[None]:
    """Two writers at once take turns; the folder is the lock, since the file itself is replaced."""
    try:
        folder = Path(path).parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _replace(path: str, text: str) -> None:
    """All or nothing, readable by its owner only; a link to the file stays a link."""
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
        raise _unwritable(path, error) from None


def _unwritable(path: str, error: OSError) -> Refused:
    remedy = Remedy(operation="config", parameters={}, why="where the file is expected")
    problem = f"{path} cannot be changed: {error.strerror}"
    return Refused(BadRequest(problem=problem, field="config.toml", remedies=(remedy,)))
