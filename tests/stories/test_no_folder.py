"""An agent without a project folder: its program runs in an empty folder, and its owner is told."""

from typing import Any

import pytest

from scout.daemon.start import start
from tests.cli.running import a_shell
from tests.daemon.daemons import Daemon

pytestmark = pytest.mark.slow


def test_an_agent_that_is_registered_in_the_home_folder_says_where_its_program_runs() -> None:
    with a_shell() as shell:
        person = shell.folder / "person"
        person.mkdir()
        own: dict[str, Any] = {"HOME": str(person)}
        scout = Daemon(shell.home, start(str(shell.home), environ={**shell.environ, **own}, timeout=60)[0])
        refused = shell.type("agent", "register", "lister", "--project", ".", cwd=person, **own)
        assert f"{person} is not a project" in refused.stderr

        made = shell.type("agent", "register", "lister", "--command", "pwd", cwd=person, **own)
        assert made.returncode == 0, made.stderr
        told = "it has no project folder, so its program runs in an empty one"
        assert told in made.stderr
        assert "scout agent config @lister --working-dir DIR" in made.stderr
        assert told in " ".join(shell.type("show", "@lister", **own).stderr.split())
        assert scout.call("GET", "/v1/agents/@lister").json["notes"]
        assert str(shell.home) in shell.say("ask", "@lister", "where?", **own)

        project = shell.project("web")
        shell.say("agent", "config", "@lister", "--working-dir", str(project), **own)
        assert "note:" not in shell.type("show", "@lister", **own).stderr
        shell.say("session", "stop", "@lister", **own)
        assert shell.say("ask", "@lister", "where?", **own).strip() == str(project)

        # One that connects by itself, or runs no program, needs no folder.
        assert "note:" not in shell.type("agent", "register", "reader", cwd=person, **own).stderr
        assert "note:" not in shell.type("agent", "register", "e", "--harness", "echo", cwd=person).stderr
