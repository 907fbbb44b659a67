"""The route operator: whoever composes a text names its target in it, at every surface."""

import json
import urllib.error
import urllib.request
from collections.abc import Generator
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.cli.running import Shell, a_shell, start_daemon
from tests.stories.mcp_client import over_mcp

pytestmark = pytest.mark.slow


@pytest.fixture
def me() -> Generator[Shell]:
    with a_shell() as shell:
        start_daemon(shell)
        shell.say("agent", "register", "bb", "--harness", "echo")
        yield shell


def post(me: Shell, path: str, **what: Any) -> tuple[int, Any]:
    """The status and the answer of a request over HTTP, with the operator's token."""
    token = (me.home / "token").read_text().strip()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    url = me.data("status")["url"] + path
    request = urllib.request.Request(url, json.dumps(what).encode(), headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def mail(me: Shell) -> list[str]:
    """The texts that `bb` was sent, apart from the asks, oldest first."""
    items = me.data("inbox", "--all", "--as", "@bb")["items"]
    texts = [item["message"]["body"] for item in sorted(items, key=lambda item: item["message"]["createdAt"])]
    return [text for text in texts if text != "Review this."]


@pytest.mark.rows("R1.2-41", "R1.2-42", "R1.2-43")
def test_a_person_names_the_target_in_the_text(me: Shell) -> None:
    asks = [
        ("ask", ">> bb Review this."),
        ("ask", ">>", "bb", "Review", "this."),
        ("ask", ">>bb", "Review this."),
        ("ask", ">> bb", "Review this."),
        (">> bb Review this.",),
        ("--", ">> bb Review this."),
    ]
    for words in asks:
        assert me.say(*words) == "Review this.\n", words
    assert me.say("ask", "-", stdin=">> bb Review this.") == "Review this.\n"

    assert "to @bb" in me.say("send", ">> bb hi")
    me.say("send", "@bb", "a >> nobody b")  # the target is given: the text stays as it is
    me.say("send", "--to", "@bb", ">> nobody hi")
    assert mail(me) == ["hi", "a >> nobody b", ">> nobody hi"]

    inside = me.type("ask", "-", stdin="bb>>cc hi")
    assert "no target" in inside.stderr
    for text, position in ((">>", 2), (">> ,; hi", 3), (">> @x..y hi", 6)):
        refused = me.type("send", text)
        assert refused.returncode == 2, text
        assert "malformed_address" in refused.stderr
        assert f"at character {position};" in refused.stderr


@pytest.mark.rows("R1.2-41", "R1.2-42", "R1.2-43")
def test_a_program_names_the_target_in_the_body(me: Shell) -> None:
    status, asked = post(me, "/v1/asks", body=">> bb Review this.", wait=20)
    assert (status, asked["output"]) == (201, "Review this.")
    status, asked = post(me, "/v1/asks", body="/scout:ask >> bb Review this.", wait=20)
    assert (status, asked["output"]) == (201, "Review this.")
    assert post(me, "/v1/messages", body=">> @bb: two\n lines\n")[0] == 201
    assert post(me, "/v1/messages", to="@bb", body=">> nobody hi")[0] == 201
    assert mail(me) == ["two\n lines\n", ">> nobody hi"]

    for path in ("/v1/asks", "/v1/messages"):
        assert post(me, path, body="bb>>cc hi")[1]["code"] == "bad_request"
        status, problem = post(me, path, body="  >>")
        assert (status, problem["code"], problem["position"]) == (400, "malformed_address", 4)
        assert [one["operation"] for one in problem["remedies"]] == ["who"]
        status, problem = post(me, path, body=">> @x..y look at it")
        assert (status, problem["code"], problem["position"]) == (400, "malformed_address", 6)
        assert problem["remedies"][0]["parameters"] == {"to": "@x.y", "body": "look at it"}
        status, problem = post(me, path, body=">> nobody look at it")
        assert (status, problem["code"]) == (404, "unknown_target")


@pytest.mark.rows("R1.2-41", "R1.2-43")
def test_an_mcp_client_names_the_target_in_the_text(me: Shell) -> None:
    async def act(client: Client) -> None:
        asked = (await client.call_tool("ask", {"body": ">> bb Review this."})).structured_content
        assert asked is not None
        flight = await client.call_tool("invocations_wait", {"flightId": asked["flightId"]})
        assert (flight.structured_content or {})["output"] == "Review this."
        assert not (await client.call_tool("messages_send", {"body": ">> bb hi"})).is_error
        refused = await client.call_tool("ask", {"body": ">>"})
        assert refused.is_error
        assert "malformed_address" in str(refused.structured_content or refused.content)

        for given in ({"task": ">> bb Review this."}, {"to": ">>", "task": "bb Review this."}):
            (message,) = (await client.get_prompt("delegate", given)).messages
            assert "Delegate this to @bb: Review this.\n" in str(getattr(message.content, "text", ""))
        with pytest.raises(MCPError, match=r"malformed_address.*character 2"):
            await client.get_prompt("delegate", {"task": ">>"})

    over_mcp(me, me.data("agent", "register", "aa")["token"], act)
    assert "hi" in mail(me)
