"""A wrong address in any command: the refusal repeats that command with an address that works."""

import shlex
from collections.abc import Generator

import pytest

from tests.cli.running import a_shell, start_daemon
from tests.daemon.daemons import Daemon
from tests.stories.refusals import Stage, read_code, tries

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

# Every command with an address; {} is the address.
COMMANDS = [
    "show {}",
    "resolve {}",
    "feed {}",
    "wake {}",
    "interrupt {}",
    "open {}",
    "why {}",
    "wait {}",
    "ask {} 'Review this.'",
    "send {} hello",
    "question create {} 'Which one?'",
    "agent config {} --set description=x",
    "agent retire {}",
    "alias set short {}",
    "card create {}",
    "session list --agent {}",
    "session start --agent {}",
    "session stop {}",
    "session tail {}",
    "session inspect {}",
    "session fork {}",
    "flight list --agent {}",
    "flight get {}",
    "flight cancel {}",
    "work create Form --owner {}",
    "work list --owner {}",
    "channel create room --member {}",
    "log --agent {}",
    "usage --agent {}",
    "attention --agent {}",
    "allow add --tool Bash --agent {}",
    "token create --agent {}",
    "grant add read --agent {}",
    "message list --to {}",
    "delivery list --target {}",
    "whoami --as {}",
    "send --as {} @talkie hello",
    "approve --all-of {}",
]


@pytest.fixture(scope="module")
def stage() -> Generator[Stage]:
    with a_shell() as shell:
        stage = Stage(shell, Daemon(shell.home, start_daemon(shell)))
        project = str(shell.project("hudson"))
        for profile in ("one", "two"):
            wish = {"definitionId": "hudson", "profile": profile, "projectRoot": project, "command": ["cat"]}
            stage.post("/v1/agents", wish)
        stage.agent("talkie", command=["cat"])
        yield stage


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("given", "code", "meant"),
    [("@hudson", "ambiguous_target", "@hudson.profile:one"), ("@talki", "unknown_target", "@talkie")],
)
def test_the_callers_command_is_repeated_with_an_address_that_works(
    stage: Stage, command: str, given: str, code: str, meant: str
) -> None:
    refused = stage.shell.type(*shlex.split(command.format(given)))
    assert read_code(refused.stderr) == code, refused.stderr
    assert meant in refused.stderr
    first = tries(refused.stderr)[0]
    assert sorted(shlex.split(first)) == sorted(["scout", *shlex.split(command.format(meant))]), first


# Commands that need a harness; an agent can be reached through two.
NEED_A_HARNESS = ["wake {}", "resolve {}", "open {}"]


@pytest.mark.parametrize("command", NEED_A_HARNESS)
@pytest.mark.parametrize("given", ["@both", "pair"])
def test_the_callers_command_is_repeated_with_a_harness(stage: Stage, command: str, given: str) -> None:
    for harness in ("claude", "codex"):
        stage.endpoint("both", harness)
    stage.do("alias", "set", "pair", "@both")
    refused = stage.shell.type(*shlex.split(command.format(given)))
    assert read_code(refused.stderr) == "ambiguous_endpoint", refused.stderr
    first, second = tries(refused.stderr)[:2]
    verb = command.partition(" ")[0]
    assert first.startswith(f"scout {verb} "), first
    assert "claude" in first
    assert "codex" in second
    again = stage.shell.type(*shlex.split(first)[1:])
    assert read_code(again.stderr) != "ambiguous_endpoint", again.stderr
