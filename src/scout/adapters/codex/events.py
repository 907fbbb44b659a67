"""Translates notifications and requests of the Codex 0.166.0 app server into events of a turn."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, cast

from scout.adapters.codex.requests import build_request_name, read_request
from scout.adapters.harness import INTERRUPTED
from scout.adapters.persistent.rpc import parse_message
from scout.adapters.transcript import Entry, get_object, get_text, to_list
from scout.base.time import Time
from scout.model.problems.session import Layer, Missing
from scout.ports import (
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

TurnEnd: TypeAlias = Completed | Limited | Failed
_Told: TypeAlias = Iterator[HarnessEvent]

_LIMITS = ("usageLimitExceeded", "rateLimitExceeded")
_TOO_MANY, _UNAUTHORIZED = 429, 401
_NO_KEY = "Missing environment variable"
_AGAIN_AT = re.compile(
    r"try again at (?:(?P<day>\w{3} \d{1,2})(?:st|nd|rd|th), (?P<year>\d{4}) )?(?P<time>\d{1,2}:\d\d [AP]M)"
)
_DETAIL = 500


class CodexReader:
    """One turn, from the answer to its `turn/start` to its end. The same lines give the same events."""

    def __init__(self, delivery_id: str, program: str, model: str | None = None) -> None:
        self._delivery = delivery_id
        self._program = program
        self._model = model
        self._before: tuple[int, int] | None = None  # tokens of the thread before this turn
        self._total = (0, 0)
        self._resets: list[int] = []
        self._changes: dict[str, str] = {}
        self._open = set[str]()
        self._text = ""
        self._unsaid = False
        self.turn_id = ""

    def read(self, message: Entry) -> _Told:
        """Yield the events of one message; the last event of a turn is its end."""
        method, params = get_text(message, "method"), get_object(message, "params")
        if message.get("id") == self._delivery and not method:
            yield from self._read_start(message)
        elif method:
            yield from self._read_notification(method, params, message)

    def read_request(self, message: Entry) -> NeedsHuman | None:
        """Return the question for a person in a request; None if it has none."""
        changes = self._changes.get(get_text(get_object(message, "params"), "itemId"), "")
        needed = read_request(self._program, message, changes)
        self._open |= {needed.request} if needed else set()
        return needed

    @property
    def waits(self) -> bool:
        """Whether a question to a person is open."""
        return bool(self._open)

    def _read_start(self, message: Entry) -> _Told:
        """Record the id of the started turn, or report that it was refused."""
        self.turn_id = get_text(get_object(get_object(message, "result"), "turn"), "id")
        if not self.turn_id:
            reason = get_text(get_object(message, "error"), "message") or "it did not begin the turn"
            yield Failed(layer=Layer.HARNESS, reason=reason)

    def _read_notification(self, method: str, params: Entry, message: Entry) -> _Told:
        turn = get_text(params, "turnId") or get_text(get_object(params, "turn"), "id")
        read = _READERS.get(method)
        if read is None or (turn and turn != self.turn_id):
            yield Other(kind=method)
        else:
            yield from read(self, params, message)

    # -- while it works --------------------------------------------------------------------------

    def read_item_started(self, params: Entry, _: Entry) -> _Told:
        """Report the item, and first any earlier message, which was not the final one."""
        yield from self._say()
        item = get_object(params, "item")
        if tool := _read_tool(item):
            yield tool
        if get_text(item, "type") == "fileChange":
            self._changes[get_text(item, "id")] = "\n\n".join(
                map(_format_change, to_list(item.get("changes")))
            )

    def read_item_completed(self, params: Entry, _: Entry) -> _Told:
        item = get_object(params, "item")
        if get_text(item, "type") == "agentMessage":
            yield from self._say()
            self._text, self._unsaid = get_text(item, "text"), True
        else:
            yield Other(kind=f"item/completed {get_text(item, 'type')}")

    def _say(self) -> _Told:
        if self._unsaid and self._text.strip():
            yield Said(text=self._text)
        self._unsaid = False

    def read_usage(self, params: Entry, _: Entry) -> _Told:
        """Record the thread's tokens; total minus the last request is the count before this turn."""
        counted = get_object(params, "tokenUsage")
        self._total, last = (
            _read_tokens(get_object(counted, "total")),
            _read_tokens(get_object(counted, "last")),
        )
        if self._before is None:
            self._before = self._total[0] - last[0], self._total[1] - last[1]
        yield Other(kind="thread/tokenUsage/updated")

    def read_limits(self, params: Entry, _: Entry) -> _Told:
        """Record when the exhausted rate limits reset."""
        windows = (get_object(get_object(params, "rateLimits"), name) for name in ("primary", "secondary"))
        full = (one.get("resetsAt") for one in windows if _to_number(one.get("usedPercent")) >= 100)
        self._resets = [at for at in full if isinstance(at, int)]
        yield Other(kind="account/rateLimits/updated")

    def read_resolved(self, params: Entry, _: Entry) -> _Told:
        request = build_request_name(self._program, params.get("requestId"))
        self._open.discard(request)
        yield RequestSettled(request=request)

    def read_error(self, params: Entry, _: Entry) -> _Told:
        """Report an error. If Codex does not retry, the turn ends a moment later."""
        yield TurnProgress(text=get_text(get_object(params, "error"), "message") or "an error")

    def read_rerouted(self, params: Entry, _: Entry) -> _Told:
        self._model = get_text(params, "toModel") or self._model
        yield Identified(model=self._model)

    # -- its end ---------------------------------------------------------------------------------

    def read_completed(self, params: Entry, message: Entry) -> _Told:
        if self._before is not None:
            prompt, completion = (now - then for now, then in zip(self._total, self._before, strict=True))
            yield TurnUsage(
                prompt_tokens=max(0, prompt),
                completion_tokens=max(0, completion),
                model=self._model,
                estimated=False,
            )
        turn = get_object(params, "turn")
        status = get_text(turn, "status")
        if status == "completed":
            final = [
                get_text(item, "text")
                for item in to_list(turn.get("items"))
                if item["type"] == "agentMessage"
            ]
            yield Completed(text=final[-1] if final else self._text)
        elif status == "interrupted":
            yield Failed(layer=Layer.SESSION, reason=INTERRUPTED)
        else:
            yield read_failure(get_object(turn, "error"), self._resets, message.get("emittedAtMs"))


_READERS: dict[str, Callable[[CodexReader, Entry, Entry], _Told]] = {
    "item/started": CodexReader.read_item_started,
    "item/completed": CodexReader.read_item_completed,
    "thread/tokenUsage/updated": CodexReader.read_usage,
    "account/rateLimits/updated": CodexReader.read_limits,
    "serverRequest/resolved": CodexReader.read_resolved,
    "error": CodexReader.read_error,
    "model/rerouted": CodexReader.read_rerouted,
    "turn/completed": CodexReader.read_completed,
}


# -- tools ---------------------------------------------------------------------------------------------


def _read_tool(item: Entry) -> ToolUse | None:
    kind = get_text(item, "type")
    describe = _TOOLS.get(kind)
    if describe is None:
        return None
    name, detail = describe(item)
    return ToolUse(name=name or kind, detail=" ".join(detail.split())[:_DETAIL])


def _describe_command(item: Entry) -> tuple[str, str]:
    """Return the command without the shell around it."""
    actions = (get_text(one, "command") for one in to_list(item.get("commandActions")))
    return "command", " && ".join(filter(None, actions)) or get_text(item, "command")


def _describe_files(item: Entry) -> tuple[str, str]:
    return "edit", ", ".join(get_text(one, "path") for one in to_list(item.get("changes")))


def _describe_call(item: Entry) -> tuple[str, str]:
    given = item.get("arguments")
    where = get_text(item, "server") or get_text(item, "namespace")
    name = "/".join(filter(None, (where, get_text(item, "tool"))))
    return name, json.dumps(given, ensure_ascii=False) if given else ""


_TOOLS: dict[str, Callable[[Entry], tuple[str, str]]] = {
    "commandExecution": _describe_command,
    "fileChange": _describe_files,
    "mcpToolCall": _describe_call,
    "dynamicToolCall": _describe_call,
    "collabAgentToolCall": lambda item: (get_text(item, "tool"), get_text(item, "prompt")),
    "webSearch": lambda item: ("web search", get_text(item, "query")),
    "imageView": lambda item: ("view image", get_text(item, "path")),
}


def _format_change(change: Any) -> str:
    kind = get_text(get_object(change, "kind"), "type")
    return f"{kind} {get_text(change, 'path')}\n{get_text(change, 'diff')}".strip()


def _read_tokens(counted: Entry) -> tuple[int, int]:
    return _to_number(counted.get("inputTokens")), _to_number(counted.get("outputTokens"))


def _to_number(value: object) -> int:
    return value if isinstance(value, int) else 0


# -- what went wrong -----------------------------------------------------------------------------------


def read_failure(error: Entry, resets: list[int], told_at: object) -> Limited | Failed:
    """Return the end of a failed turn: a rate limit, a missing login, or another error of the provider."""
    info, reason = (
        error.get("codexErrorInfo"),
        _extract_message(get_text(error, "message")) or "it failed without a message",
    )
    status = next((one.get("httpStatusCode") for one in _list_details(info)), None)
    if info in _LIMITS or status == _TOO_MANY:
        until = Time(max(resets) * 1_000_000) if resets else _read_reset_time(reason, told_at)
        return Limited(reason=reason, until=until)
    if info == "unauthorized" or status == _UNAUTHORIZED or reason.startswith(_NO_KEY):
        return Failed(layer=Layer.PROVIDER, reason=reason, missing=Missing.LOGIN)
    return Failed(layer=Layer.PROVIDER, reason=reason)


def _list_details(info: object) -> list[Entry]:
    return [get_object(info, name) for name in cast("Entry", info)] if isinstance(info, dict) else []


def _extract_message(message: str) -> str:
    """Return the error message, also from a provider's JSON response."""
    return get_text(get_object(parse_message(message.encode()), "error"), "message") or message.strip()


def _read_reset_time(reason: str, told_at: object) -> Time | None:
    """Return the reset time in a message. It is local and given in minutes, so the end of that minute."""
    named = _AGAIN_AT.search(reason)
    if named is None or not isinstance(told_at, int):
        return None
    told = datetime.fromtimestamp(told_at / 1000, UTC).astimezone()
    day = f"{named['day']} {named['year']}" if named["day"] else told.strftime("%b %d %Y")
    try:
        moment = datetime.strptime(f"{day} {named['time']}", "%b %d %Y %I:%M %p").astimezone()
    except ValueError:
        return None
    moment += timedelta(minutes=1)
    if moment < told and not named["day"]:
        moment += timedelta(days=1)
    return Time(int(moment.timestamp() * 1_000_000))
