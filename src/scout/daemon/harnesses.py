"""The harnesses of this machine, made from the settings. To add a harness, add it to this list."""

from pathlib import Path

from scout.adapters.a2a.adapter import A2a
from scout.adapters.acp.adapter import Acp
from scout.adapters.claude.adapter import Claude
from scout.adapters.codex.adapter import Codex
from scout.adapters.command import Command
from scout.adapters.echo import Echo
from scout.adapters.persistent.pipe import PipeLimits
from scout.adapters.process.run import RunLimits
from scout.adapters.tmux.adapter import Tmux
from scout.daemon.secret_file import read_secret
from scout.ports import Harness
from scout.settings.record import Settings

# Programs that speak the Agent Client Protocol themselves.
_ACP = {"gemini": ("gemini", "--acp"), "opencode": ("opencode", "acp")}


def build_harnesses(settings: Settings) -> dict[str, Harness]:
    """Return the harnesses by name, in the order in which they are listed."""
    sessions, also = Path(settings.sessions), settings.environment
    caps = settings.rules.limits
    kept = PipeLimits(output=caps.program_output)
    once = RunLimits(flood=caps.run_output, log=min(RunLimits().log, caps.run_output))
    made: list[Harness] = [
        Claude(sessions, also, kept),
        Codex(sessions, also, kept),
        Acp(sessions, also, limits=kept),
        *(Acp(sessions, also, name=name, program=program, limits=kept) for name, program in _ACP.items()),
        Tmux(sessions, also),
        Command(sessions, once, environment=also),
        A2a(sessions, read_secret),
        Echo(),
    ]
    return {one.name: one for one in made}
