"""Every method of A2A, by a client of the official SDK on both bindings, at the door of a running daemon."""

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import Client
from a2a.types import a2a_pb2
from a2a.utils.errors import (
    ContentTypeNotSupportedError,
    InvalidParamsError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from tests.a2a.stage import BINDINGS, Asker, Stage, collect, play, say, send, staged

pytestmark = pytest.mark.slow  # a daemon and the SDK
COMPLETED, CANCELED = a2a_pb2.TASK_STATE_COMPLETED, a2a_pb2.TASK_STATE_CANCELED
ASKING, WORKING = a2a_pb2.TASK_STATE_INPUT_REQUIRED, a2a_pb2.TASK_STATE_WORKING


class Scene(Stage):
    """The agents of these tests: an echo, one that asks, and one that nobody may ask."""

    echo: str
    asker: str
    secret: str


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Generator[Scene]:
    with staged(tmp_path_factory.mktemp("a2a"), SCOUT_LIMITS_ASKS_PER_MINUTE="1000") as stage:
        stage.__class__ = Scene
        assert isinstance(stage, Scene)
        stage.echo = stage.publish("echoes", harness="echo", config={"description": "- Says it.\n- Twice."})
        stage.secret = stage.publish("secret", harness="echo", granted=False)
        stage.asker = stage.publish("asker")
        with Asker(stage, stage.daemon.make_token("@asker")):
            yield stage


@pytest.fixture(params=BINDINGS)
def binding(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def read_text(task: a2a_pb2.Task) -> str:
    return task.artifacts[0].parts[0].text


# -- messages ----------------------------------------------------------------------------------------


@pytest.mark.rows("R4.5-2")
def test_a_message_is_answered_once_the_task_has_ended(scene: Scene, binding: str) -> None:
    task = play(
        scene.echo, scene.guest, binding, lambda client: send(client, say("hello", context_id="ctx-1"))
    )
    assert (task.status.state, read_text(task), task.context_id) == (COMPLETED, "hello", "ctx-1")
    assert [(one.message_id, one.parts[0].text) for one in task.history] == [("m-1", "hello")]


def test_a_message_may_return_at_once(scene: Scene, binding: str) -> None:
    async def work(client: Client) -> a2a_pb2.Task:
        now = a2a_pb2.SendMessageConfiguration(return_immediately=True, history_length=0)
        begun = await send(client, say("!hang", configuration=now))
        assert not begun.history
        return await client.cancel_task(a2a_pb2.CancelTaskRequest(id=begun.id))

    assert play(scene.echo, scene.guest, binding, work).status.state == CANCELED


@pytest.mark.rows("R4.5-2")
def test_a_streamed_message_tells_the_task_then_its_result_then_its_end(scene: Scene, binding: str) -> None:
    events = play(scene.echo, scene.guest, binding, lambda client: collect(client, say("hello")))
    kinds = [event.WhichOneof("payload") for event in events]
    assert kinds[0] == "task"
    assert kinds[-2:] == ["artifact_update", "status_update"]
    assert events[-2].artifact_update.artifact.parts[0].text == "hello"
    assert events[-1].status_update.status.state == COMPLETED


@pytest.mark.rows("R4.5-3")
def test_an_agent_that_waits_for_its_client_needs_input_and_the_next_message_answers(
    scene: Scene, binding: str
) -> None:
    async def work(client: Client) -> tuple[a2a_pb2.Task, a2a_pb2.Task]:
        asking = await send(client, say("Paint the shed."))
        return asking, await send(client, say("green", task_id=asking.id, message_id="m-2"))

    asking, done = play(scene.asker, scene.guest, binding, work)
    assert (asking.status.state, asking.status.message.parts[0].text) == (ASKING, "Which colour?")
    assert (done.id, done.context_id) == (asking.id, asking.context_id)
    assert (done.status.state, read_text(done)) == (COMPLETED, "painted it green")
    assert [one.parts[0].text for one in done.history] == ["Paint the shed.", "Which colour?", "green"]


def test_a_stream_ends_with_the_question(scene: Scene, binding: str) -> None:
    async def work(client: Client) -> list[a2a_pb2.StreamResponse]:
        events = await collect(client, say("Paint the shed."))
        await client.cancel_task(a2a_pb2.CancelTaskRequest(id=events[0].task.id))
        return events

    events = play(scene.asker, scene.guest, binding, work)
    assert events[-1].status_update.status.state == ASKING


def test_parts_of_a_message_reach_the_agent_and_files_come_back(scene: Scene, binding: str) -> None:
    parts = [
        a2a_pb2.Part(text="file, please"),
        a2a_pb2.Part(raw=b"some bytes", filename="in.bin", media_type="application/octet-stream"),
        a2a_pb2.Part(url="https://example.org/a", filename="a"),
    ]
    task = play(scene.asker, scene.guest, binding, lambda client: send(client, say("", parts=parts)))
    assert task.history[0].parts[0].text == "file, please\n\na: https://example.org/a"
    text, data, notes = task.artifacts[0].parts
    assert (text.text, data.data.struct_value["key"], notes.raw) == ("two files", 42, b"hello")
    assert (data.filename, notes.filename) == ("data.json", "notes.txt")


def test_an_agent_may_reject_a_task(scene: Scene, binding: str) -> None:
    task = play(scene.asker, scene.guest, binding, lambda client: send(client, say("reject this")))
    assert task.status.state == a2a_pb2.TASK_STATE_REJECTED
    assert task.status.message.parts[0].text == "not my job"


def test_a_failed_task_says_why(scene: Scene, binding: str) -> None:
    task = play(scene.echo, scene.guest, binding, lambda client: send(client, say("!fail no luck")))
    assert task.status.state == a2a_pb2.TASK_STATE_FAILED
    assert task.status.message.parts[0].text.endswith("no luck")


# -- tasks -------------------------------------------------------------------------------------------


def test_a_task_can_be_read_again(scene: Scene, binding: str) -> None:
    async def work(client: Client) -> list[a2a_pb2.Task]:
        done = await send(client, say("hello"))
        wishes: list[dict[str, Any]] = [{}, {"history_length": 0}, {"history_length": 1}]
        return [await client.get_task(a2a_pb2.GetTaskRequest(id=done.id, **wish)) for wish in wishes]

    tasks = play(scene.echo, scene.guest, binding, work)
    assert [len(task.history) for task in tasks] == [1, 0, 1]
    assert {read_text(task) for task in tasks} == {"hello"}


@pytest.mark.rows("R4.5-2")
def test_tasks_are_listed_by_pages_the_last_changed_first(scene: Scene, binding: str) -> None:
    async def work(client: Client) -> tuple[list[str], list[a2a_pb2.ListTasksResponse]]:
        context = f"list-{binding}"
        made = [(await send(client, say(f"{n}", context_id=context))).id for n in range(3)]
        pages, token = list[a2a_pb2.ListTasksResponse](), ""
        while not pages or token:
            wish = a2a_pb2.ListTasksRequest(context_id=context, page_size=2, page_token=token)
            pages.append(await client.list_tasks(wish))
            token = pages[-1].next_page_token
        return made, pages

    made, pages = play(scene.echo, scene.guest, binding, work)
    assert [[task.id for task in page.tasks] for page in pages] == [made[:0:-1], made[:1]]
    assert {(page.total_size, page.page_size) for page in pages} == {(3, 2)}
    assert not any(task.artifacts for page in pages for task in page.tasks)


def test_a_list_holds_only_the_wanted_state_and_artifacts_if_wanted(scene: Scene, binding: str) -> None:
    async def work(client: Client) -> list[list[str]]:
        context = f"states-{binding}"
        for body in ("fine", "!fail"):
            await send(client, say(body, context_id=context))
        wishes: list[dict[str, Any]] = [
            {"status": COMPLETED},
            {"status": a2a_pb2.TASK_STATE_FAILED},
            {"status": WORKING},
        ]
        found = [
            await client.list_tasks(
                a2a_pb2.ListTasksRequest(context_id=context, include_artifacts=True, **wish)
            )
            for wish in wishes
        ]
        return [
            [part.text for task in page.tasks for a in task.artifacts for part in a.parts] for page in found
        ]

    assert play(scene.echo, scene.guest, binding, work) == [["fine"], [], []]


def test_a_list_has_only_the_tasks_of_its_agent_and_its_client(scene: Scene, binding: str) -> None:
    async def work(client: Client) -> list[str]:
        page = await client.list_tasks(a2a_pb2.ListTasksRequest(page_size=100))
        return [task.id for task in page.tasks]

    task = play(scene.echo, scene.guest, binding, lambda client: send(client, say("mine")))
    assert task.id in play(scene.echo, scene.guest, binding, work)
    assert task.id not in play(scene.asker, scene.guest, binding, work)
    assert play(scene.echo, scene.daemon.token, binding, work) == []


@pytest.mark.rows("R4.5-2")
def test_a_subscriber_sees_the_task_and_its_end(scene: Scene, binding: str) -> None:
    async def work(client: Client) -> list[a2a_pb2.StreamResponse]:
        asking = await send(client, say("Paint the shed."))
        stream = client.subscribe(a2a_pb2.SubscribeToTaskRequest(id=asking.id))
        events = [await anext(stream)]
        answering = asyncio.create_task(send(client, say("red", task_id=asking.id)))
        events += [event async for event in stream]
        await answering
        return events

    events = play(scene.asker, scene.guest, binding, work)
    assert events[0].task.status.state == ASKING
    assert events[-2].artifact_update.artifact.parts[0].text == "painted it red"
    assert events[-1].status_update.status.state == COMPLETED


@pytest.mark.rows("R4.5-2")
def test_a_task_is_cancelled(scene: Scene, binding: str) -> None:
    async def work(client: Client) -> tuple[a2a_pb2.Task, a2a_pb2.Task]:
        stream = client.send_message(say("!hang"))
        begun = (await anext(stream)).task
        ended = await client.cancel_task(a2a_pb2.CancelTaskRequest(id=begun.id))
        last = [event async for event in stream][-1]
        assert last.status_update.status.state == CANCELED
        return ended, await client.get_task(a2a_pb2.GetTaskRequest(id=begun.id))

    assert [task.status.state for task in play(scene.echo, scene.guest, binding, work)] == [CANCELED] * 2


# -- refusals ----------------------------------------------------------------------------------------


async def refuse_unknown(client: Client) -> None:
    await client.get_task(a2a_pb2.GetTaskRequest(id="flt_01m7pvy8gzepjs0rj8gn0147ez"))


async def refuse_foreign_name(client: Client) -> None:
    await client.get_task(a2a_pb2.GetTaskRequest(id="last"))


async def refuse_unknown_in_message(client: Client) -> None:
    await send(client, say("more", task_id="flt_01m7pvy8gzepjs0rj8gn0147ez"))


async def refuse_finished(client: Client) -> None:
    done = await send(client, say("hello"))
    await send(client, say("more", task_id=done.id))


async def refuse_subscribing_to_finished(client: Client) -> None:
    done = await send(client, say("hello"))
    _ = [event async for event in client.subscribe(a2a_pb2.SubscribeToTaskRequest(id=done.id))]


async def refuse_cancelling_finished(client: Client) -> None:
    done = await send(client, say("hello"))
    await client.cancel_task(a2a_pb2.CancelTaskRequest(id=done.id))


async def refuse_other_context(client: Client) -> None:
    done = await send(client, say("hello"))
    await send(client, say("more", task_id=done.id, context_id="another"))


async def refuse_media_type(client: Client) -> None:
    await send(client, say("", parts=[a2a_pb2.Part(raw=b"x", media_type="application/x-strange")]))


async def refuse_nothing(client: Client) -> None:
    await send(client, say("   "))


async def refuse_role(client: Client) -> None:
    wish = say("hello")
    wish.message.role = a2a_pb2.ROLE_AGENT
    await send(client, wish)


async def refuse_page_size(client: Client) -> None:
    await client.list_tasks(a2a_pb2.ListTasksRequest(page_size=1000))


async def refuse_page_token(client: Client) -> None:
    await client.list_tasks(a2a_pb2.ListTasksRequest(page_token="nonsense"))


async def refuse_history_length(client: Client) -> None:
    done = await send(client, say("hello"))
    await client.get_task(a2a_pb2.GetTaskRequest(id=done.id, history_length=-1))


async def refuse_push(client: Client) -> None:
    done = await send(client, say("hello"))
    wish = a2a_pb2.TaskPushNotificationConfig(task_id=done.id, url="https://example.org")
    await client.create_task_push_notification_config(wish)


@pytest.mark.parametrize(
    ("work", "error"),
    [
        (refuse_unknown, TaskNotFoundError),
        (refuse_foreign_name, TaskNotFoundError),
        (refuse_unknown_in_message, TaskNotFoundError),
        (refuse_finished, UnsupportedOperationError),
        (refuse_subscribing_to_finished, UnsupportedOperationError),
        (refuse_cancelling_finished, TaskNotCancelableError),
        (refuse_other_context, InvalidParamsError),
        (refuse_media_type, ContentTypeNotSupportedError),
        (refuse_nothing, InvalidParamsError),
        (refuse_role, InvalidParamsError),
        (refuse_page_size, InvalidParamsError),
        (refuse_page_token, InvalidParamsError),
        (refuse_history_length, InvalidParamsError),
        (refuse_push, PushNotificationNotSupportedError),
    ],
)
def test_a_refusal_is_an_error_of_the_protocol(
    scene: Scene, binding: str, work: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        play(scene.echo, scene.guest, binding, work)


def test_a_task_of_another_client_does_not_exist(scene: Scene, binding: str) -> None:
    task = play(scene.echo, scene.daemon.token, binding, lambda client: send(client, say("of the operator")))
    with pytest.raises(TaskNotFoundError):
        play(
            scene.echo,
            scene.guest,
            binding,
            lambda client: client.get_task(a2a_pb2.GetTaskRequest(id=task.id)),
        )


# -- what a client of the SDK does not do --------------------------------------------------------------


def call(url: str, token: str | None, body: object, **headers: str) -> httpx.Response:
    sent = {"A2A-Version": "1.0", **headers}
    if token is not None:
        sent["Authorization"] = f"Bearer {token}"
    content: dict[str, Any] = {"content": body} if isinstance(body, bytes) else {"json": body}
    return httpx.post(url, headers=sent, timeout=60, **content)


def rpc(method: str, params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


MESSAGE = {"message": {"role": "ROLE_USER", "messageId": "m-1", "parts": [{"text": "hello"}]}}


@pytest.mark.parametrize("end", ["", "/"])
def test_json_rpc_is_answered_with_and_without_a_slash_at_the_end(scene: Scene, end: str) -> None:
    answer = call(scene.echo + end, scene.guest, rpc("SendMessage", MESSAGE))
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert answer.json()["result"]["task"]["status"]["timestamp"].endswith("Z")


def test_http_json_has_its_own_media_type(scene: Scene) -> None:
    answer = call(f"{scene.echo}/message:send", scene.guest, MESSAGE)
    assert answer.headers["content-type"] == "application/a2a+json"


def test_unknown_fields_are_ignored(scene: Scene) -> None:
    more = {"message": {**MESSAGE["message"], "unheardOf": 1}, "another": [2]}
    assert "result" in call(scene.echo, scene.guest, rpc("SendMessage", more)).json()
    assert call(f"{scene.echo}/message:send", scene.guest, more).status_code == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (rpc("SendMessage", {}), -32602),
        (rpc("NoSuchMethod", {}), -32601),
        (b"{", -32700),
        ({"id": 1}, -32600),
        (rpc("GetExtendedAgentCard", {}), -32004),
    ],
)
def test_a_malformed_call_has_the_code_of_json_rpc(scene: Scene, body: object, code: int) -> None:
    answer = call(scene.echo, scene.guest, body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (200, code)


def test_another_version_of_the_protocol_is_refused(scene: Scene) -> None:
    answer = call(scene.echo, scene.guest, rpc("SendMessage", MESSAGE), **{"A2A-Version": "99.0"})
    assert answer.json()["error"]["code"] == -32009
    rest = call(f"{scene.echo}/message:send", scene.guest, MESSAGE, **{"A2A-Version": "99.0"})
    assert rest.json()["error"]["details"][0]["reason"] == "VERSION_NOT_SUPPORTED"


def test_the_same_key_begins_one_task(scene: Scene) -> None:
    answers = [
        call(f"{scene.echo}/message:send", scene.guest, MESSAGE, **{"Idempotency-Key": "k-1"}).json()
        for _ in range(2)
    ]
    assert answers[0]["task"]["id"] == answers[1]["task"]["id"]


def test_a_body_is_limited_and_has_each_key_once(scene: Scene) -> None:
    long = call(scene.echo, scene.guest, b"x" * (1024 * 1024 + 1))
    assert (long.status_code, long.json()["code"]) == (413, "too_large")
    twice = call(scene.echo, scene.guest, b'{"id": 1, "id": 2}')
    assert (twice.status_code, twice.json()["code"]) == (400, "bad_request")


# -- who may -------------------------------------------------------------------------------------------


@pytest.mark.rows("R4.5-4")
def test_a_caller_without_a_token_is_refused_with_the_command_for_the_operator(scene: Scene) -> None:
    for token in (None, "sct_nonsense"):
        answer = call(scene.echo, token, rpc("SendMessage", MESSAGE))
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert call(scene.echo, None, b"").json()["remedies"][0]["operation"] == "token.create"


@pytest.mark.rows("R4.5-4")
def test_an_agent_without_a_grant_does_not_exist_for_a_guest(scene: Scene) -> None:
    answer = call(scene.secret, scene.guest, rpc("SendMessage", MESSAGE))
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_target")


@pytest.mark.rows("R4.5-1")
def test_an_unpublished_agent_is_reached_by_nobody(scene: Scene) -> None:
    url = scene.publish("once", harness="echo")
    assert call(url, scene.guest, rpc("SendMessage", MESSAGE)).status_code == 200
    scene.post("/v1/agents/@once/unpublish", {})
    for token in (scene.guest, scene.daemon.token):
        answer = call(url, token, rpc("SendMessage", MESSAGE))
        assert (answer.status_code, answer.json()["code"]) == (404, "not_published")
    assert httpx.get(f"{url}/.well-known/agent-card.json").status_code == 404


def test_why_an_agent_cannot_start_is_for_the_operator(scene: Scene, tmp_path: Path) -> None:
    url = scene.publish("afar", command=["cat"], projectRoot=str(tmp_path))
    error = call(url, scene.guest, rpc("SendMessage", MESSAGE)).json()["error"]
    assert error["code"] == -32603
    assert "directory_not_allowed" in str(error["data"])
    assert str(tmp_path) not in str(error)


def test_a_guest_can_read_nothing_else(scene: Scene) -> None:
    found = scene.daemon.call("GET", "/v1/agents", token=scene.guest).json["items"]
    assert "@secret" not in {one["address"] for one in found}
    assert scene.daemon.call("POST", "/v1/agents/@echoes/publish", {}, token=scene.guest).status == 403


# -- the card ----------------------------------------------------------------------------------------


@pytest.mark.rows("R4.5-1")
def test_everyone_may_read_the_card_of_a_published_agent(scene: Scene) -> None:
    answer = httpx.get(f"{scene.echo}/.well-known/agent-card.json")
    card = answer.json()
    assert (card["name"], [one["name"] for one in card["skills"]]) == ("echoes", ["Says it.", "Twice."])
    assert {one["url"] for one in card["supportedInterfaces"]} == {scene.echo}
    assert [one["protocolBinding"] for one in card["supportedInterfaces"]] == list(BINDINGS)
    assert "GMT" in answer.headers["last-modified"]
    again = httpx.get(answer.url, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("agent", ["/me/agent/nobody", "/me", "/%2e%2e", "/x"])
def test_an_agent_that_does_not_exist_has_no_card(scene: Scene, agent: str) -> None:
    url = f"{scene.daemon.running.url}/a2a{agent}/.well-known/agent-card.json"
    assert httpx.get(url).status_code == 404
