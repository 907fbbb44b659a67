"""Agents of one family reach each other without knowing a name, and parents hear of their children."""

from collections.abc import Generator

import pytest

from tests.daemon.daemons import Reply, eventually
from tests.stories.families import Family, a_family

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT, AUTH, API, DOCS, HELPER = (
    "@hudson",
    "@hudson.auth",
    "@hudson.auth-api",
    "@hudson.docs",
    "@hudson.auth-1",
)


@pytest.fixture(scope="module")
def family() -> Generator[Family]:
    """@hudson with the children auth and docs, and below auth the child api and a worker."""
    with a_family() as made:
        made.spawn("auth", role="tl")
        made.spawn("docs")
        made.spawn("api", **{"from": AUTH})
        made.spawn("helper", role="worker", **{"from": AUTH})
        yield made


# From each agent: what is typed, and who is meant.
ADDRESSES = {
    API: {
        "parent": AUTH,
        "..": AUTH,
        "self": API,
        ".": API,
        "root": ROOT,
        "../sub/1": HELPER,
        "main.auth": AUTH,
        "branch:main.auth": AUTH,
        "branch:main": ROOT,
        "main.docs": DOCS,
    },
    AUTH: {"parent": ROOT, "./sub/0": API, "./sub/1": HELPER, "../sub/1": DOCS, "main.auth.api": API},
    HELPER: {"parent": AUTH, "root": ROOT, "self": HELPER, "../sub/0": API, "main.auth.api": API},
    ROOT: {"self": ROOT, "root": ROOT, "./sub/0": AUTH, "./sub/0/sub/0": API, "branch:main.auth": AUTH},
}
CASES = [(agent, text, meant) for agent, texts in ADDRESSES.items() for text, meant in texts.items()]


@pytest.mark.rows("R1.5-4", "R10.4-1")
@pytest.mark.parametrize("agent", ADDRESSES)
def test_family_words_work_on_every_surface(family: Family, agent: str) -> None:
    role = family.get(f"/v1/agents/{agent}")["toolRole"]
    for text, meant in ADDRESSES[agent].items():
        typed = family.shell.data("resolve", text, "--as", agent)
        assert typed["address"] == meant, (agent, text)
        over_http = family.daemon.call(
            "GET", f"/v1/resolve?address={quoted(text)}", token=family.token(agent)
        )
        assert over_http.json["address"] == meant, (agent, text)
        shown = family.call("GET", f"/v1/agents/{quoted(text)}", agent=agent)
        assert shown.json["address"] == meant, (agent, text)
        assert family.facts(agent, "agents_resolve", address=text)["address"] == meant, (agent, text)
        if meant == agent and text != ".":  # the URL of its own MCP server, under any of its names
            own = family.facts(agent, "whoami", family.url(role, text))
            assert own["address"] == agent, (agent, text)


def quoted(text: str) -> str:
    return family_url(text).split("/")[3]


def family_url(text: str) -> str:
    return Family.url("dev", text)


@pytest.mark.rows("R10.4-1")
@pytest.mark.parametrize(
    ("agent", "role", "name"),
    [
        (ROOT, "tl", "root"),
        (ROOT, "tl", "main"),
        (ROOT, "tl", "branch:main"),
        (AUTH, "tl", "main.auth"),
        (API, "dev", "main.auth.api"),
        (API, "dev", "self"),
        (API, "dev", "@hudson.auth-api"),
        (HELPER, "worker", "../sub/1"),
    ],
)
def test_an_agent_has_its_own_mcp_server_under_each_of_its_names(
    family: Family, agent: str, role: str, name: str
) -> None:
    told = family.facts(agent, "whoami", family.url(role, name))
    assert (told["address"], told["role"]) == (agent, role)
    path = str(family.get(f"/v1/agents/{agent}")["path"])
    assert family.facts(agent, "whoami", family.url(role, path))["path"] == path


def begin_mcp(family: Family, agent: str, url: str) -> Reply:
    """The first request of an MCP client, at exactly this URL."""
    told = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}
    begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": told}
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    return family.daemon.call("POST", url, begin, headers, token=family.token(agent))


def test_a_name_of_dots_is_given_percent_encoded(family: Family) -> None:
    # Clients remove "/./" from a URL before they send it.
    assert begin_mcp(family, API, "/agents/dev/%2E/mcp").status == 200
    assert begin_mcp(family, HELPER, "/agents/worker/%2E%2E%2Fsub%2F1/mcp").status == 200


def test_the_server_of_another_agent_or_role_is_refused(family: Family) -> None:
    others = [family.url("tl", name) for name in ("parent", "main.auth", "self", "root")]
    for url in (*others, "/agents/tl/%2E%2E/mcp"):
        refused = begin_mcp(family, API, url)
        assert (refused.status, refused.json["code"]) == (403, "forbidden"), url


def test_a_person_in_a_work_tree_is_in_the_project(family: Family) -> None:
    inside = family.work_tree("auth")
    for text, meant in {
        "root": ROOT,
        "main.docs": DOCS,
        "branch:main.auth.api": API,
        f"project:{inside}": AUTH,
    }.items():
        assert family.shell.data("resolve", text, cwd=inside)["address"] == meant, text
    asked = family.shell.say("ask", "--project", ".", "Which one are you?", cwd=inside)
    assert asked.strip() == "Which one are you?"
    (flight,) = family.shell.data("flight", "list", "--limit", "1")["items"]
    assert flight["targetAddress"] == AUTH


# -- notify_parent -----------------------------------------------------------------------------------


@pytest.mark.rows("R1.5-14", "R10.4-2")
def test_a_child_tells_its_parent_without_an_address(family: Family) -> None:
    family.facts(HELPER, "notify_parent", body="half way")
    family.facts(HELPER, "notify_parent", body="all done", status="final")
    assert [one for one in family.inbox(AUTH) if one in ("half way", "all done")] == ["half way", "all done"]


@pytest.mark.rows("R10.4-2")
def test_a_root_agent_has_nobody_to_tell_and_is_told_so(family: Family) -> None:
    refused = family.use(ROOT, "notify_parent", body="done")
    assert refused.is_error
    told = refused.structured_content
    assert (told["code"], "you have no parent" in told["message"]) == ("unknown_target", True)
    step = told["remedies"][0]
    assert (step["tool"], step["arguments"]) == ("operator_notify", {"message": "done"})
    family.facts(ROOT, step["tool"], **step["arguments"])
    typed = family.shell.type("send", "parent", "done", "--as", ROOT)
    assert (typed.returncode, "you have no parent" in typed.stderr) == (3, True)
    assert f"try: scout notify done --as {ROOT}" in typed.stderr


# -- parents are told --------------------------------------------------------------------------------


@pytest.mark.rows("R10.4-3")
def test_a_parent_hears_of_its_child_and_nobody_else_does() -> None:
    with a_family() as family:
        family.spawn("auth", role="tl")
        family.spawn("docs")
        asked = family.shell.say("ask", AUTH, "Add a login page.")
        assert asked.strip() == "Add a login page."
        (told,) = family.inbox(ROOT)
        assert told.splitlines()[0] == f"{AUTH} finished: Add a login page."
        assert family.inbox(DOCS) == []
        # The parent that asks itself gets the answer, and no second message.
        made = family.post(
            "/v1/asks", {"to": AUTH, "body": "And a logout page.", "replyMode": "notify"}, ROOT
        )
        eventually(lambda: len(family.inbox(ROOT)) == 2)
        assert family.inbox(ROOT)[1] == "And a logout page."
        assert family.get(f"/v1/flights/{made['flightId']}")["state"] == "completed"
        family.restart()
        assert len(family.inbox(ROOT)) == 2


def test_a_retired_parent_is_named_in_the_refusal() -> None:
    with a_family() as family:
        family.spawn("auth", role="tl")
        family.spawn("api", **{"from": AUTH})
        token = family.token(API)
        family.shell.say("agent", "retire", AUTH)
        refused = family.use(API, "notify_parent", body="done")
        assert refused.is_error
        told = refused.structured_content
        assert told["code"] == "retired_target"
        assert "revive" in str(told["remedies"])
        over_http = family.daemon.call("POST", "/v1/messages", {"to": "parent", "body": "x"}, token=token)
        assert over_http.json["code"] == "retired_target"
        # The tree shows the child without its parent.
        (shown,) = [one for one in family.tree()["agents"] if one["address"] == API]
        assert shown.get("depth", 0) == 0


@pytest.mark.rows("R1.5-12")
def test_a_root_branch_with_dots_and_slashes_is_one_unit() -> None:
    for branch in ("release-1.2", "feature/x"):
        with a_family(branch) as family:
            (auth,) = family.spawn("auth", role="tl")
            assert auth["birthBranch"] == f"{branch}.auth"
            (api,) = family.spawn("api", **{"from": AUTH})
            assert api["birthBranch"] == f"{branch}.auth.api"
            for text, meant in {
                "root": ROOT,
                "parent": AUTH,
                f"branch:{branch}.auth": AUTH,
                f"branch:{branch}": ROOT,
            }.items():
                assert family.facts(API, "agents_resolve", address=text)["address"] == meant, text
            own = family.facts(API, "whoami", family.url("dev", f"branch:{branch}.auth.api"))
            assert own["address"] == API
