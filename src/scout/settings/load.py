"""The layers of the settings: defaults, then `config.toml`, then the environment, then flags."""

import difflib
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from scout.base.record import Record
from scout.base.refusal import BadRequest, Candidate, Refused, Remedy
from scout.policy.limits import Rules
from scout.policy.tree.projects import ProjectRules
from scout.settings import where
from scout.settings.record import PROJECT_SETTINGS, SECTIONS, SETTINGS, Setting, Settings, nest

_FAMILIES = tuple(f"SCOUT_{section.upper()}_" for section in SECTIONS if "." not in section)
PROJECTS = "projects"  # the table of the file with one table for each known project
_SHOW = Remedy(operation="config", parameters={}, why="every setting, its value and where it comes from")


class Loaded(Record):
    """The settings, the source of each, and the problems; an invalid value falls back to the layer below."""

    settings: Settings
    sources: dict[str, str]
    problems: tuple[BadRequest, ...] = ()


class _Given(Record):
    """A value from one layer; `name` is the key's name there."""

    key: str
    value: Any
    layer: str
    name: str
    known: tuple[str, ...] = tuple(SETTINGS)
    in_file: bool = False


def load(flags: Mapping[str, str] = {}, environ: Mapping[str, str] | None = None) -> Loaded:
    """Return the settings; refuse on the first problem. `flags` are by key (`port`, `limits.openFlights`)."""
    loaded = read(flags, environ)
    if loaded.problems:
        raise Refused(loaded.problems[0])
    return loaded


def read(flags: Mapping[str, str] = {}, environ: Mapping[str, str] | None = None) -> Loaded:
    """Return the settings together with all problems."""
    environ = os.environ if environ is None else environ
    home, config = where.find_folders(environ)
    data, problems = _read_file(config)
    given = [*_list_file_values(data, config), *_list_environment_values(environ), *_list_flag_values(flags)]
    values, sources, wrong = _apply_layers(given)
    projects, wrong_projects = read_projects(data, config, environ)
    runtime = os.path.dirname(where.choose_socket_path(home, environ))  # noqa: PTH120 (text in, text out)
    folders = {"home": home, "config": config, "runtime": runtime}
    values["roots"] = tuple(_resolve_root(root, environ) for root in values["roots"])
    if values["notify.secretFile"] is not None:
        values["notify.secretFile"] = _resolve_root(values["notify.secretFile"], environ)
    tables = nest(values)
    rules = {field.encode_name: tables.pop(field.encode_name) for field in msgspec.structs.fields(Rules)}
    settings = msgspec.convert({**folders, **tables, "rules": rules}, Settings)
    settings = msgspec.structs.replace(settings, projects=projects)
    layer = "environment SCOUT_HOME" if environ.get("SCOUT_HOME") else "default"
    sources = {**dict.fromkeys(folders, layer), **sources}
    return Loaded(settings=settings, sources=sources, problems=(*problems, *wrong, *wrong_projects))


def parse(text: bytes, path: str) -> dict[str, Any]:
    """Return the tables of a TOML text; a refusal names the line."""
    try:
        return tomllib.loads(text.decode())
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        problem = f"{path} is not UTF-8 (at line {line})"
    except (ValueError, RecursionError) as error:
        last = f"at line {len(text.rstrip().splitlines())}, the last"
        problem = f"{path} is not TOML: {str(error)[:200].replace('at end of document', last)}"
    raise Refused(BadRequest(problem=problem, field="config.toml", remedies=(_SHOW,)))


def find_problems(data: dict[str, Any], path: str) -> tuple[BadRequest, ...]:
    """Return the problems of the values in a config file."""
    return (*_apply_layers(_list_file_values(data, path))[2], *read_projects(data, path)[1])


def find_nearest(key: str, known: tuple[str, ...] = tuple(SETTINGS)) -> list[str]:
    """Return the known keys that are most similar, nearest first."""
    return difflib.get_close_matches(key[:80], known, n=3)


def flatten(data: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the dotted keys of a file, without projects; an empty table that is no section is a key."""
    rest = [(key, value) for key, value in reversed(data.items()) if key != PROJECTS]
    while rest:
        key, value = rest.pop()
        inside = cast(dict[str, Any], value) if isinstance(value, dict) else {}
        rest += [(f"{key[:200]}.{name}", one) for name, one in reversed(inside.items())]
        if not inside and not (key in SECTIONS and isinstance(value, dict)):
            yield key, value


def _apply_layers(given: list[_Given]) -> tuple[dict[str, Any], dict[str, str], list[BadRequest]]:
    values = {key: row.default for key, row in SETTINGS.items()}
    sources, problems = dict.fromkeys(SETTINGS, "default"), list[BadRequest]()
    for one in given:
        row = SETTINGS.get(one.key)
        if row is None:
            problems.append(_build_unknown(one))
            continue
        try:
            values[one.key] = row.check(one.value) if one.in_file else row.read(one.value)
            sources[one.key] = one.layer
        except ValueError as error:
            problems.append(_build_wrong(one, str(error)))
    return values, sources, problems


def _read_file(config: str) -> tuple[dict[str, Any], tuple[BadRequest, ...]]:
    try:
        return parse(Path(config).read_bytes(), config), ()
    except FileNotFoundError:
        return {}, ()
    except OSError as error:
        problem = f"{config} cannot be read: {error.strerror}"
        return {}, (BadRequest(problem=problem, field="config.toml", remedies=(_SHOW,)),)
    except Refused as refusal:
        assert isinstance(refusal.diagnostic, BadRequest)  # the only refusal of `parse`
        return {}, (refusal.diagnostic,)


def _list_file_values(data: dict[str, Any], path: str) -> list[_Given]:
    return [
        _Given(key=key, value=value, layer=f"file {path}", name=key, in_file=True)
        for key, value in flatten(data)
    ]


def _list_environment_values(environ: Mapping[str, str]) -> Iterator[_Given]:
    """Yield the values in the environment; skip empty variables, but keep unknown ones of a section."""
    keys = {row.environment: row.key for row in SETTINGS.values()}
    for name, text in sorted(environ.items()):
        if text and (name in keys or name.startswith(_FAMILIES)):
            layer, key = f"environment {name}", keys.get(name, name)
            yield _Given(key=key, value=text, layer=layer, name=name, known=tuple(keys))


def _list_flag_values(flags: Mapping[str, str]) -> Iterator[_Given]:
    for key, text in flags.items():
        flag = SETTINGS[key].flag if key in SETTINGS else f"--{key}"
        yield _Given(key=key, value=text, layer=f"flag {flag}", name=key)


def _build_unknown(given: _Given) -> BadRequest:
    near = find_nearest(given.name, given.known)
    problem = f"no setting is called {given.name:.80} ({given.layer})"
    if given.key in SECTIONS:
        problem = f"{given.key} is a section: write its settings below [{given.key}] ({given.layer})"
    elif near:
        problem += f"; the nearest is {near[0]}"
    return BadRequest(
        problem=problem,
        field=given.name[:80],
        candidates=tuple(Candidate(address=one) for one in near),
        remedies=(_put(given, near[0]) if near and given.in_file else _SHOW,),
    )


def _put(given: _Given, key: str) -> Remedy:
    """Suggest the value under the intended key, or that key's default if the value is invalid there."""
    row = SETTINGS[key]
    try:
        text = row.format(row.check(given.value))
    except ValueError:
        text = row.format(row.default)
    parameters = {"key": key, "value": text}
    return Remedy(operation="config.set", parameters=parameters, why=f"instead of {given.key:.80}")


def _build_wrong(given: _Given, expected: str) -> BadRequest:
    problem = f"{given.key} = {str(given.value)[:60]!r} ({given.layer}): {expected}"
    remedy = Remedy(operation="config", parameters={}, why=f"after you have changed {given.layer}")
    if given.in_file:
        row = SETTINGS[given.key]
        parameters = {"key": row.key, "value": row.format(row.default)}
        remedy = Remedy(operation="config.set", parameters=parameters, why="the default")
    return BadRequest(problem=problem, field=given.key, remedies=(remedy,))


# -- projects ----------------------------------------------------------------------------------------


def read_projects(
    data: dict[str, Any], path: str, environ: Mapping[str, str] | None = None
) -> tuple[dict[str, ProjectRules], list[BadRequest]]:
    """Return the settings of each project in a file, by its real directory, and what is wrong with them."""
    given: object = data.get(PROJECTS, {})
    projects, problems = dict[str, ProjectRules](), list[BadRequest]()
    if not isinstance(given, dict):
        problem = f'{PROJECTS} (file {path}): expected tables such as [{PROJECTS}."/path/of/a/project"]'
        return projects, [BadRequest(problem=problem, field=PROJECTS, remedies=(_SHOW,))]
    tables = cast(dict[str, Any], given)
    for directory, table in tables.items():
        if not directory.startswith(("/", "~/")) or not isinstance(table, dict):
            problems.append(_build_project_refusal(directory, path))
            continue
        values = {key: row.default for key, row in PROJECT_SETTINGS.items()}
        for key, value in flatten(cast(dict[str, Any], table)):
            if value == {}:  # a section without settings
                continue
            try:
                values[key] = find_project_setting(key, directory, path).check(value)
            except ValueError as error:
                problems.append(_build_value_refusal(directory, key, value, str(error), path))
            except Refused as refusal:
                problems.append(cast(BadRequest, refusal.diagnostic))
        real = _resolve_root(directory, os.environ if environ is None else environ)
        projects[real] = msgspec.convert(nest(values), ProjectRules)
    return projects, problems


def find_project_setting(key: str, directory: str, path: str = "", value: str | None = None) -> Setting:
    """Return the setting of projects with this key; refuse an unknown one and name the nearest.

    `value`: the value that is to be set, which the nearest one gets in the remedy.
    """
    if key in PROJECT_SETTINGS:
        return PROJECT_SETTINGS[key]
    near = find_nearest(key, tuple(PROJECT_SETTINGS))
    where_ = f" (file {path})" if path else ""
    problem = f"no setting of projects is called {key:.80}{where_}" + (
        f"; the nearest is {near[0]}" if near else f"; they are {', '.join(PROJECT_SETTINGS)}"
    )
    listed = Remedy(operation="project.list", parameters={}, why="the projects and their settings")
    again: tuple[Remedy, ...] = ()
    if near and value is not None:
        parameters = {"setting": near[0], "value": value, "projectPath": directory}
        again = (Remedy(operation="project.set", parameters=parameters, why="the nearest setting"),)
    candidates = tuple(Candidate(address=one) for one in near)
    raise Refused(
        BadRequest(problem=problem, field="setting", candidates=candidates, remedies=(*again, listed))
    )


def _build_project_refusal(directory: str, path: str) -> BadRequest:
    problem = f'{PROJECTS}."{directory:.80}" (file {path}): expected a table named by an absolute directory'
    return BadRequest(problem=problem, field=PROJECTS, remedies=(_SHOW,))


def _build_value_refusal(directory: str, key: str, value: object, expected: str, path: str) -> BadRequest:
    row = PROJECT_SETTINGS[key]
    problem = f"{key} = {str(value)[:60]!r} of the project {directory} (file {path}): {expected}"
    parameters = {"setting": key, "value": row.format(row.default) or "none", "projectPath": directory}
    remedy = Remedy(operation="project.set", parameters=parameters, why="the default")
    return BadRequest(problem=problem, field=key, remedies=(remedy,))


def _resolve_root(root: str, environ: Mapping[str, str]) -> str:
    """Return a root as a real path."""
    return os.path.realpath(where.find_user_home(environ) + root[1:] if root.startswith("~") else root)
