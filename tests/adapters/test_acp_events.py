"""What agents said, as it was recorded from the pinned versions, and what Scout makes of it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from scout.adapters.acp.events import AcpReader, choose_option, classify_error, extract_reason
from scout.adapters.acp.turn import AcpTurn
from scout.adapters.persistent.pipe import Pipe
from scout.model.problems.session import Layer, Missing
from scout.ports import (
    Accepted,
    Completed,
    Failed,
    HarnessEvent,
    HumanAnswer,
    Identified,
    Limited,
    NeedsHuman,
    Other,
    Said,
    ToolUse,
    TurnProgress,
    TurnUsage,
)

RECORDED = Path(__file__).parents[1] / "data" / "harness" / "acp"
INTERRUPTED = Failed(layer=Layer.SESSION, reason="interrupted")
DENIED = Failed(layer=Layer.HARNESS, reason="the agent stopped its turn after a permission was denied")
WARNING = (
    "Warning: Model metadata for `gpt-5` not found. "
    "Defaulting to fallback metadata; this can degrade performance and cause issues."
)


def replay_turns(file: str, folder: Path) -> list[list[HarnessEvent]]:
    """The turns of a program that has ended, read from its files as a broker after a restart reads them."""
    lines = (RECORDED / file).read_bytes().splitlines(keepends=True)
    journal, turns, begun, at, session = list[str](), list[str](), 0, 0, ""
    for line in lines:
        at += len(line)
        message = json.loads(line)
        ident = str(message.get("id"))
        if ident == "open":
            session = str(message["result"]["sessionId"])
        if ident in ("open", "mode"):
            begun = at
        if ident.startswith("dlv_"):
            prompt = {"id": ident, "method": "session/prompt", "params": {"sessionId": session}}
            journal.append(f"{begun} {ident} {json.dumps(prompt)}\n")
            turns.append(ident)
            begun = at
    journal.append(f"{at} cancel:{turns[-1]} {{}}\n")
    run = folder / "1"
    run.mkdir()
    (run / "stdout").write_bytes(b"".join(lines))
    (run / "in").write_text("".join(journal))
    for name, content in (("pid", "1\n1\nno boot\n"), ("exit", "0\n"), ("stderr", "")):
        (run / name).write_text(content)
    pipe = Pipe(run)

    async def read(ident: str) -> list[HarnessEvent]:
        accepted, identified, *events = [event async for event in AcpTurn(pipe, ident, "a prompt").events()]
        assert isinstance(accepted, Accepted)
        assert isinstance(identified, Identified)
        return events

    return [asyncio.run(read(ident)) for ident in turns]


def drop_noise(events: list[HarnessEvent]) -> list[HarnessEvent]:
    """Without what has no meaning for Scout, and without the ends."""
    return [one for one in events[:-1] if not isinstance(one, Other | TurnUsage)]


def list_usage(turns: list[list[HarnessEvent]]) -> list[tuple[int, int, bool]]:
    found = [one for events in turns for one in events if isinstance(one, TurnUsage)]
    return [(one.prompt_tokens, one.completion_tokens, one.estimated) for one in found]


def test_claude_agent_acp(tmp_path: Path) -> None:
    turns = replay_turns("claude-agent-acp-0.49.0.jsonl", tmp_path)
    scouts, allowed, denied, failed, cancelled = turns
    assert drop_noise(scouts) == [ToolUse(name="mcp__scout_run__count", detail="other")]
    assert scouts[-1] == Completed(text="counted 1")
    used, needs = drop_noise(allowed)
    assert used == ToolUse(name="sh -c 'id > /srv/work/allowed'", detail="execute")
    assert isinstance(needs, NeedsHuman)
    assert needs.request == "1.1"
    assert needs.question == "May it use sh -c 'id > /srv/work/allowed' (execute)?"
    assert needs.wish is not None
    assert needs.wish.command == "sh -c 'id > /srv/work/allowed'"
    assert needs.options[-2:] == ("Allow", "Reject")
    assert (allowed[-1], denied[-1]) == (Completed(text="done"), Completed(text="so be it"))
    assert failed[-1] == Failed(layer=Layer.PROVIDER, reason="API Error: 400 it broke")
    assert cancelled[-1] == INTERRUPTED
    assert list_usage(turns[:3]) == [(20, 20, False)] * 3


def test_codex_acp(tmp_path: Path) -> None:
    turns = replay_turns("codex-acp-2.6.0.jsonl", tmp_path)
    scouts, allowed, denied, failed, cancelled = turns
    assert drop_noise(scouts) == [ToolUse(name="mcp.scout.count", detail="execute"), Said(text=WARNING)]
    last = scouts[-1]
    assert isinstance(last, Completed)
    assert last.text.endswith("counted 1")
    needs = next(one for one in allowed if isinstance(one, NeedsHuman))
    assert needs.options[0] == "Yes, proceed"
    assert (allowed[-1], denied[-1]) == (Completed(text="done"), DENIED)
    assert failed[-1] == Failed(layer=Layer.PROVIDER, reason="it broke")
    assert cancelled[-1] == INTERRUPTED
    assert list_usage(turns[:3]) == [(20, 20, False), (20, 20, False), (10, 10, False)]


def test_qwen_code(tmp_path: Path) -> None:
    turns = replay_turns("qwen-code-0.15.10.jsonl", tmp_path)
    scouts, allowed, denied, failed, cancelled = turns
    assert [type(one) for one in drop_noise(scouts)] == [
        ToolUse,
        NeedsHuman,
    ]  # it does not say whose tool it is
    assert scouts[-1] == Completed(text="counted 1")
    needs = next(one for one in allowed if isinstance(one, NeedsHuman))
    assert needs.options[-2:] == ("Allow", "Reject")
    assert (allowed[-1], denied[-1]) == (Completed(text="done"), Completed(text="so be it"))
    assert failed[-1] == Failed(layer=Layer.PROVIDER, reason="400 it broke")
    assert cancelled[-1] == INTERRUPTED
    assert list_usage(turns[:3]) == [(20, 20, False)] * 3  # summed up, for it tells them answer by answer


# -- what no recorded agent did ------------------------------------------------------------------


def chunk(text: str, **more: Any) -> dict[str, Any]:
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, **more}


def call(ident: str = "t", **more: Any) -> dict[str, Any]:
    return {"sessionUpdate": "tool_call", "toolCallId": ident, **more}


def read(*updates: dict[str, Any], result: dict[str, Any] | None = None) -> list[HarnessEvent]:
    reader = AcpReader("a prompt")
    events = [event for update in updates for event in reader.read_update(update)]
    return [*events, *reader.read_end(result or {"stopReason": "end_turn"}, cancelled=False, asked=False)]


def test_the_last_message_is_the_reply_and_those_before_it_were_said() -> None:
    events = read(chunk("a ", messageId="1"), chunk("b", messageId="1"), chunk("c", messageId="2"))
    assert events[0] == Said(text="a b")
    assert events[-1] == Completed(text="c")
    events = read(chunk("first"), call(status="completed", title="x"), chunk("second"))
    assert events[:2] == [ToolUse(name="x"), Said(text="first")]
    assert events[-1] == Completed(text="second")
    assert read(chunk("only"), call(status="completed"))[-1] == Completed(text="only")
    assert read()[-1] == Completed(text="")


def test_without_a_report_tokens_are_estimated_and_marked() -> None:
    assert read(chunk("12345"))[0] == TurnUsage(prompt_tokens=2, completion_tokens=2, estimated=True)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"inputTokens": 3, "outputTokens": 4}, (3, 4)),
        ({"inputTokens": 3, "cachedReadTokens": 5, "outputTokens": 4}, (8, 4)),
        ({"inputTokens": 3, "cachedReadTokens": 3, "outputTokens": 4, "totalTokens": 7}, (3, 4)),
    ],
)
def test_what_is_not_output_was_read(usage: dict[str, int], tokens: tuple[int, int]) -> None:
    made = read(result={"stopReason": "end_turn", "usage": usage})[0]
    assert made == TurnUsage(prompt_tokens=tokens[0], completion_tokens=tokens[1], estimated=False)


def test_a_tool_is_told_once_when_it_is_known_what_it_does() -> None:
    events = read(
        call(status="pending", title="Terminal", rawInput={}),
        call(title="ls", kind="execute", rawInput={"command": "ls"}),
        call(status="completed"),
        call("other", status="in_progress", _meta={"toolName": "look"}),
    )
    assert events[:2] == [ToolUse(name="ls", detail="execute"), ToolUse(name="look")]


def test_what_has_no_meaning_is_kept_by_its_name_and_not_again_and_again() -> None:
    thought = {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}
    image = {"sessionUpdate": "agent_message_chunk", "content": {"type": "image"}}
    plan = {"sessionUpdate": "plan", "entries": [{"content": "x", "status": "pending"}]}
    events = read(thought, thought, image, plan, {}, {"sessionUpdate": 3})
    kinds = [one.kind for one in events if isinstance(one, Other)]
    assert kinds == ["agent_thought_chunk", "agent_message_chunk/image", ""]
    assert TurnProgress(text="plan: 0 of 1 done") in events


@pytest.mark.parametrize(
    ("why", "layer"),
    [("refusal", Layer.PROVIDER), ("max_tokens", Layer.PROVIDER), ("max_turn_requests", Layer.HARNESS)],
)
def test_a_turn_that_stopped_short_has_failed(why: str, layer: Layer) -> None:
    last = read(chunk("half"), result={"stopReason": why})[-1]
    assert isinstance(last, Failed)
    assert last.layer is layer


def test_a_turn_that_stopped_by_itself() -> None:
    last = read(result={"stopReason": "cancelled"})[-1]
    assert last == Failed(layer=Layer.HARNESS, reason="the agent stopped its turn by itself")


@pytest.mark.parametrize(
    ("reason", "code", "kind", "found"),
    [
        ("x", -32000, "", Failed(layer=Layer.PROVIDER, reason="x", missing=Missing.LOGIN)),
        ("401 no", -32603, "", Failed(layer=Layer.PROVIDER, reason="401 no", missing=Missing.LOGIN)),
        ("You've hit your usage limit.", None, "", Limited(reason="You've hit your usage limit.")),
        ("429", -32603, "", Limited(reason="429")),
        ("x", -32603, "rate_limit", Limited(reason="x")),
        ("x", -32603, "server_error", Failed(layer=Layer.PROVIDER, reason="x")),
        ("x", -32603, "", Failed(layer=Layer.HARNESS, reason="x")),
        ("x", -32602, "", Failed(layer=Layer.HARNESS, reason="x")),
    ],
)
def test_what_went_wrong(reason: str, code: int | None, kind: str, found: HarnessEvent) -> None:
    assert classify_error(reason, code, kind) == found


@pytest.mark.parametrize(
    ("message", "data", "reason"),
    [
        ("Internal error", {"details": "it broke"}, "it broke"),
        ("Internal error: it broke", None, "it broke"),
        ("Internal error", None, "Internal error"),
        ("Not found", "x", "Not found: x"),
    ],
)
def test_the_words_of_a_refusal(message: str, data: object, reason: str) -> None:
    assert extract_reason(message, data) == reason


def test_a_yes_is_never_made_out_of_nothing() -> None:
    only_no = [{"optionId": "n", "name": "No", "kind": "reject_always"}]
    assert choose_option(only_no, HumanAnswer(allow=True)) is None
    assert choose_option(only_no, HumanAnswer(allow=False)) == {"outcome": "selected", "optionId": "n"}
    assert choose_option([], HumanAnswer(allow=False)) == {"outcome": "cancelled"}
