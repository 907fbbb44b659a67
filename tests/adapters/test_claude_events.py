"""What the pinned Claude Code printed, recorded with the scripted model, as events; without the program."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from scout.adapters.claude import flags
from scout.adapters.claude.events import ClaudeReader, answer_request, read_request
from scout.adapters.claude.flags import is_logged_in
from scout.adapters.claude.turn import make_uuid
from scout.adapters.persistent.rpc import parse_message
from scout.base.time import Time
from scout.model.agent import PermissionProfile
from scout.model.problems.session import Layer, Missing
from scout.ports import (
    Asked,
    Completed,
    Failed,
    HarnessEvent,
    Identified,
    Limited,
    McpAccess,
    NeedsHuman,
    Other,
    RequestSettled,
    Said,
    SessionSpec,
    ToolUse,
    TurnProgress,
    TurnUsage,
)

RECORDED = Path(__file__).parents[1] / "data" / "harness" / "claude"
MODEL = "claude-opus-5-5"
WHO = Identified(native_ids={"session": "11111111-2222-4333-8444-555555555555"}, model=MODEL)


def messages(name: str) -> list[dict[str, Any]]:
    return [parse_message(line) for line in (RECORDED / f"{name}.jsonl").read_bytes().splitlines()]


def read_events(said: list[dict[str, Any]], ident: str, steered: Collection[str] = ()) -> list[HarnessEvent]:
    reading, events = ClaudeReader(ident), list[HarnessEvent]()
    for message in said:
        events += reading.read(message, steered)
        if reading.over:
            break
    assert reading.over
    assert not reading.waiting
    return events


def read_recorded(name: str, steered: Collection[str] = ()) -> list[HarnessEvent]:
    """The events of a recorded turn, without those that mean nothing to Scout."""
    events = read_events(messages(name), make_uuid(name), [make_uuid(one) for one in steered])
    return [event for event in events if not isinstance(event, Other)]


def build_usage(read: int, written: int | None = None) -> TurnUsage:
    return TurnUsage(prompt_tokens=read, completion_tokens=written or read, model=MODEL, estimated=False)


def test_texts_tools_and_the_final_one() -> None:
    assert read_recorded("turn") == [
        WHO,
        Said(text="I look"),
        ToolUse(name="Bash", detail="ls"),
        Said(text="First."),
        build_usage(20),
        Completed(text="Last."),
    ]


def test_a_permission_is_asked_for_and_settled() -> None:
    events = read_recorded("permission")
    (need,) = (event for event in events if isinstance(event, NeedsHuman))
    assert (need.kind, need.question, need.options) == (Asked.PERMISSION, "Bash: touch f; curl x", ())
    assert need.wish is not None
    assert (need.wish.tool, need.wish.command, need.wish.arguments) == ("Bash", "touch f; curl x", "")
    assert RequestSettled(request=need.request) in events
    (request,) = (one for one in messages("permission") if one["type"] == "control_request")
    assert answer_request(request, True, "") == {
        "behavior": "allow",
        "updatedInput": {"command": "touch f; curl x"},
    }
    assert answer_request(request, False, "") == {"behavior": "deny", "message": "A person denied this."}
    assert answer_request(request, False, "Use git.") == {"behavior": "deny", "message": "Use git."}


def test_questions_are_answered_in_the_shape_of_the_program() -> None:
    (one,) = (one for one in messages("question") if one["type"] == "control_request")
    need = read_request(one)
    assert need is not None
    assert (need.kind, need.question, need.options) == (Asked.QUESTION, "Which color?", ("Red", "Blue"))
    assert answer_request(one, True, "Red\nor so")["updatedInput"]["answers"] == {
        "Which color?": "Red\nor so"
    }
    (two,) = (one for one in messages("questions") if one["type"] == "control_request")
    need = read_request(two)
    assert need is not None
    assert (need.question, need.options) == ("Which color? / Size?", ())
    assert need.detail == "A line for each:\nWhich color? (Red, Blue)\nSize? (S, L)"
    given = answer_request(two, True, "Red\nL")["updatedInput"]
    assert given["answers"] == {"Which color?": "Red", "Size?": "L"}
    assert given["questions"] == two["request"]["input"]["questions"]
    both = answer_request(two, True, "whatever")["updatedInput"]["answers"]
    assert both == {"Which color?": "whatever", "Size?": "whatever"}
    assert answer_request(two, False, "")["behavior"] == "deny"


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("interrupted", Failed(layer=Layer.SESSION, reason="interrupted")),
        ("taken_back", Failed(layer=Layer.SESSION, reason="interrupted")),
        ("limit", Limited(reason="API Error: Request rejected (429) · slow down")),
        (
            "login",
            Failed(
                layer=Layer.PROVIDER,
                reason="Failed to authenticate. API Error: 401 expired",
                missing=Missing.LOGIN,
            ),
        ),
        ("error", Failed(layer=Layer.PROVIDER, reason="API Error: 400 it broke")),
        ("billing", Failed(layer=Layer.PROVIDER, reason="Credit balance is too low")),
    ],
)
def test_how_a_turn_ends_without_an_answer(name: str, end: HarnessEvent) -> None:
    assert read_recorded(name)[-1] == end


def test_an_interrupt_settles_what_was_asked() -> None:
    events = read_recorded("interrupted")
    (need,) = (event for event in events if isinstance(event, NeedsHuman))
    assert events[events.index(need) + 1] == RequestSettled(request=need.request)


def test_what_is_said_into_a_turn_belongs_to_it() -> None:
    assert read_recorded("steered", ["steer:1"])[-1] == Completed(text="both")
    assert read_recorded("steered_late", ["steer:2"])[-1] == Completed(text="first\n\nsecond")
    assert read_recorded("steered_late")[-1] == Completed(text="first")  # it came after the turn


def test_a_turn_that_the_program_began_by_itself_is_no_answer() -> None:
    assert read_recorded("after_background") == [
        build_usage(10),
        WHO,
        build_usage(10),
        Completed(text="mine"),
    ]
    assert read_recorded("background")[-1] == Completed(text="mine")


def test_helpers_in_the_background_belong_to_the_turn() -> None:
    events = read_recorded("helper")
    assert [one for one in events if isinstance(one, ToolUse | TurnProgress | Completed)] == [
        ToolUse(name="Agent", detail="look"),
        ToolUse(name="Bash", detail="ls"),
        TurnProgress(text="found"),
        Completed(text="Wait.\n\nIt found it."),
    ]
    said = messages("helper")
    results = [one for one in said if one["type"] == "result"]
    held_back = [one for one in said if one["type"] != "result"] + results
    assert read_events(held_back, make_uuid("helper"))[-1] == Completed(text="Wait.\n\nIt found it.")


def test_what_is_unknown_is_kept_by_its_name() -> None:
    reading = ClaudeReader("me")
    lines: list[dict[str, Any]] = [
        {"type": "stream_event"},
        {"type": "system", "subtype": "compact_boundary"},
        {"type": "assistant", "message": {"content": [{"type": "thinking", "thinking": "…"}]}},
        {"type": "control_request", "request_id": "1", "request": {"subtype": "hook_callback"}},
        {},
    ]
    found = [event for line in lines for event in reading.read(line)]
    assert found == [
        Other(kind="stream_event"),
        Other(kind="system/compact_boundary"),
        Other(kind="assistant/thinking"),
        Other(kind="control_request/hook_callback"),
        Other(kind="None"),
    ]
    retry = {"type": "system", "subtype": "api_retry", "attempt": 2, "error": "overloaded"}
    assert list(reading.read(retry)) == [TurnProgress(text="attempt 2 at its provider failed: overloaded")]


def _result(**fields: Any) -> dict[str, Any]:
    return {"type": "result", "user_message_uuids": ["me"], "is_error": True, **fields}


@pytest.mark.parametrize(
    ("fields", "until"),
    [
        ({"result": "Claude AI usage limit reached|1794808405"}, Time(1794808405 * 1_000_000)),
        ({"result": "You've hit your session limit · resets 3pm"}, None),
        ({"result": "x", "api_error_status": 429}, None),
    ],
)
def test_a_usage_limit_by_its_words_or_number(fields: dict[str, Any], until: Time | None) -> None:
    (end,) = ClaudeReader("me").read(_result(**fields))
    assert isinstance(end, Limited)
    assert (end.reason, end.until) == (fields["result"], until)


def test_the_provider_says_when_the_limit_is_over() -> None:
    reading = ClaudeReader("me")
    info = {"status": "rejected", "resetsAt": 1794808405, "rateLimitType": "five_hour"}
    list(reading.read({"type": "rate_limit_event", "rate_limit_info": {"status": "allowed", "resetsAt": 5}}))
    list(reading.read({"type": "rate_limit_event", "rate_limit_info": info}))
    (end,) = reading.read(_result(result="limit reached"))
    assert end == Limited(reason="limit reached", until=Time(1794808405 * 1_000_000))


@pytest.mark.parametrize(
    ("fields", "end"),
    [
        (
            {"result": "Not logged in · Please run /login", "terminal_reason": "api_error"},
            Failed(layer=Layer.PROVIDER, reason="Not logged in · Please run /login", missing=Missing.LOGIN),
        ),
        (
            {"subtype": "error_max_turns", "errors": ["one", "two"]},
            Failed(layer=Layer.HARNESS, reason="one; two"),
        ),
        ({}, Failed(layer=Layer.HARNESS, reason="it gave no answer")),
        (
            {"is_error": False, "subtype": "error_max_turns"},
            Failed(layer=Layer.HARNESS, reason="it gave no answer"),
        ),
    ],
)
def test_other_ends(fields: dict[str, Any], end: HarnessEvent) -> None:
    assert list(ClaudeReader("me").read(_result(**fields))) == [end]


def test_tokens_of_a_cache_count_as_read() -> None:
    usage = {"input_tokens": 1, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 300}
    older = _result(is_error=False, result="x", usage={**usage, "output_tokens": 4})
    assert next(ClaudeReader("me").read(older)) == TurnUsage(
        prompt_tokens=321, completion_tokens=4, estimated=False
    )
    each = {"inputTokens": 1, "cacheReadInputTokens": 20, "cacheCreationInputTokens": 300, "outputTokens": 4}
    newer = _result(is_error=False, result="x", model_usage_since_last_result={"a": each, "b": each})
    assert [one.model for one in ClaudeReader("me").read(newer) if isinstance(one, TurnUsage)] == ["a", "b"]


# -- its command line ----------------------------------------------------------------------------------


def words(profile: PermissionProfile, *, root: bool = False, model: str | None = None) -> tuple[str, ...]:
    spec = SessionSpec(session_id="s", agent_id="a", address="@a", permission=profile, model=model)
    return flags.build_command("/bin/claude", spec, ("--resume=x",), "/run/mcp.json", root=root)


def test_a_profile_is_compiled_to_its_own_flags() -> None:
    observe = words(PermissionProfile.OBSERVE)
    assert {"--strict-mcp-config", "--permission-mode=default"} <= set(observe)
    (tools,) = (word for word in observe if word.startswith("--tools="))
    assert not {"Bash", "Edit", "Write", "WebFetch"} & set(tools.removeprefix("--tools=").split(","))
    assert "--disallowedTools=Edit,Write,NotebookEdit" in words(PermissionProfile.REVIEW)
    write = words(PermissionProfile.WORKSPACE_WRITE, model="opus")
    assert {"--permission-mode=acceptEdits", "--model=opus", "--resume=x"} <= set(write)
    assert "--strict-mcp-config" not in write  # the user's own servers stay
    assert "--permission-mode=bypassPermissions" in words(PermissionProfile.TRUSTED)
    assert words(PermissionProfile.TRUSTED, root=True) == words(PermissionProfile.WORKSPACE_WRITE)


def test_what_root_cannot_have_is_said() -> None:
    assert PermissionProfile.TRUSTED not in flags.list_native_profiles(root=True)
    assert set(flags.list_native_profiles(root=False)) == set(PermissionProfile)
    assert any("root" in note for note in flags.list_notes(root=True))
    assert not any("root" in note for note in flags.list_notes(root=False))


def test_the_token_is_in_no_file() -> None:
    told = flags.build_mcp_servers(McpAccess(url="http://127.0.0.1:1/mcp", token="secret"))
    assert b"secret" not in told
    assert b"${SCOUT_TOKEN}" in told


def test_a_login_is_seen_without_asking_the_provider(tmp_path: Path) -> None:
    home = tmp_path / ".claude"
    home.mkdir()
    assert not is_logged_in(home, {})
    assert is_logged_in(home, {"ANTHROPIC_API_KEY": "x"})
    (tmp_path / ".claude.json").write_text('{"oauthAccount": {}}')
    assert is_logged_in(home, {})
    assert not is_logged_in(home, {"CLAUDE_CONFIG_DIR": str(home)})
    (home / "settings.json").write_text('{"apiKeyHelper": "x"}')
    assert is_logged_in(home, {"CLAUDE_CONFIG_DIR": str(home)})
    (home / ".credentials.json").touch()
    assert is_logged_in(home, {"CLAUDE_CONFIG_DIR": str(home)})
