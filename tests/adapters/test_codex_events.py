"""What Codex 0.166.0 said in turns that were recorded, read without the program."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from scout.adapters.codex import turn as rollout
from scout.adapters.codex.events import CodexReader, read_failure
from scout.adapters.codex.requests import answer_request, read_request
from scout.adapters.persistent.rpc import is_call, parse_message
from scout.base.time import Time
from scout.model.access import permission
from scout.model.problems.session import Layer, Missing
from scout.ports import (
    Asked,
    Completed,
    Failed,
    HarnessEvent,
    HumanAnswer,
    Identified,
    Limited,
    NeedsHuman,
    Other,
    RequestSettled,
    Said,
    ToolUse,
    TurnProgress,
    TurnUsage,
)

DATA = Path(__file__).parents[1] / "data" / "harness" / "codex"
TEN = TurnUsage(prompt_tokens=10, completion_tokens=10, model="gpt-5", estimated=False)
TWENTY = TurnUsage(prompt_tokens=20, completion_tokens=20, model="gpt-5", estimated=False)


def read_lines(name: str) -> list[dict[str, Any]]:
    return [parse_message(line) for line in (DATA / f"{name}.jsonl").read_bytes().splitlines()]


def read_events(messages: list[dict[str, Any]]) -> list[HarnessEvent]:
    """What is told, but for what has no meaning."""
    reader, told = CodexReader("dlv_1", "1", "gpt-5"), list[HarnessEvent | None]()
    for message in messages:
        told += [reader.read_request(message)] if is_call(message) else reader.read(message)
    assert reader.turn_id
    return [event for event in told if event is not None and not isinstance(event, Other)]


def build_need(request: str = "1/0", wish: tuple[str, object] | None = None, **fields: Any) -> NeedsHuman:
    made = permission.build_request(*wish, fields["question"]) if wish else None
    return NeedsHuman(request=request, wish=made, **fields)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "tools",
            [
                Said(text="I look."),
                ToolUse(name="command", detail="ls"),
                ToolUse(name="edit", detail="/projects/dev/project/new.txt"),
                ToolUse(name="scout/count", detail='{"word": "w"}'),
                TurnUsage(prompt_tokens=40, completion_tokens=40, model="gpt-5", estimated=False),
                Completed(text="done"),
            ],
        ),
        (
            "command_approved",
            [
                ToolUse(name="command", detail="true"),
                build_need(
                    question="May it run this command outside its sandbox? It must.",
                    wish=("shell", {"command": "/bin/bash -lc true"}),
                ),
                RequestSettled(request="1/0"),
                TWENTY,
                Completed(text="done"),
            ],
        ),
        (
            "files_declined",
            [
                ToolUse(name="edit", detail="/etc/scout.txt"),
                build_need(
                    question="May it change these files?", wish=("apply_patch", "add /etc/scout.txt\nhello")
                ),
                RequestSettled(request="1/0"),
                TWENTY,
                Completed(text="done"),
            ],
        ),
        (
            "question",
            [
                build_need(question="Which colour?", kind=Asked.QUESTION, options=("red", "green")),
                RequestSettled(request="1/0"),
                TWENTY,
                Completed(text='{"answers":{"q1":{"answers":["green"]}}}'),
            ],
        ),
        (
            "permissions",
            [
                build_need(
                    question="May it have these permissions for this turn? To fetch it.",
                    wish=("permissions", {"network": {"enabled": True}}),
                ),
                RequestSettled(request="1/0"),
                TWENTY,
                Completed(text="done"),
            ],
        ),
        (
            "mcp_tool",
            [
                ToolUse(name="x/poke", detail='{"a": "b"}'),
                build_need(question='Allow the x MCP server to run tool "poke"?', wish=("x", {"a": "b"})),
                RequestSettled(request="1/0"),
                TWENTY,
                Completed(text="done"),
            ],
        ),
        ("steered", [TEN, Completed(text="three")]),
        ("interrupted", [Failed(layer=Layer.SESSION, reason="interrupted")]),
    ],
)
def test_a_turn_is_told(name: str, expected: list[HarnessEvent]) -> None:
    assert read_events(read_lines(name)) == expected
    assert read_events(read_lines(name)) == expected


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("refused", Failed(layer=Layer.PROVIDER, reason="it broke")),
        ("too_many", Limited(reason="exceeded retry limit, last status: 429 Too Many Requests")),
    ],
)
def test_a_turn_that_fails_says_why(name: str, end: HarnessEvent) -> None:
    *_, progress, last = read_events(read_lines(name))
    assert isinstance(progress, TurnProgress)
    assert last == end


def test_a_login_that_is_refused_is_for_a_person_to_mend() -> None:
    last = read_events(read_lines("unauthorized"))[-1]
    assert isinstance(last, Failed)
    assert (last.layer, last.missing) == (Layer.PROVIDER, Missing.LOGIN)
    assert last.reason.startswith("unexpected status 401 Unauthorized: no")


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The clock of this place is that of the recording."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("utc")
@pytest.mark.parametrize(("name", "seconds"), [("limit", 3600), ("limit_days", 360_000)])
def test_a_usage_limit_says_until_when(name: str, seconds: int) -> None:
    """The words name a minute."""
    messages = read_lines(name)
    last = read_events(messages)[-1]
    assert isinstance(last, Limited)
    assert last.until is not None
    recorded = messages[-1]["emittedAtMs"] / 1000
    assert -15 <= last.until / 1_000_000 - recorded - seconds <= 61


def read_limit(message: str, resets: list[int], told_at: object) -> Time | None:
    end = read_failure({"message": message, "codexErrorInfo": "usageLimitExceeded"}, resets, told_at)
    assert isinstance(end, Limited)
    return end.until


@pytest.mark.usefixtures("utc")
def test_the_end_of_a_limit_is_read_in_every_way_it_is_told() -> None:
    noon = 1_794_830_400_000  # 2026-11-16T12:00:00Z
    assert str(read_limit("or try again at 11:30 AM.", [], noon)) == "2026-11-17T11:31:00.000Z"
    assert str(read_limit("or try again at 12:30 PM.", [], noon)) == "2026-11-16T12:31:00.000Z"
    assert str(read_limit("try again at Nov 2nd, 2026 9:05 AM.", [], noon)) == "2026-11-02T09:06:00.000Z"
    assert str(read_limit("Later.", [noon // 1000, noon // 1000 + 60], noon)) == "2026-11-16T12:01:00.000Z"
    assert read_limit("try again at Foo 2nd, 2026 9:05 AM.", [], noon) is None
    assert read_limit("Try again later.", [], noon) is None
    assert read_limit("or try again at 11:30 AM.", [], None) is None


def test_windows_that_are_used_up_say_when_they_begin_again() -> None:
    messages = read_lines("limit")
    windows = {
        "primary": {"usedPercent": 100, "resetsAt": 1_794_830_400},
        "secondary": {"usedPercent": 40, "resetsAt": 1_794_999_999},
    }
    told = {"method": "account/rateLimits/updated", "params": {"rateLimits": windows}}
    messages.insert(-1, told)
    last = read_events(messages)[-1]
    assert isinstance(last, Limited)
    assert last.until == 1_794_830_400 * 1_000_000


@pytest.mark.parametrize(
    ("error", "end"),
    [
        ({}, Failed(layer=Layer.PROVIDER, reason="it failed without a message")),
        (
            {"message": "Missing environment variable: `K`.", "codexErrorInfo": "other"},
            Failed(layer=Layer.PROVIDER, reason="Missing environment variable: `K`.", missing=Missing.LOGIN),
        ),
        (
            {"message": "no", "codexErrorInfo": "unauthorized"},
            Failed(layer=Layer.PROVIDER, reason="no", missing=Missing.LOGIN),
        ),
    ],
)
def test_other_errors(error: dict[str, Any], end: HarnessEvent) -> None:
    assert read_failure(error, [], None) == end


def test_what_belongs_to_another_turn_or_is_unknown_is_kept_by_name() -> None:
    reader = CodexReader("dlv_1", "1")
    first, *_, last = read_lines("tools")
    assert list(reader.read({"method": "some/thing"})) == [Other(kind="some/thing")]
    assert list(reader.read({"result": 1, "id": "another"})) == []
    assert list(reader.read({})) == []
    del first
    assert list(reader.read(last)) == [Other(kind="turn/completed")]  # before its own has begun
    rerouted = {"method": "model/rerouted", "params": {"toModel": "gpt-6"}}
    assert list(reader.read(rerouted)) == [Identified(model="gpt-6")]


def test_a_turn_that_is_not_begun_says_why() -> None:
    refused = {"id": "dlv_1", "error": {"code": -32600, "message": "thread not found"}}
    (end,) = CodexReader("dlv_1", "1").read(refused)
    assert end == Failed(layer=Layer.HARNESS, reason="thread not found")
    (end,) = CodexReader("dlv_1", "1").read({"id": "dlv_1", "result": {}})
    assert isinstance(end, Failed)


# -- what a person answers -----------------------------------------------------------------------------


def find_request(name: str) -> dict[str, Any]:
    return next(message for message in read_lines(name) if is_call(message))


YES, NO = HumanAnswer(allow=True, text="green"), HumanAnswer(allow=False)


@pytest.mark.parametrize(
    ("name", "answer", "reply"),
    [
        ("command_approved", YES, {"decision": "accept"}),
        ("command_declined", NO, {"decision": "decline"}),
        ("files_declined", NO, {"decision": "decline"}),
        ("permissions", YES, {"permissions": {"network": {"enabled": True}}, "scope": "turn"}),
        ("permissions", NO, {"permissions": {}, "scope": "turn"}),
        ("mcp_tool", YES, {"action": "accept", "content": None}),
        ("mcp_tool", NO, {"action": "decline", "content": None}),
        ("question", YES, {"answers": {"q1": {"answers": ["green"]}}}),
        ("question", NO, {"answers": {"q1": {"answers": []}}}),
    ],
)
def test_an_answer_is_said_in_the_words_of_codex(name: str, answer: HumanAnswer, reply: object) -> None:
    assert answer_request(find_request(name), answer) == reply


def test_several_questions_have_a_line_each() -> None:
    questions = [{"id": name, "question": f"{name}?"} for name in ("a", "b", "c")]
    message = {"id": "x", "method": "item/tool/requestUserInput", "params": {"questions": questions}}
    question = read_request("2", message)
    assert question == build_need(
        '2/"x"', question="1. a?\n2. b?\n3. c?", kind=Asked.QUESTION, detail="one line for each answer"
    )
    answers = answer_request(message, HumanAnswer(allow=True, text="one\ntwo"))["answers"]
    assert [answers[name]["answers"] for name in "abc"] == [["one"], ["two"], []]


def elicitation(properties: dict[str, Any], **params: Any) -> dict[str, Any]:
    schema = {"requestedSchema": {"type": "object", "properties": properties}}
    return {"id": 3, "method": "mcpServer/elicitation/request", "params": {**schema, **params}}


def test_an_mcp_server_may_ask_for_one_thing() -> None:
    field = {"colour": {"type": "string", "enum": ["red", "green"]}}
    message = elicitation(field, message="Which?")
    expected = build_need("1/3", question="Which?", kind=Asked.QUESTION, options=("red", "green"))
    assert read_request("1", message) == expected
    assert answer_request(message, YES) == {"action": "accept", "content": {"colour": "green"}}
    assert read_request("1", elicitation({"a": {}, "b": {}})) is None
    link = elicitation({}, serverName="x", url="http://x/")
    assert read_request("1", link) == build_need("1/3", question="x asks", wish=("x", "http://x/"))


@pytest.mark.parametrize(
    "message",
    [
        {"id": 1, "method": "attestation/generate", "params": {}},
        {"id": 1, "method": "item/tool/requestUserInput", "params": {"questions": []}},
        {"id": 1, "method": "item/tool/call"},
    ],
)
def test_what_no_person_can_answer_is_no_question(message: dict[str, Any]) -> None:
    assert read_request("1", message) is None


def test_a_command_that_wants_the_network_or_is_written_to_says_so() -> None:
    method = "item/commandExecution/requestApproval"
    network = {"networkApprovalContext": {"host": "example.org", "protocol": "https"}}
    question = read_request("1", {"id": 1, "method": method, "params": network})
    assert question is not None
    assert question.question == "May it reach example.org?"
    question = read_request("1", {"id": 1, "method": method, "params": {"kind": "writeStdin"}})
    assert question is not None
    assert question.question == "May it write to this command?"


# -- the file of a thread ------------------------------------------------------------------------------


def test_the_file_of_a_thread_tells_the_end_of_a_turn() -> None:
    assert rollout.read_end(DATA / "rollout_tools.jsonl", "dlv_1") == Completed(text="done")
    interrupted = rollout.read_end(DATA / "rollout_interrupted.jsonl", "dlv_1")
    assert interrupted == Failed(layer=Layer.SESSION, reason="interrupted")
    assert isinstance(rollout.read_end(DATA / "rollout_limit.jsonl", "dlv_1"), Limited)
    assert rollout.has_begun(DATA / "rollout_tools.jsonl", "dlv_1")


def test_a_turn_that_goes_on_or_is_another_has_no_end_there(tmp_path: Path) -> None:
    assert rollout.read_end(DATA / "rollout_tools.jsonl", "dlv_2") is None
    assert not rollout.has_begun(DATA / "rollout_tools.jsonl", "dlv_2")
    assert rollout.read_end(tmp_path / "nothing.jsonl", "dlv_1") is None
    lines = (DATA / "rollout_tools.jsonl").read_text().splitlines(keepends=True)
    begun = next(at for at, line in enumerate(lines) if '"client_id":"dlv_1"' in line)
    cut = tmp_path / "cut.jsonl"
    cut.write_text("".join(lines[: begun + 1]) + '{"type": "event_m')
    assert rollout.has_begun(cut, "dlv_1")
    assert rollout.read_end(cut, "dlv_1") is None


def test_an_error_in_the_file_is_the_same_as_told(tmp_path: Path) -> None:
    item = {"type": "item_completed", "turn_id": "t", "item": {"type": "UserMessage", "client_id": "d"}}
    error = {"message": "no", "codex_error_info": {"http_connection_failed": {"http_status_code": 401}}}
    end = {"type": "task_complete", "turn_id": "t", "error": error}
    file = tmp_path / "rollout.jsonl"
    file.write_text("".join(json.dumps({"type": "event_msg", "payload": one}) + "\n" for one in (item, end)))
    assert rollout.read_end(file, "d") == Failed(layer=Layer.PROVIDER, reason="no", missing=Missing.LOGIN)
