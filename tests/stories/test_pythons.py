"""The same first hour with Scout on every supported version of Python."""

from typing import Any

import pytest
from mcp import Client

from tests.cli.running import a_shell
from tests.stories.installing import Installed
from tests.stories.mcp_client import over_mcp
from tests.stories.pythons import OTHERS, make_python

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.rows("R4.5p-3")
@pytest.mark.parametrize("version", OTHERS)
def test_a_first_hour_on_another_python(version: str) -> None:
    python = make_python(version)
    with a_shell() as shell:
        installed = Installed(shell.folder, programs=python.parent)
        installed.say("up")
        installed.say("agent", "register", "arc", "--harness", "echo")
        assert installed.say("ask", "@arc", "hello").strip() == "hello"
        token = installed.data("agent", "register", "bow")["token"]
        installed.say("send", "@bow", "good morning")
        inbox = over_mcp(installed, token, read_inbox)
        assert [one["body"] for one in inbox["items"]] == ["good morning"]
        assert installed.say("verify").splitlines()[-1] == "clean: the tables match the log"
        installed.say("down")


async def read_inbox(client: Client) -> Any:
    return (await client.call_tool("messages_inbox", {})).structured_content
