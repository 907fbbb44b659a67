import json
from typing import Any

import pytest

from scout.api.encoders import encode_result
from scout.api.responses import build_internal_error, build_problem, build_problem_document
from scout.base.refusal import BadRequest, Diagnostic, Remedy
from scout.model.events.envelope import Changed
from scout.model.problems.diagnostics import ALL
from scout.model.problems.request import Busy, NotFound, RateLimited, TooLarge, Unauthenticated
from scout.protocol.agents import AgentView
from scout.protocol.overview import Status
from scout.protocol.request import Page
from tests.model.samples import a_flight, an_agent, an_ask


def encode_sent(result: object) -> Any:
    return json.loads(encode_result(result))


def test_a_record_is_sent_with_the_names_of_other_integrations() -> None:
    flight = encode_sent(a_flight())
    assert (flight["flightId"], flight["status"]) == (flight["id"], flight["state"])
    ask = encode_sent(an_ask())
    assert ask["invocationId"] == ask["askId"] == ask["id"]


def test_so_are_the_records_of_a_page() -> None:
    agent = an_agent(definition_id="arc", workspace="main", project_root="/src/arc")
    view = AgentView(
        **{name: getattr(agent, name) for name in agent.__struct_fields__},
        status="idle",  # pyright: ignore[reportArgumentType] (the wire text is all that matters here)
        address="@arc",
        alias=None,
        canonical="arc.main",
        minimal="arc",
        label="arc",
    )
    page = encode_sent(Page(items=(view,)))
    assert page["next"] is None
    (item,) = page["items"]
    assert item["agentId"] == item["id"]
    assert item["workspaceQualifier"] == "main"
    assert item["logicalAgentId"] == "@arc.main"
    assert item["status"] == "idle"  # its own name wins over a synonym


def test_so_are_the_records_inside_an_event() -> None:
    payload = encode_sent(Changed(record=a_flight(), move="start"))
    assert payload["record"]["flightId"] == payload["record"]["id"]
    assert payload["move"] == "start"


def test_a_status_says_exactly_what_it_says() -> None:
    status = Status(url="u", socket="s", pid=1, version="0", node="n", home="h")
    assert encode_sent(status) == {
        "url": "u",
        "socket": "s",
        "pid": 1,
        "version": "0",
        "node": "n",
        "home": "h",
    }


@pytest.mark.rows("R3.5-4")
def test_a_refusal_is_a_problem_document() -> None:
    remedy = Remedy(operation="show", parameters={"address": "arc main"}, why="look")
    answer = build_problem(NotFound(noun="agent", id="arx", remedies=(remedy,)))
    document = json.loads(answer.body)
    assert dict(answer.headers)[b"content-type"] == b"application/problem+json"
    assert (answer.status, document["status"]) == (404, 404)
    assert document["type"] == "urn:scout:diagnostic:not_found"
    assert document["code"] == "not_found"
    assert document["detail"] == document["message"] == "no agent 'arx'"
    assert (document["noun"], document["id"]) == ("agent", "arx")
    assert document["remedies"] == [
        {
            "operation": "show",
            "parameters": {"address": "arc main"},
            "why": "look",
            "command": "scout show 'arc main'",
        }
    ]


def test_a_remedy_that_is_no_command_is_shown_without_one() -> None:
    document = build_problem_document(
        BadRequest(problem="x", remedies=(Remedy(operation="none", parameters={}),))
    )
    assert "command" not in document["remedies"][0]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_no_fact_hides_a_field_of_the_problem(kind: type[Diagnostic]) -> None:
    assert {"type", "title", "status", "detail", "message"}.isdisjoint(kind.__struct_encode_fields__)


@pytest.mark.parametrize(
    ("diagnostic", "header", "value"),
    [
        (RateLimited(what="asks", limit=1, retry_after=2.1), b"retry-after", b"3"),
        (RateLimited(what="asks", limit=1), b"retry-after", b"1"),
        (Busy(reason="starting"), b"retry-after", b"1"),
        (Unauthenticated(reason="none"), b"www-authenticate", b'Bearer realm="scout"'),
        (TooLarge(what="body", size=2, limit=1), b"connection", b"close"),
    ],
)
def test_headers_say_what_a_client_can_use(diagnostic: Diagnostic, header: bytes, value: bytes) -> None:
    assert dict(build_problem(diagnostic).headers)[header] == value


def test_a_fault_says_where_to_look_and_nothing_else() -> None:
    answer = build_internal_error("err_1")
    document = json.loads(answer.body)
    assert (answer.status, document["code"], document["reference"]) == (500, "internal", "err_1")
