"""A credential that ends, ends what it holds; and nobody reads a token in passing."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import Daemon, daemon, eventually

pytestmark = pytest.mark.slow

HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}
ASK: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "whoami", "arguments": {}},
}


def end(scout: Daemon, token: dict[str, Any], how: str) -> None:
    """Revoke a token, or wait until it has expired."""
    if how == "revoked":
        assert scout.call("POST", f"/v1/tokens/{token['token']['id']}/revoke", {}).status == 200
    eventually(lambda: scout.call("GET", "/v1/whoami", token=token["secret"]).status == 401)


def test_a_person_does_not_lock_themselves_out() -> None:
    with a_shell() as shell:
        start_daemon(shell)
        file = shell.home / "token"
        for typed in ("revoke only", "revoke last", "rotate last"):
            refused = shell.type("token", *typed.split())
            assert f"this is the token in {file}" in refused.stderr, typed
            shell.say("who")

        # It is replaced by removing the file, as the refusal says.
        before = file.read_text()
        file.unlink()
        shell.say("restart")
        assert file.read_text() != before
        assert shell.type("who", SCOUT_TOKEN=before.strip()).returncode == 6
        assert shell.data("token", "list")["items"][1]["state"] == "revoked"

        # The old secret, put back, does not start Scout, and the way out is said.
        shell.say("down")
        file.write_text(before)
        stuck = shell.type("up")
        assert f"the token in {file} was revoked" in stuck.stderr
        assert f"after `rm {file}`" in stuck.stderr
        file.unlink()
        shell.say("up")
        shell.say("who")


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_an_mcp_connection_over_http_ends_with_its_token(tmp_path: Path, how: str) -> None:
    with daemon(tmp_path / "home") as scout:
        scout.register("arc", harness="echo")
        wish = {"kind": "agent", "agent": "@arc", **({"expiresIn": 5} if how == "expired" else {})}
        token = scout.call("POST", "/v1/tokens", wish).json
        head = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        begun = scout.call("POST", "/mcp", HELLO, head, token=token["secret"])
        assert begun.status == 200, begun.body
        session = {**head, "Mcp-Session-Id": begun.headers["mcp-session-id"]}
        assert scout.call("POST", "/mcp", ASK, session, token=token["secret"]).status == 200
        end(scout, token, how)
        later = scout.call("POST", "/mcp", ASK, session, token=token["secret"])
        assert (later.status, later.json["code"]) == (401, "unauthenticated")


@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_an_mcp_connection_over_stdio_ends_with_its_token(how: str) -> None:
    with a_shell() as shell:
        start_daemon(shell)
        shell.say("agent", "register", "arc", "--harness", "echo")
        expiry = ["--expires-in", "8"] if how == "expired" else []
        token = shell.data("token", "create", "--agent", "@arc", *expiry)
        with relay(shell, token["secret"]) as host:
            said = converse(host, HELLO)
            assert said["result"]["serverInfo"]["name"]
            assert "@arc" in json.dumps(converse(host, ASK))
            if how == "revoked":
                shell.say("token", "revoke", token["token"]["id"])
            else:
                eventually(lambda: shell.type("who", SCOUT_TOKEN=token["secret"]).returncode)
            refused = converse(host, {**ASK, "id": 3})
            assert "@arc" not in json.dumps(refused)
            assert "error" in refused
            assert host.stdin is not None
            host.stdin.close()
            assert host.wait(60) == 0


def relay(shell: Shell, secret: str) -> "subprocess.Popen[str]":
    """`scout mcp` as a host starts it."""
    return subprocess.Popen(
        [sys.executable, "-m", "scout", "mcp"],
        cwd=shell.folder,
        env={**shell.environ, "SCOUT_TOKEN": secret},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )


def converse(host: "subprocess.Popen[str]", message: dict[str, Any]) -> dict[str, Any]:
    """Say a message; the answer to it."""
    assert host.stdin is not None
    assert host.stdout is not None
    host.stdin.write(json.dumps(message) + "\n")
    host.stdin.flush()
    while True:
        answer: dict[str, Any] = json.loads(host.stdout.readline())
        if answer.get("id") == message["id"]:
            return answer


def test_settings_are_changed_by_the_operator_alone(tmp_path: Path) -> None:
    with daemon(tmp_path / "home") as scout:
        agent = scout.register("arc")["token"]
        others = {"an agent": agent}
        for kind, more in (
            ("guest", {}),
            ("node", {"node": "elsewhere"}),
            ("connector", {"connector": "telegram"}),
        ):
            others[kind] = scout.call("POST", "/v1/tokens", {"kind": kind, **more}).json["secret"]
        for who, token in others.items():
            refused = scout.call("POST", "/v1/settings/reload", {}, token=token)
            assert (refused.status, refused.json["code"]) == (403, "forbidden"), who
        assert scout.call("POST", "/v1/settings/reload", {}, token=None).status == 401
        assert scout.call("POST", "/v1/settings/reload", {}).status == 200


# -- tokens of programs -------------------------------------------------------------------------------

DUMP = """
import json, os, sys
parent = open(f"/proc/{os.getppid()}/cmdline").read()
seen = {"argv": sys.argv, "parent": parent, "token": os.environ["SCOUT_TOKEN"]}
open(sys.argv[1], "w").write(json.dumps(seen))
print("seen")
"""


def test_the_token_of_a_program_is_in_its_environment_alone_and_ends_with_its_turn() -> None:
    with a_shell() as shell:
        start_daemon(shell)
        program, kept = shell.folder / "dump.py", shell.folder / "kept"
        program.write_text(DUMP)
        shell.say(
            "agent",
            "register",
            "dump",
            "--command",
            shlex.join([sys.executable, str(program), str(kept)]),
            cwd=shell.project("talkie"),
        )
        shell.say("ask", "@dump", "what do you see?")
        seen = json.loads(kept.read_text())
        token = str(seen.pop("token"))
        assert token.startswith("sct_")
        assert token not in json.dumps(seen)
        refused = shell.type("who", SCOUT_TOKEN=token)
        assert refused.returncode
        assert "unauthenticated" in refused.stderr
        stored = [one for one in shell.home.rglob("*") if one.is_file()]
        assert not [one for one in stored if token.encode() in one.read_bytes()]
