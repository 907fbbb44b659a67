"""The harnesses of this machine: whether each is ready, what it can do, and how it meets the checklist."""

import asyncio
import logging

import msgspec

from scout.base.refusal import Refused
from scout.broker.world import World
from scout.model.session_problem import HarnessUnavailable, Missing
from scout.ports import Capabilities, Harness, Probe, UsageKind
from scout.protocol.sessions import CheckLine, Runtime

__all__ = ["listed", "probed"]

_LOG = logging.getLogger("scout.runtimes")
_LOOK = 15.0  # seconds for a program to say that it is there

# What holds for every harness, because the broker does it and the conformance suite tries it with each.
_ALWAYS = (
    ("stable identity", "the agent's address and Scout's session id never change"),
    ("registers or attaches an endpoint", "each session is an endpoint of its agent"),
    ("receives a message", "a message begins a turn"),
    ("receives an ask and gives a flight result", "the final text of its turn is the result"),
    ("replies without losing actor and conversation", "the reply is stored in the ask's conversation"),
    ("reports harness and session mismatch with a remedy", "refused before anything is started"),
    ("guides senders by diagnostics", "every refusal has a code and a next command"),
    ("needs no mentions in bodies", "the target is named beside the body"),
    ("imports no transcripts", "transcripts stay in the harness's own files"),
)


async def listed(world: World, check: str | None) -> tuple[Runtime, ...]:
    """All of them after a look at each; or one of them with a verdict for each line."""
    if check is not None and check not in world.harnesses:
        hint = f"this Scout runs {', '.join(world.harnesses)}"
        raise Refused(HarnessUnavailable(harness=check, missing=Missing.BINARY, hint=hint))
    wanted = [one for name, one in world.harnesses.items() if check in (None, name)]
    probes = await asyncio.gather(*(probed(one) for one in wanted))
    for harness, probe in zip(wanted, probes, strict=True):
        world.ready[harness.name] = probe
    return tuple(
        _runtime(harness, probe, checked=check is not None)
        for harness, probe in zip(wanted, probes, strict=True)
    )


async def probed(harness: Harness) -> Probe:
    """Whether a harness is ready; one that cannot even be asked is not."""
    try:
        return await asyncio.wait_for(harness.probe(), _LOOK)
    except TimeoutError:
        return Probe(ready=False, hint=f"it did not say within {_LOOK:g} s whether it is there")
    except Exception as error:  # noqa: BLE001 (the others are there without it; it is logged)
        _LOG.exception("probing %s", harness.name)
        return Probe(ready=False, hint=f"{type(error).__name__}: {error}")


def _runtime(harness: Harness, probe: Probe, *, checked: bool) -> Runtime:
    facts = msgspec.to_builtins(harness.capabilities)
    profiles = harness.capabilities.native_profiles
    facts.pop("nativeProfiles")
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
        checks=_checks(harness.capabilities, probe) if checked else (),
    )


def _checks(can: Capabilities, probe: Probe) -> tuple[CheckLine, ...]:
    """Each line of the checklist; what needs a prompt is judged by what the adapter says it can do."""
    always = [_line(line, True, because) for line, because in _ALWAYS]
    usage = {
        UsageKind.EXACT: "its program reports the tokens",
        UsageKind.ESTIMATED: "tokens are estimated and marked so",
        UsageKind.NONE: "it reports none",
    }
    attaches = "its program resumes exactly the named session" if can.resume else "it resumes no session"
    waits = "what it asks a person is waited for" if can.permissions else "it never waits for a person"
    profiles = ", ".join(can.native_profiles) or "none"
    return (
        _line("ready on this machine", probe.ready, probe.hint or f"version {probe.version or 'unknown'}"),
        *always,
        _line("deterministic start, attach and inspect", True if can.resume else None, attaches),
        _line("reports failed and waiting", True, f"failures name their layer; {waits}"),
        _line(
            "documents its permission and wake behaviour",
            True,
            f"profiles it enforces itself: {profiles}; notes: {len(probe.notes)}",
        ),
        _line("recovers or explains after a restart", True, "its runs are found again by their files"),
        _line("reports usage or marked estimates", can.usage is not UsageKind.NONE, usage[can.usage]),
    )


def _line(line: str, meets: bool | None, because: str) -> CheckLine:
    """`None`: it can be done in part."""
    verdict = "partly" if meets is None else "yes" if meets else "no"
    return CheckLine(line=line, verdict=verdict, because=because)
