"""`scout reserve add` and `scout reserve check`: reserve files, and see whether others have."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import click

from scout.cli.connection.call import CliIdentity, DaemonCall
from scout.cli.connection.refusal import RefusalError
from scout.cli.connection.text import note, print_json, print_out
from scout.cli.operations.build import (
    build_common_options,
    build_epilog,
    build_parameters,
    run_guarded,
    tidy_parameters,
)
from scout.cli.operations.durations import Duration
from scout.cli.operations.table import find_operation
from scout.cli.operations.verbs import Options
from scout.cli.output.results import show
from scout.client.environment import get_current_directory

_HELD = 7  # the exit code of a conflict
_AWAY = ("not_running", "busy", "unauthenticated")
# Plumbing that reads the index only. What a repository can configure to be run is turned off.
_GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_EMPTY_TREE = ("hash-object", "-t", "tree", os.devnull)


def _add() -> click.Command:
    row = find_operation("reserve.add")

    def callback(**given: Any) -> None:
        manner = Options(**{name: given.pop(name) for name in ("as_json", "act_as", "key")})

        def work() -> int:
            assert row.request is not None
            parameters = {"folder": get_current_directory() or None, **tidy_parameters(row, given)}
            line = manner.line()
            show("reserve.add", line.call(row.request.route, parameters, manner.key), manner.as_json, line)
            return 0

        run_guarded(work, manner.as_json)

    made = build_parameters(row, frozenset({"exclusive", "seconds"}))
    exclusive = click.Option(
        ["--exclusive", "exclusive"], is_flag=True, default=None, help="Others may not edit them (default)."
    )
    duration = click.Option(
        ["--for", "seconds"], type=Duration(), metavar="DURATION", help="30m, 2h, 90s; default 30 minutes."
    )
    return click.Command(
        "add",
        params=[*made, exclusive, duration, *build_common_options(row)],
        callback=callback,
        help=f"{row.says}\n\nGLOBS: files as in .gitignore, relative to this folder. Quote them.",
        short_help=row.says,
        epilog=build_epilog("reserve", "add"),
    )


def _check() -> click.Command:
    row = find_operation("reserve.check")

    def callback(paths: tuple[str, ...], staged: bool, folder: str | None, **given: Any) -> None:
        manner = Options(as_json=given["as_json"], act_as=given["act_as"])
        run_guarded(lambda: _run_check([*paths], staged, folder, manner), manner.as_json)

    return click.Command(
        "check",
        params=[
            click.Argument(["paths"], nargs=-1, metavar="[PATH...]"),
            click.Option(["--staged"], is_flag=True, help="The files of the next commit. For a git hook."),
            click.Option(["--folder"], metavar="DIR", help="The folder of the paths; default: this one."),
            *build_common_options(row),
        ],
        callback=callback,
        help=f"{row.says} Exits with {_HELD} if one of them may not be edited.",
        short_help=row.says,
        epilog=build_epilog("reserve", "check"),
    )


def _run_check(paths: list[str], staged: bool, folder: str | None, manner: Options) -> int:
    folder = folder or get_current_directory() or None
    if not staged:
        return _show_check(DaemonCall(CliIdentity(manner.act_as)), paths, folder, manner.as_json)
    try:
        top, paths = _list_staged()
        line = DaemonCall(CliIdentity(manner.act_as), start=False)
        return _show_check(line, paths, top, manner.as_json, quiet=True) if paths else 0
    except RefusalError as problem:
        if problem.code not in _AWAY:
            raise
        note(f"scout: reservations were not checked: {problem}")
        return 0


def _show_check(
    line: DaemonCall, paths: list[str], folder: str | None, as_json: bool, *, quiet: bool = False
) -> int:
    """Check the paths and show who holds them. `quiet`: say nothing if they may be edited."""
    if not paths:
        raise RefusalError.of("bad_request", "which files? give their paths, or --staged", field="paths")
    request = find_operation("reserve.check").request
    assert request is not None
    answer: dict[str, Any] = line.call(request.route, {"paths": paths, "folder": folder})
    if as_json:
        print_json(answer)
    elif answer["allowed"] and not quiet:
        print_out(
            "No other agent holds these files." if len(paths) > 1 else "No other agent holds this file."
        )
    else:
        for text in str(answer["message"]).splitlines():
            print_out(text)
    return 0 if answer["allowed"] else _HELD


def _list_staged() -> tuple[str, list[str]]:
    """Return the top of this work tree, and the files of its next commit."""
    top = _run_git("rev-parse", "--show-toplevel").removesuffix("\n")
    try:
        base = _run_git("rev-parse", "--verify", "--quiet", "HEAD^{commit}").strip()
    except RefusalError:  # the first commit
        base = _run_git(*_EMPTY_TREE).strip()
    names = _run_git("diff-index", "--cached", "--name-only", "--no-renames", "-z", base)
    return top, [name for name in names.split("\0") if name]


def _run_git(*words: str) -> str:
    try:
        done = subprocess.run([*_GIT, *words], capture_output=True, check=False)
    except OSError as error:
        raise RefusalError.of("bad_request", f"git cannot be run: {error.strerror}") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise RefusalError.of("bad_request", said or f"git {words[0]} failed")
    return done.stdout.decode(errors="surrogateescape")


add = _add()
check = _check()
