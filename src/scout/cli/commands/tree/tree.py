"""`scout tree`: show agents and those below them, find them on disk again, and compare all sources."""

import importlib
from typing import Any

import click

from scout.cli.connection.refusal import RefusalError
from scout.cli.operations.build import (
    build_common_options,
    build_epilog,
    build_parameters,
    perform_operation,
    run_guarded,
    tidy_parameters,
)
from scout.cli.operations.table import find_operation
from scout.cli.operations.verbs import Options
from scout.cli.output.results import show

_HELP = """Show the agents of this project as a tree: state, branch, work tree and current work.

ADDRESS: the top of the tree; default: this project.

--scan reads the agents' folders of all known projects and registers agents that the directory lacks.
--reconcile compares the folders, git, the directory and tmux; with --fix it repairs what loses nothing.
`scout tree guard` installs a git hook for reservations."""
_PATIENCE = 600.0  # seconds: a repair may check out large work trees


class _Tree(click.Command):
    """Takes an address; the word `guard` is a command below it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["guard"]:
            ctx.meta["scout.guard"] = args[1:]
            return super().parse_args(ctx, [])
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        args: list[str] | None = ctx.meta.get("scout.guard")
        if args is None:
            return super().invoke(ctx)
        guard: click.Command = importlib.import_module("scout.cli.commands.tree.guard").guard
        with guard.make_context("guard", args, parent=ctx) as below:
            return guard.invoke(below)


def _run_tree(scan: bool, reconcile: bool, fix: bool, **given: Any) -> None:
    manner = Options(as_json=given.pop("as_json"), act_as=given.pop("act_as"), key=given.pop("key", None))
    run_guarded(lambda: _run(scan, reconcile, fix, given, manner), manner.as_json)


def _run(scan: bool, reconcile: bool, fix: bool, given: dict[str, Any], manner: Options) -> int:
    if scan and reconcile:
        raise RefusalError.of("bad_request", "--scan and --reconcile are two commands", field="scan")
    if fix and not reconcile:
        raise RefusalError.of("bad_request", "--fix belongs to --reconcile", field="fix")
    if not scan and not reconcile:
        return perform_operation(
            find_operation("tree"), tidy_parameters(find_operation("tree"), given), manner
        )
    row = find_operation("tree.scan" if scan else "tree.reconcile")
    wanted = {name: value for name, value in given.items() if name in ("projectRoot", "projectroot")}
    other = [name for name, value in given.items() if value and name not in wanted]
    if other:
        raise RefusalError.of(
            "bad_request", f"{row.words[-1]} looks at whole projects: --project DIR", field=other[0]
        )
    parameters = tidy_parameters(row, wanted)
    if fix:
        parameters["fix"] = True
    assert row.request is not None  # both are answered by the daemon
    line = manner.line()
    answer = line.call(row.request.route, parameters, manner.key, patience=_PATIENCE)
    show(row.name, answer, manner.as_json, line)
    return 1 if reconcile and not answer.get("clean", True) else 0


command = _Tree(
    "tree",
    params=[
        *build_parameters(find_operation("tree")),
        click.Option(["--scan"], is_flag=True, help="Register agents that are only on disk."),
        click.Option(["--reconcile"], is_flag=True, help="Compare disk, git, directory and tmux."),
        click.Option(["--fix"], is_flag=True, help="With --reconcile: repair what loses nothing."),
        *build_common_options(find_operation("tree")),
    ],
    callback=_run_tree,
    help=_HELP,
    short_help=find_operation("tree").says,
    epilog=build_epilog("tree"),
)
