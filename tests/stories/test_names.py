"""A name means one agent, stays the same while sessions come and go, and says so when it is broken."""

from collections.abc import Generator
from typing import Any

import pytest

from tests.cli.running import a_shell, start_daemon
from tests.daemon.daemons import Daemon
from tests.stories.refusals import Stage

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def stage() -> Generator[Stage]:
    with a_shell() as shell:
        yield Stage(shell, Daemon(shell.home, start_daemon(shell)))


def test_an_agent_cannot_pretend_to_be_elsewhere(stage: Stage) -> None:
    token = stage.agent("arc")

    def answer(method: str, path: str, body: dict[str, Any]) -> Any:
        return stage.daemon.call(method, path, body, token=token)

    # A node that nobody joined, and the transports of Scout's own bridges, are no way to an agent.
    for field, value in (("node", "mini"), ("transport", "mesh"), ("transport", "a2a")):
        refused = answer("POST", "/v1/endpoints", {field: value})
        assert (refused.status, refused.json["code"], refused.json["field"]) == (400, "bad_request", field)
        accepted = (
            stage.daemon.call("GET", "/v1/nodes").json["items"][0]["name"] if field == "node" else "pull"
        )
        assert accepted in refused.json["message"]
        # What is offered instead is accepted.
        assert answer("POST", "/v1/endpoints", refused.json["remedies"][0]["parameters"]).status == 201
    made = answer("POST", "/v1/endpoints", {}).json
    for field, value in (("node", "mini"), ("transport", "mesh")):
        refused = answer("PATCH", f"/v1/endpoints/{made['id']}", {field: value})
        assert (refused.status, refused.json["code"]) == (400, "bad_request")
        assert field in refused.json["message"]

    # Its folder is inside the allowed roots, however it is spelt.
    link = stage.shell.project("arc") / "away"
    link.symlink_to("/etc")
    for wish in (
        {"workingDir": "/etc"},
        {"config": {"workspaceDir": "/etc"}},
        {"workingDir": str(link)},
        {"config": {"workspaceDir": str(link)}},
    ):
        refused = answer("PATCH", "/v1/agents/%40arc", wish)
        assert refused.json["code"] == "directory_not_allowed", (wish, refused.body)
        assert refused.json["remedies"][0]["command"] == "scout config roots --add /etc"
    # The operator may.
    assert stage.daemon.call("PATCH", "/v1/agents/%40arc", {"workingDir": "/etc"}).status == 200
