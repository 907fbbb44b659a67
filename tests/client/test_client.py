"""The Python client against a real daemon."""

import asyncio
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from scout import BlockingScout, Scout
from scout.base.refusal import Refused, Remedy
from scout.client.wire import UnknownCode, decode_refusal, encode_request
from scout.model.ask import IfUnreachable
from scout.model.flight import FlightState
from scout.model.problems.request import Busy, RateLimited, Unauthenticated
from scout.model.problems.target import UnknownTarget
from scout.protocol.agents import ShowAgent, Who
from scout.protocol.attention import AnswerAttention, ListAttention, Need
from scout.protocol.log import ReadLog, Watch
from scout.protocol.operations import REQUESTS
from scout.protocol.questions import AnswerQuestion, CreateQuestion
from scout.protocol.request import Request
from scout.protocol.talk import ListMessages, Send
from scout.protocol.work import AcceptWork, CreateWork
from tests.cli.running import Shell


async def _register(scout: Scout, shell: Shell, name: str) -> str:
    told = await scout.register(name, project_root=str(shell.project(name)), harness="echo")
    return told.minimal


def test_the_main_verbs(shell: Shell) -> None:
    async def main() -> None:
        async with Scout(home=shell.home) as scout:
            assert (await scout.whoami()).kind == "operator"
            arc = await _register(scout, shell, "arc")
            assert arc in [one.minimal for one in (await scout.who()).items]
            assert (await scout.show(arc)).definition_id == "arc"
            assert (await scout.resolve(arc)).minimal == arc
            receipt = await scout.send(arc, "a heron")
            assert receipt.message_id.startswith("msg_")
            asked = await scout.ask(arc, "say hello")
            done = await scout.wait(asked.flight_id, timeout=60)
            assert done.state is FlightState.COMPLETED
            assert "say hello" in (done.output or "")
            assert (await scout.flight(asked.flight_id)).id == asked.flight_id
            listed = await scout.call(ListMessages(to=arc))
            assert listed.items[0].body == "a heron"
            assert (await scout.inbox()).items == ()

    asyncio.run(main())


def test_questions_and_work(shell: Shell) -> None:
    async def main() -> None:
        async with Scout(home=shell.home) as scout:
            told = await scout.register("asked", project_root=str(shell.project("asked")))
            async with Scout(home=shell.home, token=told.token) as asked:
                receipt = await scout.ask(told.minimal, "build", if_unreachable=IfUnreachable.QUEUE)
                me = (await scout.whoami()).canonical or ""
                question = await asked.call(
                    CreateQuestion(to=me, body="which?", flight_id=receipt.flight_id, options=("a", "b"))
                )
                waiting = await scout.wait(receipt.flight_id, timeout=60)  # it asks who waits for it
                assert waiting.state is FlightState.WAITING
                done = await scout.call(AnswerQuestion(question_id=question.id, answer="b"))
                assert (done.state, done.answer) == ("answered", "b")
                item = await scout.call(CreateWork(title="ship", owner_id=told.minimal))
                with pytest.raises(Refused, match="belongs to"):
                    await asked.call(AcceptWork(work_item_id=item.id))

    asyncio.run(main())


def test_an_agent_works_its_inbox_and_answers(shell: Shell) -> None:
    async def main() -> None:
        async with Scout(home=shell.home) as scout:
            told = await scout.register("reader", project_root=str(shell.project("reader")))
            assert told.token is not None
            async with Scout(home=shell.home, token=told.token) as reader:
                asked = await scout.ask(told.minimal, "what is up?", if_unreachable=IfUnreachable.QUEUE)
                (item,) = (await reader.claim(wait=10)).items
                assert (await reader.ack(item.delivered.id)).items[0].state == "acked"
                await reader.reply("not much", asked.flight_id)
                assert (await scout.wait(asked.flight_id, 10)).output == "not much"
                await scout.send(told.minimal, "again")
                (item,) = (await reader.claim(wait=10)).items
                assert (await reader.nack(item.delivered.id, problem="busy", retry_after=60)).items

    asyncio.run(main())


def test_a_wait_that_is_over_cancels_nothing(shell: Shell) -> None:
    async def main() -> None:
        async with Scout(home=shell.home) as scout:
            told = await scout.register(
                "slow", project_root=str(shell.project("slow")), harness="command", command=("sleep", "60")
            )
            asked = await scout.ask(told.minimal, "x")
            flight = await scout.wait(asked.flight_id, timeout=0.2)
            assert flight.state in (FlightState.QUEUED, FlightState.RUNNING)
            assert (await scout.cancel(asked.flight_id, "enough")).state is FlightState.CANCELLED
            again = await scout.retry(asked.flight_id)
            await scout.cancel(again.flight_id)

    asyncio.run(main())


def test_a_refusal_is_typed(shell: Shell) -> None:
    async def main() -> None:
        async with Scout(home=shell.home) as scout:
            with pytest.raises(Refused) as refused:
                await scout.show("@nobody-here")
            assert isinstance(refused.value.diagnostic, UnknownTarget)
            assert refused.value.diagnostic.remedies
        async with Scout(home=shell.home, token="sct_wrong") as stranger:
            with pytest.raises(Refused) as refused:
                await stranger.whoami()
            assert isinstance(refused.value.diagnostic, Unauthenticated)

    asyncio.run(main())


def test_the_log_is_followed(shell: Shell) -> None:
    async def main() -> None:
        async with Scout(home=shell.home) as scout:
            last = (await scout.call(ReadLog(newest=True, limit=1))).items[-1].seq
            name = await _register(scout, shell, "watched")
            await scout.send(name, "seen")
            seen: list[int] = []
            async for event in scout.watch(Watch(after=last)):
                seen.append(event.seq)
                if len(seen) == 3:
                    break
            assert seen == [last + 1, last + 2, last + 3]

    asyncio.run(main())


def test_the_blocking_front(shell: Shell) -> None:
    with BlockingScout(home=shell.home) as scout:
        told = scout.register("blocked", project_root=str(shell.project("blocked")), harness="echo")
        assert scout.call(ShowAgent(address=told.minimal)).id == told.agent.id
        scout.send(told.minimal, "hi")
        done = scout.wait(scout.ask(told.minimal, "hello").flight_id, 20)
        assert done.state is FlightState.COMPLETED
        assert scout.flight(done.id).id == done.id
        assert scout.who("block").items
        assert scout.resolve(told.minimal).agent_id == told.agent.id
        assert scout.whoami().kind == "operator"
        assert told.agent.id not in {one.delivered.sender for one in scout.inbox().items}
        assert next(scout.watch(Watch(after=0))).seq == 1
        scout.close()


# -- without a daemon ---------------------------------------------------------------------------


def test_inside_a_session_the_operator_is_never_spoken_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("operator's")
    monkeypatch.setenv("SCOUT_SESSION", "ses_1")

    async def main() -> None:
        async with Scout(home=tmp_path) as scout:
            with pytest.raises(Refused, match=r"inside a harness session .SCOUT_SESSION is set"):
                await scout.whoami()

    asyncio.run(main())


@pytest.mark.slow
def test_no_daemon_and_no_token_are_said(tmp_path: Path) -> None:
    async def main(**more: str) -> Refused:
        async with Scout(home=tmp_path, **more) as scout:
            with pytest.raises(Refused) as refused:
                await scout.whoami()
            return refused.value

    assert isinstance(asyncio.run(main()).diagnostic, Unauthenticated)
    busy = asyncio.run(main(token="t")).diagnostic
    assert isinstance(busy, Busy)
    assert busy.remedies == (Remedy(operation="up", parameters={}, why="start the daemon"),)


def test_a_broken_connection_is_tried_again_with_the_same_key() -> None:
    got: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for answer in (b"", b"", _ANSWER):
                line, _ = server.accept()
                with line:
                    got.append(line.recv(65536))
                    line.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()

        async def main() -> None:
            url = f"http://127.0.0.1:{server.getsockname()[1]}"
            async with Scout(url=url, token="t", act_as="@ä") as scout:
                receipt = await scout.call(Send(to="@arc", body="hi"))
                assert receipt.message_id == "m"

        asyncio.run(main())
        thread.join()
    keys = {
        line for request in got for line in request.split(b"\r\n") if line.lower().startswith(b"idempotency")
    }
    assert (len(got), len(keys)) == (3, 1)
    assert b"%40%C3%A4" in got[0]


_BODY = b'{"conversationId": "c", "messageId": "m", "fromTheFuture": 1}'
_ANSWER = b"HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)


# -- the wire -----------------------------------------------------------------------------------


def test_requests_travel_by_their_routes() -> None:
    shown = encode_request(ShowAgent(address="/u1/agent/a b"))
    assert shown == ("GET", "/v1/agents/%2Fu1%2Fagent%2Fa%20b", b"")
    assert (
        encode_request(Who(query="a&b", online=True))[1]
        == "/v1/agents?query=a%26b&online=true&retired=false&all=false&allNodes=false"
    )
    _, target, body = encode_request(Send(to="@a", body="x", idempotency_key="k"))
    assert target == "/v1/messages"
    assert body
    assert b"idempotencyKey" not in body


@pytest.mark.parametrize("request_type", REQUESTS, ids=lambda one: one.operation)
def test_every_request_has_a_route(request_type: type[Request[Any]]) -> None:
    method, _, path = request_type.route.partition(" ")
    assert method in {"GET", "POST", "PATCH", "DELETE"}
    assert path.startswith("/v1/")


def test_a_known_refusal_is_its_own_class() -> None:
    told = b'{"type": "x", "title": "t", "status": 429, "detail": "d", "code": "rate_limited", "message": "m", "what": "asks", "limit": 3, "remedies": [{"operation": "who", "parameters": {}, "why": "", "command": "scout who"}]}'
    assert decode_refusal(429, told).diagnostic == RateLimited(
        what="asks", limit=3, remedies=(Remedy(operation="who", parameters={}),)
    )


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (b'{"code": "new_thing", "message": "no", "moon": "full"}', "new_thing", "no"),
        (b"<html>", "unknown_code", "the daemon answered 502 without a reason"),
        (b'{"code": "rate_limited", "message": "no"}', "rate_limited", "no"),
    ],
)
def test_an_unknown_refusal_keeps_its_facts(body: bytes, code: str, message: str) -> None:
    diagnostic = decode_refusal(502, body).diagnostic
    assert isinstance(diagnostic, UnknownCode)
    assert (diagnostic.code, diagnostic.message) == (code, message)
    if code == "new_thing":
        assert diagnostic.facts == {"moon": "full"}


def test_an_agent_asks_a_person_over_http_and_hears_the_answer(shell: Shell) -> None:
    async def main() -> None:
        async with Scout(home=shell.home) as person:
            made = await person.register("asks")
            async with Scout(home=shell.home, token=made.token) as agent:
                waiting = asyncio.create_task(agent.call(Need(question="Which lake?", wait=20)))
                items = ()
                while not items:
                    found = (await person.call(ListAttention())).items
                    items = tuple(one for one in found if one.title == "Which lake?")
                await person.call(AnswerAttention(attention_id=items[0].id, answer="the small one"))
                assert (await waiting).answer == "the small one"
                with pytest.raises(Refused) as late:
                    await person.call(AnswerAttention(attention_id=items[0].id, answer="the large one"))
                assert late.value.diagnostic.code == "wrong_state"

    asyncio.run(main())
