"""`scout setup` for Gemini CLI and OpenCode: the real programs then have Scout's tools; only their model is scripted."""

import json
import subprocess
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.adapters.test_acp_agents import AGENTS
from tests.cli.running import Shell, a_shell, start_daemon
from tests.live.model.server import Model, scripted_model
from tests.live.programs import require_program
from tests.mcp.conformance import node_words

# The first to come here installs the programs; once they are there, a test takes a few seconds.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class Host(NamedTuple):
    """How the program takes a prompt, where `setup` writes, the names of Scout's tools, and the person's settings."""

    words: tuple[str, ...]
    settings: str
    prefix: str
    own: dict[str, Any] = {}


_LOGIN = {"security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}}
HOSTS = {
    "gemini": Host((), ".gemini/settings.json", "mcp_scout_", _LOGIN),
    "opencode": Host(("run",), ".config/opencode/opencode.json", "scout_"),
}


class Person(Shell):
    """A person with a home folder in which the program keeps its settings."""

    model: Model
    variables: Mapping[str, str] = {}

    @property
    def person(self) -> Path:
        return self.folder / "person"

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: value for name, value in super().environ.items() if not name.startswith("XDG_")}
        return {**kept, "HOME": str(self.person), **self.variables}


@pytest.fixture(params=HOSTS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def me(name: str) -> Generator[Person]:
    with a_shell() as shell, scripted_model() as model:
        person = Person(shell.folder)
        person.person.mkdir()
        object.__setattr__(person, "model", model)
        object.__setattr__(person, "variables", AGENTS[name].variables(person.person, model.url))
        if HOSTS[name].own:
            (person.person / HOSTS[name].settings).write_text(json.dumps(HOSTS[name].own))
        start_daemon(person)
        yield person


@pytest.mark.rows("R5.3-6")
def test_after_setup_the_program_is_an_agent_and_asks_another(me: Person, name: str) -> None:
    me.say("agent", "register", "parrot", "--harness", "echo")
    assert "set up" in me.say("setup", name, "--yes")

    prefix = HOSTS[name].prefix
    ask = json.dumps({"to": "@parrot", "body": "say it"})
    script = f"<<force {prefix}whoami>> <<force {prefix}ask {ask}>> <<follow {prefix}>> <<say it is done>>"
    assert "it is done" in play(me, name, script)
    who, _, answer = me.model.log[-1].results
    assert "@talkie" in who
    assert "say it" in answer
    asked = me.data("flight", "list")["items"]
    assert [(one["state"], one["output"]) for one in asked] == [("completed", "say it")]

    me.say("setup", name, "--undo", "--yes")
    settings = (me.person / HOSTS[name].settings).read_text()
    assert "scout" not in settings, settings  # OpenCode has added a line, which stays


def play(me: Person, name: str, script: str) -> str:
    """What the program prints for one prompt."""
    program, talkie = AGENTS[name].program, me.project("talkie")
    words = node_words(program) if AGENTS[name].by_node else [str(require_program(program))]
    done = subprocess.run(
        [*words, *HOSTS[name].words],
        cwd=talkie,
        env={**me.environ, "PWD": str(talkie)},  # as a shell has it: OpenCode looks there first
        input=script,  # OpenCode would quote an argument once more
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
