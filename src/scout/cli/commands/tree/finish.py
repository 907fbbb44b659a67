"""`scout finish`: shows what an agent has; merges, keeps or discards it; finishes a whole subtree."""

import json
import os
import sys
import time
from typing import Any

import click

from scout.cli.connection.call import DaemonCall
from scout.cli.connection.refusal import RefusalError, build_remedy, get_exit_code
from scout.cli.connection.text import confirm, is_interactive, note, print_note_text, print_out
from scout.cli.operations.build import (
    build_common_options,
    build_epilog,
    build_parameters,
    run_guarded,
    tidy_parameters,
)
from scout.cli.operations.table import find_operation
from scout.cli.operations.verbs import Options
from scout.cli.output.finished import count, show_finish, show_finished_trees
from scout.cli.output.own_name import say_you
from scout.cli.waiting.progress import TICK, ProgressLine
from scout.protocol.tree.finish import FinishAgent, FinishDone

_POLL = 30.0  # seconds of one long poll without a terminal
_TAIL = 40  # lines of the output of a failed check command
_CHOICES = ("merge", "keep", "discard")
_HELP = """Finish a spawned agent: merge, keep or discard its work.

ADDRESS: a handle, path, birth branch, alias or id.

Without a choice, nothing changes: you see what is uncommitted, unmerged and unpushed, whether a merge would
have conflicts, and what each choice does. Before anything is removed, uncommitted files are stored as a
commit, and the commands that take the finish back are printed.

A conflict is sent to the agent, or to the one named with --resolver; the exit code is 7. Finish the agent
again when it has answered.

With --all-done, every agent below ADDRESS that is done is merged, leaves first."""


def _run_finish(all_done: bool, yes: bool, **given: Any) -> None:
    manner = Options(as_json=given.pop("as_json"), act_as=given.pop("act_as"), key=given.pop("key", None))
    row = find_operation("finish.done" if all_done else "finish")
    run_guarded(lambda: _run(row.name, given, manner, yes), manner.as_json)


def _run(operation: str, given: dict[str, Any], manner: Options, yes: bool) -> int:
    if operation == "finish.done":
        return _finish_done(given, manner)
    parameters = tidy_parameters(find_operation("finish"), given)
    if not parameters.get("address"):
        message = "name the agent, or give --all-done"
        raise RefusalError.of(
            "bad_request", message, remedies=[build_remedy("tree", "scout tree", "the agents")]
        )
    line = manner.line()
    if parameters.get("discard") and not yes and is_interactive() and not _confirm_discard(line, parameters):
        note("nothing was changed")
        return 1
    report = _call(line, FinishAgent.route, parameters, manner)
    if manner.as_json:
        print_out(json.dumps(report))
    else:
        show_finish(say_you(line, report))
    return get_exit_code("merge_conflict") if report["state"] == "conflict" else 0


def _confirm_discard(line: DaemonCall, parameters: dict[str, Any]) -> bool:
    """Name what would be discarded, and ask."""
    found = line.call(FinishAgent.route, {"address": parameters["address"]})
    files = len(found["uncommitted"]) + found["moreUncommitted"]
    parts = (count(files, "uncommitted file"), count(len(found["unmerged"]), "unmerged commit"))
    held = " and ".join(part for part in parts if part) or "nothing that is not elsewhere"
    return confirm(f"{found['address']} has {held}. Discard it?")


def _finish_done(given: dict[str, Any], manner: Options) -> int:
    own = {name: value for name, value in given.items() if name in ("address", "resolver", "ask")}
    wrong = [name for name in (*_CHOICES, "reason") if given.get(name)]
    if wrong:
        message = f"--all-done merges; it takes no --{wrong[0]}"
        raise RefusalError.of("bad_request", message, field=wrong[0])
    line = manner.line()
    told = _call(line, FinishDone.route, tidy_parameters(find_operation("finish.done"), own), manner)
    if manner.as_json:
        print_out(json.dumps(told))
    else:
        show_finished_trees(say_you(line, told))
    conflicts = any(one["state"] == "conflict" for one in told["items"])
    return get_exit_code("merge_conflict") if conflicts else 0


def _call(line: DaemonCall, route: str, parameters: dict[str, Any], manner: Options) -> dict[str, Any]:
    """Call until the finish has ended. The same key joins the finish that runs."""
    key, began = manner.key or os.urandom(16).hex(), time.monotonic()
    progress = ProgressLine() if sys.stderr.isatty() and not manner.as_json else None
    step = TICK if progress else _POLL
    try:
        while True:
            told: dict[str, Any] = line.call(route, {**parameters, "wait": step}, key)
            if told["state"] != "running" or _is_preview(route, parameters):
                return told
            if progress:
                says = str(told.get("reason") or "finishing")
                progress.show(says, told, time.monotonic() - began)
    except KeyboardInterrupt:
        ProgressLine.clear()
        note(
            "the finish continues; see it with: scout finish "
            + str(parameters.get("address") or "--all-done")
        )
        raise SystemExit(130) from None
    except RefusalError as problem:
        ProgressLine.clear()
        _note_output(problem, manner)
        raise
    finally:
        ProgressLine.clear()


def _is_preview(route: str, parameters: dict[str, Any]) -> bool:
    return route == FinishAgent.route and not any(parameters.get(name) for name in _CHOICES)


def _note_output(problem: RefusalError, manner: Options) -> None:
    """Show the output of a check command that failed, above the refusal."""
    lines = str(problem.told.get("output") or "").rstrip().splitlines()[-_TAIL:]
    if lines and not manner.as_json:
        print_note_text("\n".join(f"  | {line}" for line in lines))


def _build_parameters() -> list[click.Parameter]:
    found = build_parameters(find_operation("finish"), frozenset({"wait"}))
    for one in found:
        if isinstance(one, click.Argument):
            one.required = False  # --all-done has a default
    return found


command = click.Command(
    "finish",
    params=[
        *_build_parameters(),
        click.Option(["--all-done", "all_done"], is_flag=True, help="Merge every agent below that is done."),
        click.Option(["--yes", "yes"], is_flag=True, help="Do not ask before discarding."),
        *build_common_options(find_operation("finish")),
    ],
    callback=_run_finish,
    help=_HELP,
    short_help=find_operation("finish").says,
    epilog=build_epilog("finish"),
)
