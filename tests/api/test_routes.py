import msgspec
import pytest

from scout.api.routes import Routes, WrongMethod, build_route
from scout.base.refusal import Refused
from scout.model.problems.request import NotFound
from scout.protocol import agents, asks, inbox, talk
from scout.protocol.operations import REQUESTS

ROUTES = Routes()


@pytest.mark.rows("R4.2-2")
@pytest.mark.parametrize("request_type", REQUESTS, ids=lambda request: request.operation)
def test_every_operation_has_a_route_that_finds_it(request_type: type) -> None:
    route = build_route(request_type)
    path = route.template
    for name in route.inside:
        path = path.replace(f"{{{name}}}", "x%2Fy")
    found = ROUTES.find(route.method, path.encode())
    assert found.route.request is request_type
    assert found.segments == (b"x%2Fy",) * len(route.inside)


def test_an_encoded_slash_stays_inside_its_segment() -> None:
    found = ROUTES.find("GET", b"/v1/agents/%2Fu1%2Ftelegram")
    assert (found.route.request, found.segments) == (agents.ShowAgent, (b"%2Fu1%2Ftelegram",))


def test_a_head_request_is_a_get_without_its_body() -> None:
    assert ROUTES.find("HEAD", b"/v1/agents").route.request is agents.Who


@pytest.mark.parametrize(
    "path",
    [
        b"",
        b"/",
        b"/v1",
        b"/v1/",
        b"/v1/agents/",
        b"/v1/agents//feed",
        b"/v1/messages/a/b/c",
        b"/v2/agents",
        b"\xff",
    ],
)
def test_an_unknown_path_is_refused(path: bytes) -> None:
    with pytest.raises(Refused) as refused:
        ROUTES.find("GET", path)
    assert isinstance(refused.value.diagnostic, NotFound)


def test_an_unknown_path_names_the_nearest() -> None:
    with pytest.raises(Refused) as refused:
        ROUTES.find("GET", b"/v1/mesages")
    assert refused.value.diagnostic.candidates[0].address == "/v1/messages"


def test_another_method_names_those_that_work() -> None:
    with pytest.raises(WrongMethod) as wrong:
        ROUTES.find("PUT", b"/v1/agents/x")
    assert wrong.value.allowed == ["GET", "HEAD", "PATCH"]


def test_a_route_knows_what_its_fields_hold() -> None:
    assert build_route(asks.GetFlight).floats == ("wait",)
    assert build_route(asks.GetFlight).integers == ("seen",)
    assert build_route(inbox.AckInbox).lists == {"deliveryIds"}
    assert build_route(agents.ConfigureAgent).objects == ("config",)
    assert build_route(talk.PutBlob).limit > 10 * 1024 * 1024 * 4 / 3
    assert build_route(talk.Send).limit == 1024 * 1024


def test_no_two_operations_share_a_route() -> None:
    assert len({request.route for request in REQUESTS}) == len(REQUESTS)
    assert all(msgspec.structs.fields(request) is not None for request in REQUESTS)
