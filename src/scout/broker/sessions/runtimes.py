"""The harnesses of this machine: whether each is ready, what it can do, and what a check of it found."""

import asyncio
import logging
from collections.abc import Sequence

import msgspec

from scout.base.refusal import Refused, Remedy
from scout.broker.routing.routes import unknown_harness
from scout.broker.sessions.harness_checks import HarnessChecks, turns_of
from scout.broker.transaction.services import Services
from scout.policy.nearest import ranked
from scout.ports import Harness, Probe
from scout.protocol.sessions import Runtime

_LOG = logging.getLogger("scout.runtimes")
_LOOK = 15.0  # seconds for a program to say that it is there


async def list_runtimes(services: Services, checks: HarnessChecks) -> tuple[Runtime, ...]:
    """All of them, after a look at each."""
    every = tuple(services.harnesses.values())
    await probe_all(services, every)
    return tuple(show_runtime(services, checks, one) for one in every)


async def probe_all(services: Services, wanted: Sequence[Harness]) -> None:
    """Look at each of them now."""
    for harness, probe in zip(wanted, await asyncio.gather(*map(probe_harness, wanted)), strict=True):
        services.ready[harness.name] = probe


def harness_named(services: Services, name: str) -> Harness:
    """A harness of this Scout, or a refusal with the nearest one."""
    if name in services.harnesses:
        return services.harnesses[name]
    near = ranked(name, services.harnesses, 1)
    again = [
        Remedy(operation="runtimes.check", parameters={"harness": one}, why="the nearest") for one in near
    ]
    look = Remedy(operation="runtimes", parameters={}, why="which harnesses are ready")
    raise Refused(unknown_harness(services, name, *again, look))


async def probe_harness(harness: Harness) -> Probe:
    """Whether a harness is ready; one that cannot even be asked is not."""
    try:
        return await asyncio.wait_for(harness.probe(), _LOOK)
    except TimeoutError:
        return Probe(ready=False, hint=f"it did not say within {_LOOK:g} s whether it is there")
    except Exception as error:  # noqa: BLE001 (the others are there without it; it is logged)
        _LOG.exception("probing %s", harness.name)
        return Probe(ready=False, hint=f"{type(error).__name__}: {error}")


def show_runtime(services: Services, checks: HarnessChecks, harness: Harness) -> Runtime:
    """A harness as the last look at it found it, with the verdicts of its last check."""
    probe = services.ready[harness.name]
    facts = msgspec.to_builtins(harness.capabilities)
    profiles = harness.capabilities.native_profiles
    facts.pop("nativeProfiles")
    state, lines = checks.result(harness.name)
    return Runtime(
        name=harness.name,
        ready=probe.ready,
        version=probe.version,
        missing=probe.missing,
        hint=probe.hint,
        program=probe.program,
        capabilities=facts,
        native_profiles=profiles,
        notes=probe.notes,
        turns=turns_of(harness),
        check=state,
        checks=lines,
    )
