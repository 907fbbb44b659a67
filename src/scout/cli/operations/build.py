"""Builds a click command from a row of the operation table: words, flags, help and examples."""

import json
import os
import shlex
from collections.abc import Callable
from typing import Any, cast

import click
from msgspec import inspect

from scout.base.time import Time
from scout.cli.connection.call import ROUTES, DaemonCall
from scout.cli.connection.refusal import RefusalError, run_with_consent
from scout.cli.connection.text import confirm, is_interactive, note
from scout.cli.operations.complete import ONLY, complete_addresses, get_completion
from scout.cli.operations.durations import Duration, FutureTime
from scout.cli.operations.examples import EXAMPLES
from scout.cli.operations.overview import poll
from scout.cli.operations.table import find_operation
from scout.cli.operations.verbs import DIRECTORIES, Options, attach_files, show_inbox
from scout.protocol.operation import Operation, Parameter
from scout.protocol.request import Request

_SKIPPED = {"idempotencyKey"}
_HIDDEN = {"traceparent", "origin"}  # what programs set: left out of the help
_Kind = inspect.Type
_CONFIRMED = ("agent.retire",)
_YES = click.Option(["--yes", "yes"], is_flag=True, help="Do not ask, even if it has live sessions.")
_PAIRS = (inspect.DictType, inspect.StructType)  # given as KEY=VALUE, each once


def build_command(operation: str, path: tuple[str, ...]) -> click.Command:
    """Build the command of one operation, under the words of `path`."""
    row = find_operation(operation)

    def callback(**given: Any) -> None:
        manner, agreed = _pop_options(given), bool(given.pop("yes", False))
        run_guarded(
            lambda: perform_operation(row, tidy_parameters(row, given), manner, agreed), manner.as_json
        )

    asks = [_YES] if row.name in _CONFIRMED else []
    return click.Command(
        path[-1],
        params=[*build_parameters(row), *asks, *build_common_options(row)],
        callback=callback,
        help=_build_help(row),
        short_help=row.says,
        epilog=build_epilog(*path),
    )


def perform_operation(
    row: Operation, parameters: dict[str, Any], manner: Options, agreed: bool = False
) -> int:
    """Call an operation and show the answer. `agreed`: skip the confirmation."""
    assert row.request is not None
    if row.name == "inbox":
        return show_inbox(parameters, manner)
    asks = row.name in _CONFIRMED and not agreed
    if asks and not _confirm_retirement(manner.line(), str(parameters["address"])):
        note("nothing was changed")
        return 1
    if parameters.get("attachments"):
        attach_files(manner.line(), parameters)
    return poll(row.name, row.request.route, parameters, manner)


def _confirm_retirement(line: DaemonCall, address: str) -> bool:
    """Confirm retiring an agent that has live sessions. A script is not asked."""
    if not is_interactive():
        return True
    live = line.call(ROUTES["session.list"], {"agent": address, "live": True})["items"]
    count = f"{len(live)} live session{'' if len(live) == 1 else 's'}"
    return not live or confirm(f"{address} has {count}; their flights will fail. Retire it?")


def run_guarded(work: Callable[[], int], as_json: bool) -> None:
    """Run the work and exit; a refusal is printed and sets the exit code."""
    try:
        code = run_with_consent(work)
    except RefusalError as problem:
        code = problem.show(as_json, click.get_current_context().command_path)
    click.get_current_context().exit(code)


def build_epilog(*path: str) -> str:
    """Return the examples of a command, marked so that click does not wrap them."""
    lines = EXAMPLES.get(".".join(path)) or (shlex.join(["scout", *path, "--help"]),)
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def build_common_options(row: Operation) -> list[click.Parameter]:
    """Return the options of every command; an idempotency key for writes."""
    writes = row.request is not None and row.request.writes
    key = click.Option(
        ["--idempotency-key", "key"],
        metavar="TEXT",
        help="Key you choose. Repeating a request with the same key returns the first result.",
    )
    return [
        click.Option(
            ["--as", "act_as"],
            metavar="ADDRESS",
            help="Act as this agent, if you may.",
            shell_complete=complete_addresses,
        ),
        *([key] if writes else []),
        click.Option(["--json", "as_json"], is_flag=True, help="One JSON object."),
    ]


def build_parameters(row: Operation, left_out: frozenset[str] = frozenset()) -> list[click.Parameter]:
    """Return the operation's parameters as arguments and options."""
    assert row.request is not None
    kinds = _list_kinds(row.request)
    chosen = [one for one in row.parameters if one.name not in _SKIPPED | left_out]
    words = [one for one in row.parameters if one.positional]
    only = words[0].name if len(words) == 1 and words[0].name in ONLY else None
    return [
        _build_id_argument(one) if one.name == only else _build_parameter(one, *kinds[one.name])
        for one in chosen
    ]


def _build_id_argument(parameter: Parameter) -> click.Parameter:
    """Build the argument of an id that may be omitted if only one record is open; the daemon resolves it."""
    metavar = f"[{_to_metavar(parameter.name)}]"
    more = get_completion(parameter.name)
    return click.Argument([parameter.name], required=False, default="only", metavar=metavar, **more)


def _list_kinds(request: type[Request[Any]]) -> dict[str, tuple[_Kind, Any]]:
    """Return the type of each field, without metadata and None, and its default."""
    info = cast("inspect.StructType", inspect.type_info(request))
    return {field.encode_name: (_strip_metadata(field.type), field.default) for field in info.fields}


def _strip_metadata(kind: _Kind) -> _Kind:
    if isinstance(kind, inspect.Metadata):
        return _strip_metadata(kind.type)
    if isinstance(kind, inspect.UnionType):
        return _strip_metadata(next(one for one in kind.types if not isinstance(one, inspect.NoneType)))
    return kind


def _build_parameter(parameter: Parameter, kind: _Kind, default: Any) -> click.Parameter:
    complete = get_completion(parameter.name)
    many = isinstance(kind, inspect.VarTupleType)
    typed = _choose_click_type(kind)
    if parameter.positional:
        metavar = parameter.name if not many else f"{parameter.name.removesuffix('s')}..."
        return click.Argument(
            [parameter.name],
            required=parameter.required,
            nargs=-1 if many else 1,
            type=typed,
            metavar=_to_metavar(metavar) if parameter.required else f"[{_to_metavar(metavar)}]",
            **complete,
        )
    return _build_option(parameter, kind, default, {"type": typed, **complete})


def _build_option(parameter: Parameter, kind: _Kind, default: Any, more: dict[str, Any]) -> click.Option:
    names = [parameter.option, parameter.name]
    says = _to_sentence(parameter.says)
    if isinstance(kind, inspect.BoolType):
        if default is None:
            names[0] = f"{parameter.option}/--no-{parameter.option.removeprefix('--')}"
        return click.Option(names, is_flag=True, default=None, help=says)
    if isinstance(kind, _PAIRS):
        more = {**more, "metavar": "KEY=VALUE", "multiple": True}
        says = f"{says} Values are read as JSON where they can be." if says else ""
    elif isinstance(kind, inspect.VarTupleType):
        more = {**more, "multiple": True}
    if parameter.name == "attachments":
        more = {**more, "metavar": "FILE"}
        says = "A file to attach, or a stored one as SHA256 or SHA256:NAME; maximum 32."
    if parameter.name == "command":
        says += " Give it once as a shell would read it, or once per word."
    hidden = parameter.name in _HIDDEN
    return click.Option(names, required=parameter.required, default=None, help=says, hidden=hidden, **more)


def _choose_click_type(kind: _Kind) -> Any:
    if isinstance(kind, inspect.EnumType):
        return click.Choice([str(one.value) for one in kind.cls])
    if isinstance(kind, inspect.IntType):
        return click.INT
    if isinstance(kind, inspect.FloatType):
        return Duration() if kind.ge == 0 else click.FLOAT
    return FutureTime() if isinstance(kind, inspect.CustomType) and kind.cls is Time else click.STRING


def _to_metavar(name: str) -> str:
    return "".join(f"_{char}" if char.isupper() else char.upper() for char in name)


def _to_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _build_help(row: Operation) -> str:
    words = [one for one in row.parameters if one.positional and one.says]
    told = "".join(f"\n\n{_to_metavar(one.name)}: {one.says}." for one in words)
    return f"{row.says}{told}\n\nAllowed: {row.permission}."


def _pop_options(given: dict[str, Any]) -> Options:
    return Options(as_json=given.pop("as_json"), act_as=given.pop("act_as"), key=given.pop("key", None))


def tidy_parameters(row: Operation, given: dict[str, Any]) -> dict[str, Any]:
    """Return the given parameters by their wire names; omitted ones are left out."""
    assert row.request is not None
    kinds = _list_kinds(row.request)
    told: dict[str, Any] = {}
    by_name = {name.lower(): name for name in kinds}  # click lower-cases the names of arguments
    for raw, value in given.items():
        name = by_name[raw.lower()]
        if value is None or value == ():
            continue
        told[name] = _convert_value(name, kinds[name][0], value)
    return told


def _convert_value(name: str, kind: _Kind, value: Any) -> Any:
    if isinstance(kind, _PAIRS):
        return dict(_split_pair(text) for text in value)
    if name == "command" and len(value) == 1:
        return shlex.split(value[0])
    if name in DIRECTORIES:
        return os.path.abspath(value)  # noqa: PTH100 (`..` is taken away without asking the disk)
    return list(value) if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] (click's values)


def _split_pair(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise RefusalError.of("bad_request", f"expected KEY=VALUE, got '{text}'", field=text)
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
