import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.api.asgi import Gone
from scout.api.requests import WrongMedia, read, read_body
from scout.api.routes import Routes
from scout.base.refusal import BadRequest, Diagnostic, Refused
from scout.base.time import Time
from scout.model.problems.request import TooLarge
from scout.protocol import agents, asks, endpoints, overview, talk
from scout.protocol.request import Request

ROUTES = Routes()


def got(path: str, query: bytes = b"") -> Request[Any]:
    return read(ROUTES.find("GET", path.encode()), query, b"", None)


def read_post(
    path: str, body: bytes, key: bytes | None = None, method: str = "POST", query: bytes = b""
) -> Request[Any]:
    return read(ROUTES.find(method, path.encode()), query, body, key)


def refusal(call: Any, *arguments: Any, **options: Any) -> BadRequest:
    with pytest.raises(Refused) as refused:
        call(*arguments, **options)
    assert isinstance(refused.value.diagnostic, BadRequest)
    return refused.value.diagnostic


def test_path_and_query_are_read_as_the_fields_want_them() -> None:
    assert got("/v1/flights/flt_1", b"wait=1.5&seen=3") == asks.GetFlight(flight_id="flt_1", wait=1.5, seen=3)
    assert got("/v1/agents", b"online=true&limit=7&query=a%20b+c") == agents.Who(
        online=True, limit=7, query="a b c"
    )
    assert got("/v1/agents", b"query=null") == agents.Who(query="null")
    assert got("/v1/agents/%2Fu1%2Ftelegram") == agents.ShowAgent(address="/u1/telegram")
    assert got("/v1/agents/d%C3%A9j%C3%A0") == agents.ShowAgent(address="déjà")
    assert got("/v1/resolve", b"address=arc&from=/src") == agents.Resolve(address="arc", from_="/src")
    assert got("/v1/now", b"since=2026-01-01T00:00:00Z") == overview.ShowNow(since=Time(1767225600000000))


def test_a_body_is_read_with_what_the_path_says() -> None:
    assert read_post("/v1/agents/arc", b'{"config":{"a":1}}', method="PATCH") == agents.ConfigureAgent(
        address="arc", config={"a": 1}
    )
    assert read_post("/v1/endpoints/ep_1", b"", method="DELETE") == endpoints.RemoveEndpoint(
        endpoint_id="ep_1"
    )


def test_names_of_other_integrations_are_read() -> None:
    assert read_post("/v1/agents", b'{"definitionId":"arc","harnessType":"echo","projectPath":"/src"}') == (
        agents.RegisterAgent(definition_id="arc", harness="echo", project_root="/src")
    )
    assert got("/v1/agents", b"projectPath=/src") == agents.Who(project_root="/src")
    told = refusal(read_post, "/v1/agents", b'{"definitionId":"arc","harnessType":"echo","harness":"x"}')
    assert "the same field" in told.problem


def test_the_key_may_stand_in_the_header() -> None:
    body = b'{"to":"arc","body":"x"}'
    assert read_post("/v1/messages", body, b"k") == talk.Send(to="arc", body="x", idempotency_key="k")
    with_key = b'{"to":"arc","body":"x","idempotencyKey":"k"}'
    assert read_post("/v1/messages", with_key, b"k") == read_post("/v1/messages", with_key)
    assert refusal(read_post, "/v1/messages", with_key, b"other").field == "idempotencyKey"
    assert refusal(read_post, "/v1/messages", body, b"k" * 201).field == "Idempotency-Key"
    assert refusal(read_post, "/v1/messages", body, b"").field == "Idempotency-Key"
    assert isinstance(read_post("/v1/endpoints/ep_1/heartbeat", b"", b"k"), endpoints.Heartbeat)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        (b"limit=many", "limit"),
        (b"limit=", "limit"),
        (b"limit=null", "limit"),
        (b"online=NULL", "online"),
        (b"limit=1&limit=2", "limit"),
        (b"limit=99999999999999999999", "limit"),
        (b"online=perhaps", "online"),
        (b"query=%zz", "query"),
        (b"query=%ff", "query"),
        (b"query=%00", "query"),
        (b"%ff=1", "query"),
        (b"=1", ""),
        (b"limt=1", "limt"),
        (b"address=x", "address"),
    ],
)
def test_a_bad_query_is_refused_by_name(query: bytes, field: str) -> None:
    assert refusal(got, "/v1/agents", query).field == field


def test_what_the_path_says_is_not_said_again() -> None:
    assert refusal(got, "/v1/agents/arc", b"address=other").problem == "'address' is part of the path"
    assert refusal(read_post, "/v1/agents/arc/retire", b'{"address":"other"}').field == "address"


@pytest.mark.parametrize("wait", [b"nan", b"inf", b"-1", b"1e999"])
def test_a_wait_is_a_number_of_seconds(wait: bytes) -> None:
    assert refusal(got, "/v1/flights/f", b"wait=" + wait).field == "wait"


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"null",
        b'"text"',
        b"{",
        b"\xff",
        b'{"to":"a","body":"\\ud800"}',
        b'{"to":"a","body":"\xff"}',
        b'{"to":"a"}',
        b'{"to":1,"body":"x"}',
        b'{"to":"a\\u0000","body":"x"}',
        b'{"to":"' + b"a" * 5000 + b'","body":"x"}',
        b"[" * 100_000,
        b'{"create":' + b'{"a":' * 100_000,
        b'{"to":"a","body":"x","create":' + b'{"a":' * 50 + b"1" + b"}" * 51,
        b'{"to":"a","body":"x","create":{"a":"\\u0000"}}',
    ],
)
def test_a_bad_body_is_refused(body: bytes) -> None:
    assert refusal(read_post, "/v1/messages", body).code == "bad_request"


def test_backslash_u_zero_as_text_is_only_text() -> None:
    assert read_post("/v1/messages", b'{"to":"a","body":"\\\\u0000"}') == talk.Send(to="a", body="\\u0000")


@pytest.mark.rows("R4.2-4")
def test_an_unknown_field_is_refused_with_the_nearest() -> None:
    told = refusal(read_post, "/v1/messages", b'{"to":"a","bdy":"x"}')
    assert (told.field, told.candidates[0].address) == ("bdy", "body")


def test_a_body_takes_no_query() -> None:
    assert refusal(read_post, "/v1/messages", b"{}", query=b"to=arc").field == "to"


@pytest.mark.rows("R7-8")
@given(st.sampled_from(ROUTES.all), st.binary(max_size=60), st.binary(max_size=60))
def test_whatever_comes_is_read_or_refused(route: Any, query: bytes, body: bytes) -> None:
    path = route.template.replace("{", "").replace("}", "").encode()
    try:
        request = read(ROUTES.find(route.method, path), query, body, None)
    except Refused as refused:
        assert isinstance(refused.diagnostic, Diagnostic)
    else:
        assert isinstance(request, route.request)


async def _body(
    *chunks: bytes, limit: int = 10, headers: dict[bytes, bytes] | None = None, gone: bool = False
) -> bytes:
    messages: list[dict[str, Any]] = [
        {"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks
    ]
    messages.append({"type": "http.disconnect"} if gone else {"type": "http.request", "body": b""})

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    return await read_body(receive, headers or {}, limit)


def test_a_body_is_gathered_up_to_its_limit() -> None:
    assert asyncio.run(_body(b"12345", b"67890")) == b"1234567890"
    for chunks, headers in (((b"123456", b"789012"), {}), ((), {b"content-length": b"11"})):
        with pytest.raises(Refused) as refused:
            asyncio.run(_body(*chunks, headers=headers))
        assert isinstance(refused.value.diagnostic, TooLarge)


def test_a_client_that_goes_away_is_not_answered() -> None:
    with pytest.raises(Gone):
        asyncio.run(_body(b"1", gone=True))


def test_only_json_is_read() -> None:
    assert asyncio.run(_body(b"{}", headers={b"content-type": b"application/json; charset=utf-8"})) == b"{}"
    with pytest.raises(WrongMedia):
        asyncio.run(_body(b"{}", headers={b"content-type": b"text/plain"}))
