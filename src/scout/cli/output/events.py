"""Events as sentences: `08:41 you → @hudson: hello all`. `--json` prints the log itself."""

from __future__ import annotations

from scout.cli.connection.call import ROUTES
from scout.cli.connection.refusal import RefusalError
from scout.cli.connection.text import cut, format_local_time, get_columns, join_words, paint, shorten_id
from scout.cli.output.own_name import rephrase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from scout.cli.connection.call import DaemonCall

_TEXTS = ("text", "title", "body", "reason", "name")


class Names:
    """Names of the agents and conversations in events, by id; each is requested once."""

    def __init__(self, line: DaemonCall) -> None:
        self._line = line
        self._known: dict[str, str] = {}
        self._own = ""

    def agent(self, ident: str) -> str:
        """Return an agent's address; the caller is `you`, and the broker is `scout`."""
        if not self._known:
            self._known["system"] = "scout"
            me = self._ask(ROUTES["whoami"], {})
            self._known[str(me.get("agentId"))] = "you"
            self._own = str(me.get("address") or "")
            for one in self._ask(ROUTES["who"], {"limit": 200}).get("items", ()):
                self._known.setdefault(one["id"], one.get("address") or one["minimal"])
        if ident not in self._known:
            self._known[ident] = _name_agent(self._ask(ROUTES["show"], {"address": ident}), ident)
        return self._known[ident]

    def say_you(self, sentence: str) -> str:
        """Replace the reader's address in a sentence, for example the reason of a cancelled flight."""
        return rephrase(sentence, self._own) if self._own else sentence

    def conversation(self, ident: str) -> str:
        """Return a channel's name; empty for other conversations."""
        if ident not in self._known:
            found = self._ask(ROUTES["conversation.show"], {"conversationId": ident})
            self._known[ident] = str(found.get("name") or "")
        return self._known[ident]

    def _ask(self, route: str, parameters: dict[str, Any]) -> dict[str, Any]:
        try:
            return dict(self._line.call(route, parameters))
        except RefusalError:
            return {}  # records the caller may not see have no name


def _name_agent(found: dict[str, Any], ident: str) -> str:
    if found.get("kind") in ("system", "broker"):
        return "scout"
    return str(found.get("address") or found.get("minimal") or shorten_id(ident))


def format_event(event: dict[str, Any], names: Names) -> str:
    """Format one event as a line, cut to the terminal."""
    when = format_local_time(event.get("time"))
    return cut(f"{paint(when, 'dim')} {names.say_you(_format_sentence(event, names))}", get_columns())


def _format_sentence(event: dict[str, Any], names: Names) -> str:
    _, noun, move = str(event["type"]).split(".", 2)
    payload: dict[str, Any] = event.get("payload") or {}
    record: dict[str, Any] = payload.get("record") or payload
    by = _name_source(event, names)
    special = _SENTENCES.get(f"{noun}.{move}") or _NOUNS.get(noun)
    if special is not None:
        return special(_Fact(event, record, by, move.replace("_", " "), names))
    what = _get_text(record)
    return f"{by}: {noun.replace('_', ' ')} {move.replace('_', ' ')}{f': {what}' if what else ''}"


class _Fact:
    """The parts of one event."""

    def __init__(
        self, event: dict[str, Any], record: dict[str, Any], by: str, move: str, names: Names
    ) -> None:
        self.event, self.record, self.by, self.move, self.names = event, record, by, move, names

    def agent(self, field: str) -> str:
        """Return the name of the agent in a field of the record."""
        ident = self.record.get(field)
        return self.names.agent(str(ident)) if ident else ""

    @property
    def short(self) -> str:
        return paint(shorten_id(str(self.record.get("id") or "")), "dim")


def _name_source(event: dict[str, Any], names: Names) -> str:
    kind, _, ident = str(event.get("source") or "").partition(":")
    return names.agent(ident) if kind == "agent" and ident else kind or "scout"


def _get_text(record: dict[str, Any]) -> str:
    return next((join_words(record[name]) for name in _TEXTS if record.get(name)), "")


def _format_post(fact: _Fact) -> str:
    kind, _, ident = str(fact.event.get("target") or "").partition(":")
    channel = fact.names.conversation(ident) if kind == "conversation" else ""
    metadata: dict[str, Any] = fact.event.get("metadata") or {}
    targets: list[str] = metadata.get("targetAgents") or []
    whom = channel or ", ".join(map(fact.names.agent, targets))
    return f"{fact.by}{f' → {whom}' if whom else ''}: {_get_text(fact.record)}"


def _format_ask(fact: _Fact) -> str:
    whom = fact.agent("target")
    text = _get_text(fact.record)
    return f"{fact.by} asked {whom}{f': {text}' if text else ''}"


def _format_flight(fact: _Fact) -> str:
    why = join_words(fact.record.get("reason"))
    tail = f": {why}" if why and why != fact.move else ""
    return f"{fact.agent('target')}: flight {fact.move}{tail}  {fact.short}"


def _format_delivery(fact: _Fact) -> str:
    return f"{fact.agent('sender')} → {fact.agent('target')}: delivery {fact.move}  {fact.short}"


def _format_agent(fact: _Fact) -> str:
    who = fact.names.agent(str(fact.record.get("agentId") or fact.record.get("id")))
    if fact.move in _STATES:
        return f"{who} is {fact.move}"
    payload: dict[str, Any] = fact.event.get("payload") or {}
    why = join_words(payload.get("reason")) if fact.move == "retired" else ""
    return f"{fact.by} {fact.move} {who}{f': {why}' if why else ''}"


_STATES = ("online", "offline", "sleeping", "woken", "heartbeat")


def _format_session(fact: _Fact) -> str:
    noun = str(fact.event["type"]).split(".")[1]
    return f"{fact.agent('agentId')}: {noun} {fact.move} ({fact.record.get('harness')})  {fact.short}"


def _format_member(fact: _Fact) -> str:
    place = fact.names.conversation(str(fact.record.get("conversationId"))) or "a conversation"
    moved = "left" if fact.record.get("leftAt") else "joined"
    return f"{fact.agent('agentId')} {moved} {place}"


def _format_attention(fact: _Fact) -> str:
    title = join_words(fact.record.get("title"))
    if fact.move == "created":
        return f"{fact.agent('agentId') or 'scout'} → the person: {title}  {fact.short}"
    return f"{fact.by} {fact.move} “{title}”  {fact.short}"


def _format_work(fact: _Fact) -> str:
    payload: dict[str, Any] = fact.event.get("payload") or {}
    done = payload.get("move") or fact.move
    return f"{fact.by}: work {done}, {fact.record.get('state')}: {_get_text(fact.record)}  {fact.short}"


def _format_reservation(fact: _Fact) -> str:
    globs = join_words(" ".join(fact.record.get("globs") or ()))
    if fact.move == "created":
        return f"{fact.agent('agentId')} reserved {globs}  {fact.short}"
    why = join_words(fact.record.get("reason"))
    tail = f": {why}" if why and why != fact.move else ""
    return f"{fact.agent('agentId')}: reservation {fact.move} of {globs}{tail}  {fact.short}"


def _format_schedule(fact: _Fact) -> str:
    payload: dict[str, Any] = fact.event.get("payload") or {}
    why = join_words(payload.get("reason"))
    text = join_words(fact.record.get("body"))
    return f"{fact.by}: schedule {fact.move}{f' ({why})' if why else ''}: {text}  {fact.short}"


_SENTENCES: dict[str, Callable[[_Fact], str]] = {
    "message.posted": _format_post,
    "ask.created": _format_ask,
    "conversation.member": _format_member,
}
_NOUNS: dict[str, Callable[[_Fact], str]] = {
    "flight": _format_flight,
    "delivery": _format_delivery,
    "agent": _format_agent,
    "session": _format_session,
    "endpoint": _format_session,
    "attention": _format_attention,
    "work_item": _format_work,
    "reservation": _format_reservation,
    "schedule": _format_schedule,
}
