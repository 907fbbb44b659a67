"""The scripted model itself: how a script is read, and that each dialect carries it there and back."""

import gzip
import http.client
import json
import threading
import time
from typing import Any

import pytest

from tests.live.model import chat, messages, responses
from tests.live.model.script import Answer, Call, Heard, Turn, answer_to, parse_steps
from tests.live.model.server import Model, scripted_model

OFFERED = ("Bash", "mcp__scout__whoami", "mcp__scout__ask")


def answer(prompt: str, *later: Turn, offered: tuple[str, ...] = OFFERED) -> Answer:
    return answer_to(Heard((Turn("user", prompt), *later), offered))


def after(*results: str) -> list[Turn]:
    """One answer of the model with so many results."""
    return [Turn("model"), *(Turn("tool", result) for result in results)]


# -- scripts -------------------------------------------------------------------------------------------


def test_each_answer_is_one_step() -> None:
    prompt = "Go <<say one>> and <<tool whoami {}>> ++ <<say two>>, then <<echo>>."
    assert [[block.kind for block in step] for step in parse_steps(prompt)] == [
        ["say"],
        ["tool", "say"],
        ["echo"],
    ]
    assert answer(prompt).blocks == ("one",)
    assert answer(prompt, *after()).blocks == (Call("mcp__scout__whoami", {}), "two")
    assert answer(prompt, *after(), Turn("tool", "x"), *after("y")).blocks == ("x\ny",)
    assert answer(prompt, *after("x"), *after("y"), *after("z")).blocks == ("the script is over",)


def test_the_last_prompt_with_a_script_counts() -> None:
    turns = (Turn("user", "<<say old>>"), *after(), Turn("user", "<<say new>>"), Turn("user", "a reminder"))
    assert answer_to(Heard(turns)).blocks == ("new",)
    assert answer("nothing to do").blocks == ("no script",)


def test_a_tool_is_found_by_the_end_of_its_name() -> None:
    assert answer("<<tool ask>>").blocks == (Call("mcp__scout__ask", {}),)
    assert answer("<<tool ask>>", offered=("task", "x/ask")).blocks == (Call("x/ask", {}),)
    assert answer('<<force other {"a": [1]}>>').blocks == (Call("other", {"a": [1]}),)


def test_an_argument_may_hold_a_script() -> None:
    (call,) = answer('<<tool ask {"body": "Then <<say hi>> ++ <<echo>>"}>>').blocks
    assert call == Call("mcp__scout__ask", {"body": "Then <<say hi>> ++ <<echo>>"})


def test_an_argument_is_filled_from_the_results() -> None:
    prompt = '<<say a>> <<tool ask {"a": "$id", "b": [{"c": "$body"}], "d": "$5 or $id"}>>'
    turns = after('Output:\n{"items": [{"id": "m2", "body": "hi"}]}')
    assert answer(prompt, *turns).blocks == (
        Call("mcp__scout__ask", {"a": "m2", "b": [{"c": "hi"}], "d": "$5 or $id"}),
    )
    assert answer('<<say a>> <<tool ask {"x": "$id"}>>', *after('{"id": "old"}', '{"id": "new"}')).blocks == (
        Call("mcp__scout__ask", {"x": "new"}),
    )


def test_an_argument_is_filled_from_the_words_of_the_prompt() -> None:
    prompt = 'Scout: ada asks you. Ask ask_1, flight flt_2. Go. <<tool ask {"a": "$flight", "b": "$Ask"}>>'
    assert answer(prompt).blocks == (Call("mcp__scout__ask", {"a": "flt_2", "b": "ask_1"}),)
    turns = after('{"flight": "new"}')
    assert answer(prompt.replace("Go.", "<<say a>>"), *turns).blocks == (
        Call("mcp__scout__ask", {"a": "new", "b": "ask_1"}),
    )


@pytest.mark.parametrize(
    "result",
    [
        '{"id": "f1", "next": {"tool": "wait", "arguments": {"id": "f1"}}}',
        'Wall time: 1 s\n{"code": "no", "remedies": [{"tool": "wait", "arguments": {"id": "f1"}}, {}]}',
        'no: it is not there; next: wait {"id": "f1"}',
    ],
)
def test_the_call_that_a_result_names_is_followed(result: str) -> None:
    assert answer("<<say a>> <<follow x/>>", *after(result)).blocks == (Call("x/wait", {"id": "f1"}),)


def test_waits_and_errors() -> None:
    assert answer("<<sleep 0.5>> ++ <<stall 2>> ++ <<say x>>") == Answer(("x",), sleep=0.5, stall=2.0)
    assert answer("<<sleep 1>>").blocks == ("ready",)
    assert answer("<<error 529 too much>>").error == (529, "too much")


@pytest.mark.parametrize(
    ("prompt", "why"),
    [
        ("<<tool nothing>>", "no tool nothing among Bash"),
        ("<<tool >>", "tool without a name"),
        ('<<tool ask {"a": }>>', "tool ask: Expecting value"),
        ("<<tool ask {} {}>>", "tool ask does not end with >>"),
        ("<<say it", "say does not end with >>"),
        ('<<tool ask {"a": "$id"}>>', "no result has id"),
        ("<<follow x/>>", "no next call in no result"),
        ("<<sleep long>>", "could not convert"),
        ("<<error>>", "invalid literal"),
    ],
)
def test_a_bad_script_is_said(prompt: str, why: str) -> None:
    (said,) = answer(prompt).blocks
    assert str(said).startswith(f"bad script: {why}")


def test_a_hook_may_have_escaped_it() -> None:
    assert answer("&lt;&lt;tool ask {&quot;a&quot;: 1}&gt;&gt;").blocks == (
        Call("mcp__scout__ask", {"a": 1}),
    )


# -- dialects ------------------------------------------------------------------------------------------


def post(model: Model, path: str, body: Any, **headers: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", model.port, timeout=60)
    try:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", path, data, headers)
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


def events(stream: bytes) -> list[Any]:
    return [json.loads(line[6:]) for line in stream.decode().splitlines() if line.startswith("data: ")]


def test_the_messages_dialect() -> None:
    tools = [{"name": "mcp__scout__whoami"}]
    content = [
        {"type": "text", "text": "<system-reminder>…</system-reminder>"},
        {"type": "text", "text": '<<say I ask>> ++ <<tool whoami {"a": 1}>> <<echo>>'},
    ]
    asked: dict[str, Any] = {
        "model": "m",
        "stream": True,
        "tools": tools,
        "messages": [{"role": "user", "content": content}],
    }
    with scripted_model() as model:
        status, stream = post(model, "/v1/messages?beta=true", asked)
        said = events(stream)
        assert status == 200
        assert [one["type"] for one in said] == [
            "message_start",
            *("content_block_start", "content_block_delta", "content_block_stop") * 2,
            "message_delta",
            "message_stop",
        ]
        assert said[2]["delta"] == {"type": "text_delta", "text": "I ask"}
        used = said[4]["content_block"]
        assert (used["type"], used["name"]) == ("tool_use", "mcp__scout__whoami")
        assert json.loads(said[5]["delta"]["partial_json"]) == {"a": 1}
        assert said[7]["delta"]["stop_reason"] == "tool_use"
        result = {
            "type": "tool_result",
            "tool_use_id": used["id"],
            "content": [{"type": "text", "text": "me"}],
        }
        asked["messages"] += [
            {"role": "assistant", "content": [used]},
            {"role": "system", "content": "<<say not this>>"},
            {"role": "user", "content": [result]},
        ]
        _, stream = post(
            model, "/v1/messages", gzip.compress(json.dumps(asked).encode()), **{"Content-Encoding": "gzip"}
        )
        said = events(stream)
        assert (said[2]["delta"]["text"], said[4]["delta"]["stop_reason"]) == ("me", "end_turn")
        first, second = model.of(messages.PATH)
        assert (first.calls, first.results, second.results) == (["mcp__scout__whoami"], [], ["me"])
        assert first.heard.offered == ("mcp__scout__whoami",)


def test_the_responses_dialect() -> None:
    tools = [
        {"type": "function", "name": "shell"},
        {"type": "namespace", "name": "mcp__scout", "tools": [{"type": "function", "name": "whoami"}]},
    ]
    text = '<<say I ask>> ++ <<tool whoami {"a": 1}>> ++ <<force shell>> <<echo>>'
    prompt = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    developer = {
        "type": "message",
        "role": "developer",
        "content": [{"type": "input_text", "text": "<<say no>>"}],
    }
    with scripted_model() as model:
        status, stream = post(model, "/v1/responses", {"input": [prompt, developer], "tools": tools})
        said = events(stream)
        assert status == 200
        assert [one["type"] for one in said if "delta" not in one["type"]][:3] == [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
        ]
        message, call, shell = said[-1]["response"]["output"]
        assert message["content"][0]["text"] == "I ask"
        assert (call["namespace"], call["name"], json.loads(call["arguments"])) == (
            "mcp__scout",
            "whoami",
            {"a": 1},
        )
        assert "namespace" not in shell
        outputs = [
            {"type": "function_call_output", "call_id": call["call_id"], "output": "me"},
            {
                "type": "function_call_output",
                "call_id": shell["call_id"],
                "output": [{"type": "input_text", "text": "too"}],
            },
        ]
        _, stream = post(
            model, "/v1/responses", {"input": [prompt, message, call, shell, *outputs], "tools": tools}
        )
        assert events(stream)[-1]["response"]["output"][0]["content"][0]["text"] == "me\ntoo"
        first, second = model.of(responses.PATH)
        assert (first.calls, second.results) == (["mcp__scout/whoami", "shell"], ["me", "too"])
        assert first.heard.offered == ("shell", "mcp__scout/whoami")


def test_the_chat_dialect() -> None:
    tools = [{"type": "function", "function": {"name": "mcp__scout__whoami"}}]
    prompt = {
        "role": "user",
        "content": [{"type": "text", "text": '<<say I ask>> ++ <<tool whoami {"a": 1}>> <<echo>>'}],
    }
    asked: dict[str, Any] = {
        "tools": tools,
        "messages": [{"role": "system", "content": "<<say no>>"}, prompt],
    }
    with scripted_model() as model:
        status, stream = post(model, chat.PATH, asked)
        assert status == 200
        assert stream.endswith(b"data: [DONE]\n\n")
        said = [json.loads(line[6:]) for line in stream.decode().splitlines() if line.startswith("data: {")]
        deltas = [one["choices"][0]["delta"] for one in said[:-1]]
        assert [one.get("content") for one in deltas[:2]] == ["", "I ask"]
        (head,), (more,) = (one["tool_calls"] for one in deltas[2:4])
        assert head["function"]["name"] == "mcp__scout__whoami"
        assert json.loads(more["function"]["arguments"]) == {"a": 1}
        assert said[-2]["choices"][0]["finish_reason"] == "tool_calls"
        assert said[-1]["usage"]["total_tokens"] == 20
        result = {"role": "tool", "tool_call_id": head["id"], "content": "me"}
        asked["messages"] += [{"role": "assistant", "content": None, "tool_calls": [head]}, result]
        _, stream = post(model, chat.PATH, asked)
        assert b'"content": "me"' in stream
        first, second = model.of(chat.PATH)
        assert (first.calls, second.results) == (["mcp__scout__whoami"], ["me"])


@pytest.mark.parametrize("path", [messages.PATH, responses.PATH, chat.PATH])
def test_an_error_is_an_http_error(path: str) -> None:
    prompt = [{"role": "user", "content": "<<error 529 too much>>"}]
    with scripted_model() as model:
        status, body = post(model, path, {"messages": prompt, "input": prompt})
        assert (status, json.loads(body)["error"]["message"]) == (529, "too much")


@pytest.mark.parametrize("path", [messages.PATH, responses.PATH, chat.PATH])
def test_an_answer_that_hangs_has_begun_and_ends_with_the_model(path: str) -> None:
    prompt = [{"role": "user", "content": "<<stall 600>> ++ <<say late>>"}]
    streams: list[bytes] = []
    with scripted_model() as model:
        asked = threading.Thread(
            target=lambda: streams.append(post(model, path, {"messages": prompt, "input": prompt})[1])
        )
        asked.start()
        until = time.monotonic() + 60
        while not model.log and time.monotonic() < until:
            time.sleep(0.01)
    asked.join(60)
    assert b"late" in streams[0]


def test_what_no_dialect_knows_is_kept_apart() -> None:
    with scripted_model() as model:
        assert post(model, "/v1/other", {})[0] == 404
        assert (model.log, model.others) == ([], ["POST /v1/other"])
