"""`scout resolve`: what would this name mean?"""

import sys
from typing import Any

import click
from msgspec.structs import replace

from scout.base.refusal import BadRequest, Diagnostic, Refused, Remedy
from scout.cli.show import refusal_json, write_fields, write_json, write_refusal
from scout.policy.directory import Instance, instances_of
from scout.policy.fleet_file import FleetFile, read_fleet
from scout.policy.resolve import Resolution, minimal, resolve

__all__ = ["command"]

_EXAMPLES = """\b
Examples:
  scout resolve --fleet examples/fleet.json @talkie
  scout resolve --fleet examples/fleet.json --explain '@arc#claude'
  scout resolve --fleet examples/fleet.json          # every instance and its shortest address
"""

_SHAPE = '{"instances": {KEY: {"definitionId": NAME, …}}, "aliases": {NAME: KEY}}'
_LEFT = ("none", "one", "several")


@click.command(epilog=_EXAMPLES)
@click.argument("addresses", nargs=-1)
@click.option("--fleet", metavar="FILE", help="A fleet as JSON: {instances, aliases}; - for stdin.")
@click.option("--explain", is_flag=True, help="Show the steps that led to the answer.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def command(addresses: tuple[str, ...], fleet: str | None, explain: bool, as_json: bool) -> None:
    """Resolve each ADDRESS against the agents of a fleet file: the same resolver the broker uses.

    Without an address every instance of the fleet is listed with its shortest address.
    """
    if fleet is None:
        raise click.UsageError("give --fleet FILE: a name means something only among the agents there are")
    try:
        file = read_fleet(_read(fleet))
    except Refused as refusal:
        problem = f"{fleet} is no fleet, {_SHAPE}: {refusal.diagnostic.message}"
        _refuse(BadRequest(problem=problem), "", as_json)
        sys.exit(BadRequest.family.exit_code)
    if not addresses:
        _list(file, as_json)
        return
    codes = [_answer(file, fleet, address, explain, as_json) for address in addresses]
    sys.exit(next((code for code in codes if code), 0))


def _read(name: str) -> bytes:
    try:
        with click.open_file(name, "rb") as stream:
            data: bytes = stream.read()
    except OSError as error:
        raise click.FileError(name, error.strerror or str(error)) from None
    return data


def _answer(file: FleetFile, fleet: str, address: str, explain: bool, as_json: bool) -> int:
    try:
        found = resolve(address, file.fleet, file.caller, file.now)
    except Refused as refusal:
        told = _with_fleet(refusal.diagnostic, fleet)
        _refuse(told, address, as_json)
        return told.family.exit_code
    described = _describe(file, found)
    if as_json:
        write_json({"input": address, **described})
        return 0
    fields = {key: value for key, value in described.items() if key not in ("agentId", "steps")}
    if explain:
        fields["steps"] = " → ".join(f"{step.rule}: {_LEFT[step.left]}" for step in found.steps)
        passed = (f"{one.endpoint_id} ({one.why})" for one in found.choice.passed_over)
        fields["passed over"] = ", ".join(passed) or None
        fields["endpoint rule"] = found.choice.rule
    write_fields(address, fields)
    return 0


def _describe(file: FleetFile, found: Resolution) -> dict[str, Any]:
    endpoint = found.choice.endpoint
    instance = instances_of(found.agent, [endpoint] if endpoint else [])[0]
    return {
        "form": found.form,
        "instance": file.key_of(found.endpoint_id or found.agent.id),
        "agentId": found.agent.id,
        "canonical": found.canonical,
        "minimal": minimal(_whole(file, instance), file.fleet, file.now),
        "path": str(found.agent.path),
        "birthBranch": found.agent.birth_branch,
        "rule": found.rule,
        "action": str(found.choice.action),
        "steps": [{"rule": step.rule, "left": step.left} for step in found.steps],
    }


def _whole(file: FleetFile, instance: Instance) -> Instance:
    return replace(instance, endpoints=tuple(file.fleet.endpoints(instance.agent.id)))


def _list(file: FleetFile, as_json: bool) -> None:
    rows = {
        key: {"canonical": instance.canonical, "minimal": minimal(instance, file.fleet, file.now)}
        for key, instance in file.instances.items()
    }
    if as_json:
        for key, row in rows.items():
            write_json({"instance": key, **row})
        return
    width = max((len(row["minimal"]) for row in rows.values()), default=0)
    for key, row in rows.items():
        click.echo(f"{row['minimal']:<{width}}  {row['canonical']}  ({key})")


def _with_fleet(diagnostic: Diagnostic, fleet: str) -> Diagnostic:
    """Remedies that resolve again, or ask who is there, do so in the same fleet."""
    return replace(diagnostic, remedies=tuple(_in_fleet(one, fleet) for one in diagnostic.remedies))


def _in_fleet(remedy: Remedy, fleet: str) -> Remedy:
    if remedy.operation == "who":
        return replace(remedy, operation="resolve", parameters={"fleet": fleet})
    if remedy.operation == "resolve":
        return replace(remedy, parameters={**remedy.parameters, "fleet": fleet})
    return remedy


def _refuse(diagnostic: Diagnostic, address: str, as_json: bool) -> None:
    if as_json:
        write_json({"input": address, "error": refusal_json(diagnostic)})
    else:
        write_refusal(diagnostic, address, getattr(diagnostic, "position", None))
