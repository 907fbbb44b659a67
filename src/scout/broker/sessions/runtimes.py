"""The harnesses of this machine: readiness, capabilities and check results."""

import asyncio
import logging
from collections.abc import Sequence

import msgspec

from scout.base.refusal import Refused, Remedy
from scout.broker.delivery import pause
from scout.broker.routing.routes import build_unknown_harness_refusal
from scout.broker.sessions.control import SessionBroker
from scout.broker.sessions.harness_checks import CheckWish, HarnessChecks, check_key, count_turns
from scout.broker.transaction.call import CallContext
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.policy.nearest import rank_names
from scout.policy.permit import Deed, Subject
from scout.ports import Harness, Probe
from scout.protocol.request import Page
from scout.protocol.sessions import CheckRuntime, CheckState, ListRuntimes, Runtime, StopCheck

_LOG = logging.getLogger("scout.runtimes")
_LOOK = 15.0  # seconds for a probe


async def list_runtimes(call: CallContext[SessionBroker], request: ListRuntimes) -> Page[Runtime]:
    """Probe all harnesses, or the named one, and list them. `wait` follows a running check."""
    services, checks = call.services, call.broker.checks
    if request.check is None:
        every = tuple(services.harnesses.values())
        await probe_all(services, every)
        return Page(items=tuple(show_runtime(services, checks, one) for one in every))
    harness = find_harness(services, request.check)
    if request.wait:
        await _wait_for_verdict(call, request, harness.name)
    else:
        await probe_all(services, (harness,))
    return Page(items=(show_runtime(services, checks, harness),))


async def _wait_for_verdict(call: CallContext[SessionBroker], request: ListRuntimes, name: str) -> None:
    """Wait until there are more verdicts than the caller has seen, the check ends, or the time is up."""
    left = min(request.wait, call.services.rules.periods.long_poll)
    with call.broker.waiters.listening(check_key(name)) as listener:
        state, lines = call.broker.checks.result(name)
        if state is CheckState.RUNNING and len(lines) <= (request.seen or 0):
            await listener.wait(left)


async def check_runtime(call: CallContext[SessionBroker], request: CheckRuntime) -> Runtime:
    """Start a check. It takes turns of a model only with consent, and none while Scout is paused."""
    services, checks = call.services, call.broker.checks
    harness = find_harness(services, request.harness)
    await call.read(_may_check)
    await probe_all(services, (harness,))
    checks.start(CheckWish(harness, services.ready[harness.name], request.yes, request.command or ()))
    return show_runtime(services, checks, harness)


async def stop_check(call: CallContext[SessionBroker], request: StopCheck) -> Runtime:
    """Stop a running check and everything it started."""
    harness = find_harness(call.services, request.harness)
    await call.read(_may_administer)
    await call.broker.checks.stop(harness.name)
    return show_runtime(call.services, call.broker.checks, harness)


def _may_administer(tx: Transaction) -> None:
    tx.permit(Deed.ADMINISTER, Subject(name=tx.services.node))


def _may_check(tx: Transaction) -> None:
    _may_administer(tx)
    pause.check_not_paused(tx)


async def probe_all(services: Services, wanted: Sequence[Harness]) -> None:
    """Probe each harness and store the result."""
    for harness, probe in zip(wanted, await asyncio.gather(*map(probe_harness, wanted)), strict=True):
        services.ready[harness.name] = probe


def find_harness(services: Services, name: str) -> Harness:
    """Return a harness by name, or refuse with the nearest name."""
    if name in services.harnesses:
        return services.harnesses[name]
    near = rank_names(name, services.harnesses, 1)
    again = [
        Remedy(operation="runtimes.check", parameters={"harness": one}, why="the nearest") for one in near
    ]
    look = Remedy(operation="runtimes", parameters={}, why="see which harnesses are ready")
    raise Refused(build_unknown_harness_refusal(services, name, *again, look))


async def probe_harness(harness: Harness) -> Probe:
    """Probe a harness; one whose probe fails is not ready."""
    try:
        return await asyncio.wait_for(harness.probe(), _LOOK)
    except TimeoutError:
        return Probe(ready=False, hint=f"its check did not finish within {_LOOK:g} s")
    except Exception as error:  # noqa: BLE001 (one failure must not hide the others; it is logged)
        _LOG.exception("probing %s", harness.name)
        return Probe(ready=False, hint=f"{type(error).__name__}: {error}")


def show_runtime(services: Services, checks: HarnessChecks, harness: Harness) -> Runtime:
    """Return a harness with its last probe and the verdicts of its last check."""
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
        turns=count_turns(harness),
        check=state,
        checks=lines,
    )
