"""Translates notifications of the Agent Client Protocol into events of a turn. Reads only."""

import json
import re
from typing import Any

from scout.adapters.harness import INTERRUPTED, MCP_KEY, estimate_tokens
from scout.adapters.transcript import Entry, get_object, get_text, to_list
from scout.model.access.permission import build_request
from scout.model.problems.session import Layer, Missing
from scout.ports import (
    Asked,
    Completed,
    Failed,
    HarnessEvent,
    HumanAnswer,
    Limited,
    NeedsHuman,
    Other,
    Said,
    ToolUse,
    TurnProgress,
    TurnUsage,
)

LOGIN_NEEDED = -32000
_INTERNAL = -32603
_WIDTH = 2000
_ALLOWS, _REJECTS = ("allow_once", "allow_always"), ("reject_once", "reject_always")
_ENDS = {
    "refusal": (Layer.PROVIDER, "the model refused to continue"),
    "max_tokens": (Layer.PROVIDER, "the model reached its limit of tokens"),
    "max_turn_requests": (Layer.HARNESS, "the agent reached its limit of requests in one turn"),
}
_LOGIN_WORDS = re.compile(r"\b401\b|authentication|/login|not logged in|invalid api key", re.IGNORECASE)
_LIMIT_WORDS = re.compile(r"\b429\b|usage limit|rate.?limit|quota|too many requests", re.IGNORECASE)
_API_WORDS = re.compile(r"\bAPI\b|\b[45]\d\d\b|connection|overloaded", re.IGNORECASE)


class AcpReader:
    """The state of one turn: its text, its tools, its tokens."""

    def __init__(self, prompt: str, model: str | None = None) -> None:
        self._prompt = prompt
        self._model = model
        self._text = ""  # text of the newest non-empty message
        self._message: object = None  # the id that its chunks carry
        self._parted = False  # other output came in between: the next chunk begins a new message
        self._written = 0
        self._broken = False
        self._tools: dict[str, Entry] = {}
        self._tokens: tuple[int, int] | None = None
        self._last_other = ""

    def read_update(self, update: Entry) -> list[HarnessEvent]:
        """Return the events of one notification."""
        kind = get_text(update, "sessionUpdate")
        match kind:
            case "agent_message_chunk":
                return self._read_chunk(update)
            case "tool_call" | "tool_call_update":
                self._parted = True
                return self._read_tool(update)
            case "plan":
                return [TurnProgress(text=_format_plan(to_list(update.get("entries"))))]
            case _:
                self._read_notice(update)
                return self._build_other(kind)

    def read_request(self, request: str, params: Entry) -> list[HarnessEvent]:
        """Return the events of a permission request."""
        self._parted = True
        call = get_object(params, "toolCall")
        shown = self._read_tool({**call, "status": "asked"})
        known = self._tools[str(call.get("toolCallId"))]
        options = tuple(get_text(one, "name") for one in to_list(params.get("options")))
        question = f"May it use {known.get('title') or 'a tool'} ({known.get('kind') or 'other'})?"
        wish = build_request(str(known.get("kind") or "tool"), known.get("rawInput") or "", question)
        needs = NeedsHuman(
            request=request,
            question=question,
            kind=Asked.PERMISSION,
            options=options,
            wish=wish,
        )
        return [*shown, needs]

    def is_scouts(self, params: Entry) -> bool:
        """Whether the agent reports the tool as Scout's own. Scout checks permissions there itself."""
        known = self._tools.get(str(get_object(params, "toolCall").get("toolCallId")), {})
        meta = get_object(known, "_meta")
        server = get_text(get_object(known, "rawInput"), "server") if meta.get("is_mcp_tool_call") else ""
        return _read_tool_name(meta).startswith(f"mcp__{MCP_KEY}__") or server == MCP_KEY

    def read_end(self, result: Entry, *, cancelled: bool, asked: bool) -> list[HarnessEvent]:
        """Return the end of the turn. `cancelled`: by Scout; `asked`: a permission was requested."""
        why = str(result.get("stopReason"))
        spent = self._build_usage(get_object(result, "usage"))
        if why == "cancelled" or (cancelled and not self._text):
            return [spent, self._build_stop(cancelled=cancelled, asked=asked)]
        if why in _ENDS:
            layer, reason = _ENDS[why]
            return [spent, Failed(layer=layer, reason=reason)]
        if self._broken:
            return [spent, classify_error(_extract_message(self._text) or "the agent's model failed", None)]
        return [spent, Completed(text=self._text.rstrip())]

    def _build_stop(self, *, cancelled: bool, asked: bool) -> Failed:
        if cancelled:
            return Failed(layer=Layer.SESSION, reason=INTERRUPTED)
        because = " after a permission was denied" if asked else " by itself"
        return Failed(layer=Layer.HARNESS, reason=f"the agent stopped its turn{because}")

    # -- text ------------------------------------------------------------------------------------

    def _read_chunk(self, update: Entry) -> list[HarnessEvent]:
        self._count(get_object(get_object(update, "_meta"), "usage"))
        content = get_object(update, "content")
        if content.get("type") != "text":
            return self._build_other(f"agent_message_chunk/{content.get('type')}")
        more = get_text(content, "text")
        if not more:
            return []
        before = self._begin_message(update.get("messageId"))
        self._text += more
        self._written += len(more)
        return before

    def _begin_message(self, name: object) -> list[HarnessEvent]:
        if not self._parted and name == self._message:
            return []
        said, self._text = self._text.strip(), ""
        self._message, self._parted = name, False
        return [Said(text=said)] if said else []

    # -- tools -----------------------------------------------------------------------------------

    def _read_tool(self, update: Entry) -> list[HarnessEvent]:
        """Report a tool call once, as soon as its input is known."""
        known = self._tools.setdefault(str(update.get("toolCallId")), {})
        meta = {**get_object(known, "_meta"), **get_object(update, "_meta")}
        told = {name: value for name, value in update.items() if value}
        known.update(told, _meta=meta)
        if known.get("shown") or (known.get("status") == "pending" and not known.get("rawInput")):
            return []
        known["shown"] = True
        return [
            ToolUse(
                name=str(known.get("title") or _read_tool_name(meta) or "a tool"),
                detail=str(known.get("kind") or ""),
            )
        ]

    # -- tokens ----------------------------------------------------------------------------------

    def _count(self, usage: Entry) -> None:
        """Add up tokens: some agents report them per model response and not at the end."""
        if usage:
            before, more = self._tokens or (0, 0), _count_tokens(usage)
            self._tokens = before[0] + more[0], before[1] + more[1]

    def _build_usage(self, usage: Entry) -> TurnUsage:
        tokens = _count_tokens(usage) if usage else self._tokens
        if tokens is not None:
            return TurnUsage(
                prompt_tokens=tokens[0], completion_tokens=tokens[1], model=self._model, estimated=False
            )
        return TurnUsage(
            prompt_tokens=estimate_tokens(len(self._prompt)),
            completion_tokens=estimate_tokens(self._written),
            model=self._model,
        )

    # -- the rest --------------------------------------------------------------------------------

    def _read_notice(self, update: Entry) -> None:
        """Record a failed model. Codex reports it only here and ends the turn as successful."""
        status = get_text(
            get_object(get_object(get_object(update, "_meta"), "codex"), "threadStatus"), "type"
        )
        if status in ("systemError", "active"):
            self._broken = status == "systemError"
            self._parted = True

    def _build_other(self, kind: str) -> list[HarnessEvent]:
        if kind == self._last_other:  # thoughts come in many chunks
            return []
        self._last_other = kind
        return [Other(kind=kind)]


def classify_error(reason: str, code: int | None, kind: str = "") -> Limited | Failed:
    """Classify an error of the provider or harness by its code, kind and text."""
    if code == LOGIN_NEEDED or kind == "authentication_failed" or _LOGIN_WORDS.search(reason):
        return Failed(layer=Layer.PROVIDER, reason=reason, missing=Missing.LOGIN)
    if kind == "rate_limit" or _LIMIT_WORDS.search(reason):
        return Limited(reason=reason)
    of_provider = code is None or (code == _INTERNAL and (kind or _API_WORDS.search(reason)))
    return Failed(layer=Layer.PROVIDER if of_provider else Layer.HARNESS, reason=reason)


def extract_reason(message: str, data: Any) -> str:
    """Return the text of an error, without the protocol's generic "Internal error"."""
    details = get_text(data, "details") if isinstance(data, dict) else str(data or "")
    said = message.removeprefix("Internal error").removeprefix(":").strip()
    return ": ".join(filter(None, (said, details))) or message


def _extract_message(said: str) -> str:
    """Return the message of an API error given as JSON; else the text itself."""
    try:
        read = json.loads(said)
    except ValueError:
        return said.strip()
    return get_text(get_object(read, "error"), "message") or said.strip()


def choose_option(options: list[Any], answer: HumanAnswer) -> Entry | None:
    """Return the outcome for a person's answer; None if the agent offers no matching option."""
    wanted = answer.text.strip().casefold()
    kinds = _ALLOWS if answer.allow else _REJECTS
    fitting = [one for kind in kinds for one in options if get_text(one, "kind") == kind]
    named = [one for one in fitting if wanted and wanted in _list_names(one)]
    for one in (*named, *fitting):
        return {"outcome": "selected", "optionId": one["optionId"]}
    return None if answer.allow else {"outcome": "cancelled"}


def _list_names(option: Entry) -> tuple[str, str]:
    return get_text(option, "name").casefold(), get_text(option, "optionId").casefold()


def _count_tokens(usage: Entry) -> tuple[int, int]:
    """Return input and output tokens. Agents count input differently, so it is total minus output."""
    output = int(usage.get("outputTokens") or 0)
    parts = ("inputTokens", "cachedReadTokens", "cachedWriteTokens")
    read = sum(int(usage.get(part) or 0) for part in parts)
    return max(int(usage.get("totalTokens") or read + output) - output, 0), output


def _format_plan(entries: list[Any]) -> str:
    done = sum(get_text(one, "status") == "completed" for one in entries)
    now = next((get_text(one, "content") for one in entries if get_text(one, "status") == "in_progress"), "")
    return f"plan: {done} of {len(entries)} done" + (f", now {now}" if now else "")


def _read_tool_name(meta: Entry) -> str:
    return get_text(get_object(meta, "claudeCode"), "toolName") or get_text(meta, "toolName")
