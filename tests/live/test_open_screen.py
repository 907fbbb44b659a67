"""`scout open` shows a session in its own program: the conversation, without the contract that Scout gave it."""

import json
import os
import signal
from collections.abc import Generator

import pytest

from tests.live.machine import DIALECTS, Machine, a_machine, processes_in
from tests.stories.panes import a_pane

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

BOTH = ("claude", "codex")
RULES = "Scout is the broker that agents"  # the beginning of the contract


@pytest.fixture
def machine() -> Generator[Machine]:
    with a_machine(*BOTH) as made:
        yield made
        for pid, line in processes_in(made.folder).items():
            if "app-server-daemon" in line:  # Codex keeps it after its own screen was closed
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("harness", BOTH)
def test_the_contract_is_not_on_the_screen(machine: Machine, harness: str) -> None:
    talkie = machine.repository("talkie", harness)
    trusted = {str(talkie): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}}
    key = {"approved": [machine.environ["ANTHROPIC_API_KEY"][-20:]], "rejected": []}
    known = {"hasCompletedOnboarding": True, "projects": trusted, "customApiKeyResponses": key}
    (machine.person / ".claude" / ".claude.json").write_text(json.dumps(known))
    asked = machine.ended(machine.ask(talkie, "Which colour? <<say It is teal.>>"))
    assert asked["output"] == "It is teal."
    assert any(RULES in json.dumps(one.body) for one in machine.model.of(DIALECTS[harness]))

    with a_pane(machine, "open", "@talkie") as pane:
        screen = pane.shows("It is teal.")
        assert "Which colour?" in screen
        assert RULES not in " ".join(screen.split())
