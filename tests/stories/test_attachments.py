"""A file is for those whom it was sent to: knowing its hash is not enough."""

import base64
import shlex
from pathlib import Path

import pytest

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
        scout = Daemon(shell.home, start_daemon(shell))
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

        # A program that posts it is told where the two calls are described, and they work.
        told = scout.call("POST", "/v1/messages", {"to": "@bob", "body": text + "x"})
        assert (told.status, told.json["remedies"][0]["command"]) == (413, "scout explain too_large")
        assert "POST /v1/attachments" in shell.say("explain", "too_large")
        sha256 = store(scout, scout.token, (text + "x").encode())
        sent = {"to": "@bob", "body": "See the attachment.", "attachments": [sha256]}
        assert scout.call("POST", "/v1/messages", sent).status == 201
