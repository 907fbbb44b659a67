"""Several people at one Scout: added, shown, retired and brought back; each sees and reaches what is theirs."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from scout import BlockingScout
from scout.protocol.people.users import ListUsers
from tests.api.streams import Stream
from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import Daemon

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SECRET = "nightingale"
# What anybody with a token may ask for; each answer is looked through for words of others.
SURFACES = (
    "/v1/agents?all=true",
    "/v1/agents?query=nightingale",
    "/v1/attention?all=true",
    "/v1/bindings?all=true",
    "/v1/brief",
    "/v1/channels",
    "/v1/conversations",
    "/v1/flights",
    "/v1/inbox?all=true",
    "/v1/keys?all=true",
    "/v1/latest",
    "/v1/log",
    "/v1/log?newest=true",
    "/v1/now",
    "/v1/questions",
    "/v1/search?query=nightingale",
    "/v1/sessions",
    "/v1/topology",
    "/v1/tree?all=true",
    "/v1/usage",
    "/v1/users?all=true",
    "/v1/work?all=true",
)


@pytest.fixture
def shell() -> Generator[Shell]:
    with a_shell() as made:
        start_daemon(made)
        yield made


def daemon_of(shell: Shell) -> Daemon:
    return Daemon(shell.home, start_daemon(shell))


def token_of(shell: Shell, user: str) -> str:
    return str(shell.data("token", "create", "--user", user)["secret"])


def over_mcp(shell: Shell, token: str, act: Callable[[Client], Awaitable[Any]]) -> Any:
    url, headers = shell.data("status")["url"], {"Authorization": f"Bearer {token}"}

    async def run() -> Any:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
        ):
            return await act(client)

    return asyncio.run(run())


# -- the commands ---------------------------------------------------------------------------------------------


@pytest.mark.rows("R9.users-1", "R9.users-2", "R9.users-3", "R9.users-5", "R2.1-34")
def test_people_groups_and_sub_users_are_added_and_shown(shell: Shell) -> None:
    assert "added bob" in shell.say("user", "add", "bob", "--name", "Bob B.")
    shell.say("user", "add", "club", "--kind", "group")
    assert "/bob/subuser/kid" in shell.say("user", "add", "kid", "--owner", "bob")
    listed = shell.say("user")
    assert [line.split()[0] for line in listed.splitlines()[1:]][:3] == ["kid", "club", "bob"]
    shown = shell.say("user", "show", "bob")
    assert re.search(r"sub-users +kid", shown)
    assert re.search(r"address +/bob/direct", shown)
    assert "Robert" in shell.say("user", "rename", "bob", "Robert")
    again = shell.type("user", "add", "bob")
    assert (again.returncode, "try: scout user show bob" in again.stderr) == (7, True)
    assert shell.say("show", "/club/direct").startswith("/club/direct")


@pytest.mark.rows("R9.keys-2", "R9.keys-3")
def test_a_link_code_is_printed_once_before_the_connector_is_set_up(shell: Shell) -> None:
    shell.say("user", "add", "bob")
    printed = shell.type("user", "link", "bob", "telegram")
    code = printed.stdout.strip()
    assert re.fullmatch(r"scout-[a-z0-9]{4}-[a-z0-9]{4}", code)
    assert "private chat with the bot on telegram" in printed.stderr
    shown = shell.say("user", "show", "bob")
    assert "telegram: a link code was issued" in shown
    assert code not in shown
    assert code not in shell.say("log", "--json")
    assert code != shell.say("user", "link", "bob", "telegram").strip()
    first = shell.data("user", "link", "bob", "matrix", "--idempotency-key", "k")
    again = shell.data("user", "link", "bob", "matrix", "--idempotency-key", "k")
    assert (bool(first["code"]), again["code"], again["expiresAt"]) == (True, "", first["expiresAt"])
    typo = shell.type("user", "link", "bob", "telegarm")
    assert (typo.returncode, "telegram" in typo.stderr) == (2, True)


@pytest.mark.rows("R9.users-6", "R1.4-39")
def test_a_user_is_retired_and_brought_back(shell: Shell) -> None:
    shell.say("user", "add", "bob")
    shell.say("send", "/bob/agent/tool", "--create", "harness=echo", "be")
    assert shell.say("ask", "/bob/agent/tool", "hello").startswith("hello")
    done = shell.type("user", "retire", "bob", "--reason", "left")
    assert "retired bob" in done.stdout
    assert "2 agents retired" in done.stderr
    assert "scout user revive bob" in done.stderr
    gone = shell.type("ask", "/bob/agent/tool", "hello")
    assert "retired_target" in gone.stderr
    assert "bob" not in shell.say("user")
    assert "left" in shell.say("user", "list", "--all", "--json")
    assert "revived bob" in shell.say("user", "revive", "bob")
    assert shell.say("ask", "/bob/agent/tool", "hello").startswith("hello")
    lost = shell.type("user", "target", "bob", "telegram")
    assert (lost.returncode, "scout user link bob telegram" in lost.stderr) == (3, True)
    assert shell.say("verify").endswith("clean: the tables match the log\n")


@pytest.mark.rows("R9.bindings-1", "R9.bindings-2", "R2.1-23")
def test_a_room_is_bound_to_a_channel(shell: Shell) -> None:
    shell.say("channel", "create", "dev")
    bound = shell.data("binding", "add", "matrix", "!room:example.org", "--channel", "dev")
    assert (bound["target"], bound["externalId"], bound["state"]) == ("#dev", "!room:example.org", "active")
    thread = ("binding", "add", "matrix", "!room:example.org", "--thread", "$t", "--channel", "dev")
    assert "bound" in shell.say(*thread)
    taken = shell.type("binding", "add", "matrix", "!room:example.org", "--channel", "dev")
    assert f"scout binding close {bound['id']}" in taken.stderr
    assert "#dev" in shell.say("binding")
    assert "closed" in shell.say("binding", "close", bound["id"][:14])
    assert "!room:example.org" in shell.say("binding", "show", bound["id"])
    assert "reopened" in shell.say("binding", "reopen", bound["id"])


# -- each surface, as another user ----------------------------------------------------------------------------


def fill(shell: Shell) -> list[str]:
    """Records of the operator that are full of one word; the paths at which they are read."""
    shell.say("agent", "register", SECRET, "--harness", "echo")
    shell.say("agent", "register", "other", "--harness", "echo")
    asked = shell.data("ask", f"@{SECRET}", f"{SECRET} sings", "--no-wait")
    shell.say("wait", asked["flightId"])
    shell.say("channel", "create", SECRET)
    shell.say("send", "--channel", SECRET, f"{SECRET} here")
    work = shell.data("work", "create", f"feed the {SECRET}", "--owner", "@other")
    note = shell.data("notify", f"the {SECRET} is awake")
    file = shell.folder / "song.txt"
    file.write_text(f"{SECRET} song")
    stored = shell.data("attachment", "put", str(file))
    sent = shell.data("send", "@other", f"{SECRET} mail", "--attach", str(file))
    binding = shell.data("binding", "add", "matrix", f"!{SECRET}:example.org", "--channel", SECRET)
    records = {
        "flights": asked["flightId"],
        "asks": asked["askId"],
        "work": work["id"],
        "attention": note["id"],
        "messages": sent["messageId"],
        "conversations": sent["conversationId"],
        "bindings": binding["id"],
        "attachments": stored["sha256"],
        "agents": asked["target"],
        "why": asked["flightId"],
    }
    return [f"/v1/{noun}/{ident}" for noun, ident in records.items()]


@pytest.mark.rows("R9.users-7", "R9.users-8", "R7-10")
def test_another_user_reads_nothing_of_the_operator_over_http(shell: Shell) -> None:
    paths = fill(shell)
    live = daemon_of(shell)
    shell.say("user", "add", "bob")
    shell.say("user", "add", "club", "--kind", "group")
    shell.say("user", "add", "kid", "--owner", "bob")
    shell.say("send", "/bob/agent/tool", "--create", "description=x", "be")
    made = live.call("POST", "/v1/tokens", {"agent": "/bob/agent/tool"})
    tokens = {name: token_of(shell, name) for name in ("bob", "club", "kid")}
    for name, token in {**tokens, "a program of bob": str(made.json["secret"])}.items():
        check_reads(live, name, token, paths)
        check_stream(live, token)


def check_reads(live: Daemon, name: str, token: str, paths: list[str]) -> None:
    for path in SURFACES:
        answer = live.call("GET", path, token=token)
        assert answer.status in (200, 403), (name, path, answer.body)
        assert SECRET not in answer.body.decode(), (name, path, answer.body)
    for path in paths:
        answer = live.call("GET", path, token=token)
        assert answer.status in (403, 404), (name, path, answer.status, answer.body)
        assert SECRET not in answer.body.decode(), (name, path, answer.body)
    for body in ({"to": f"@{SECRET}"}, {"to": "/nobody/agent/x"}, {"channel": SECRET}):
        refused = live.call("POST", "/v1/messages", {**body, "body": "hello"}, token=token)
        assert refused.status in (403, 404), (name, refused.body)


def check_stream(live: Daemon, token: str) -> None:
    with Stream(live, "?after=0", token=token) as stream:
        told = live.call("POST", "/v1/attention/notify", {"message": "the end"}, token=token)
        assert told.status == 201, told.body
        while "the end" not in (text := json.dumps(stream.next().data)):
            assert SECRET not in text


@pytest.mark.rows("R9.users-7")
def test_another_user_reaches_nothing_of_the_operator_over_mcp(shell: Shell) -> None:
    fill(shell)
    shell.say("user", "add", "bob")

    async def act(client: Client) -> list[Any]:
        names = {one.name for one in (await client.list_tools()).tools}
        assert {"ask", "messages_inbox", "agents_search"} <= names
        return [
            await client.call_tool("whoami", {}),
            await client.call_tool("agents_search", {"query": SECRET[:6]}),
            await client.call_tool("messages_inbox", {}),
            await client.call_tool("work_list", {}),
            await client.call_tool("ask", {"to": f"@{SECRET[:-1]}", "body": "hello"}),
            await client.call_tool("messages_send", {"to": "/me/direct", "body": "hello"}),
        ]

    results = over_mcp(shell, token_of(shell, "bob"), act)
    assert "/bob/direct" in str(results[0])
    assert [bool(one.is_error) for one in results[-2:]] == [True, True]
    assert not [one for one in results if SECRET in str(one)]


@pytest.mark.rows("R9.users-4", "R9.users-7")
def test_the_command_line_of_another_user(shell: Shell) -> None:
    fill(shell)
    shell.say("user", "add", "bob")
    shell.say("user", "add", "kid", "--owner", "bob")
    shell.say("send", "/kid/agent/toy", "--create", "harness=echo", "be")
    mine: dict[str, Any] = {"SCOUT_TOKEN": token_of(shell, "bob")}
    assert "/bob/direct" in shell.say("whoami", **mine)
    assert [line.split()[0] for line in shell.say("who", **mine).splitlines()[1:]] == [
        "/kid/agent/toy",
        "/bob/subuser/kid",
    ]
    assert shell.say("ask", "/kid/agent/toy", "hello", **mine).startswith("hello")
    assert "retired" in shell.say("agent", "retire", "/kid/agent/toy", **mine)
    for words in (["ask", f"@{SECRET}", "hi"], ["user", "show", "me"], ["user", "retire", "bob"]):
        refused = shell.type(*words, **mine)
        assert refused.returncode in (3, 6), (words, refused.stderr)
    assert SECRET not in shell.say("now", **mine)
    with BlockingScout(token=mine["SCOUT_TOKEN"], home=str(shell.home)) as scout:
        assert [one.name for one in scout.call(ListUsers()).items] == ["kid", "bob"]
