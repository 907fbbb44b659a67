"""Coming from another system: `scout import` keeps names, conversations, their order and open work."""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from scout import BlockingScout
from scout.model.conversation import derive_dm_id
from tests.cli.running import Shell, a_shell, start_daemon, type_in_terminal
from tests.stories.foreign_systems import (
    JOURNAL,
    build_agent,
    build_message,
    build_talk,
    copy_openscout,
    write_daycare_dump,
    write_daycare_export,
    write_exomonad,
    write_journal,
    write_openscout_database,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def shell() -> Generator[Shell]:
    with a_shell() as made:
        start_daemon(made)
        yield made


def count_events(shell: Shell) -> int:
    return int(shell.data("log", "--limit", "1", "--newest")["items"][0]["seq"])


def list_messages(shell: Shell, *words: str) -> list[dict[str, Any]]:
    return list(shell.data("message", "list", *words, "--limit", "200")["items"])


def list_reasons(report: dict[str, Any]) -> dict[str, str]:
    return {f"{one['type']} {one['id']}": one["reason"] for one in report["skipped"]}


# -- OpenScout ---------------------------------------------------------------------------------------


def describe_store(shell: Shell) -> dict[str, Any]:
    """What was imported, field by field, with the names that people see."""
    agents = {one["address"]: one for one in shell.data("who")["items"]}
    addresses = {one["id"]: address for address, one in agents.items()}
    general = shell.data("channel", "show", "general")
    members = {addresses.get(one["agentId"], "operator") for one in general["members"]}
    me = shell.data("whoami")["agentId"]
    addresses[me] = "operator"
    messages = [
        (one["importedFrom"]["id"], addresses[one["sender"]], one["body"], one["createdAt"], one["kind"])
        for one in list_messages(shell, "--channel", "general")
    ]
    work = sorted(
        (
            one["importedFrom"]["id"],
            one["title"],
            one["state"],
            one["ownerAddress"],
            one["nextMoveAddress"],
            addresses[one["requesterId"]],
            one["conversationId"] == general["id"],
            one["createdAt"],
            one["acceptance"],
        )
        for one in shell.data("work", "list")["items"]
    )
    names = {
        address: (one["config"]["harness"], one["projectRoot"], one["lifecycle"], one["importedFrom"])
        for address, one in agents.items()
    }
    return {"agents": names, "channel": members, "messages": messages, "work": work}


EXPECTED = {
    "agents": {
        "@hudson": ("claude", "/tmp/p", "sleeping", {"system": "openscout", "id": "hudson"}),
        "@arc": (None, None, "sleeping", {"system": "openscout", "id": "arc"}),
    },
    "channel": {"operator", "@hudson"},
    "messages": [
        ("m1", "operator", "hello 1 @hudson", "2026-11-16T08:55:47.001Z", "chat"),
        ("m2", "operator", "hello 2 @hudson", "2026-11-16T08:55:47.002Z", "chat"),
        ("m3", "operator", "hello 3 @hudson", "2026-11-16T08:55:47.003Z", "chat"),
    ],
    "work": [
        (
            "flt-mwj1mng9-a4sbkq",
            *("look at it", "open", "@arc", "@arc", "operator", True),
            *("2026-11-16T08:55:47.010Z", "pending"),
        ),
        (
            "w1",
            *("fix it", "open", "@hudson", "@hudson", "operator", True),
            *("2026-11-16T08:55:47.011Z", "none"),
        ),
    ],
}


@pytest.mark.rows("R4.5i-1", "R4.5i-2", "R4.5i-3", "R4.5i-4", "R4.5i-5")
def test_a_real_openscout_is_imported_field_by_field_and_only_once(shell: Shell, tmp_path: Path) -> None:
    store = copy_openscout(tmp_path / "openscout")
    before = count_events(shell)
    dry = shell.data("import", "openscout", str(store), "--dry-run")
    assert count_events(shell) == before, "a dry run changes nothing"
    done = shell.data("import", "openscout", str(store))
    counts = {"agent": 2, "conversation": 1, "message": 3, "work": 2}
    assert (dry["taken"], done["taken"], done["present"]) == (counts, counts, {})
    assert {**dry, "dryRun": False} == done, "a dry run tells what will happen"
    assert {(one["type"], one["count"]) for one in done["leftOut"]} == {
        ("node", 1),
        ("delivery", 6),
        ("dispatch job", 3),
        ("endpoint", 1),
    }
    assert describe_store(shell) == EXPECTED
    stored = count_events(shell)
    again = shell.data("import", "openscout", str(store))
    assert (again["taken"], again["present"], again["skipped"]) == ({}, counts, [])
    assert count_events(shell) == stored, "a second import adds nothing"
    assert describe_store(shell) == EXPECTED
    assert (store / JOURNAL.name).read_bytes() == JOURNAL.read_bytes(), "the other system is only read"
    assert shell.data("flight", "list")["items"] == [], "nothing is asked again"
    assert shell.data("delivery", "list")["items"] == [], "nothing is delivered again"
    assert "empty" in shell.say("inbox"), "what is imported counts as read"
    shown = shell.say("show", "@hudson")
    assert "openscout hudson" in shown
    assert "clean" in shell.say("verify")


@pytest.mark.rows("R4.5i-1")
def test_aliases_and_roles_come_from_the_database(shell: Shell, tmp_path: Path) -> None:
    store = copy_openscout(tmp_path / "openscout")
    write_openscout_database(store)
    done = shell.data("import", "openscout", str(store / JOURNAL.name))
    assert done["taken"]["alias"] == 2
    assert shell.data("show", "@huddy")["address"] == "@hudson"
    assert shell.data("show", "@hudson")["toolRole"] == "tl"
    assert shell.data("show", "@arc-openscout")["address"] == "@hudson", "an alias never shadows an agent"
    (changed,) = done["changed"]
    assert (changed["type"], changed["id"], changed["name"]) == ("alias", "a2", "@arc-openscout")
    assert list_reasons(done) == {
        "alias live": "it names a session, which is not imported",
        "role poet of arc": "Scout has no such role",
    }


@pytest.mark.rows("R4.5i-8")
def test_names_that_are_taken_are_kept_with_the_name_of_the_system(shell: Shell, tmp_path: Path) -> None:
    here = shell.project("hudson")
    shell.say("agent", "register", "arc", "--harness", "echo")
    shell.say("agent", "register", "hudson", "--project", ".", "--harness", "echo", cwd=here)
    shell.say("channel", "create", "general")
    store = write_journal(
        tmp_path / "store",
        build_agent("arc"),
        build_agent("hudson"),
        build_agent("codex"),
        build_agent("other", definitionId="arc", workspaceQualifier="Super Refactor"),
        build_agent("twin", definitionId="codex"),
        {
            "kind": "agent.endpoint.upsert",
            "endpoint": {"id": "e", "agentId": "hudson", "harness": "claude", "projectRoot": str(here)},
        },
        build_talk("general", "channel", "arc", "hudson"),
        build_message("m1", "general", "hudson", "hello"),
    )
    dry = shell.data("import", "openscout", str(store), "--dry-run")
    done = shell.data("import", "openscout", str(store))
    assert dry["changed"] == done["changed"]
    names = {f"{one['type']} {one['id']}": (one["name"], one["reason"]) for one in done["changed"]}
    assert names["agent arc"] == ("@arc-openscout", "@arc was taken")
    assert names["agent hudson"] == ("@hudson", "it has the same name and project")
    assert names["agent codex"][0] == "@codex-openscout"
    assert names["conversation general"] == ("#general-openscout", "#general was taken")
    addresses = {one["address"] for one in shell.data("who")["items"]}
    assert {"@arc", "@arc-openscout", "@arc.super-refactor", "@codex-twin"} <= addresses
    (said,) = list_messages(shell, "--channel", "general-openscout")
    assert said["sender"] == shell.data("show", "@hudson")["id"], "the same agent said it"
    again = shell.data("import", "openscout", str(store))
    assert (again["taken"], {one["name"] for one in again["changed"]}) == ({}, {"@hudson"})


@pytest.mark.rows("R4.5i-4", "R4.5i-7")
def test_damaged_and_hostile_journals_lose_only_what_is_damaged(shell: Shell, tmp_path: Path) -> None:
    store = write_journal(
        tmp_path / "store",
        "{ not json",
        "[1, 2]",
        '"' + "x" * (4 * 1024 * 1024) + '"',
        '{"kind": ' + "[" * 100_000,
        {"kind": "future.record", "thing": {}},
        {"kind": "agent.upsert", "agent": "no object"},
        build_agent("../../etc/passwd", definitionId="\x1b[31mRed\u202e", displayName="\x1b]0;own\x07"),
        build_agent("x" * 501),
        build_agent("quiet", definitionId="\x00\x07"),
        build_agent("gone"),
        {"kind": "agent.delete", "agentId": "gone"},
        {
            "kind": "agent.endpoint.upsert",
            "endpoint": {"id": "e", "agentId": "gone", "harness": "alien", "projectRoot": "/a/../../etc"},
        },
        build_talk("c", "channel", "gone", "operator", "stranger"),
        build_talk("d", "direct", "gone", "operator"),
        build_talk("t", "thread", "gone", parentConversationId="c", messageId="m1"),
        build_message("m1", "c", "gone", "one\x00two \x1b[2J \ud800"),
        build_message("m1", "c", "gone", "the same id again"),
        build_message("m2", "c", "stranger", "who am I"),
        build_message("m3", "nowhere", "gone", "where am I"),
        build_message("m4", "c", "gone", "y" * 300_000),
        build_message("m5", "c", "gone", "  "),
        build_message("m6", "t", "gone", "in a thread", replyToMessageId="m1", createdAt="soon"),
        build_message("m7", "d", "gone", "in private", **{"class": "status"}),
        {
            "kind": "collaboration.record",
            "record": {"id": "w", "kind": "work_item", "state": "done", "title": "t"},
        },
        {
            "kind": "collaboration.record",
            "record": {
                "id": "q",
                "kind": "question",
                "state": "open",
                "title": "which one?",
                "createdById": "gone",
                "nextMoveOwnerId": "operator",
            },
        },
        {
            "kind": "collaboration.record",
            "record": {
                "id": "v",
                "kind": "work_item",
                "state": "waiting",
                "title": "wait",
                "ownerId": "stranger",
                "nextMoveOwnerId": "gone",
                "priority": "high",
                "labels": ["a", 1],
            },
        },
    )
    dry = shell.data("import", "openscout", str(store), "--dry-run")
    done = shell.data("import", "openscout", str(store))
    assert {**dry, "dryRun": False} == done
    again = shell.data("import", "openscout", str(store))
    assert (again["taken"], again["present"], again["skipped"]) == ({}, done["taken"], done["skipped"])
    reasons = list_reasons(done)
    assert reasons["line 1"] == "it is not JSON"
    assert reasons["line 2"] == "it is not a JSON object"
    assert reasons["line 3"] == "it is too long"
    assert reasons["line 4"] == "it is not JSON"
    assert reasons["line 5"] == "its kind 'future.record' is unknown"
    assert reasons["line 6"] == "its agent is not a JSON object"
    assert reasons[f"agent {'x' * 80}"] == "its id is not a text of 1 to 500 characters"
    assert reasons["message m2"] == "its sender 'stranger' was not imported"
    assert reasons["message m3"] == "its conversation 'nowhere' was not imported"
    assert "262144" in reasons["message m4"]
    assert reasons["message m5"] == "it has no text"
    assert done["taken"] == {"agent": 3, "conversation": 3, "message": 3, "work": 1, "question": 1}
    agents = {one["importedFrom"]["id"]: one for one in shell.data("who", "--retired")["items"]}
    assert agents["../../etc/passwd"]["path"] == "/me/agent/31mred"
    assert agents["quiet"]["path"] == "/me/agent/openscout"
    gone = agents["gone"]
    assert (gone["lifecycle"], gone["projectRoot"], gone["config"]["harness"]) == ("retired", None, None)
    (first,) = list_messages(shell, "--channel", "c")
    assert first["body"] == "one␀two \x1b[2J �"
    talks = {one["importedFrom"]["id"]: one for one in shell.data("conversation", "list")["items"]}
    assert (talks["d"]["kind"], talks["c"]["kind"]) == ("dm", "channel")
    (question,) = shell.data("question", "list")["items"]
    assert (question["state"], question["body"]) == ("open", "which one?")
    (work,) = shell.data("work", "list")["items"]
    assert (work["state"], work["ownerId"], work["priority"]) == (
        "waiting",
        shell.data("whoami")["agentId"],
        "high",
    )
    assert work["nextMoveOwnerId"] == gone["id"]
    shown = shell.type("import", "openscout", str(store))
    assert "\x1b" not in shown.stdout + shown.stderr
    assert "clean" in shell.say("verify")


@pytest.mark.rows("R4.5i-6")
def test_an_interrupted_import_is_completed_by_the_next_one_in_order(shell: Shell, tmp_path: Path) -> None:
    bodies = [f"message {number}" for number in range(350)]
    said = [build_message(f"m{n}", "talk", "arc", body) for n, body in enumerate(bodies)]
    store = write_journal(
        tmp_path / "store", build_agent("arc"), build_talk("talk", "channel", "arc", "operator"), *said
    )
    code, shown = type_in_terminal(shell, "import", "openscout", str(store), until="100 × message")
    assert code != 0, shown
    done = shell.data("import", "openscout", str(store))
    assert 0 < done["present"]["message"] < 350
    assert done["present"]["message"] + done["taken"]["message"] == 350
    first = shell.data("message", "list", "--channel", "talk", "--limit", "200")
    rest = shell.data("message", "list", "--channel", "talk", "--limit", "200", "--cursor", first["next"])
    assert [one["body"] for one in (*first["items"], *rest["items"])] == bodies
    assert shell.data("channel", "show", "talk")["unread"] == 0


@pytest.mark.rows("R4.5i-9")
def test_only_the_operator_imports(shell: Shell, tmp_path: Path) -> None:
    store = copy_openscout(tmp_path / "openscout")
    with BlockingScout(home=str(shell.home)) as scout:
        token = str(scout.register("bow").token)
    refused = shell.type("import", "openscout", str(store), "--dry-run", SCOUT_TOKEN=token)
    assert (refused.returncode, refused.stdout) == (6, "")
    assert "forbidden" in refused.stderr
    missing = shell.type("import", "openscout", str(tmp_path / "nowhere"))
    assert missing.returncode == 2
    assert "there is no file or folder" in missing.stderr
    empty = shell.type("import", "exomonad", str(tmp_path))
    assert empty.returncode == 2
    assert "has no folder .exo" in empty.stderr


# -- Daycare -----------------------------------------------------------------------------------------


@pytest.mark.rows(
    "R1.4-43",
    "R1.4-44",
    "R1.4-45",
    "R1.4-46",
    "R1.4-47",
    "R1.4-48",
    "R1.4-49",
    "R1.4-50",
    "R1.4-51",
    "R1.4-52",
    "R1.4-53",
    "R1.4-54",
    "R1.4-55",
    "R4.5i-10",
)
@pytest.mark.parametrize("form", ["export", "dump"])
def test_the_ten_descriptors_of_a_daycare_become_paths(shell: Shell, tmp_path: Path, form: str) -> None:
    write = write_daycare_export if form == "export" else write_daycare_dump
    file = write(tmp_path / ("daycare.json" if form == "export" else "daycare.sql"))
    before = count_events(shell)
    dry = shell.data("import", "daycare", str(file), "--dry-run")
    assert count_events(shell) == before
    done = shell.data("import", "daycare", str(file))
    assert (dry["taken"], dry["skipped"]) == (done["taken"], done["skipped"])
    listed = shell.data("who", "--retired", "--limit", "200")["items"]
    agents = {one["importedFrom"]["id"]: one for one in listed if "importedFrom" in one}
    agents["a9"] = shell.data("show", "/system/gc")
    assert {ident: one["path"] for ident, one in agents.items()} == {
        "a1": "/sky.fox/telegram",
        "a2": "/sky.fox/agent/Arc",
        "a3": "/sky.fox/cron/daily",
        "a4": "/sky.fox/task/t1",
        "a5": "/sky.fox/telegram/sub/0",
        "a6": "/sky.fox/telegram/memory",
        "a7": "/sky.fox/telegram/memory/search/0",
        "a8": "/sky.fox/subuser/s1",
        "a9": "/system/gc",
        "b4": "/sky.fox/task/t2",
        "b5": "/blue-owl/agent/bow",
        "b6": "/blue-owl/agent/bow/sub/0",
    }
    assert agents["b4"]["lifecycle"] == "retired"
    config = agents["a2"]["config"]
    assert (config["username"], config["description"], config["systemPrompt"]) == ("arc", "plans", "p")
    assert agents["a5"]["parentId"] == agents["a1"]["id"]
    reasons = list_reasons(done)
    assert reasons["agent b1"].startswith("apps have no counterpart")
    assert reasons["agent b2"] == "a2 is newer and has the path /sky.fox/agent/Arc"
    assert reasons["agent b3"] == "no user has the connector key slack:6 or slack:5"
    assert reasons["chat account telegram:123"] == "link it again with scout user link sky.fox telegram"
    assert reasons["schedule tc"] == "add it again with scout cron add '0 9 * * *'"
    assert {one["type"] for one in done["leftOut"]} == {
        "users row",
        "inbox reset",
        "transcript line",
        "token",
    }
    person = shell.data("show", "/sky.fox/direct")["id"]
    said = list_messages(shell, "--conversation", derive_dm_id(person, agents["a2"]["id"]))
    assert [one["body"] for one in said] == ["first \\ slash", "and a\ttab"]
    assert shell.data("show", "/sky.fox/agent/Arc")["unread"] == 2, "it had not read them there"
    (member,) = shell.data("channel", "show", "ops-room")["members"]
    assert member["agentId"] == agents["a2"]["id"]
    stored = count_events(shell)
    again = shell.data("import", "daycare", str(file))
    assert (again["taken"], count_events(shell)) == ({}, stored)
    everything = json.dumps(shell.data("log", "--limit", "200"))
    assert "secret" not in everything
    assert "clean" in shell.say("verify")


# -- ExoMonad ----------------------------------------------------------------------------------------


@pytest.mark.rows("R4.5i-1", "R4.5i-3", "R4.5i-7")
def test_a_tree_of_exomonad_keeps_its_birth_branches(shell: Shell, tmp_path: Path) -> None:
    project = write_exomonad(tmp_path / "hudson")
    dry = shell.data("import", "exomonad", str(project), "--dry-run")
    done = shell.data("import", "exomonad", str(project / ".exo"))
    assert dry["taken"] == done["taken"] == {"agent": 5, "conversation": 1, "message": 2}
    agents = {one["importedFrom"]["id"]: one for one in shell.data("who")["items"]}
    facts = {ident: (one["address"], one["birthBranch"], one["toolRole"]) for ident, one in agents.items()}
    assert facts == {
        "main": ("@hudson", "main", "tl"),
        "main.feature": ("@hudson.feature", "main.feature", "tl"),
        "main.feature.auth_fix": ("@hudson.feature-auth-fix", "main.feature.auth_fix", "dev"),
        "main.feature/helper-gemini": ("@hudson.helper", None, "worker"),
        "main.evil": ("@hudson.evil", "main.evil", "dev"),
    }
    parents = {ident: one["parentId"] for ident, one in agents.items()}
    assert parents["main.feature.auth_fix"] == agents["main.feature"]["id"]
    assert parents["main.feature"] == parents["main.evil"] == agents["main"]["id"]
    assert {one["projectRoot"] for one in agents.values()} == {str(project)}
    assert agents["main.feature"]["workingDir"] == f"{project}/.exo/worktrees/feature-claude"
    assert agents["main.evil"]["workingDir"] == str(project), "a folder outside is not believed"
    assert shell.data("show", "main.feature", cwd=project)["address"] == "@hudson.feature"
    said = list_messages(shell, "--to", "@hudson.feature", "--as", "@hudson")
    assert [(one["body"], one["createdAt"][:16]) for one in said] == [
        ("start with login", "2026-11-01T10:00"),
        ("and logout", "2026-11-01T10:01"),
    ]
    assert shell.data("show", "@hudson.feature")["unread"] == 1
    assert list_reasons(done) == {
        "folder agents/linked": "it is a link, which is not followed",
        "identity file broken": "it is not JSON",
        "message feature-claude 3": "'nobody' is no agent of this project",
        "message feature-claude 4": "it has no text",
    }
    assert ("event", 2) in {(one["type"], one["count"]) for one in done["leftOut"]}
    assert shell.data("import", "exomonad", str(project))["taken"] == {}
    assert "clean" in shell.say("verify")
