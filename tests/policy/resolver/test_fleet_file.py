"""A fleet written down as a file."""

import json
from typing import Any

import pytest

from scout.base.refusal import BadRequest, Refused
from scout.policy.directory import Viewpoint
from scout.policy.resolver.fleet_file import FleetFile, read_fleet
from scout.policy.resolver.resolve import resolve

ARC = {"definitionId": "arc", "node": "mini"}


def refusal(data: object) -> BadRequest:
    with pytest.raises(Refused) as caught:
        read_fleet(data)
    told = caught.value.diagnostic
    assert isinstance(told, BadRequest)
    return told


def answer(file: FleetFile, text: str) -> str:
    found = resolve(text, file.fleet, file.caller, file.now)
    return file.key_of(found.endpoint_id or found.agent.id)


def test_instances_of_one_base_are_endpoints_of_one_agent() -> None:
    file = read_fleet(
        {
            "instances": {
                "one": {**ARC, "harness": "claude"},
                "two": {**ARC, "harness": "codex", "model": "GPT-5.5", "preferred": True},
            },
            "aliases": {"c": "one"},
        }
    )
    assert file.instances["one"].agent == file.instances["two"].agent
    assert file.instances["two"].canonical == "@arc.harness:codex.model:gpt-5-5.node:mini"
    assert (answer(file, "@arc"), answer(file, "@arc#claude"), answer(file, "@c")) == ("two", "one", "one")


def test_json_text_is_read_as_well() -> None:
    file = read_fleet(json.dumps({"comment": "kept out", "instances": {"a": ARC}}))
    assert answer(file, "@arc#codex") == "a"
    assert file.caller == Viewpoint()


def test_equal_names_on_two_nodes_and_path_words_get_paths_of_their_own() -> None:
    file = read_fleet(
        {
            "instances": {
                "a": {"definitionId": "arc", "node": "mini"},
                "b": {"definitionId": "arc", "node": "book"},
                "c": {"definitionId": "memory"},
                "d": {"definitionId": "arc", "workspaceQualifier": "main", "profile": "dev"},
                "e": {"definitionId": "x", "path": "/ada/agent/x"},
            }
        }
    )
    paths = {key: str(instance.agent.path) for key, instance in file.instances.items()}
    assert paths == {
        "a": "/me/agent/arc",
        "b": "/me/agent/arc~book",
        "c": "/me/agent/memory~here",
        "d": "/me/agent/arc.main.dev",
        "e": "/ada/agent/x",
    }
    assert file.instances["e"].agent.owner == "ada"


def test_a_row_may_say_more_than_its_dimensions() -> None:
    file = read_fleet(
        {
            "instances": {
                "root": {**ARC, "projectRoot": "/src/arc", "birthBranch": "main"},
                "off": {"definitionId": "arc", "workspaceQualifier": "x", "online": False},
                "gone": {"definitionId": "bow", "retired": True},
            },
            "caller": {"agent": "root", "rootBranch": "main"},
            "unreachableNodes": ["Moon.local"],
        }
    )
    assert file.caller == Viewpoint(
        agent_id="root", user="me", project_root="/src/arc", root_branch="main", node="mini"
    )
    assert (answer(file, "root"), answer(file, "main"), answer(file, "self")) == ("root", "root", "root")
    for text, code in (("@bow", "retired_target"), ("@arc.node:moon-local", "peer_unreachable")):
        with pytest.raises(Refused) as caught:
            answer(file, text)
        assert caught.value.diagnostic.code == code


def test_a_caller_may_be_given_by_its_places() -> None:
    told = {"user": "ada", "projectRoot": "/p", "node": "book", "agent": "a"}
    assert read_fleet({"instances": {"a": ARC}, "caller": told}).caller == Viewpoint(
        agent_id="a", user="ada", project_root="/p", node="book"
    )


@pytest.mark.parametrize(
    ("data", "field", "problem"),
    [
        ("{", "", "truncated"),
        ([], "", "Expected `object`"),
        ({}, "", "instances"),
        ({"instances": {"a": {}}}, "instances.a", "instance 'a': found no definitionId"),
        ({"instances": {"a": {"definitionId": 7}}}, "instances.a", "instance 'a': found a value of type int"),
        ({"instances": {"a": {**ARC, "online": "yes"}}}, "online", "Expected `bool`"),
        ({"instances": {"a": ARC}, "aliases": {"x": "b"}}, "aliases.x", "no instance has the key 'b'"),
        ({"instances": {"a": ARC}, "caller": {"agent": "b"}}, "caller.agent", "no instance has the key 'b'"),
    ],
)
def test_a_bad_file_is_refused_with_the_field(data: Any, field: str, problem: str) -> None:
    told = refusal(data)
    assert told.field == field
    assert problem in told.problem
