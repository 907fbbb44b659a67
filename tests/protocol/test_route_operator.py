"""A body that begins with `>> target`, as a request with that target."""

from typing import Any

import pytest

from scout.base.refusal import Refused
from scout.protocol.agents import WhoAmI
from scout.protocol.asks import MakeAsk
from scout.protocol.request import Request
from scout.protocol.route_operator import apply_route
from scout.protocol.talk import Send

WHO: list[tuple[str, dict[str, str]]] = [("who", {})]


@pytest.mark.rows("R1.2-41")
@pytest.mark.parametrize("kind", [MakeAsk, Send])
@pytest.mark.parametrize(
    ("body", "to", "rest"),
    [
        (">> bb hi", "@bb", "hi"),
        ("\n >>bb\n hi\n", "@bb", "hi\n"),
        (">> @bb, hi", "@bb", "hi"),
        (">> main.x hi", "@main.x", "hi"),
        (">> bb#codex hi", "bb#codex", "hi"),
        (">> /u1/direct hi", "/u1/direct", "hi"),
        (">> agt_01ab hi", "agt_01ab", "hi"),
        (">> crd_01ab hi", "crd_01ab", "hi"),
        (">> operator hi", "operator", "hi"),
        ("/scout:ask >> bb hi", "@bb", "hi"),
        ("/scout:send >> bb hi", "@bb", "hi"),
        (">> bb", "@bb", ""),
    ],
)
def test_the_target_of_the_body_becomes_that_of_the_request(
    kind: type[MakeAsk | Send], body: str, to: str, rest: str
) -> None:
    assert apply_route(kind(body=body)) == kind(to=to, body=rest)


@pytest.mark.parametrize("to", [">>bb", ">> bb"])
def test_a_target_field_may_hold_the_operator(to: str) -> None:
    assert apply_route(Send(to=to, body=">> cc hi")) == Send(to="@bb", body=">> cc hi")


@pytest.mark.rows("R1.2-42")
@pytest.mark.parametrize(
    "request_",
    [
        WhoAmI(),
        MakeAsk(body="a>>b hi"),
        MakeAsk(body=">>> b hi"),
        MakeAsk(body="@arc write it >> log"),
        MakeAsk(body="/home >> bb hi"),
        MakeAsk(to="@arc", body=">> bb hi"),
        MakeAsk(project_path="/p", body=">> bb hi"),
        MakeAsk(target_session_id="ses_1", body=">> bb hi"),
        Send(to="@arc", body=">>"),
        Send(to=">> bb hi", body="x"),
        Send(channel="dev", body=">> bb hi"),
        Send(conversation_id="cnv_1", body=">> bb hi"),
        Send(thread="msg_1", body=">> bb hi"),
        Send(broadcast=True, body=">> bb hi"),
    ],
)
def test_other_texts_stay_as_they_are(request_: Request[Any]) -> None:
    assert apply_route(request_) is request_


@pytest.mark.rows("R1.2-43")
@pytest.mark.parametrize(
    ("body", "position", "remedies"),
    [
        (">>", 2, WHO),
        (">> @x..y", 6, WHO),
        (">> @x..y look at it", 6, [("ask", {"to": "@x.y", "body": "look at it"})]),
        (">> {y} hi", 3, [("explain", {"code": "malformed_address"})]),
    ],
)
def test_a_target_that_cannot_be_read_is_refused_with_its_position(
    body: str, position: int, remedies: list[tuple[str, dict[str, str]]]
) -> None:
    with pytest.raises(Refused) as refused:
        apply_route(MakeAsk(body=body))
    problem = refused.value.diagnostic
    assert (problem.code, getattr(problem, "position", None)) == ("malformed_address", position)
    assert [(one.operation, one.parameters) for one in problem.remedies] == remedies
