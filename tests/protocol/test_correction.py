"""Remedies repeat the caller's own request with the correction, and nothing in them has to be made up."""

from typing import Any

import pytest

from scout.base.refusal import PLACEHOLDER, BadRequest, Diagnostic, Refused, Remedy
from scout.identity.reserved import check_name
from scout.model.problems.request import NotFound, TooLarge
from scout.model.problems.target import AmbiguousEndpoint, UnknownTarget
from scout.protocol.access import SetAlias
from scout.protocol.agents import RegisterAgent, Resolve, ShowAgent
from scout.protocol.asks import MakeAsk
from scout.protocol.channels import CreateChannel
from scout.protocol.correction import correct_remedies, list_remedies
from scout.protocol.operations import build_command_line
from scout.protocol.request import Request
from scout.protocol.talk import Send


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


def test_a_missing_option_is_added_and_the_target_stays_as_it_was_typed() -> None:
    given = {"to": "@both.node:mini", "body": PLACEHOLDER, "harness": "codex"}
    problem = AmbiguousEndpoint(
        address="@both.node:mini",
        harnesses=("claude", "codex"),
        remedies=(Remedy(operation="ask", parameters=given),),
    )
    told = correct_remedies(MakeAsk(project_path="/p", body="x", idempotency_key="k", wait=5), problem)
    assert [build_command_line(one) for one in told.remedies] == ["scout ask --project /p --harness codex x"]


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
