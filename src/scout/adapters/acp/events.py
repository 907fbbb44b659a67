"""What an agent tells during a turn of the Agent Client Protocol, as events of Scout. It only reads."""

import json
import re
from typing import Any

from scout.adapters.harness import INTERRUPTED, MCP_KEY, estimate_tokens
from scout.adapters.transcript import Entry, inner, items, text
from scout.model.permission import request_of
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
    "refusal": (Layer.PROVIDER, "the model refused to go on"),
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
        self._text = ""  # of the newest message that has some
        self._message: object = None  # by which name its parts come
        self._parted = False  # something came in between: what is said next is another message
        self._written = 0
        self._broken = False
        self._tools: dict[str, Entry] = {}
        self._tokens: tuple[int, int] | None = None
        self._last_other = ""

    def update(self, update: Entry) -> list[HarnessEvent]:
        """What one notification means."""
        kind = text(update, "sessionUpdate")
        match kind:
            case "agent_message_chunk":
                return self._chunk(update)
            case "tool_call" | "tool_call_update":
                self._parted = True
                return self._tool(update)
            case "plan":
                return [TurnProgress(text=_plan(items(update.get("entries"))))]
            case _:
                self._notice(update)
                return self._other(kind)

    def asked(self, request: str, params: Entry) -> list[HarnessEvent]:
        """The program waits for a person's yes or no."""
        self._parted = True
        call = inner(params, "toolCall")
        shown = self._tool({**call, "status": "asked"})
        known = self._tools[str(call.get("toolCallId"))]
        options = tuple(text(one, "name") for one in items(params.get("options")))
        question = f"May it use {known.get('title') or 'a tool'} ({known.get('kind') or 'other'})?"
        wish = request_of(str(known.get("kind") or "tool"), known.get("rawInput") or "", question)
        needs = NeedsHuman(
            request=request,
            question=question,
            kind=Asked.PERMISSION,
            options=options,
            wish=wish,
        )
        return [*shown, needs]

    def is_scouts(self, params: Entry) -> bool:
        """Whether the agent says that the tool is Scout's own: there, Scout checks who may do what."""
        known = self._tools.get(str(inner(params, "toolCall").get("toolCallId")), {})
        meta = inner(known, "_meta")
        server = text(inner(known, "rawInput"), "server") if meta.get("is_mcp_tool_call") else ""
        return _named(meta).startswith(f"mcp__{MCP_KEY}__") or server == MCP_KEY

    def ended(self, result: Entry, *, cancelled: bool, asked: bool) -> list[HarnessEvent]:
        """How the turn ended. `cancelled`: it was told to; `asked`: it had wanted something of a person."""
        why = str(result.get("stopReason"))
        spent = self._spent(inner(result, "usage"))
        if why == "cancelled" or (cancelled and not self._text):
            return [spent, self._stopped(cancelled=cancelled, asked=asked)]
        if why in _ENDS:
            layer, reason = _ENDS[why]
            return [spent, Failed(layer=layer, reason=reason)]
        if self._broken:
            return [spent, problem_of(_plainly(self._text) or "the agent's model failed", None)]
        return [spent, Completed(text=self._text.rstrip())]

    def _stopped(self, *, cancelled: bool, asked: bool) -> Failed:
        if cancelled:
            return Failed(layer=Layer.SESSION, reason=INTERRUPTED)
        because = " after a permission was denied" if asked else " by itself"
        return Failed(layer=Layer.HARNESS, reason=f"the agent stopped its turn{because}")

    # -- text ------------------------------------------------------------------------------------

    def _chunk(self, update: Entry) -> list[HarnessEvent]:
        self._count(inner(inner(update, "_meta"), "usage"))
        content = inner(update, "content")
        if content.get("type") != "text":
            return self._other(f"agent_message_chunk/{content.get('type')}")
        more = text(content, "text")
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

    def _tool(self, update: Entry) -> list[HarnessEvent]:
        """A tool is told once, when the agent has said what it does with it."""
        known = self._tools.setdefault(str(update.get("toolCallId")), {})
        meta = {**inner(known, "_meta"), **inner(update, "_meta")}
        told = {name: value for name, value in update.items() if value}
        known.update(told, _meta=meta)
        if known.get("shown") or (known.get("status") == "pending" and not known.get("rawInput")):
            return []
        known["shown"] = True
        return [
            ToolUse(
                name=str(known.get("title") or _named(meta) or "a tool"), detail=str(known.get("kind") or "")
            )
        ]

    # -- tokens ----------------------------------------------------------------------------------

    def _count(self, usage: Entry) -> None:
        """Some agents tell the tokens of each answer of their model, and none at the end."""
        if usage:
            before, more = self._tokens or (0, 0), _tokens(usage)
            self._tokens = before[0] + more[0], before[1] + more[1]

    def _spent(self, usage: Entry) -> TurnUsage:
        tokens = _tokens(usage) if usage else self._tokens
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

    def _notice(self, update: Entry) -> None:
        """Codex tells only here that its model failed: the turn itself ends as if all were well."""
        status = text(inner(inner(inner(update, "_meta"), "codex"), "threadStatus"), "type")
        if status in ("systemError", "active"):
            self._broken = status == "systemError"
            self._parted = True

    def _other(self, kind: str) -> list[HarnessEvent]:
        if kind == self._last_other:  # thoughts come in many parts
            return []
        self._last_other = kind
        return [Other(kind=kind)]


def problem_of(reason: str, code: int | None, kind: str = "") -> Limited | Failed:
    """What went wrong on the way to the model, as far as its words tell."""
    if code == LOGIN_NEEDED or kind == "authentication_failed" or _LOGIN_WORDS.search(reason):
        return Failed(layer=Layer.PROVIDER, reason=reason, missing=Missing.LOGIN)
    if kind == "rate_limit" or _LIMIT_WORDS.search(reason):
        return Limited(reason=reason)
    of_provider = code is None or (code == _INTERNAL and (kind or _API_WORDS.search(reason)))
    return Failed(layer=Layer.PROVIDER if of_provider else Layer.HARNESS, reason=reason)


def reason_of(message: str, data: Any) -> str:
    """The words of a refusal: the protocol's own name for it says less than what follows."""
    details = text(data, "details") if isinstance(data, dict) else str(data or "")
    said = message.removeprefix("Internal error").removeprefix(":").strip()
    return ": ".join(filter(None, (said, details))) or message


def _plainly(said: str) -> str:
    """The message of an error that a model's API gave as JSON; else what was said."""
    try:
        read = json.loads(said)
    except ValueError:
        return said.strip()
    return text(inner(read, "error"), "message") or said.strip()


def choose_option(options: list[Any], answer: HumanAnswer) -> Entry | None:
    """The outcome that a person's word stands for; none when the agent offers nothing of the kind."""
    wanted = answer.text.strip().casefold()
    kinds = _ALLOWS if answer.allow else _REJECTS
    fitting = [one for kind in kinds for one in options if text(one, "kind") == kind]
    named = [one for one in fitting if wanted and wanted in _names(one)]
    for one in (*named, *fitting):
        return {"outcome": "selected", "optionId": one["optionId"]}
    return None if answer.allow else {"outcome": "cancelled"}


def _names(option: Entry) -> tuple[str, str]:
    return text(option, "name").casefold(), text(option, "optionId").casefold()


def _tokens(usage: Entry) -> tuple[int, int]:
    """Agents differ in what they count as input; what is not output was read."""
    output = int(usage.get("outputTokens") or 0)
    parts = ("inputTokens", "cachedReadTokens", "cachedWriteTokens")
    read = sum(int(usage.get(part) or 0) for part in parts)
    return max(int(usage.get("totalTokens") or read + output) - output, 0), output


def _plan(entries: list[Any]) -> str:
    done = sum(text(one, "status") == "completed" for one in entries)
    now = next((text(one, "content") for one in entries if text(one, "status") == "in_progress"), "")
    return f"plan: {done} of {len(entries)} done" + (f", now {now}" if now else "")


def _named(meta: Entry) -> str:
    return text(inner(meta, "claudeCode"), "toolName") or text(meta, "toolName")
