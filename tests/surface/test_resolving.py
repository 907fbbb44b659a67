"""What a handle means (1.2, 1.3): models, several agents, instances, refusals, laws; over HTTP, CLI and MCP."""

import itertools
import json
from typing import Any

import pytest

from tests.surface.site import Agent, Site

pytestmark = [pytest.mark.slow]

_names = itertools.count(1)


def fresh(stem: str) -> str:
    """A name that no other case uses."""
    return f"{stem}{next(_names)}"


# -- model words -----------------------------------------------------------------------------------

# The model of the agent's endpoint, the text after `?`, and whether it asks for that model.
MODELS = [
    ("R1.2-44", "claude-sonnet-4-6", "claude-sonnet-4-6", True),
    ("R1.2-44", "local-llama", "local-llama", True),
    ("R1.2-45", "gpt-5.5", "5.5", True),
    ("R1.2-45", "openai-gpt-5", "5", True),
    ("R1.2-45", "openai-gpt-5", "gpt-5", True),
    ("R1.2-46", "claude-7", "7", True),
    ("R1.2-46", "claude-7", "claude", False),
    ("R1.2-46", "gpt-7", "7", True),
    ("R1.2-46", "gpt-7", "gpt", False),
    ("R1.2-46", "openai-7", "7", True),
    ("R1.2-46", "openai-7", "openai", False),
    ("R1.2-46", "anthropic-7", "7", True),
    ("R1.2-46", "anthropic-7", "anthropic", False),
    ("R1.2-46", "gemini-7", "7", True),
    ("R1.2-46", "gemini-7", "gemini", False),
    ("R1.2-46", "google-7", "7", True),
    ("R1.2-46", "google-7", "google", False),
    ("R1.2-46", "mistral-7", "7", False),  # no vendor word: nothing is dropped
    ("R1.2-47", "claude-sonnet-4-6", "sonnet", True),
    ("R1.2-47", "gpt-4.1-mini", "mini", True),
    ("R1.2-47", "claude-sonnet-4-6", "opus", False),
    ("R1.2-47", "claude-sonnet-4-6", "4", False),  # no alphabetic word
    ("R1.2-48", "claude-sonnet-4-6", "sonnet-4-6", True),
    ("R1.2-48", "claude-sonnet-4-6", "sonnet-4", False),
    ("R1.2-48", "claude-sonnet-4-6", "4-6", False),
    ("R1.2-49", "gpt-5", "5", True),
    ("R1.2-49", "gpt-5.5", "5", False),
    ("R1.2-50", "gpt-5.5", "gpt", False),
    ("R1.2-50", "gpt-5", "gpt", False),
]


@pytest.mark.parametrize(("row", "model", "asked", "matches"), MODELS)
def test_a_model_word(site: Site, row: str, model: str, asked: str, matches: bool) -> None:
    name = fresh("mw")
    made = site.agent(name).endpoint(harness="codex", model=model)
    if matches:
        assert site.resolve(f"@{name}?{asked}")["endpointId"] == made["id"]
    else:
        told = site.unresolved(f"@{name}?{asked}")
        assert (told["code"], told["attached"]) == ("model_mismatch", [model]), told


# -- names that are given ---------------------------------------------------------------------------


@pytest.mark.rows("R1.2-1")
def test_the_sign_is_optional_in_a_field(site: Site) -> None:
    one = site.agent("sign")
    for text in ("@sign", "sign"):
        assert site.resolve(text)["agentId"] == one.id
        site.post("/v1/messages", to=text, body=f"to {text}")
        assert json.loads(site.shell.say("resolve", text, "--json"))["agentId"] == one.id
        assert one.tool("agents_resolve", address=text)["path"] == one.path
    assert one.texts() == ["to @sign", "to sign"]


@pytest.mark.rows("R1.2-15", "R1.2-16")
def test_names_with_spaces_and_dots_are_folded_where_they_stand_alone(site: Site) -> None:
    made = site.agent("Super Refactor", workspace="Main Street", profile="The.Reviewer")
    assert made.address == "@super-refactor"
    folded = [made.record[key] for key in ("definitionId", "workspace", "profile")]
    assert folded == ["super-refactor", "main-street", "the-reviewer"]

    whole = {
        "definitionId": "Super Refactor",
        "workspaceQualifier": "Main Street",
        "profile": "The.Reviewer",
        "harness": "Claude",
        "model": "GPT 5.5",
        "node": "Mini.local",
    }
    canonical = (
        "@super-refactor.main-street.profile:the-reviewer.harness:claude.model:gpt-5-5.node:mini-local"
    )
    assert site.parse(json.dumps(whole))["canonical"] == canonical
    assert json.loads(site.shell.say("parse", json.dumps(whole), "--json"))["canonical"] == canonical
    assert site.parse("@Super Refactor")["error"]["code"] == "malformed_address"


# fmt: off
WORDS = {
    "keys": ("workspace", "branch", "worktree", "profile", "persona", "harness", "runtime", "model", "node",
             "host"),
    "forms": ("root", "self", "parent", "operator", "broadcast", "channel", "session", "ref", "id", "project",
              "alias", "target", "lock"),
    "harnesses": ("claude", "codex", "acp", "tmux", "command", "echo", "gemini", "opencode", "cursor"),
}
# fmt: on


@pytest.mark.rows("R1.2-51", "R1.2-52", "R1.2-53")
@pytest.mark.parametrize("word", [word for words in WORDS.values() for word in words])
def test_a_reserved_word_is_no_name(site: Site, word: str) -> None:
    before = site.end_of_log()
    refusals = [
        site.refused("POST", "/v1/agents", definitionId=word),
        site.refused("POST", "/v1/aliases", name=word, target="operator"),
    ]
    assert [told["code"] for told in refusals] == ["reserved_name", "reserved_name"]
    assert all(told["word"] == word for told in refusals)
    assert site.events_about(before, "collab.agent.registered", "collab.alias") == []  # nothing was stored
    assert site.parse(f"@{word}")["dimensions"] == {"definitionId": word}  # but it can be read


@pytest.mark.rows("R1.2-56")
@pytest.mark.parametrize(
    ("word", "taught"),
    [("codex", "#codex"), ("claude", "#claude"), ("node", "node:"), ("branch", "branch:")],
)
def test_a_reserved_word_teaches_what_it_is_for(site: Site, word: str, taught: str) -> None:
    assert taught in site.refused("POST", "/v1/agents", definitionId=word)["message"]
    typed = site.shell.type("agent", "register", word)
    assert typed.returncode != 0
    assert taught in typed.stderr
    assert f"try: scout agent register my-{word}" in typed.stderr
    typed = site.shell.type("agent", "register", word, "--config", "name=N", "--config", 'username="5"')
    again = f"scout agent register --config name=N --config 'username=\"5\"' my-{word}"
    assert f"try: {again}" in typed.stderr
    typed = site.shell.type("alias", "set", word.title(), "operator")
    assert f"try: scout alias set my-{word} operator" in typed.stderr


# -- several agents ---------------------------------------------------------------------------------


def several(site: Site, name: str, **kinds: dict[str, Any]) -> dict[str, Agent]:
    """Agents of one definition in one project, by what tells them apart."""
    project = str(site.shell.project(name))
    return {key: site.agent(name, projectRoot=project, **wish) for key, wish in kinds.items()}


@pytest.mark.rows("R1.3-1", "R1.3-16")
def test_the_only_one_online_is_meant_and_a_retired_one_never(site: Site) -> None:
    two = several(site, "busy", a={"profile": "a"}, b={"profile": "b"})
    assert site.unresolved("@busy")["code"] == "ambiguous_target"
    two["b"].endpoint()
    found = site.resolve("@busy")
    assert (found["agentId"], found["rule"]) == (two["b"].id, "only one online")
    two["a"].endpoint()  # both online: nothing decides
    assert site.unresolved("@busy")["count"] == 2
    site.post("/v1/agents/%40busy.profile%3Ab/retire")
    assert site.resolve("@busy")["agentId"] == two["a"].id
    told = site.unresolved("@busy.profile:b")
    assert told["code"] in ("retired_target", "unknown_target")
    assert all(one.get("agentId") != two["b"].id for one in told["candidates"])


@pytest.mark.rows("R1.3-17")
def test_the_only_one_in_the_callers_project_is_meant(site: Site) -> None:
    near, far = site.shell.project("near-home"), site.shell.project("far-home")
    here = site.agent("settler", profile="x", projectRoot=str(near))
    there = site.agent("settler", profile="y", projectRoot=str(far))
    for folder, meant in ((near, here), (far, there)):
        found = site.resolve("@settler", directory=str(folder))
        assert (found["agentId"], found["rule"]) == (meant.id, "own project")
        typed = json.loads(site.shell.say("resolve", "@settler", "--json", cwd=folder))
        assert typed["agentId"] == meant.id
    assert site.unresolved("@settler", directory=str(site.shell.folder))["code"] == "ambiguous_target"


@pytest.mark.rows("R1.3-19", "R1.3-20", "R1.3-33", "R3.2-2", "R3.2-11", "R3.5-16")
def test_a_harness_constrains_the_exact_agent_alone(site: Site) -> None:
    talk = several(site, "talkie", base={}, fix={"workspace": "fix"})
    talk["base"].endpoint(harness="claude", model="claude-sonnet-4-6")
    talk["fix"].endpoint(harness="codex", model="gpt-5.5")
    told = site.unresolved("@talkie#codex")
    assert (told["code"], told["requested"], told["attached"]) == ("harness_mismatch", "codex", ["claude"])
    assert talk["fix"].id in [one["agentId"] for one in told["candidates"]]
    assert any("@talkie.fix" in one["address"] for one in told["candidates"])
    assert told["remedies"][0]["command"] == "scout session start --agent @talkie --harness codex"
    told = site.unresolved("@talkie?5.5")
    assert (told["code"], told["requested"]) == ("model_mismatch", "5-5")
    assert told["attached"] == ["claude-sonnet-4-6"]
    assert talk["fix"].id in [one["agentId"] for one in told["candidates"]]
    assert told["remedies"]
    # Named as it is, the sibling answers.
    assert site.resolve("@talkie.fix#codex")["agentId"] == talk["fix"].id


@pytest.mark.rows("R1.3-23", "R1.3-24", "R3.5-12")
def test_many_candidates_are_counted_and_twenty_are_shown(site: Site) -> None:
    made = several(site, "crowd", **{f"p{n}": {"profile": f"p{n}"} for n in range(23)})
    told = site.unresolved("@crowd")
    assert (told["code"], told["count"], len(told["candidates"])) == ("ambiguous_target", 23, 20)
    known = {one.id: f"@crowd.profile:{name}" for name, one in made.items()}
    for one in told["candidates"]:
        assert one["address"] == known[one["agentId"]]
        assert site.resolve(one["address"])["agentId"] == one["agentId"]
    # The best retry is one of them, spelt out.
    assert site.resolve(told["retry"])["agentId"] == told["candidates"][0]["agentId"]
    assert ".node:" in told["retry"]


@pytest.mark.rows("R1.3-25", "R1.3-27", "R3.5-10")
def test_nothing_answers_and_the_nearest_are_named(site: Site) -> None:
    several(site, "hudson", base={}, fix={"workspace": "fix"}, reader={"profile": "reader"})
    told = site.unresolved("@hudsn")
    assert (told["code"], told["candidates"][0]["address"]) == ("unknown_target", "@hudson")
    for text in ("@hudson.other", "@hudson.profile:other"):
        told = site.unresolved(text)
        assert told["code"] == "unknown_target"
        assert {"@hudson.fix", "@hudson"} <= {one["address"] for one in told["candidates"]}
        typed = site.shell.type("resolve", text)
        assert "@hudson.fix" in typed.stderr


@pytest.mark.rows("R1.3-29")
def test_no_instance_with_the_model_is_a_mismatch(site: Site) -> None:
    two = several(site, "painter", a={"profile": "a"}, b={"profile": "b"})
    two["a"].endpoint(harness="codex", model="gpt-5.5")
    two["b"].endpoint(harness="codex", model="gpt-4.1-mini")
    told = site.unresolved("@painter?opus")
    assert (told["code"], {*told["attached"]}) == ("model_mismatch", {"gpt-5.5", "gpt-4.1-mini"})
    assert site.resolve("@painter?mini")["agentId"] == two["b"].id  # and a model narrows which agent is meant


def test_the_callers_node_comes_first(site: Site) -> None:
    here = site.get("/v1/nodes")["items"][0]["name"]
    made = site.agent("nodal")
    assert site.resolve(f"@nodal.node:{here}")["agentId"] == made.id
    told = site.unresolved("@nodal.node:elsewhere")  # the same name elsewhere would be another agent
    assert told["code"] == "unknown_target"
    assert "elsewhere" in told["message"]


@pytest.mark.rows("R1.3-31", "R1.3-32", "R1.1-33")
def test_the_instance_that_the_text_spells_out_wins(site: Site) -> None:
    one = site.agent("twofold")
    first = one.endpoint(harness="codex", model="gpt-5.5")
    again = one.endpoint(harness="codex", model="gpt-5.5")
    # Equal in all six dimensions: one instance, so nothing is ambiguous.
    assert site.resolve("@twofold")["endpointId"] in (first["id"], again["id"])
    other = one.endpoint(harness="claude", model="claude-sonnet-4-6")
    bare = one.endpoint()  # without harness and model: absent means absent
    assert site.resolve("@twofold")["endpointId"] == bare["id"]
    assert site.resolve("@twofold#claude?claude-sonnet-4-6")["endpointId"] == other["id"]
    site.call("DELETE", f"/v1/endpoints/{bare['id']}")
    # Else the choosing rule decides, or returns its ambiguity.
    told = site.unresolved("@twofold")
    assert (told["code"], {*told["harnesses"]}) == ("ambiguous_endpoint", {"codex", "claude"})


@pytest.mark.rows("R1.1-34")
def test_an_agent_without_endpoints_matches_any_harness_and_model(site: Site) -> None:
    one = site.agent("unseen")
    for text in ("@unseen", "@unseen#codex", "@unseen#claude?sonnet", "@unseen?5.5"):
        found = site.resolve(text)
        assert (found["agentId"], found["action"]) == (one.id, "start")
        assert "endpointId" not in found
    assert ".harness:" not in site.resolve("@unseen")["canonical"]


@pytest.mark.rows("R1.3-34", "R3-3")
def test_resolving_changes_nothing(site: Site) -> None:
    site.agent("still").endpoint(harness="codex")
    before, shown = site.end_of_log(), site.show("@still")
    answers = [site.resolve("@still#codex") for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert site.shell.data("resolve", "@still", "--explain")["agentId"] == shown["id"]
    assert site.events_about(before, shown["id"]) == []
    assert site.show("@still") == shown


# -- laws -------------------------------------------------------------------------------------------


@pytest.mark.rows("R1.3-41", "R1.3-43", "R1.3-44")
def test_the_laws_of_minimal_and_canonical_addresses(site: Site) -> None:
    made = several(site, "lawful", base={}, fix={"workspace": "fix"}, reader={"profile": "reader"})
    made["base"].endpoint(harness="claude", model="claude-sonnet-4-6")
    made["base"].endpoint(harness="codex", model="gpt-5.5")
    made["fix"].endpoint(harness="codex", model="gpt-5.5")
    texts = ("@lawful#claude", "@lawful#codex", "@lawful.fix", "@lawful.profile:reader")
    found = {text: site.resolve(text) for text in texts}
    for text, one in found.items():
        inside = site.resolve(text, directory=str(site.shell.project("lawful")))
        assert inside["minimal"] == one["minimal"]
        for spelling in (one["minimal"], one["canonical"]):
            again = site.resolve(spelling)
            same = ("agentId", "endpointId", "canonical")
            assert [again.get(key) for key in same] == [one.get(key) for key in same], spelling
    assert found["@lawful.fix"]["minimal"] == "@lawful.fix"
    assert found["@lawful#codex"]["minimal"] == "@lawful.model:gpt-5-5"  # the harness is dropped first

    # Agents that have nothing to do with them change no canonical address; minimal ones may grow.
    several(site, "lawful2", base={}, fix={"workspace": "fix"})
    site.agent("lawful", workspace="fix", profile="second", projectRoot=str(site.shell.project("lawful")))
    for one in found.values():
        again = site.resolve(one["canonical"])
        assert (again["agentId"], again.get("endpointId")) == (one["agentId"], one.get("endpointId"))
