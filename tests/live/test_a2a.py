"""A client of another system asks the real Claude Code by A2A, and streams its answer."""

import pytest
from a2a.client import Client
from a2a.types import a2a_pb2

from tests.a2a.stage import BINDINGS, collect, play, say
from tests.live.machine import a_machine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.rows("R4.5-2")
def test_a_client_streams_what_claude_does_and_its_answer() -> None:
    with a_machine("claude") as machine:
        folder = machine.repository("talkie")
        machine.say("agent", "register", "talkie", "--project", str(folder), "--harness", "claude")
        machine.say("config", "roots", "--add", str(folder))
        published = machine.data("agent", "publish", "@talkie")
        machine.say("user", "add", "acme")
        machine.say("grant", "add", "ask", "--holder", "acme", "--path", published["path"])
        token = machine.data("token", "create", "--user", "acme")["secret"]
        read = f'<<tool Read {{"file_path": "{folder}/.scout/project.toml"}}>>'
        asked = f"{read} <<say talkie it is>>"
        for binding in BINDINGS:
            events = play(published["url"], token, binding, lambda client: collect(client, say(asked)))
            assert events[-2].artifact_update.artifact.parts[0].text == "talkie it is"
            assert events[-1].status_update.status.state == a2a_pb2.TASK_STATE_COMPLETED
            states = [event.status_update.status.state for event in events[1:-2]]
            assert a2a_pb2.TASK_STATE_WORKING in states

        async def look(client: Client) -> list[str]:
            page = await client.list_tasks(a2a_pb2.ListTasksRequest(include_artifacts=True))
            return [task.artifacts[0].parts[0].text for task in page.tasks]

        assert play(published["url"], token, BINDINGS[0], look) == ["talkie it is"] * 2
