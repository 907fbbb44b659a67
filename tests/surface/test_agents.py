"""The record behind every name (1.1): what registering makes, what never changes, what a folder is called."""

import concurrent.futures
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.surface.site import Agent, Site, git

pytestmark = pytest.mark.slow


def make_at(site: Site, path: str, **config: Any) -> Any:
    """The agent at a path, made by the first message to it."""
    site.post("/v1/messages", to=path, body="hello", create=config)
    return site.show(path)


@pytest.mark.rows("R1.1-1", "R1.1-6", "R1.1-37", "R1.1-39")
@pytest.mark.parametrize(
    ("workspace", "profile", "path", "handle"),
    [
        (None, None, "/me/agent/{}", "@{}"),
        ("fix", None, "/me/agent/{}.fix", "@{}.fix"),
        (None, "reader", "/me/agent/{}.reader", "@{}.profile:reader"),
        ("fix", "reader", "/me/agent/{}.fix.reader", "@{}.fix.profile:reader"),
    ],
)
def test_registering_gives_a_path_and_a_handle(
    site: Site, workspace: str | None, profile: str | None, path: str, handle: str
) -> None:
    name = f"spelt{len(path)}{len(handle)}"
    wish = {"workspace": workspace, "profile": profile}
    made = site.agent(name, **{key: value for key, value in wish.items() if value})
    assert made.path == path.format(name)
    node = made.record["node"]
    assert made.record["canonical"] == f"{handle.format(name)}.node:{node}"
    # Each spelling leads to the one record.
    for spelling in (made.path, handle.format(name), made.record["canonical"], made.id):
        assert site.resolve(spelling)["agentId"] == made.id
    # None of them changes with the settings of the agent.
    site.patch(f"/v1/agents/{made.id}", config={"name": "Somebody Else", "username": "other"})
    shown = site.show(made.id)
    kept = ("path", "canonical", "kind", "parentId", "definitionId", "workspace", "profile", "birthBranch")
    assert [shown[key] for key in kept] == [made.record[key] for key in kept]


@pytest.mark.rows("R1.1-3", "R1.1-4", "R0-2")
def test_an_agents_id_is_opaque_sorts_by_time_and_is_never_given_twice(site: Site) -> None:
    ids = [site.agent(f"ident{number}").id for number in range(5)]
    assert all(one.startswith("agt_") and len(one) == 4 + 26 for one in ids)
    assert ids == sorted(ids)
    assert not any("ident" in one for one in ids)
    site.post("/v1/agents/%40ident4/retire")
    assert site.agent("ident5").id not in ids
    site.post(f"/v1/agents/{ids[4]}/revive")
    assert site.show("@ident4")["id"] == ids[4]


# path, owner, kind, model role, label
KINDS = [
    ("R1.4-1", "/me/telegram", "me", "connector", "user", "telegram"),
    ("R1.4-1", "/me/irc", "me", "connector", "user", "irc"),
    ("R1.4-3", "/me/agent/kind-of", "me", "agent", "user", "kind-of"),
    ("R1.4-4", "/me/cron/nightly", "me", "cron", None, "cron nightly"),
    ("R1.4-5", "/me/task/t1", "me", "task", "task", "task t1"),
    ("R1.4-6", "/me/subuser/guest", "me", "subuser", "user", "guest"),
    ("R1.4-8", "/me/agent/kind-of/sub/0", "me", "sub", "subagent", "subagent 0"),
    ("R1.4-9", "/me/agent/kind-of/memory", "me", "memory", "memory", "memory of /me/agent/kind-of"),
    ("R1.4-10", "/me/agent/kind-of/search/0", "me", "search", "memorySearch", "search 0"),
]


@pytest.mark.rows("R1.1-5", "R1.1-9", "R1.1-11", "R1.1-21", "R1.1-45", "R1.1-46")
@pytest.mark.rows("R1.4-1", "R1.4-3", "R1.4-4", "R1.4-5", "R1.4-6", "R1.4-8", "R1.4-9", "R1.4-10", "R1.4-30")
def test_a_path_gives_kind_owner_model_role_and_label(site: Site) -> None:
    for row, path, owner, kind, role, label in KINDS:
        shown = make_at(site, path)
        assert (shown["owner"], shown["kind"]) == (owner, kind), row
        assert (shown["modelRole"], shown["label"]) == (role, label), row
        above = next(
            (path.rpartition(f"/{kind}")[0] for word in ("sub", "memory", "search") if word == kind), ""
        )
        assert shown["parentId"] == (site.show(above)["id"] if above else None)
        if kind != "agent":  # known by its path alone
            assert (shown["canonical"], shown["address"]) == (path, path)
            assert (shown["definitionId"], shown["birthBranch"]) == (None, None)
    listed = {one["path"]: one["kind"] for one in site.get("/v1/agents", all="true", limit=200)["items"]}
    assert listed["/me/cron/nightly"] == "cron"


@pytest.mark.rows("R1.4-7", "R1.1-5")
def test_scouts_own_parts_belong_to_nobody(site: Site) -> None:
    shown = site.show("/system/sweeper")
    facts = [shown[key] for key in ("owner", "kind", "modelRole", "label", "canonical")]
    assert facts == [None, "system", None, "sweeper", "/system/sweeper"]


@pytest.mark.rows("R1.1-47")
def test_an_alias_may_name_an_agent_without_a_handle(site: Site) -> None:
    made = make_at(site, "/me/cron/weekly")
    site.post("/v1/aliases", name="weekly", target="/me/cron/weekly")
    assert site.resolve("@weekly")["agentId"] == made["id"]


@pytest.mark.rows("R1.4-26")
def test_a_name_in_the_config_is_the_label(site: Site) -> None:
    site.agent("label-me", config={"name": "Ada"})
    assert site.show("@label-me")["label"] == "Ada"
    site.patch("/v1/agents/%40label-me", config={"username": "ada"})
    assert site.show("@label-me")["label"] == "Ada (@ada)"


@pytest.mark.rows("R1.1-7", "R1.1-24", "R1.1-25", "R1.4-32", "R3.5-23")
def test_a_retired_name_is_a_tombstone_until_it_is_revived(site: Site) -> None:
    made = site.agent("tomb")
    retired = site.post("/v1/agents/%40tomb/retire", reason="enough")
    assert retired["lifecycle"] == "retired"
    told = site.refused("POST", "/v1/messages", to=made.path, body="x")
    assert (told["code"], told["agentId"]) == ("retired_target", made.id)
    assert told["remedies"][0]["command"] == f"scout agent revive {made.path}"
    # Nothing but `revive` brings it back: not mail, not an ask, not registering it again.
    told = site.refused("POST", "/v1/agents", definitionId="tomb", projectRoot=made.record["projectRoot"])
    assert told["code"] == "name_taken"
    assert f"scout agent revive {made.path}" in [one["command"] for one in told["remedies"]]
    assert site.refused("POST", "/v1/messages", to=made.path, body="x", create={})["code"] == "retired_target"
    assert site.refused("POST", "/v1/asks", to="@tomb", body="x")["code"] == "retired_target"
    assert site.refused("POST", "/v1/agents/%40tomb/wake")["code"] == "retired_target"
    assert site.show(made.id)["lifecycle"] == "retired"
    site.shell.say("agent", "revive", made.path)
    assert site.show("@tomb")["lifecycle"] == "active"
    told = site.refused("POST", "/v1/agents/%40tomb/revive")
    assert told["code"] == "wrong_state"


@pytest.mark.rows("R1.1-8", "R1.1-12", "R1.1-49")
def test_a_name_is_one_agent_however_many_ask_at_once(site: Site) -> None:
    project = str(site.shell.project("race"))

    def register(_: int) -> Any:
        return site.call("POST", "/v1/agents", definitionId="race", projectRoot=project)[1]

    def create(_: int) -> Any:
        return site.call("POST", "/v1/messages", to="/me/cron/race", body="x", create={})

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        made = list(pool.map(register, range(16)))
        posted = list(pool.map(create, range(16)))
    assert len({one["agent"]["id"] for one in made}) == 1
    assert [one["created"] for one in made].count(True) == 1
    assert [one.get("token") is not None for one in made].count(True) == 1
    assert {status for status, _ in posted} == {201}
    assert len({answer["conversationId"] for _, answer in posted}) == 1


@pytest.mark.rows("R1.1-50")
def test_a_new_token_needs_the_old_one_or_the_operator(site: Site) -> None:
    made = site.agent("keyed")
    other = site.agent("keyless")
    again = site.post("/v1/agents", definitionId="keyed", projectRoot=made.record["projectRoot"])
    assert (again["created"], again.get("token")) == (False, None)
    for token in (made.token, other.token):
        told = site.refused("POST", "/v1/tokens", token=token, agent="@keyed")
        assert told["code"] == "forbidden"
    items = site.get("/v1/tokens", limit=200)["items"]
    old = next(one for one in items if one["agentId"] == made.id)
    assert site.refused("POST", f"/v1/tokens/{old['id']}/rotate", token=other.token)["code"] == "forbidden"
    new = site.post(f"/v1/tokens/{old['id']}/rotate", token=made.token)["secret"]
    assert site.get("/v1/whoami", token=new)["agentId"] == made.id
    assert site.call("GET", "/v1/whoami", token=made.token)[0] == 401
    assert site.post("/v1/tokens", agent="@keyed")["secret"]


@pytest.mark.rows("R1.1-14", "R1.1-15", "R1.1-16", "R1.1-18", "R1.1-20", "R1.1-38", "R1.5-4", "R1.6-12")
@pytest.mark.rows(
    "R1.1-54", "R1.1-56", "R1.1-57", "R1.1-58", "R0-51", "R0-53", "R3.1-13", "R3.1-23", "R3.1-24"
)
def test_a_repository_its_root_agent_and_a_linked_worktree(site: Site) -> None:
    repository = site.shell.folder / "work" / "Big Repo"
    (repository / "src" / "deep").mkdir(parents=True)
    git(repository, "init")
    git(repository, "commit", "--allow-empty", "-m", "x")
    git(repository, "worktree", "add", "-b", "Fix/It", str(repository.parent / "beside"))
    link = site.shell.folder / "work" / "a-link"
    link.symlink_to(repository)

    asked = {"body": "hello", "harness": "echo", "wait": 20}
    first = site.post("/v1/asks", projectPath=str(link / "src" / "deep"), **asked)
    root = site.show(first["target"])
    # The git folder's name, folded; the git top level; no workspace; born on the branch; `root`.
    assert (root["path"], root["address"]) == ("/me/agent/big-repo", "@big-repo")
    assert (root["projectRoot"], root["workingDir"]) == (str(repository), str(repository))
    assert (root["workspace"], root["birthBranch"], root["toolRole"]) == (None, "main", "tl")
    for folder in (repository, repository / "src" / "deep", link):
        assert site.resolve("root", directory=str(folder))["agentId"] == root["id"]
        assert json.loads(site.shell.say("resolve", "root", "--json", cwd=folder))["agentId"] == root["id"]

    beside = site.post("/v1/asks", projectPath=str(repository.parent / "beside"), **asked)
    other = site.show(beside["target"])
    assert (other["path"], other["address"]) == ("/me/agent/big-repo.fix-it", "@big-repo.fix-it")
    assert (other["workspace"], other["birthBranch"]) == ("fix-it", None)
    assert other["workingDir"] == str(repository.parent / "beside")
    # A birth branch is no setting.
    told = site.refused("PATCH", f"/v1/agents/{root['id']}", birthBranch="other")
    assert (told["code"], told["field"]) == ("bad_request", "birthBranch")


@pytest.mark.rows("R1.1-54", "R1.1-55", "R3.1-15", "R1.1-35")
def test_a_folder_gives_its_agent_a_name(site: Site) -> None:
    work = site.shell.folder / "work"
    named = work / "some-folder"
    (named / ".scout").mkdir(parents=True)
    (named / ".scout" / "project.toml").write_text('name = "Chosen Name"\n')
    (named / "inside").mkdir()
    plain, reserved, taken = work / "Plain Folder", work / "codex", work / "elsewhere" / "chosen-name"
    for folder in (plain, reserved, taken):
        folder.mkdir(parents=True)
    expected = {
        named / "inside": "chosen-name",  # the project file's name
        plain: "plain-folder",  # its own name
        reserved: "work-codex",  # a reserved word, with the folder above
        taken: "elsewhere-chosen-name",  # a taken name, with the folder above
    }
    for folder, name in expected.items():
        asked = site.post("/v1/asks", projectPath=str(folder), body="hi", harness="echo", wait=20)
        assert (asked["state"], asked["output"]) == ("completed", "hi")
        assert site.show(asked["target"])["path"] == f"/me/agent/{name}"


@pytest.mark.rows("R1.1-48")
def test_a_second_clone_has_a_workspace_of_its_own(site: Site) -> None:
    folders = [site.shell.folder / "work" / part / "twin" for part in ("one", "two")]
    made: list[Agent] = []
    for folder in folders:
        folder.mkdir(parents=True)
        git(folder, "init")
        git(folder, "commit", "--allow-empty", "-m", "x")
        made.append(site.agent("twin", projectRoot=str(folder)))
    mark = hashlib.sha256(str(folders[1]).encode()).hexdigest()[:6]
    assert made[0].address == "@twin"
    assert made[1].address == f"@twin.twin-main-{mark}"
    # Inside the second clone its own agent is meant.
    assert site.resolve("@twin", directory=str(folders[1]))["agentId"] == made[1].id
    assert site.resolve("@twin", directory=str(folders[0]))["agentId"] == made[0].id


@pytest.mark.rows("R0-54")
@pytest.mark.parametrize("folder", ["/", "/tmp", "~"])
def test_these_folders_are_no_projects(site: Site, folder: str) -> None:
    where = str(Path(folder).expanduser())
    told = site.refused("POST", "/v1/asks", projectPath=where, body="x", harness="echo")
    assert told["code"] == "bad_request"
    assert f"{where} is not a project" in told["message"]


@pytest.mark.rows("R0-55")
def test_a_moved_project_gets_its_agents_back(site: Site) -> None:
    old, new = site.shell.project("old-place"), site.shell.folder / "work" / "new-place"
    made = site.agent("mover", projectRoot=str(old))
    old.rename(new)
    site.shell.say("project", "move", str(old), str(new))
    shown = site.show("@mover")
    assert (shown["id"], shown["projectRoot"]) == (made.id, str(new))


@pytest.mark.rows("R1.1-19", "R1.1-22", "R1.6-26")
def test_roles_and_lifecycle_are_these(site: Site) -> None:
    made = site.agent("roles")
    assert (made.record["toolRole"], made.record["modelRole"]) == ("dev", "user")
    assert made.record["lifecycle"] == "active"
    for role in ("tl", "dev", "worker", "host"):
        shown = site.patch("/v1/agents/%40roles", toolRole=role)
        assert (shown["toolRole"], shown["modelRole"]) == (role, "user")
    told = site.refused("PATCH", "/v1/agents/%40roles", toolRole="boss")
    assert (told["code"], told["field"]) == ("bad_request", "toolRole")


@pytest.mark.rows("R1.1-28", "R1.1-29", "R1.1-30", "R1.1-31")
def test_a_config_holds_these_and_nothing_else(site: Site) -> None:
    config = {
        "name": "N",
        "username": "u",
        "description": "d",
        "systemPrompt": "s",
        "workspaceDir": str(site.shell.project("conf")),
        "appId": "a",
        "harness": "echo",
        "model": "m",
        "wakePolicy": "manual",
        "permissionProfile": "review",
    }
    made = site.agent("conf", config=config)
    assert config.items() <= site.show("@conf")["config"].items()
    told = site.refused("PATCH", "/v1/agents/%40conf", config={"connectorUserId": "5"})
    assert (told["code"], told["field"]) == ("bad_request", "connectorUserId")
    told = site.refused("PATCH", "/v1/agents/%40conf", config={"nmae": "x"})
    assert told["candidates"][0]["address"] == "name"
    # Harness, model and session in use are the endpoint's, not the record's.
    made.endpoint(harness="codex", model="gpt-5.5")
    shown = site.show("@conf")
    assert not {"harness", "model", "sessionId"} & shown.keys()
    assert (shown["endpoints"][0]["harness"], shown["config"]["harness"]) == ("codex", "echo")


@pytest.mark.rows("R1.1-26", "R1.4-27")
def test_children_are_numbered_without_gaps_and_never_again(site: Site) -> None:
    made = site.agent("mother")
    for number in range(3):
        path = f"{made.path}/sub/{number}"
        assert make_at(site, path)["path"] == path
    told = site.refused("POST", "/v1/messages", to=f"{made.path}/sub/7", body="x", create={})
    assert f"{made.path}/sub/3" in told["message"]
    site.post(f"/v1/agents/{made.path.replace('/', '%2F')}%2Fsub%2F2/retire")
    assert site.show(made.path)["nextSubIndex"] == 3  # never goes back
    assert make_at(site, f"{made.path}/search/0")["path"] == f"{made.path}/search/0"
    assert [site.show(made.path)[key] for key in ("nextSubIndex", "nextSearchIndex")] == [3, 1]
