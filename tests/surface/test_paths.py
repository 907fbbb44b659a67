"""Paths, relative names, branches and forms (1.4 to 1.6), and aliases (1.3): what each means at the surface."""

import json
from typing import Any

import pytest

from tests.surface.site import Site, git

pytestmark = pytest.mark.slow


# -- posting to a path ------------------------------------------------------------------------------


@pytest.mark.rows("R1.4-29", "R1.4-30", "R1.4-31")
def test_posting_to_a_path_delivers_creates_or_is_refused(site: Site) -> None:
    made = site.agent("postbox")
    assert site.post("/v1/messages", to=made.path, body="one")["deliveries"][0]["target"] == made.id
    assert made.texts() == ["one"]

    told = site.refused("POST", "/v1/messages", to="/me/cron/absent", body="x")
    assert (told["code"], told["address"]) == ("unknown_target", "/me/cron/absent")
    sent = site.post("/v1/messages", to="/me/cron/absent", body="x", create={"name": "Absent"})
    shown = site.show("/me/cron/absent")
    assert (shown["config"]["name"], shown["unread"]) == ("Absent", 1)
    assert sent["deliveries"][0]["target"] == shown["id"]
    again = site.post("/v1/messages", to="/me/cron/absent", body="y", create={"name": "Other"})
    assert again["deliveries"][0]["target"] == shown["id"]
    assert site.show("/me/cron/absent")["config"]["name"] == "Absent"  # it was there: nothing is made


@pytest.mark.rows("R1.4-33", "R1.3-2")
def test_another_users_subtree_is_closed(site: Site) -> None:
    site.post("/v1/messages", to="/other/agent/secret", body="x", create={})
    mine = site.agent("curious")
    told = mine.refused("POST", "/v1/messages", to="/other/agent/secret", body="x")
    assert told["code"] == "forbidden"
    assert told["needs"]
    # It is neither matched nor shown as a candidate.
    for address in ("@secret", "@secrt"):
        told = mine.refused("GET", "/v1/resolve", address=address)
        assert told["code"] == "unknown_target"
        assert "/other" not in json.dumps(told)
    assert "/other" not in json.dumps(mine.get("/v1/agents", all="true", limit=200))
    # A grant opens it.
    site.post("/v1/grants", action="address", agent="@curious", path="/other/agent/secret")
    assert mine.post("/v1/messages", to="/other/agent/secret", body="x")["deliveries"]


@pytest.mark.rows("R1.4-34", "R1.4-35")
def test_a_folder_that_is_no_agent_path_is_offered_as_a_project(site: Site) -> None:
    folder = site.shell.project("just-a-folder")
    told = site.refused("POST", "/v1/asks", to=str(folder), body="Look.")
    assert f"scout ask project:{folder} Look." in [one["command"] for one in told["remedies"]]
    typed = site.shell.type("show", str(folder))
    assert f"try: scout show project:{folder}" in typed.stderr
    # A folder that is not there is no project.
    told = site.refused("POST", "/v1/asks", to=f"{folder}/absent", body="Look.")
    assert not any("projectPath" in one["parameters"] for one in told["remedies"])


@pytest.mark.rows("R1.4-11")
@pytest.mark.parametrize("text", ["me/agent/x", "agent/x", "me/telegram"])
def test_a_path_begins_with_a_slash(site: Site, text: str) -> None:
    told = site.refused("POST", "/v1/grants", action="read", agent="operator", path=text)
    assert (told["code"], told["position"]) == ("malformed_address", 0)
    assert site.parse(text)["form"] != "path"


# -- forms that depend on the caller ----------------------------------------------------------------


def repository(site: Site, name: str, branch: str = "main") -> str:
    folder = site.shell.folder / "work" / name
    folder.mkdir(parents=True)
    git(folder, "init", "-b", branch)
    git(folder, "commit", "--allow-empty", "-m", "x")
    return str(folder)


@pytest.mark.rows("R1.6-1", "R1.6-13", "R0-58")
def test_operator_is_the_person(site: Site) -> None:
    person = site.get("/v1/whoami")
    user = person["user"]
    assert site.resolve("operator")["path"] == f"/{user}/direct"
    made = site.agent("messenger")
    made.post("/v1/messages", to="operator", body="hello, person")
    assert "hello, person" in site.shell.say("inbox")
    assert site.parse("operator")["form"] == "operator"
    assert site.parse("@operator")["form"] == "handle"  # the first row that matches decides


@pytest.mark.rows("R1.6-9", "R1.6-10")
def test_the_caller_its_parent_and_its_children(site: Site) -> None:
    mother = site.agent("caller")
    children = [f"{mother.path}/sub/{number}" for number in range(2)]
    for path in children:
        site.post("/v1/messages", to=path, body="hello", create={})
    token = site.post("/v1/tokens", agent=children[0])["secret"]
    meant = {
        ".": children[0],
        "self": children[0],
        "..": mother.path,
        "parent": mother.path,
        "../sub/1": children[1],
    }
    for text, path in meant.items():
        assert site.resolve(text, token=token)["path"] == path, text
    assert mother.get("/v1/resolve", address="./sub/1")["path"] == children[1]
    assert site.unresolved("parent", token=mother.token)["code"] == "unknown_target"
    site.post("/v1/messages", token=token, to="parent", body="done")
    assert "done" in mother.texts()


@pytest.mark.rows("R1.6-15", "R1.6-16", "R1.6-17")
def test_a_bare_text_with_dots_is_a_branch_then_a_handle(site: Site) -> None:
    folder = repository(site, "dotted", "release-1.2")
    root = site.post("/v1/asks", projectPath=folder, body="x", harness="echo", wait=20)["target"]
    # A birth branch of the caller's project.
    found = site.resolve("release-1.2", directory=folder)
    assert (found["agentId"], found["rule"]) == (root, "birth branch")
    # Elsewhere it matches no branch, and is read as a handle.
    assert site.unresolved("release-1.2", directory=str(site.shell.folder))["code"] == "unknown_target"
    handle = site.agent("release-1", workspace="2", projectRoot=str(site.shell.project("handle")))
    assert site.resolve("release-1.2", directory=str(site.shell.folder))["agentId"] == handle.id
    # Both: ambiguous, and each reading works.
    told = site.unresolved("release-1.2", directory=folder)
    assert told["code"] == "ambiguous_target"
    readings = [one["address"] for one in told["candidates"]]
    assert readings == ["branch:release-1.2", "@release-1.2"]
    meant = [site.resolve(text, directory=folder)["agentId"] for text in readings]
    assert meant == [root, handle.id]


@pytest.mark.rows("R1.6-18")
def test_a_bare_word_is_an_alias_then_the_root_branch_then_a_definition(site: Site) -> None:
    folder = repository(site, "bare-word", "trunk")
    root = site.post("/v1/asks", projectPath=folder, body="x", harness="echo", wait=20)["target"]
    named = site.agent("trunk", projectRoot=str(site.shell.project("trunk")))
    other = site.agent("stem")
    # A definition, seen from outside; the root branch, seen from inside.
    assert site.resolve("trunk", directory=str(site.shell.folder))["agentId"] == named.id
    assert site.resolve("trunk", directory=folder)["agentId"] == root
    # An alias comes before both.
    twig = repository(site, "twig-project", "twig")
    born = site.post("/v1/asks", projectPath=twig, body="x", harness="echo", wait=20)["target"]
    assert site.resolve("twig", directory=twig)["agentId"] == born
    site.post("/v1/aliases", name="twig", target="@stem")
    assert site.resolve("twig", directory=twig)["agentId"] == other.id


# -- aliases ----------------------------------------------------------------------------------------


@pytest.mark.rows("R1.3-4", "R2.1-28", "R2.1-29", "R2.1-30", "R2.1-31", "R2.3-22")
def test_an_alias_names_an_agent_an_instance_or_a_session(site: Site) -> None:
    one, other = site.agent("als-one"), site.agent("als-two", harness="echo")
    codex = one.endpoint(harness="codex", model="gpt-5.5")
    one.endpoint(harness="claude", model="claude-sonnet-4-6")
    made = site.post("/v1/aliases", name="als-codex", target="@als-one#codex")
    assert made["id"].startswith("als_")
    assert made["target"]["harness"] == "codex"
    found = site.resolve("als-codex")
    assert (found["endpointId"], found["rule"]) == (codex["id"], "alias")
    assert (found["aliasId"], found["aliasRevision"]) == (made["id"], made["revision"])

    site.ask("@als-two", wait=20)
    session = site.show("@als-two")["sessions"][0]["id"]
    site.post("/v1/aliases", name="als-session", target=session)
    assert site.resolve("als-session")["sessionId"] == session

    # A change gives a new revision; receipts and events pin the one they used.
    first = site.post("/v1/messages", to="als-codex", body="first")
    changed = site.post("/v1/aliases", name="als-codex", target="@als-two")
    assert changed["revision"] > made["revision"]
    second = site.ask("als-codex", body="second", wait=20)
    pinned = [(one["aliasId"], one["aliasRevision"]) for one in (first, second)]
    assert pinned == [(made["id"], made["revision"]), (made["id"], changed["revision"])]
    assert second["target"] == other.id
    events = site.log(family="collab.message.posted")
    metadata = next(event["metadata"] for event in events if second["messageId"] in json.dumps(event))
    assert metadata["aliasRevision"] == changed["revision"]
    assert metadata["resolved"].startswith("@als-two")


@pytest.mark.rows("R1.3-5", "R1.3-6", "R1.3-7")
def test_people_set_aliases_and_agents_of_the_same_user_read_them(site: Site) -> None:
    one = site.agent("als-reader")
    site.post("/v1/aliases", name="als-mine", target="@als-reader")
    assert one.get("/v1/aliases/als-mine")["means"].startswith("@als-reader")
    assert one.get("/v1/resolve", address="als-mine")["agentId"] == one.id
    for method, path, body in (
        ("POST", "/v1/aliases", {"name": "als-theirs", "target": "@als-reader"}),
        ("POST", "/v1/aliases/als-mine/remove", {}),
        ("POST", "/v1/aliases/als-mine/repair", {}),
    ):
        assert one.refused(method, path, **body)["code"] == "forbidden"
    # Another user's agent does not know it.
    site.post("/v1/messages", to="/stranger/agent/visitor", body="x", create={})
    token = site.post("/v1/tokens", agent="/stranger/agent/visitor")["secret"]
    assert site.unresolved("als-mine", token=token)["code"] == "unknown_target"


@pytest.mark.rows("R1.3-8", "R1.3-9", "R1.3-10", "R1.3-11", "R3.5-14")
def test_an_alias_never_shadows_and_a_broken_one_says_how_it_is_repaired(site: Site) -> None:
    one = site.agent("als-solid")
    told = site.refused("POST", "/v1/aliases", name="als-solid", target="@als-solid")
    assert (told["code"], told["definition"]) == ("alias_shadows", "als-solid")
    assert told["remedies"]

    # A definition that is registered later under its name breaks it.
    site.post("/v1/aliases", name="als-later", target="@als-solid")
    later = site.agent("als-later")
    told = site.unresolved("@als-later")
    assert (told["code"], told["alias"]) == ("alias_broken", "als-later")
    readings = {candidate["agentId"] for candidate in told["candidates"]}
    assert readings == {one.id, later.id}
    assert "scout alias remove als-later" in [remedy["command"] for remedy in told["remedies"]]
    site.shell.say("alias", "remove", "als-later")
    assert site.resolve("@als-later")["agentId"] == later.id

    # A target that is gone breaks it until it is repaired.
    gone = site.agent("als-gone")
    site.post("/v1/aliases", name="als-lost", target="@als-gone")
    site.post("/v1/agents/%40als-gone/retire")
    for _ in range(2):
        assert site.unresolved("@als-lost")["code"] == "alias_broken"
    assert site.get("/v1/aliases/als-lost")["state"] == "broken"
    site.shell.say("alias", "repair", "als-lost", "@als-solid")
    assert site.resolve("@als-lost")["agentId"] == one.id
    assert gone.id != one.id


# -- mentions ---------------------------------------------------------------------------------------


def get_message(site: Site, sent: Any) -> Any:
    return site.get(f"/v1/messages/{sent['messageId']}")


@pytest.mark.rows("R1.3-54", "R1.3-55", "R1.3-56", "R1.3-60", "R1.3-61", "R3.3-1", "R3.7-15", "R2.3-20")
def test_a_leading_mention_routes_and_any_other_is_a_hint(site: Site) -> None:
    one, other = site.agent("men-one"), site.agent("men-two", harness="echo")
    site.post("/v1/channels", name="men", members=["@men-one", "@men-two"])
    before = site.end_of_log()
    body = "  @men-one, please look at what @men-two did, not at `@code`.\n"
    sent = site.post("/v1/messages", channel="men", body=body.lstrip())
    assert [one_["target"] for one_ in sent["deliveries"]] == [one.id]
    shown = get_message(site, sent)
    assert shown["body"] == body.lstrip()
    assert shown["mentions"] == [one.record["canonical"], "@men-two"]
    assert site.get("/v1/deliveries", target="@men-two")["items"] == []  # a hint wakes nobody
    types = {event["type"] for event in site.log(before)}
    assert not any("mention" in kind for kind in types)
    event = next(event for event in site.log(before) if event["type"] == "collab.message.posted")
    assert event["metadata"]["mentions"] == shown["mentions"]
    assert event["metadata"]["targetAgents"] == [one.id]
    one.post("/v1/messages", channel="men", body="done", inReplyTo=sent["messageId"])
    assert site.log(before, family="collab.message")[-1]["metadata"]["inReplyTo"] == sent["messageId"]

    # Unless the channel's policy says so.
    site.post("/v1/channels/men/policy", softMentions="wake")
    sent = site.post("/v1/messages", channel="men", body="I wonder what @men-two thinks")
    assert [one_["target"] for one_ in sent["deliveries"]] == [other.id]


@pytest.mark.rows("R1.3-57", "R1.3-58", "R1.3-59", "R3.7-12")
def test_a_structured_target_wins_over_mentions(site: Site) -> None:
    one, other = site.agent("win-one"), site.agent("win-two")
    site.post("/v1/channels", name="win", members=["@win-one", "@win-two"])
    told = site.refused("POST", "/v1/messages", channel="win", body="@win-nobody go")
    assert told["code"] == "unknown_target"
    sent = site.post("/v1/messages", to="@win-one", body="@win-nobody go")
    assert [delivery["target"] for delivery in sent["deliveries"]] == [one.id]
    assert any("win-nobody" in note for note in sent["notes"])
    sent = site.post("/v1/messages", to="@win-one", body="@win-two go")
    assert [delivery["target"] for delivery in sent["deliveries"]] == [one.id]
    assert one.texts()[-1] == "@win-two go"
    # A mention may be fully qualified.
    canonical = other.record["canonical"]
    sent = site.post("/v1/messages", channel="win", body=f"{canonical} go")
    assert [delivery["target"] for delivery in sent["deliveries"]] == [other.id]
