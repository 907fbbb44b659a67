"""`scout resolve`: show what an address means."""

import shlex
import sys
from typing import Any, cast

import click
from msgspec.structs import replace

from scout.base.refusal import BadRequest, Diagnostic, Refused
from scout.cli.connection.refusal import RefusalError, get_exit_code, render_refusal, write_refusal
from scout.cli.connection.text import print_fields, print_json, print_out
from scout.cli.operations.complete import complete_addresses
from scout.cli.operations.verbs import Options
from scout.model.wire_names import SYNONYMS
from scout.policy.directory import Instance, get_instance
from scout.policy.resolver.fleet_file import FleetFile, read_fleet
from scout.policy.resolver.handle import Resolution, minimize_address
from scout.policy.resolver.resolve import resolve
from scout.protocol.agents import Resolve

_EXAMPLES = """\b
Examples:
  scout resolve @talkie
  scout resolve --fleet examples/fleet.json @talkie
  scout resolve --fleet examples/fleet.json --explain '@arc#claude'
  scout resolve --fleet examples/fleet.json          # every instance and its shortest address
"""

_SHAPE = '{"instances": {KEY: {"definitionId": NAME, …}}, "aliases": {NAME: KEY}}'
_LEFT = ("none", "one", "several")


@click.command(epilog=_EXAMPLES)
@click.argument("addresses", nargs=-1, shell_complete=complete_addresses)
@click.option(
    "--fleet",
    metavar="FILE",
    help="Use the agents of a JSON file instead of the daemon's; - reads standard input.",
)
@click.option("--from", "origin", metavar="DIR|AGENT", help="Resolve from this directory or agent.")
@click.option("--explain", is_flag=True, help="Show the steps that led to the answer.")
@click.option("--as", "act_as", metavar="ADDRESS", help="Act as this agent, if you may.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def command(
    *,
    addresses: tuple[str, ...],
    fleet: str | None,
    origin: str | None,
    explain: bool,
    act_as: str | None,
    as_json: bool,
) -> None:
    """Show what each ADDRESS means, and why. Nothing is changed.

    With --fleet, addresses are resolved offline, with the agents of a file instead of the daemon's. Without
    an ADDRESS, this lists every instance of the file with its shortest address.
    """
    if fleet is None:
        _ask_daemon(addresses, origin, explain, Options(act_as=act_as, as_json=as_json))
        return
    try:
        file = read_fleet(_read_fleet_file(fleet))
    except Refused as refusal:
        problem = f"{fleet} is not a fleet file, {_SHAPE}: {refusal.diagnostic.message}"
        _write_refusal(render_refusal(BadRequest(problem=problem)), "", as_json)
        sys.exit(BadRequest.family.exit_code)
    if not addresses:
        _list_instances(file, as_json)
        return
    codes = [_build_answer(file, fleet, address, explain, as_json) for address in addresses]
    sys.exit(next((code for code in codes if code), 0))


def _ask_daemon(addresses: tuple[str, ...], origin: str | None, explain: bool, manner: Options) -> None:
    if not addresses:
        raise click.UsageError("give at least one ADDRESS; `scout who` lists the agents")
    codes = [_resolve_one(address, origin, explain, manner) for address in addresses]
    sys.exit(next((code for code in codes if code), 0))


def _resolve_one(address: str, origin: str | None, explain: bool, manner: Options) -> int:
    try:
        told = manner.line().call(Resolve.route, {"address": address, "from": origin})
    except RefusalError as problem:
        _write_refusal(problem.told, address, manner.as_json)
        return get_exit_code(problem.code)
    if manner.as_json:
        print_json({"input": address, **told})
        return 0
    hidden = (*SYNONYMS.values(), *(() if explain else ("steps", "passedOver", "agentId")))
    fields = {
        name: _format_value(value) for name, value in told.items() if name not in (*hidden, "candidates")
    }
    print_fields(address, {name: value for name, value in fields.items() if value is not None})
    return 0


def _format_value(value: object) -> object:
    return " → ".join(map(str, cast(list[object], value))) or None if isinstance(value, list) else value


def _read_fleet_file(name: str) -> bytes:
    try:
        with click.open_file(name, "rb") as stream:
            data: bytes = stream.read()
    except OSError as error:
        raise click.FileError(name, error.strerror or str(error)) from None
    return data


def _build_answer(file: FleetFile, fleet: str, address: str, explain: bool, as_json: bool) -> int:
    try:
        found = resolve(address, file.fleet, file.caller, file.now)
    except Refused as refusal:
        _write_refusal(_add_fleet(refusal.diagnostic, fleet), address, as_json)
        return refusal.diagnostic.family.exit_code
    described = _describe_instance(file, found)
    if as_json:
        print_json({"input": address, **described})
        return 0
    fields = {key: value for key, value in described.items() if key not in ("agentId", "steps")}
    if explain:
        fields["steps"] = " → ".join(f"{step.rule}: {_LEFT[step.left]}" for step in found.steps)
        passed = (f"{one.endpoint_id} ({one.why})" for one in found.choice.passed_over)
        fields["passed over"] = ", ".join(passed) or None
        fields["endpoint rule"] = found.choice.rule
    print_fields(address, fields)
    return 0


def _describe_instance(file: FleetFile, found: Resolution) -> dict[str, Any]:
    instance = get_instance(found.agent, found.choice.endpoint)
    return {
        "form": found.form,
        "instance": file.key_of(found.endpoint_id or found.agent.id),
        "agentId": found.agent.id,
        "canonical": found.canonical,
        "minimal": minimize_address(_add_endpoints(file, instance), file.fleet, file.now),
        "path": str(found.agent.path),
        "birthBranch": found.agent.birth_branch,
        "rule": found.rule,
        "action": str(found.choice.action),
        "steps": [{"rule": step.rule, "left": step.left} for step in found.steps],
    }


def _add_endpoints(file: FleetFile, instance: Instance) -> Instance:
    return replace(instance, endpoints=tuple(file.fleet.endpoints(instance.agent.id)))


def _list_instances(file: FleetFile, as_json: bool) -> None:
    rows = {
        key: {"canonical": instance.canonical, "minimal": minimize_address(instance, file.fleet, file.now)}
        for key, instance in file.instances.items()
    }
    if as_json:
        for key, row in rows.items():
            print_json({"instance": key, **row})
        return
    width = max((len(row["minimal"]) for row in rows.values()), default=0)
    for key, row in rows.items():
        print_out(f"{row['minimal']:<{width}}  {row['canonical']}  ({key})")


def _add_fleet(diagnostic: Diagnostic, fleet: str) -> dict[str, Any]:
    """Return the refusal with remedies that resolve in the same fleet."""
    told = render_refusal(diagnostic)
    return {**told, "remedies": [_rewrite_remedy(one, fleet) for one in told["remedies"]]}


def _rewrite_remedy(remedy: dict[str, Any], fleet: str) -> dict[str, Any]:
    if remedy["operation"] not in ("who", "resolve"):
        return remedy
    parameters: dict[str, Any] = remedy["parameters"]
    words = [str(parameters["address"])] if parameters.get("address") else []
    command = shlex.join(["scout", "resolve", "--fleet", fleet, *words])
    return {**remedy, "operation": "resolve", "command": command}


def _write_refusal(told: dict[str, Any], address: str, as_json: bool) -> None:
    if as_json:
        print_json({"input": address, "error": told})
    else:
        write_refusal(told, text=address, position=told.get("position"))
