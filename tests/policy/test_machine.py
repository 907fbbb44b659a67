"""Problems of a machine, from facts alone."""

import pytest

from scout.base.time import Time
from scout.model.problems.session import Missing
from scout.policy.machine import (
    LOW_SPACE,
    HarnessFact,
    MachineFacts,
    MachinePart,
    MachineProblem,
    list_machine_problems,
)
from scout.protocol.operations import build_command_line


def test_a_sound_machine_has_none() -> None:
    facts = MachineFacts(
        free=LOW_SPACE,
        running="1.0",
        installed="1.0",
        default_harness="claude",
        harnesses={
            "claude": HarnessFact(ready=True),
            "codex": HarnessFact(ready=False, missing=Missing.BINARY),
            "tmux": HarnessFact(ready=False, hint="its check did not finish"),
        },
        connectors={"telegram": "running", "matrix": "starting"},
    )
    assert list_machine_problems(facts) == ()


@pytest.mark.parametrize(
    ("facts", "part", "says", "command"),
    [
        (MachineFacts(damage="malformed"), MachinePart.STORE, "damaged: malformed", "scout verify"),
        (MachineFacts(free=5 * 1024**2), MachinePart.DISK, "5 MiB are free", "scout explain store_full"),
        (
            MachineFacts(running="1.0", installed="1.1"),
            MachinePart.VERSION,
            "Scout 1.1 is installed, and the daemon still runs 1.0.",
            "scout restart",
        ),
        (
            MachineFacts(default_harness="claude", harnesses={"claude": HarnessFact(ready=False)}),
            MachinePart.HARNESS,
            "claude, the default harness, is not ready: its binary is missing",
            "scout runtimes",
        ),
        (
            MachineFacts(connectors={"telegram": "credentials"}),
            MachinePart.CONNECTOR,
            "telegram does not work: the platform refuses the credentials",
            "scout connector add telegram",
        ),
        (
            MachineFacts(connectors={"slack": "retrying"}),
            MachinePart.CONNECTOR,
            "slack does not work: the platform does not answer",
            "scout connector show slack",
        ),
        (
            MachineFacts(unreachable={"mini": Time.parse("2026-11-18T08:14:03.000Z")}),
            MachinePart.MESH,
            "mini is unreachable since 08:14 UTC.",
            "scout mesh nodes",
        ),
    ],
)
def test_a_problem_and_its_command(facts: MachineFacts, part: MachinePart, says: str, command: str) -> None:
    (problem,) = list_machine_problems(facts)
    assert (problem.part, problem.hint) == (part, False)
    assert says in problem.says
    assert build_command_line(problem.remedies[0]) == command


def test_hints_stop_nothing_and_come_last() -> None:
    facts = MachineFacts(
        harnesses={"codex": HarnessFact(ready=False, missing=Missing.LOGIN, hint="run codex login")},
        connectors={"slack": "failed"},
        history=(10, 500),
    )
    found = list_machine_problems(facts)
    assert [one.hint for one in found] == [False, True, True]
    assert found[1] == MachineProblem(
        part=MachinePart.HARNESS, says="codex: run codex login", hint=True, remedies=found[1].remedies
    )
    assert "10 of 500 events" in found[2].says
