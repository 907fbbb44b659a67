"""JSON-RPC over a pipe: a call is made once, whoever makes it, and each request has one answer."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from scout.adapters.persistent.pipe import Pipe, PipeLimits
from scout.adapters.persistent.rpc import Rpc, RpcError, build_reply_tag, get_result, is_call, parse_message
from scout.adapters.process.run import Launch
from tests.adapters.turns import run_on, until

# It answers `echo` with its parameters, `fail` with an error and `ask` with a request of its own; `end` ends it.
PROGRAM = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, ident = message.get("method"), message.get("id")
    if method == "echo": reply = {"id": ident, "result": message["params"]}
    elif method == "fail": reply = {"id": ident, "error": {"code": 7, "message": "no", "data": [1]}}
    elif method == "ask": reply = {"id": 0, "method": "may I", "params": {}}
    elif method == "end": sys.exit(3)
    else: reply = {"heard": message}
    print("not JSON"); print(json.dumps(reply), flush=True)
"""


async def begin_pipe(folder: Path) -> Pipe:
    program = folder / "program.py"
    program.write_text(PROGRAM)
    pipe = Pipe(folder / "ses" / "1")
    launch = Launch((sys.executable, str(program)), str(folder), "", {"PATH": "/usr/bin:/bin"})
    assert await pipe.begin(launch, PipeLimits())
    return pipe


def list_sent(pipe: Pipe) -> list[dict[str, Any]]:
    return [json.loads(one.text) for one in pipe.read_sent_lines()]


def list_heard(pipe: Pipe) -> list[Any]:
    return [one["heard"] for line in pipe.read_lines() if "heard" in (one := parse_message(line.text))]


def test_a_call_is_made_once_and_answered_again(loop: str, tmp_path: Path) -> None:
    async def main() -> None:
        pipe = await begin_pipe(tmp_path)
        try:
            assert await Rpc(pipe).call("c1", "echo", {"a": 1}) == {"a": 1}
            after = Pipe(tmp_path / "ses" / "1")  # as after a restart of the broker
            assert await Rpc(after).call("c1", "echo", {"a": 2}) == {"a": 1}
            assert await Rpc(after, version=None).call("c2", "echo", None) is None
            assert list_sent(pipe) == [
                {"jsonrpc": "2.0", "id": "c1", "method": "echo", "params": {"a": 1}},
                {"id": "c2", "method": "echo", "params": None},
            ]
            with pytest.raises(RpcError, match="no") as refused:
                await Rpc(pipe).call("c3", "fail", {})
            assert (refused.value.code, refused.value.data) == (7, [1])
            with pytest.raises(RpcError, match=r"nothing was not answered within 0\.1 s"):
                await Rpc(pipe).call("c4", "nothing", {}, 0.1)
            after.disconnect()
        finally:
            await pipe.stop("over", PipeLimits())

    run_on(loop, main())


def test_a_request_of_the_program_is_answered_once(loop: str, tmp_path: Path) -> None:
    async def main() -> None:
        pipe = await begin_pipe(tmp_path)
        rpc = Rpc(pipe)
        try:
            await rpc.send("c1", "ask", {})
            await until(lambda: any(is_call(parse_message(line.text)) for line in pipe.read_lines()))
            assert pipe.find_position(build_reply_tag(0)) is None
            assert await rpc.reply(0, {"yes": True})
            assert pipe.find_position(build_reply_tag(0)) is not None
            assert not await rpc.reply(0, {"yes": False})
            assert not await rpc.refuse(0, "too late")
            assert await rpc.refuse("a b", "nobody does this")
            assert not await rpc.reply("a b", None)
            assert await rpc.notify("tick", {"n": 1})
            await until(lambda: len(list_heard(pipe)) == 3)
            assert list_heard(pipe) == [
                {"jsonrpc": "2.0", "id": 0, "result": {"yes": True}},
                {"jsonrpc": "2.0", "id": "a b", "error": {"code": -32601, "message": "nobody does this"}},
                {"jsonrpc": "2.0", "method": "tick", "params": {"n": 1}},
            ]
        finally:
            await pipe.stop("over", PipeLimits())

    run_on(loop, main())


def test_a_program_that_is_gone_says_so(loop: str, tmp_path: Path) -> None:
    async def main() -> None:
        pipe = await begin_pipe(tmp_path)
        rpc = Rpc(pipe)
        with pytest.raises(RpcError, match="its program ended: exit 3"):
            await rpc.call("c1", "end", {})
        with pytest.raises(RpcError, match="its program ended"):
            await rpc.send("c2", "echo", {})
        assert not await rpc.notify("tick", {})
        assert not await rpc.reply(1, {})
        with pytest.raises(RpcError, match="its program ended"):
            await Rpc(pipe).call("c1", "end", {})

    run_on(loop, main())


def test_lines_that_are_no_messages_are_empty() -> None:
    assert [parse_message(line) for line in (b"", b"x", b"[1]", b'"a"', b"\xff", b'{"a": 1}')] == [
        {}, {}, {}, {}, {}, {"a": 1},
    ]  # fmt: skip
    assert get_result({"id": 1}) is None
    with pytest.raises(RpcError, match="refused"):
        get_result({"error": {}})
    with pytest.raises(RpcError, match="bad"):
        get_result({"error": "bad"})


def test_calls_at_once_have_their_own_answers(loop: str, tmp_path: Path) -> None:
    async def main() -> None:
        pipe = await begin_pipe(tmp_path)
        rpc = Rpc(pipe)
        try:
            calls = (rpc.call(f"c{number}", "echo", number) for number in range(20))
            assert await asyncio.gather(*calls) == list(range(20))
        finally:
            await pipe.stop("over", PipeLimits())

    run_on(loop, main())
