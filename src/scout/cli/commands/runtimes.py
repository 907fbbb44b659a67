"""`scout runtimes`: the harnesses of this machine; with --check, tests each promise of a harness."""

import json
from typing import Any

import click

from scout.cli.connection.call import DaemonCall
from scout.cli.connection.refusal import get_exit_code, list_tries
from scout.cli.connection.text import confirm, is_interactive, note, print_out, wrap
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
from scout.cli.output.sessions import show_verdict
from scout.protocol.sessions import CheckRuntime, ListRuntimes, StopCheck

_POLL = 30.0  # seconds of one long poll
_LIST, _CHECK = find_operation("runtimes"), find_operation("runtimes.check")


def _show_or_check(**given: Any) -> None:
    manner = Options(as_json=given.pop("as_json"), act_as=given.pop("act_as"))
    wish = tidy_parameters(_CHECK, given)
    run_guarded(
        lambda: _run_check(wish, manner) if "harness" in wish else perform_operation(_LIST, {}, manner),
        manner.as_json,
    )


def _run_check(wish: dict[str, Any], manner: Options) -> int:
    """Start the check and show each verdict as it comes; Ctrl-C stops the check."""
    line = manner.line()
    (found,) = line.call(ListRuntimes.route, {"check": wish["harness"]})["items"]
    if found["turns"] and found["ready"] and not wish.get("yes") and is_interactive():
        wish["yes"] = _confirm_cost(found)
    if not manner.as_json:
        show("runtimes", {"items": [found]})
    try:
        return _follow_check(line, line.call(CheckRuntime.route, wish), manner)
    except KeyboardInterrupt:
        line.call(StopCheck.route, {"harness": wish["harness"]})
        note("stopped; everything that the check started has ended")
        return 130


def _confirm_cost(found: dict[str, Any]) -> bool:
    turns = f"up to {found['turns']} short turns of its model"
    return confirm(f"A whole check of {found['name']} takes {turns}, which may cost money. Do it?")


def _follow_check(line: DaemonCall, found: dict[str, Any], manner: Options) -> int:
    seen = 0
    while True:
        for one in found["checks"][seen:] if not manner.as_json else ():
            show_verdict(one)
        seen = len(found["checks"])
        if found["check"] != "running":
            return _print_conclusion(found, manner)
        wish = {"check": found["name"], "seen": seen, "wait": _POLL}
        (found,) = line.call(ListRuntimes.route, wish)["items"]


def _print_conclusion(found: dict[str, Any], manner: Options) -> int:
    """Print what is not enforced and remedies for failed promises; return the exit code.

    The exit code is 1 if a promise failed, and that of `forbidden` if one was not tried for lack of consent.
    """
    if manner.as_json:
        print_out(json.dumps(found))
    else:
        for text in found["notes"]:
            note(wrap(text, "note: "))
        remedies = [remedy for one in found["checks"] for remedy in one["remedies"]]
        for text in dict.fromkeys(list_tries({"remedies": remedies}, fall_back=False)):
            note(text)
    if any(one["verdict"] == "failed" for one in found["checks"]):
        return 1
    return get_exit_code("forbidden") if any(map(_needs_consent, found["checks"])) else 0


def _needs_consent(check: dict[str, Any]) -> bool:
    """Whether a promise was not tried because its turns need consent."""
    return check["verdict"] == "not tried" and any(
        one["operation"] == _CHECK.name and one["parameters"].get("yes") for one in check["remedies"]
    )


_CHECKED = click.Option(["--check", "harness"], metavar="HARNESS", help="Try what this harness promises.")
command = click.Command(
    "runtimes",
    params=[_CHECKED, *build_parameters(_CHECK, frozenset({"harness"})), *build_common_options(_LIST)],
    callback=_show_or_check,
    help=(
        "List the harnesses of this machine, what each can do and what it lacks.\n\n"
        "With --check, each promise of the compatibility checklist is tried with one of them, in a Scout "
        "that exists only for the check. What takes turns of a model is tried only with your consent: you "
        "are asked on a terminal; elsewhere give --yes."
    ),
    short_help=_LIST.says,
    epilog=build_epilog("runtimes"),
)
