"""A file is for those whom it was sent to: knowing its hash is not enough."""

import asyncio
import base64
import shlex
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from scout.protocol.operations import OPERATIONS
from tests.cli.running import a_shell, start_daemon
from tests.daemon.daemons import Daemon, daemon
from tests.stories.refusals import read_code, tries

pytestmark = pytest.mark.slow

PLAN = b"the plan of the vault"


def store(scout: Daemon, token: str, data: bytes = PLAN) -> str:
    wish = {"name": "plan.txt", "data": base64.b64encode(data).decode()}
    reply = scout.call("POST", "/v1/attachments", wish, token=token)
    assert reply.status == 201, reply.body
    return str(reply.json["sha256"])


def read(scout: Daemon, token: str, sha256: str) -> bytes | str:
    """The bytes, or the code of the refusal."""
    reply = scout.call("GET", f"/v1/attachments/{sha256}", token=token)
    return base64.b64decode(reply.json["data"]) if reply.status == 200 else str(reply.json["code"])


def test_a_file_is_read_by_those_it_was_sent_to(tmp_path: Path) -> None:
    with daemon(tmp_path / "home") as scout:
        ann, bob, eve = (str(scout.register(name)["token"]) for name in ("ann", "bob", "eve"))
        scout.register("worker", harness="echo")
        sha256 = store(scout, ann)
        assert read(scout, ann, sha256) == PLAN
        assert read(scout, scout.token, sha256) == PLAN
        assert (read(scout, bob, sha256), read(scout, eve, sha256)) == ("not_found", "not_found")

        sent = {"to": "@bob", "body": "see", "attachments": [f"{sha256}:plan.txt"]}
        assert scout.call("POST", "/v1/messages", sent, token=ann).status == 201
        assert (read(scout, bob, sha256), read(scout, eve, sha256)) == (PLAN, "not_found")

        # A hash that eve only knows is for her the same as one that nobody has.
        for unknown in (sha256, "0" * 64):
            for path, to in (("/v1/messages", "@eve"), ("/v1/messages", "@bob"), ("/v1/asks", "@worker")):
                stolen = {"to": to, "body": "mine", "attachments": [unknown]}
                refusal = scout.call("POST", path, stolen, token=eve)
                assert (refusal.status, refusal.json["message"]) == (404, f"no attachment '{unknown}'")
        assert read(scout, eve, sha256) == "not_found"


def test_a_file_that_was_sent_is_fetched_on_the_command_line() -> None:
    with a_shell() as shell:
        start_daemon(shell)
        for name in ("ann", "bob", "eve"):
            shell.say("agent", "register", name)
        plan = shell.folder / "plan.txt"
        plan.write_bytes(PLAN)
        shell.say("send", "@bob", "see", "--attach", str(plan), "--as", "@ann")
        (line,) = shell.data("message", "list", "--to", "@ann", "--as", "@bob")["items"]
        sha256 = line["attachments"][0]["sha256"]
        assert shell.say("attachment", "get", sha256, "--as", "@bob") == PLAN.decode()
        refused = shell.type("attachment", "get", sha256, "--as", "@eve")
        assert refused.returncode == 3, refused.stderr
        assert f"no attachment '{sha256}'" in refused.stderr


@pytest.mark.rows("R0-68")
def test_a_text_that_is_too_long_is_attached_instead() -> None:
    with a_shell() as shell:
        start_daemon(shell)
        shell.say("agent", "register", "bob")
        text = "x" * (256 * 1024)
        (shell.folder / "long text.txt").write_text(text)
        shell.say("send", "@bob", "--file", "long text.txt", cwd=None)  # exactly 256 KiB
        (shell.folder / "long text.txt").write_text(text + "x")

        for flag in (["--file", "long text.txt"], ["--file=long text.txt"]):
            refused = shell.type("send", "@bob", *flag, cwd=None)
            assert read_code(refused.stderr) == "too_large"
            (offered,) = tries(refused.stderr)
            shell.say(*shlex.split(offered)[1:], cwd=None)
            (latest, *_) = shell.data("inbox", "--as", "@bob", "--all")["items"]
            assert [one["name"] for one in latest["message"]["attachments"]] == ["long text.txt"]

        # From a pipe, it is attached from the same pipe.
        refused = shell.type("send", "@bob", "-", stdin=text + "x")
        (offered,) = tries(refused.stderr)
        shell.say(*shlex.split(offered)[1:], stdin=text + "x")


LONG = "é" * (150 * 1024)
POSTED = {
    "send": ("/v1/messages", {"to": "@bob", "body": LONG}),
    "ask": ("/v1/asks", {"to": "@bob", "body": LONG, "ifUnreachable": "queue"}),
    "reply": ("/v1/replies", {"body": LONG}),
    "question": ("/v1/questions", {"to": "@bob", "body": LONG}),
}


@pytest.mark.parametrize("verb", POSTED)
def test_a_program_is_given_the_two_calls_that_attach_a_long_text(verb: str) -> None:
    with a_shell() as shell:
        scout = Daemon(shell.home, start_daemon(shell))
        bob = scout.register("bob")["token"]
        ann = scout.register("ann")["token"]
        scout.call("POST", "/v1/messages", {"to": "@ann", "body": "write to me"}, token=bob)

        path, wish = POSTED[verb]
        told = scout.call("POST", path, wish, token=ann)
        assert (told.status, told.json["code"]) == (413, "too_large"), told.body[:300]
        for one in told.json["remedies"]:  # as they stand, one after the other
            route = OPERATIONS[one["operation"]].request
            assert route is not None
            done = scout.call("POST", route.route.split()[1], one["parameters"], token=ann)
            assert done.status == 201, done.body[:300]
        (arrived,) = scout.call("GET", "/v1/inbox", token=bob).json["items"]
        (file,) = arrived["message"]["attachments"]
        found = scout.call("GET", f"/v1/attachments/{file['sha256']}", token=bob).json
        assert base64.b64decode(found["data"]).decode() == LONG


def test_an_agent_is_given_the_command_that_attaches_a_long_text() -> None:
    with a_shell() as shell:
        scout = Daemon(shell.home, start_daemon(shell))
        bob, ann = (scout.register(name)["token"] for name in ("bob", "ann"))

        async def run() -> Any:
            async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {ann}"}, timeout=30) as http:
                url = f"{scout.running.url}/mcp"
                async with Client(streamable_http_client(url, http_client=http)) as client:
                    return await client.call_tool("messages_send", {"to": "@bob", "body": LONG})

        told = asyncio.run(run())
        (step,) = told.structured_content["remedies"]
        assert step["command"] == "scout send --attach message.txt @bob 'See the attachment.'"
        assert step["why"] == "write the text to message.txt first"
        assert len(str(told)) < 2000  # the text is not repeated to a model
        (shell.folder / "message.txt").write_text(LONG)
        shell.say(*shlex.split(step["command"])[1:], SCOUT_TOKEN=ann)
        assert len(scout.call("GET", "/v1/inbox", token=bob).json["items"]) == 1
