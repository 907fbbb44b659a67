"""Translates the output of Claude Code 2.1.325, line by line, into events of one turn.

Each prompt has an id, and each result names the prompts that it answers. A turn that the program starts by
itself, for a background command that ended, is therefore not mistaken for an answer. While helpers of a turn
work in the background, such a turn does count: it reports what they found.
"""

import re
from collections.abc import Collection, Iterator
from typing import Any

from scout.adapters.harness import INTERRUPTED
from scout.adapters.transcript import Entry, get_object, get_text, to_list
from scout.base.time import Time
from scout.model.access.permission import build_request, format_request_title
from scout.model.problems.session import Layer, Missing
from scout.ports import (
    Asked,
    Completed,
    Failed,
    HarnessEvent,
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

_QUESTION = "AskUserQuestion"
_WIDTH = 300
_TELLING = (
    "command",
    "file_path",
    "notebook_path",
    "pattern",
    "url",
    "query",
    "path",
    "description",
    "prompt",
)
_LIMIT = re.compile(r"usage limit|hit your .*limit|limit reached|rate.?limit", re.IGNORECASE)
_LOGIN = re.compile(r"/login|invalid api key|not logged in|oauth token|authenticat", re.IGNORECASE)
_SECONDS = re.compile(r"\|(\d{10})\b")


class ClaudeReader:
    """One turn. `over` once its end was reported; `waiting` while the program needs a person."""

    def __init__(self, ident: str) -> None:
        self.over = False
        self._ident = ident
        self._answered = set[str]()
        self._texts: list[str] = []
        self._held: str | None = None  # a text that may be the final answer
        self._problem = ""  # the program's name for a provider error
        self._resets_at: Time | None = None
        self._waiting = set[str]()
        self._helpers = False  # whether helpers work in the background
        self._begun = 0  # turns of the program without a result yet

    @property
    def waiting(self) -> tuple[str, ...]:
        """The requests that no person has answered."""
        return tuple(sorted(self._waiting))

    def read(self, message: Entry, steered: Collection[str] = ()) -> Iterator[HarnessEvent]:
        """Yield the events of one line. `steered`: prompts that were sent into this turn so far."""
        match message.get("type"):
            case "assistant":
                yield from self._read_assistant(message)
            case "result":
                yield from self._read_result(message, {self._ident, *steered})
            case "command_lifecycle":
                yield from self._read_lifecycle(message, {self._ident, *steered})
            case "system":
                self._read_note(message)
                yield from _read_system(message)
            case "control_request":
                yield from self._read_control_request(message)
            case "control_cancel_request":
                yield from self.settle(get_text(message, "request_id"))
            case "rate_limit_event":
                yield from self._read_rate_limit(message)
            case "user" | "control_response":
                return
            case kind:
                yield Other(kind=str(kind))

    def settle(self, request: str) -> Iterator[HarnessEvent]:
        """Settle a request that was answered or withdrawn."""
        if request in self._waiting:
            self._waiting.discard(request)
            yield RequestSettled(request=request)

    # -- what the model does ---------------------------------------------------------------------

    def _read_assistant(self, message: Entry) -> Iterator[HarnessEvent]:
        self._problem = get_text(message, "error")
        of_helper = bool(message.get("parent_tool_use_id"))
        for block in to_list(get_object(message, "message").get("content")):
            kind = get_text(block, "type")
            if kind == "text" and of_helper:
                yield TurnProgress(text=_shorten(get_text(block, "text")))
            elif kind == "text":
                yield from self._release()
                self._held = get_text(block, "text")
            elif kind == "tool_use":
                yield from self._release()
                yield ToolUse(
                    name=get_text(block, "name"), detail=_choose_argument(get_object(block, "input"))
                )
            else:
                yield Other(kind=f"assistant/{kind}")

    def _release(self) -> Iterator[HarnessEvent]:
        """Yield the held text, because it was not the final answer."""
        if self._held:
            yield Said(text=self._held)
        self._held = None

    def _read_control_request(self, message: Entry) -> Iterator[HarnessEvent]:
        need = read_request(message)
        if need is None:
            yield Other(kind=f"control_request/{get_text(_get_request(message), 'subtype')}")
        else:
            self._waiting.add(need.request)
            yield need

    def _read_rate_limit(self, message: Entry) -> Iterator[HarnessEvent]:
        info = get_object(message, "rate_limit_info")
        if info.get("status") == "rejected":
            self._resets_at = _parse_time(info.get("resetsAt"))
        yield Other(kind="rate_limit_event")

    # -- how it ends -----------------------------------------------------------------------------

    def _read_lifecycle(self, message: Entry, awaited: set[str]) -> Iterator[HarnessEvent]:
        """A prompt that was cancelled before it began has no result: its turn ends without one."""
        if message.get("state") != "cancelled" or self.over:
            return
        ident = get_text(message, "command_uuid")
        if ident != self._ident:
            self._answered.add(ident)
            yield from self._end_if_answered(awaited)
        elif not self._answered:
            yield from self._build_end(Failed(layer=Layer.SESSION, reason=INTERRUPTED))

    def _read_result(self, message: Entry, awaited: set[str]) -> Iterator[HarnessEvent]:
        yield from _read_usage(message)
        self._held = None
        self._begun = max(0, self._begun - 1)
        named = {str(one) for one in message.get("user_message_uuids") or ()}
        if not awaited & named and self._ident not in self._answered:
            return
        self._answered |= named
        if message.get("is_error") or not isinstance(message.get("result"), str):
            yield from self._build_end(self._build_failure(message))
            return
        self._texts.append(get_text(message, "result"))
        yield from self._end_if_answered(awaited)

    def _end_if_answered(self, awaited: set[str]) -> Iterator[HarnessEvent]:
        if self._texts and awaited <= self._answered and not self._helpers and not self._begun:
            yield from self._build_end(Completed(text="\n\n".join(filter(None, self._texts))))

    def _read_note(self, message: Entry) -> None:
        """Track helpers and started turns. With helpers, a result may come after the next turn has begun."""
        match message.get("subtype"):
            case "init":
                self._begun += 1
            case "background_tasks_changed":
                kinds = {get_text(one, "task_type") for one in to_list(message.get("tasks"))}
                self._helpers = "local_agent" in kinds
            case _:
                pass

    def _build_end(self, event: HarnessEvent) -> Iterator[HarnessEvent]:
        for request in self.waiting:
            yield from self.settle(request)
        self.over = True
        yield event

    def _build_failure(self, message: Entry) -> HarnessEvent:
        """Return why the turn failed. Provider errors come as a success with `is_error`."""
        if get_text(message, "terminal_reason").startswith("aborted"):
            return Failed(layer=Layer.SESSION, reason=INTERRUPTED)
        words = (
            message.get("result") or "; ".join(map(str, message.get("errors") or ())) or "it gave no answer"
        )
        reason, status = str(words), message.get("api_error_status")
        if self._problem == "rate_limit" or status == 429 or (not self._problem and _LIMIT.search(reason)):
            return Limited(reason=reason, until=self._resets_at or _parse_time(_read_reset(reason)))
        if self._problem == "authentication_failed" or status == 401 or _LOGIN.search(reason):
            return Failed(layer=Layer.PROVIDER, reason=reason, missing=Missing.LOGIN)
        of_provider = self._problem or status or message.get("terminal_reason") == "api_error"
        return Failed(layer=Layer.PROVIDER if of_provider else Layer.HARNESS, reason=reason)


# -- what it asks ----------------------------------------------------------------------------------


def read_request(message: Entry) -> NeedsHuman | None:
    """Return the question for a person; None for other kinds of requests."""
    request = _get_request(message)
    if request.get("subtype") != "can_use_tool":
        return None
    ident, given = get_text(message, "request_id"), get_object(request, "input")
    if get_text(request, "tool_name") == _QUESTION and (questions := _read_questions(given)):
        return _build_question(ident, questions)
    tool = get_text(request, "display_name") or get_text(request, "tool_name")
    wish = build_request(tool, given, get_text(request, "decision_reason"))
    return NeedsHuman(request=ident, question=format_request_title(wish), wish=wish)


def answer_request(message: Entry, allow: bool, said: str) -> Entry:
    """Return a person's answer in the program's format."""
    request = _get_request(message)
    given = get_object(request, "input")
    if not allow:
        return {"behavior": "deny", "message": said or "A person denied this."}
    if get_text(request, "tool_name") == _QUESTION and (questions := _read_questions(given)):
        return {"behavior": "allow", "updatedInput": {**given, "answers": _map_answers(questions, said)}}
    return {"behavior": "allow", "updatedInput": given}


def is_cancelled(message: Entry, request: str) -> bool:
    """Whether a message withdraws the request of this id."""
    return message.get("type") == "control_cancel_request" and get_text(message, "request_id") == request


def _build_question(ident: str, questions: dict[str, list[str]]) -> NeedsHuman:
    if len(questions) == 1:
        ((question, options),) = questions.items()
        return NeedsHuman(request=ident, kind=Asked.QUESTION, question=question, options=tuple(options))
    lines = [f"{question} ({', '.join(options)})" for question, options in questions.items()]
    detail = "\n".join(("A line for each:", *lines))
    return NeedsHuman(request=ident, kind=Asked.QUESTION, question=" / ".join(questions), detail=detail)


def _map_answers(questions: dict[str, list[str]], said: str) -> dict[str, str]:
    """Map the answer to the questions: one line for each if the counts match, else the whole text for all."""
    lines = said.splitlines()
    parts = lines if len(lines) == len(questions) else [said] * len(questions)
    return dict(zip(questions, parts, strict=True)) if len(questions) > 1 else dict.fromkeys(questions, said)


def _read_questions(given: Entry) -> dict[str, list[str]]:
    """Return each question with its options."""
    asked = to_list(given.get("questions"))
    return {
        get_text(one, "question"): [get_text(o, "label") for o in to_list(one.get("options"))]
        for one in asked
    }


# -- shapes ----------------------------------------------------------------------------------------


def _read_system(message: Entry) -> Iterator[HarnessEvent]:
    match get_text(message, "subtype"):
        case "init":
            ids = {"session": get_text(message, "session_id")}
            yield Identified(native_ids=ids, model=get_text(message, "model") or None)
        case "api_retry":
            attempt, problem = message.get("attempt"), message.get("error")
            yield TurnProgress(text=f"attempt {attempt} at its provider failed: {problem}")
        case kind:
            yield Other(kind=f"system/{kind}")


def _read_usage(message: Entry) -> Iterator[HarnessEvent]:
    """Yield the tokens since the last result, by model; cached tokens count as input."""
    models = get_object(message, "model_usage_since_last_result")
    for model in models:
        used = get_object(models, model)
        read = _sum_fields(used, "inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
        written = _sum_fields(used, "outputTokens")
        yield TurnUsage(prompt_tokens=read, completion_tokens=written, model=model, estimated=False)
    if "model_usage_since_last_result" not in message:
        used = get_object(message, "usage")
        read = _sum_fields(used, "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        written = _sum_fields(used, "output_tokens")
        if read or written:
            yield TurnUsage(prompt_tokens=read, completion_tokens=written, estimated=False)


def _sum_fields(counts: Entry, *names: str) -> int:
    found = (counts.get(name) for name in names)
    return sum(one for one in found if isinstance(one, int))


def _get_request(message: Entry) -> Entry:
    return get_object(message, "request") if message.get("type") == "control_request" else {}


def _choose_argument(given: Entry) -> str:
    """Return the most informative argument."""
    return next((_shorten(words) for name in _TELLING if (words := get_text(given, name))), "")


def _shorten(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def _read_reset(words: str) -> int | None:
    found = _SECONDS.search(words)
    return int(found[1]) if found else None


def _parse_time(seconds: Any) -> Time | None:
    return Time(seconds * 1_000_000) if isinstance(seconds, int) and seconds > 0 else None
