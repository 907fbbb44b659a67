"""Remedies repeat the caller's own request with the correction, and nothing in them has to be made up."""

import base64
import hashlib
from typing import Any

import pytest

from scout.base.refusal import PLACEHOLDER, BadRequest, Candidate, Diagnostic, Refused, Remedy, WrongState
from scout.identity.branch import check_slug
from scout.identity.reserved import check_name
from scout.model.problems.request import NotFound, TooLarge
from scout.model.problems.session import HarnessUnavailable, Missing
from scout.model.problems.target import AmbiguousEndpoint, RemoteTarget, UnknownTarget
from scout.protocol.access import SetAlias
from scout.protocol.agents import ConfigureAgent, RegisterAgent, Resolve, RetireAgent, ShowAgent
from scout.protocol.asks import CompleteFlight, MakeAsk
from scout.protocol.attention import Notify
from scout.protocol.channels import CreateChannel
from scout.protocol.correction import attach_file, correct_remedies, list_remedies
from scout.protocol.operations import build_command_line
from scout.protocol.people.connectors import AddConnector, PostToUser
from scout.protocol.people.schedules import ListSchedules, PauseSchedule
from scout.protocol.people.tasks import CreateTask
from scout.protocol.people.users import LinkUser, RetireUser
from scout.protocol.questions import CreateQuestion
from scout.protocol.request import Request
from scout.protocol.sessions import StartSession, Wake
from scout.protocol.talk import Reply, Send
from scout.protocol.tree.spawn import SpawnAgents


def unknown(address: str, *remedies: Remedy) -> UnknownTarget:
    return UnknownTarget(address=address, remedies=remedies)


def resolve(address: str) -> Remedy:
    return Remedy(operation="resolve", parameters={"address": address})


def project(folder: str) -> Remedy:
    return Remedy(operation="ask", parameters={"projectPath": folder, "body": PLACEHOLDER})


def commands(request: Request[Any], *remedies: Remedy, refused: str = "@talki") -> list[str]:
    return [
        build_command_line(one) for one in correct_remedies(request, unknown(refused, *remedies)).remedies
    ]


@pytest.mark.parametrize(
    ("request_", "remedy", "command"),
    [
        (MakeAsk(to="@talki", body="Do it."), resolve("@talkie"), "scout ask @talkie 'Do it.'"),
        (Send(to="@talki", body="hi", wake=True), resolve("@talkie"), "scout send --wake @talkie hi"),
        (ShowAgent(address="@talki"), resolve("@talkie"), "scout show @talkie"),
        (Resolve(address="@talki"), resolve("@talkie"), "scout resolve @talkie"),
        (MakeAsk(to="@talki", body="Do it."), project("/p"), "scout ask --project /p 'Do it.'"),
        (ShowAgent(address="@talki"), project("/p"), "scout show project:/p"),
        (Send(channel="all", body="@talki go"), resolve("@talkie"), "scout send --channel all '@talkie go'"),
        (
            ShowAgent(address="@talki"),
            Remedy(operation="parse", parameters={"texts": ["@talkie.x"]}),
            "scout show @talkie.x",
        ),
        (
            CreateChannel(name="c", members=("@a", "@talki")),
            resolve("@talkie"),
            "scout channel create --member @a --member @talkie c",
        ),
    ],
)
def test_the_refused_address_is_replaced_in_the_callers_own_command(
    request_: Request[Any], remedy: Remedy, command: str
) -> None:
    assert commands(request_, remedy) == [command]


@pytest.mark.parametrize(
    ("request_", "command"),
    [
        (RegisterAgent(definition_id="Codex", profile="x"), "scout agent register --profile x my-codex"),
        (
            RegisterAgent(definition_id="codex", config={"name": "A b", "username": "5", "appId": None}),
            """scout agent register --config 'name=A b' --config 'username="5"' --config appId=null my-codex""",
        ),
        (SetAlias(name="codex", target="@a"), "scout alias set my-codex @a"),
        (ShowAgent(address="@a"), "scout parse @my-codex"),
    ],
)
def test_a_reserved_name_is_replaced_by_a_free_one(request_: Request[Any], command: str) -> None:
    with pytest.raises(Refused) as refused:
        check_name("codex")
    told = correct_remedies(request_, refused.value.diagnostic)
    assert build_command_line(told.remedies[-1]) == command


def test_a_folder_with_a_reserved_name_keeps_it() -> None:
    with pytest.raises(Refused) as refused:
        check_name("root")
    found = corrected(MakeAsk(project_path="/root", body="x"), refused.value.diagnostic)
    assert found == ["scout agent register --project /root my-root"]


def test_a_refused_folder_is_named_by_the_callers_field() -> None:
    problem = BadRequest(problem="/nope is not there", field="projectPath", remedies=(project("/nop"),))
    request = StartSession(agent="@b", cwd="/nope")
    told = correct_remedies(request, problem)
    assert told.message == "/nope is not there (at cwd)"
    assert [build_command_line(one) for one in told.remedies] == ["scout session start --agent @b --cwd /nop"]
    assert corrected(MakeAsk(project_path="/nope", body="x"), problem) == ["scout ask --project /nop x"]


def test_a_missing_option_is_added_and_the_target_stays_as_it_was_typed() -> None:
    given = {"to": "@both.node:mini", "body": PLACEHOLDER, "harness": "codex"}
    problem = AmbiguousEndpoint(
        address="@both.node:mini",
        harnesses=("claude", "codex"),
        remedies=(Remedy(operation="ask", parameters=given),),
    )
    told = correct_remedies(MakeAsk(project_path="/p", body="x", idempotency_key="k", wait=5), problem)
    found = [f"scout ask --project /p --harness {one} x" for one in ("claude", "codex")]
    assert [build_command_line(one) for one in told.remedies] == found


def test_an_option_without_a_target_of_the_callers_brings_its_own() -> None:
    given = {"to": "@a", "body": PLACEHOLDER, "harness": "codex"}
    problem = BadRequest(problem="whom", remedies=(Remedy(operation="ask", parameters=given),))
    told = correct_remedies(MakeAsk(body="x"), problem)
    assert [build_command_line(one) for one in told.remedies] == ["scout ask --harness codex @a x"]


def test_what_only_the_caller_knows_is_never_made_up() -> None:
    gaps = Remedy(operation="send", parameters={"to": PLACEHOLDER, "body": PLACEHOLDER})
    who = Remedy(operation="who", parameters={})
    assert commands(Send(body="hi"), gaps, who, refused="") == ["scout who"]


def test_another_verb_takes_the_callers_text() -> None:
    question = Remedy(
        operation="question.create", parameters={"to": "@b", "flightId": "f", "body": PLACEHOLDER}
    )
    (command,) = commands(MakeAsk(to="@b", body="Which?"), question, refused="")
    assert command == "scout question create --flight f @b 'Which?'"


def test_equal_remedies_are_said_once_and_a_text_that_looks_like_a_flag_can_be_pasted() -> None:
    found = commands(MakeAsk(to="@talki", body="-v"), resolve("@talkie"), resolve("@talkie"))
    assert found == ["scout ask -- @talkie -v"]


def test_a_long_text_is_read_from_standard_input() -> None:
    assert commands(MakeAsk(to="@talki", body="x" * 5000), resolve("@talkie")) == ["scout ask @talkie -"]


@pytest.mark.parametrize(
    ("problem", "command"),
    [
        (NotFound(noun="flight", id="x"), "scout flight list"),
        (NotFound(noun="attention item", id="x"), "scout attention"),
        (NotFound(noun="something else", id="x"), "scout explain not_found"),
        (TooLarge(what="body", size=2, limit=1), "scout explain too_large"),
        (unknown("@talki", resolve("@talkie")), "scout resolve @talkie"),
    ],
)
def test_a_refusal_always_names_a_next_command(problem: Diagnostic, command: str) -> None:
    assert [build_command_line(one) for one in list_remedies(problem)] == [command]


def test_a_reserved_word_in_a_list_is_renamed_there() -> None:
    with pytest.raises(Refused) as caught:
        check_slug("root")
    told = correct_remedies(SpawnAgents(slugs=("api", "root")), caught.value.diagnostic)
    assert [build_command_line(one) for one in told.remedies] == ["scout spawn api my-root"]
    told = correct_remedies(SpawnAgents(slugs=("api",)), caught.value.diagnostic)
    assert [one.operation for one in told.remedies] != ["spawn"]


# -- harnesses ---------------------------------------------------------------------------------------


def both(address: str, *candidates: str) -> AmbiguousEndpoint:
    ask = {"to": address, "body": PLACEHOLDER, "harness": "claude"}
    return AmbiguousEndpoint(
        address=address,
        harnesses=("claude", "codex"),
        candidates=tuple(Candidate(address=one) for one in candidates),
        remedies=(Remedy(operation="ask", parameters=ask), Remedy(operation="who", parameters={})),
    )


def corrected(request: Request[Any], problem: Diagnostic) -> list[str]:
    return [build_command_line(one) for one in correct_remedies(request, problem).remedies]


BOTH = ("@b.harness:claude", "@b.harness:codex")


@pytest.mark.parametrize(
    ("request_", "found"),
    [
        (MakeAsk(to="@b", body="x"), [f"scout ask --harness {one} @b x" for one in ("claude", "codex")]),
        (
            StartSession(agent="@b"),
            [f"scout session start --agent @b --harness {one}" for one in ("claude", "codex")],
        ),
        (Wake(address="short"), [f"scout wake {one}" for one in BOTH]),
        (Resolve(address="@b"), [f"scout resolve {one}" for one in BOTH]),
        (Send(channel="c", body="x"), ["scout ask --harness claude @b x"]),
    ],
)
def test_a_harness_is_named_as_an_option_or_in_the_address(request_: Request[Any], found: list[str]) -> None:
    assert corrected(request_, both("@b", *BOTH)) == [*found, "scout who"]


def test_a_path_cannot_name_a_harness() -> None:
    assert corrected(Wake(address="/me/b"), both("/me/b")) == ["scout who"]


@pytest.mark.parametrize(
    ("request_", "found"),
    [
        (StartSession(agent="@b", harness="clode"), "scout session start --agent @b --harness claude"),
        (RegisterAgent(definition_id="b", config={"harness": "clode", "model": "m"}),
         "scout agent register --config harness=claude --config model=m b"),
        (Wake(address="@b#clode"), "scout wake '@b#claude'"),
        (MakeAsk(to="@b.harness:clode", body="x"), "scout ask @b.harness:claude x"),
    ],
)  # fmt: skip
def test_a_misspelt_harness_is_replaced_where_it_was_given(request_: Request[Any], found: str) -> None:
    near = (Candidate(address="claude"),)
    problem = HarnessUnavailable(harness="clode", missing=Missing.BINARY, known=("claude",), candidates=near)
    assert corrected(request_, problem) == [found]


def test_a_misspelt_harness_that_the_caller_did_not_give_is_not_corrected() -> None:
    near = (Candidate(address="claude"),)
    problem = HarnessUnavailable(harness="clode", missing=Missing.BINARY, candidates=near)
    assert corrected(Wake(address="@b"), problem) == []


# -- settings of an agent ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "field", "near", "found"),
    [
        ({"wakePolicy": "on_demnd"}, "wakePolicy", "on_demand", "wakePolicy=on_demand"),
        ({"wakePolic": "manual"}, "wakePolic", "wakePolicy", "wakePolicy=manual"),
    ],
)
def test_a_misspelt_setting_is_replaced(config: dict[str, Any], field: str, near: str, found: str) -> None:
    problem = BadRequest(problem="no", field=field, candidates=(Candidate(address=near),))
    request = ConfigureAgent(address="@b", config={**config, "model": "m"})
    assert corrected(request, problem) == [f"scout agent config --set {found} --set model=m @b"]
    assert corrected(ConfigureAgent(address="@b"), problem) == []


# -- a long text -------------------------------------------------------------------------------------

LONG = "é" * 200_000
HASH = hashlib.sha256(LONG.encode()).hexdigest()


@pytest.mark.parametrize(
    ("request_", "typed", "file"),
    [
        (Send(to="@b", body=LONG), "scout send --attach {} @b 'See the attachment.'", "message.txt"),
        (MakeAsk(to="@b", body=LONG, attachments=("a" * 64,)),
         f"scout ask --attach {'a' * 64} --attach {{}} @b 'See the attachment.'", "message.txt"),
        (Reply(body=LONG), "scout reply --attach {} 'See the attachment.'", "message.txt"),
        (CompleteFlight(flight_id="flt_1", output=LONG),
         "scout reply --to flt_1 --attach {} 'See the attachment.'", "message.txt"),
        (CreateQuestion(to="@b", body=LONG), "scout send --attach {} @b 'See the attachment.'", "message.txt"),
    ],
)  # fmt: skip
def test_a_long_text_is_stored_and_attached(request_: Request[Any], typed: str, file: str) -> None:
    problem = TooLarge(what="body", size=400_000, limit=1, remedies=(resolve(PLACEHOLDER),))
    put, send = correct_remedies(request_, problem).remedies
    assert put.operation == "attachment.put"
    assert base64.b64decode(put.parameters["data"]).decode() == LONG
    assert build_command_line(put) == "scout attachment put message.txt"
    assert build_command_line(send) == typed.format(f"{HASH}:{file}")
    (by_hand,) = attach_file((put, send))
    assert (build_command_line(by_hand), by_hand.why) == (
        typed.format(file),
        "write the text to message.txt first",
    )


def test_a_long_text_that_nothing_can_carry_is_only_explained() -> None:
    problem = TooLarge(what="body", size=400_000, limit=1, remedies=(resolve(PLACEHOLDER),))
    assert corrected(Notify(message=LONG), problem) == []
    assert attach_file((resolve("@b"),)) == (resolve("@b"),)


# -- people --------------------------------------------------------------------------------------------


def near(name: str) -> tuple[Candidate, ...]:
    return (Candidate(address=name),)


def wrong_state(noun: str, *accepts: str, remedies: tuple[Remedy, ...] = ()) -> WrongState:
    return WrongState(
        noun=noun, state="other", move="move", accepts=accepts, terminal=False, remedies=remedies
    )


@pytest.mark.parametrize(
    ("request_", "problem", "lines"),
    [
        (
            PostToUser(user="adda", body="adda, hi"),
            NotFound(noun="user", id="adda", candidates=near("ada")),
            ["scout post ada 'adda, hi'"],
        ),
        (
            LinkUser(user="ada", connector="telegarm"),
            BadRequest(problem="unknown", field="connector", candidates=near("telegram")),
            ["scout user link ada telegram"],
        ),
        (PostToUser(user="ada", body="hi"), NotFound(noun="user", id="eve", candidates=near("eva")), []),
        (PostToUser(user="adda", body="hi"), NotFound(noun="message", id="adda", candidates=near("x")), []),
        (
            PauseSchedule(schedule_id="nightly"),
            wrong_state("schedule", "change", "resume"),
            ["scout cron resume nightly", "scout cron show nightly"],
        ),
        (
            RetireUser(user="ada"),
            wrong_state("user", "revive"),
            ["scout user revive ada", "scout user show ada"],
        ),
        (
            RetireUser(user="ada"),
            wrong_state("user", "revive", remedies=(Remedy(operation="user.list", parameters={}),)),
            ["scout user list"],
        ),
        (ListSchedules(), wrong_state("schedule"), ["scout cron show"]),
        (ShowAgent(address="@arc"), wrong_state("flight", "resume"), []),
        (
            CreateTask(body="hi", project_path="/nope", harness="echo"),
            BadRequest(problem="/nope is not there", field="projectPath", remedies=(project("/nop"),)),
            ["scout task --project /nop --harness echo hi"],
        ),
    ],
)
def test_a_name_a_state_or_a_folder_is_corrected_in_the_request(
    request_: Request[Any], problem: Diagnostic, lines: list[str]
) -> None:
    assert [build_command_line(one) for one in correct_remedies(request_, problem).remedies] == lines


@pytest.mark.rows("R9.connectors-2")
def test_no_remedy_repeats_a_secret() -> None:
    again = Remedy(operation="connector.add", parameters={"connector": "telegram"})
    request = AddConnector(connector="telegram", values={"token": "hidden"})
    told = correct_remedies(request, BadRequest(problem="no", remedies=(again,)))
    assert told.remedies == (again,)


def test_what_only_another_node_can_do_repeats_the_request_for_that_node() -> None:
    told = correct_remedies(RetireAgent(address="@arc"), RemoteTarget(address="@arc", node="mini"))
    assert told.message == "@arc lives on mini: run this command on mini"
    (there,) = told.remedies
    assert (there.operation, there.parameters, there.why) == ("agent.retire", {"address": "@arc"}, "on mini")
