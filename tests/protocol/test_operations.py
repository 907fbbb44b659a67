"""Remedies name operations that exist, with parameters that they take."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scout.base.refusal import Refused, Remedy
from scout.protocol.operation import Operation
from scout.protocol.operations import OPERATIONS, REQUESTS, build_command_line, check_remedy
from scout.protocol.request import Request, Write, get_result_type

SOURCE = Path(__file__).parents[2] / "src/scout"


def written_remedies() -> Iterator[tuple[str, str, list[str] | None]]:
    """Every `Remedy(…)` in the source: where, its operation, and its parameters where they are literal."""
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Remedy":
                given = {keyword.arg: keyword.value for keyword in node.keywords}
                names = given["parameters"]
                literal = isinstance(names, ast.Dict) and None not in names.keys
                keys = [ast.literal_eval(key) for key in names.keys if key] if literal else None  # type: ignore[union-attr] (a Dict)
                if isinstance(given["operation"], ast.Constant):
                    yield f"{file.name}:{node.lineno}", ast.literal_eval(given["operation"]), keys


@pytest.mark.rows("R0-93", "R0-94", "R3.5-2")
@pytest.mark.parametrize(("where", "operation", "names"), list(written_remedies()))
def test_every_remedy_in_the_source_is_in_the_table(
    where: str, operation: str, names: list[str] | None
) -> None:
    assert operation in OPERATIONS, where
    if names is not None:
        assert check_remedy(Remedy(operation=operation, parameters=dict.fromkeys(names, "x"))) == [], where


@pytest.mark.rows("R0-95")
@pytest.mark.parametrize(
    ("remedy", "expected"),
    [
        (Remedy(operation="parse", parameters={"texts": ["@arc", "a b"]}), "scout parse @arc 'a b'"),
        (Remedy(operation="who", parameters={}), "scout who"),
        (
            Remedy(operation="session.start", parameters={"agent": "@arc", "harness": "codex"}),
            "scout session start --agent @arc --harness codex",
        ),
        (
            Remedy(operation="ask", parameters={"body": "Review this.", "projectPath": "../talkie"}),
            "scout ask --project ../talkie 'Review this.'",
        ),
        (Remedy(operation="ask", parameters={"to": "@arc; rm", "body": "$x"}), "scout ask '@arc; rm' '$x'"),
        (Remedy(operation="resolve", parameters={"address": "@a", "from": None}), "scout resolve @a"),
    ],
)
def test_a_remedy_becomes_a_command_that_can_be_pasted(remedy: Remedy, expected: str) -> None:
    assert build_command_line(remedy) == expected
    assert check_remedy(remedy) == []


def test_what_the_table_does_not_know_is_said() -> None:
    assert check_remedy(Remedy(operation="fly", parameters={})) == ["no operation fly"]
    assert check_remedy(Remedy(operation="alias.set", parameters={"name": "x", "colour": 1})) == [
        "alias.set takes no colour",
        "alias.set needs target",
    ]


def test_an_unknown_operation_has_no_command() -> None:
    with pytest.raises(Refused, match="there is no operation 'fly'"):
        build_command_line(Remedy(operation="fly", parameters={}))


def test_flags_are_made_from_names() -> None:
    options = {parameter.name: parameter.option for parameter in OPERATIONS["ask"].parameters}
    assert options["ifUnreachable"] == "--if-unreachable"
    assert options["projectPath"] == "--project"


def test_flags_are_given_as_often_as_they_have_values() -> None:
    remedy = Remedy(
        operation="send", parameters={"to": "@a", "body": "x", "attachments": ["f", "g"], "wake": True}
    )
    assert build_command_line(remedy) == "scout send --wake --attach f --attach g @a x"
    quiet = Remedy(operation="send", parameters={"to": "@a", "body": "x", "wake": False})
    assert build_command_line(quiet) == "scout send @a x"


@pytest.mark.parametrize("request_type", REQUESTS, ids=lambda one: one.operation)
def test_every_request_names_its_route_and_its_answer(request_type: type[Request[Any]]) -> None:
    method, _, path = request_type.route.partition(" ")
    assert method in {"GET", "POST", "PATCH", "DELETE"}
    assert path.startswith("/v1/")
    assert (method != "GET") == (request_type.writes or request_type.operation in {"parse", "reserve.check"})
    assert get_result_type(request_type) is not None
    assert request_type.permission


def test_no_two_requests_share_a_name_or_a_route() -> None:
    assert len({one.operation for one in REQUESTS}) == len({one.route for one in REQUESTS}) == len(REQUESTS)


@pytest.mark.rows("R3.1-35")
def test_every_write_takes_a_key_except_a_sign_of_life() -> None:
    keyless = [one.operation for one in REQUESTS if one.writes and not issubclass(one, Write)]
    assert keyless == ["endpoint.heartbeat"]  # it changes nothing by coming twice


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda operation: operation.name)
def test_every_operation_says_what_it_does_in_one_sentence(operation: Operation) -> None:
    assert operation.says.endswith(".")
    words = tuple(word.removeprefix("--") for word in operation.words)  # some are flags of a command
    assert words == tuple(operation.name.split("."))[: len(operation.words)]
    names = [parameter.name for parameter in operation.parameters]
    assert len(names) == len(set(names))
