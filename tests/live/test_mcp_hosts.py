"""The real Claude Code and Codex at Scout's MCP door; only the model behind them is scripted."""

import contextlib
import json
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from scout.store.integrity.verify import verify
from tests.cli.running import Shell
from tests.daemon.daemons import Daemon, daemon, eventually
from tests.live.model.server import Model, scripted_model
from tests.live.programs import HOSTS, Door, Host, Run

# The first to come here installs the programs; once they are there, a test takes a few seconds.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_PROGRAM = "import sys; print('done:', sys.stdin.read().splitlines()[-1])"


class Stage:
    """A daemon with agents, and the programs that speak as them."""

    def __init__(self, folder: Path, one: Daemon, model: Model) -> None:
        self.folder = folder
        self.daemon = one
        self.model = model
        self.shell = Shell(folder)
        self.ids: dict[str, str] = {"operator": one.call("GET", "/v1/whoami").json["agentId"]}
        self.tokens: dict[str, str] = {"operator": one.token}

    def agent(self, name: str, **fields: Any) -> None:
        made = self.daemon.register(name, **fields)
        self.ids[name] = made["agent"]["id"]
        self.tokens[name] = made["token"] or self.daemon.make_token(made["agent"]["id"])

    def present(self, name: str) -> None:
        """An agent that is there in person and takes what comes from its inbox."""
        self.agent(name)
        assert self.call(name, "POST", "/v1/endpoints", {"transport": "pull", "state": "idle"})

    def call(self, name: str, method: str, path: str, body: object = None) -> Any:
        reply = self.daemon.call(method, path, body, token=self.tokens[name])
        assert reply.status < 300, reply.body
        return reply.json

    def door(self, name: str, path: str = "") -> Door:
        url = f"{self.daemon.running.url}{path or f'/agents/dev/{name}/mcp'}"
        return Door(url, self.tokens[name], self.model.url)

    def playing(
        self, host: Host, name: str, script: str, path: str = ""
    ) -> contextlib.AbstractContextManager[Run]:
        """The program as this agent, with a script for its model."""
        return host.running(self.folder / host.name / name, self.door(name, path), script)

    def played(self, host: Host, name: str, script: str, path: str = "") -> list[str]:
        """What the model was told by its tools, once the program has ended well."""
        with self.playing(host, name, script, path) as run:
            assert run.ended().code == 0, run.printed + run.complaints
        return self.told(host)

    def told(self, host: Host) -> list[str]:
        """What tools had told the model by its last request; its script was played to the end."""
        last = self.model.of(host.dialect)[-1]
        assert last.answer.blocks == ("done",), last.answer
        return last.results

    def said(self) -> list[tuple[str, str]]:
        """Every message of Scout's log: who sent it, and its text."""
        names = {f"agent:{ident}": name for name, ident in self.ids.items()}
        events = self.daemon.call("GET", "/v1/log?family=collab.message.posted&limit=200").json["items"]
        return [(names[one["source"]], one["payload"]["text"]) for one in events]

    def flights(self) -> list[tuple[str, str, str]]:
        """Every flight that is over by Scout's log: who asked whom, and what came out."""
        names = {ident: name for name, ident in self.ids.items()}
        events = self.daemon.call("GET", "/v1/log?family=collab.flight.completed&limit=200").json["items"]
        records = [one["payload"]["record"] for one in events]
        return [(names[one["requesterId"]], names[one["target"]], one["output"]) for one in records]


@pytest.fixture
def stage(tmp_path: Path) -> Generator[Stage]:
    with daemon(tmp_path / "home") as one, scripted_model() as model:
        made = Stage(tmp_path, one, model)
        made.agent("arc")
        yield made
        for exchange in model.log:  # no credential of Scout ever comes to a model
            seen = json.dumps([exchange.headers, exchange.body])
            assert not any(token in seen for token in made.tokens.values())
    assert verify(tmp_path / "home" / "scout.db").clean


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest) -> Host:
    return HOSTS[request.param]


def facts(result: str) -> Any:
    """The structured content of a tool's result, as a program shows it to its model."""
    return json.loads(result[result.index("{") :])


# -- who it is -----------------------------------------------------------------------------------------


def test_it_is_the_agent_whose_url_and_token_it_has(stage: Stage, host: Host) -> None:
    path = "/agents/dev/%2Fme%2Fagent%2Farc/mcp"
    script = "Who are you? <<tool whoami>> ++ <<tool messages_inbox>> <<say done>>"
    told, inbox = stage.played(host, "arc", script, path)
    me = facts(told)
    assert (me["agentId"], me["minimal"], me["role"], me["kind"]) == (
        stage.ids["arc"],
        "@arc",
        "dev",
        "agent",
    )
    offered = {name.removeprefix(host.prefix) for name in stage.model.log[0].heard.offered}
    main = {"ask", "invocations_wait", "messages_inbox", "messages_reply", "messages_send", "operator_need"}
    assert main | {"whoami"} <= offered
    assert facts(inbox) == {"items": []}


def test_a_token_does_not_open_the_url_of_another(stage: Stage, host: Host) -> None:
    stage.agent("bow")
    with stage.playing(host, "arc", "<<tool whoami>> <<say done>>", path="/agents/dev/bow/mcp") as run:
        run.ended()
        assert "required: the token of @bow" in host.problems(run)
    offered = [name for one in stage.model.of(host.dialect) for name in one.heard.offered]
    assert not any("scout" in name for name in offered)


# -- asking --------------------------------------------------------------------------------------------


@pytest.mark.rows("R4.3-10")
def test_it_asks_waits_and_has_the_result(stage: Stage, host: Host) -> None:
    stage.agent("parrot", harness="echo")
    stage.agent("runner", harness="command", config={"command": [sys.executable, "-c", _PROGRAM]})
    told = stage.played(
        host,
        "arc",
        f"""<<tool ask {{"to": "parrot", "body": "say it"}}>> <<follow {host.prefix}>>
        <<tool ask {{"to": "runner", "body": "run it"}}>> <<follow {host.prefix}>> <<say done>>""",
    )
    assert [facts(one)["state"] for one in told] == ["queued", "completed", "queued", "completed"]
    assert [facts(one)["output"] for one in told[1::2]] == ["say it", "done: run it"]
    assert stage.flights() == [("arc", "parrot", "say it"), ("arc", "runner", "done: run it")]


def test_it_waits_for_somebody_who_answers_from_an_inbox(stage: Stage, host: Host) -> None:
    stage.present("hudson")
    script = f"""<<tool ask {{"to": "hudson", "body": "2+2?"}}>> <<follow {host.prefix}>> <<say done>>"""
    with stage.playing(host, "arc", script) as run:
        waiting = eventually(lambda: stage.call("hudson", "GET", "/v1/inbox")["items"])
        (taken,) = stage.call("hudson", "POST", "/v1/inbox/claim", {})["items"]
        assert taken["delivery"]["id"] == waiting[0]["delivery"]["id"]
        reply = {"body": "4", "inReplyTo": taken["message"]["id"]}
        stage.call("hudson", "POST", "/v1/replies", reply)
        assert run.ended().code == 0
    assert facts(stage.told(host)[-1])["output"] == "4"
    assert stage.said() == [("arc", "2+2?"), ("hudson", "4")]


@pytest.mark.parametrize(("asks", "answers"), [("claude", "codex"), ("codex", "claude")])
def test_one_program_asks_the_other(stage: Stage, asks: str, answers: str) -> None:
    """Both really run: the second reads its inbox and answers, the first has the result."""
    asker, answerer = HOSTS[asks], HOSTS[answers]
    stage.present("hudson")
    script = (
        f"""<<tool ask {{"to": "hudson", "body": "What is 2+2?"}}>> <<follow {asker.prefix}>> <<say done>>"""
    )
    with stage.playing(asker, "arc", script) as first:
        eventually(lambda: stage.call("hudson", "GET", "/v1/inbox")["items"])
        inbox, reply = stage.played(
            answerer,
            "hudson",
            """<<tool messages_inbox {"claim": true}>>
            <<tool messages_reply {"inReplyTo": "$messageId", "body": "It is 4."}>> <<say done>>""",
        )
        assert first.ended().code == 0
    (item,) = facts(inbox)["items"]
    assert (item["from"].partition(".")[0], item["body"]) == ("@arc", "What is 2+2?")
    assert facts(reply)["messageId"]
    result = facts(stage.told(asker)[-1])
    assert (result["state"], result["output"]) == ("completed", "It is 4.")
    assert stage.said() == [("arc", "What is 2+2?"), ("hudson", "It is 4.")]
    assert stage.flights() == [("arc", "hudson", "It is 4.")]


# -- being refused -------------------------------------------------------------------------------------


def test_a_refusal_tells_the_model_what_to_call_next(stage: Stage, host: Host) -> None:
    """The model follows the remedy and asks again."""
    stage.agent("parrot", harness="echo")
    refused, _, answered = stage.played(
        host,
        "arc",
        f"""<<tool ask {{"to": "parot", "body": "hello"}}>> <<follow {host.prefix}>>
        <<follow {host.prefix}>> <<say done>>""",
    )
    for part in ("unknown_target", "no agent has the address 'parot'; nearest: @parrot"):
        assert part in refused
    assert facts(answered)["output"] == "hello"
    assert stage.flights() == [("arc", "parrot", "hello")]


@pytest.mark.rows("R4.3-2")
def test_a_tool_outside_the_role_is_not_offered(stage: Stage, host: Host) -> None:
    stage.agent("bow", toolRole="worker")
    script = f"<<tool whoami>> <<force {host.prefix}agents_search {{}}>> <<say done>>"
    me, other = stage.played(host, "bow", script, path="/agents/worker/bow/mcp")
    assert facts(me)["role"] == "worker"
    assert host.no_such_tool in other
    assert not any("agents_search" in name for name in stage.model.log[0].heard.offered)


def test_a_tool_that_the_role_loses_is_lost_at_once(stage: Stage, host: Host) -> None:
    """Refused by Scout, or by the program if it has already heard that its tools are others now."""
    script = f"""<<force {host.prefix}agents_search {{}}>> <<tool operator_need {{"question": "Go on?"}}>>
    <<force {host.prefix}agents_search {{}}>> <<say done>>"""
    with stage.playing(host, "arc", script, path="/mcp") as run:
        item = get_item(stage)
        stage.shell.say("agent", "config", "@arc", "--tool-role", "worker")
        stage.shell.say("attention", "answer", item["id"], "yes")
        assert run.ended().code == 0
    found, _, refused = stage.told(host)
    assert [one["address"] for one in facts(found)["items"]][-1:] == ["@arc"]
    assert "forbidden" in refused or host.no_such_tool in refused


# -- the person ----------------------------------------------------------------------------------------


def get_item(stage: Stage) -> Any:
    """The one item in the person's inbox."""
    (item,) = eventually(lambda: stage.daemon.call("GET", "/v1/attention").json["items"])
    return item


def test_the_person_answers_from_the_command_line_while_it_waits(stage: Stage, host: Host) -> None:
    stage.agent("parrot", harness="echo")
    script = """<<tool operator_need {"question": "Which colour?", "options": ["red", "green"]}>>
    <<tool messages_send {"to": "parrot", "body": "$answer"}>> <<say done>>"""
    with stage.playing(host, "arc", script) as run:
        item = get_item(stage)
        assert (item["title"], item["agentId"]) == ("Which colour?", stage.ids["arc"])
        assert "Which colour?" in stage.shell.say("attention")
        stage.shell.say("attention", "answer", item["id"], "green")
        assert run.ended().code == 0
    answer, _ = stage.told(host)
    told = facts(answer)
    assert (told["id"], told["state"], told["answer"]) == (item["id"], "answered", "green")
    assert told["decidedBy"] == stage.ids["operator"]
    assert stage.said()[-1] == ("arc", "green")
