"""Events as sentences, such as `you → @hudson: hello all`. Every surface that shows the log uses them.

A sentence is a list of parts: words, and the records that some of them stand for. The command line and the
terminal application print the words; the page makes links of the records. Sentences are built from events as
JSON has them, since the command line decodes nothing more. They hold text of others: a surface makes its
control characters visible before it prints it.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the command line loads this on its warm path, where `typing` is too slow
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    class EventNames(Protocol):
        """The names of agents and channels in events."""

        def agent(self, ident: str) -> str:
            """Return an agent's address; the reader is `you`, and the broker is `scout`."""
            ...

        def conversation(self, ident: str) -> str:
            """Return a channel's name; empty for other conversations."""
            ...

    # Words, and the kind and the id of the record that they stand for; both are empty for plain words.
    Part = tuple[str, str, str]
    Parts = list[Part]


_TEXTS = ("text", "title", "body", "reason", "name")
_STATES = ("online", "offline", "sleeping", "woken", "heartbeat")
_EXPLAINED = ("msg", "ask", "flt", "dlv", "qst", "wrk", "att")


def build_sentence(event: dict[str, Any], names: EventNames) -> tuple[str, str]:
    """Return an event as a sentence, and the id of the record that a reader may want to look at, if any."""
    noun = str(event["type"]).split(".", 2)[1]
    words = "".join(words for words, _, _ in build_parts(event, names))
    return words, str(_get_record(event).get("id") or "") if noun in _REFERENCED else ""


def build_parts(event: dict[str, Any], names: EventNames) -> Parts:
    """Return an event as the parts of a sentence."""
    _, noun, move = str(event["type"]).split(".", 2)
    build = _SENTENCES.get(f"{noun}.{move}") or _SENTENCES.get(noun) or _describe_anything
    return [part for part in build(_Fact(event, noun, move.replace("_", " "), names)) if part[0]]


def find_subject(event: dict[str, Any]) -> str:
    """Return the id that `why` explains: the record's, if its state has reasons, else the event's."""
    record = _get_record(event)
    ident = str(record.get("id") or record.get("messageId") or "")
    return ident if ident.partition("_")[0] in _EXPLAINED else str(event["id"])


class _Fact:
    """The parts of one event."""

    def __init__(self, event: dict[str, Any], noun: str, move: str, names: EventNames) -> None:
        self.event, self.noun, self.move, self.names = event, noun, move, names
        self.payload: dict[str, Any] = event.get("payload") or {}
        self.record = _get_record(event)

    @property
    def by(self) -> Part:
        """The source of the event."""
        kind, _, ident = str(self.event.get("source") or "").partition(":")
        return self.show_agent(ident) if kind == "agent" and ident else _say(kind or "scout")

    def agent(self, field: str) -> Part:
        """Return the agent in a field of the record."""
        ident = self.record.get(field)
        return self.show_agent(str(ident)) if ident else _say("")

    def show_agent(self, ident: str) -> Part:
        return self.names.agent(ident), "agent", ident

    def link(self, words: str, kind: str) -> Part:
        """Return words that stand for the record."""
        return words, kind, str(self.record.get("id") or "")

    def reason(self) -> str:
        """Return `: why` of the record, unless the move says the same."""
        why = _join_words(self.record.get("reason"))
        return f": {why}" if why and why != self.move else ""

    def text(self) -> str:
        """Return the text of the record on one line."""
        return next((_join_words(self.record[name]) for name in _TEXTS if self.record.get(name)), "")


def _say(words: str) -> Part:
    return words, "", ""


def _get_record(event: dict[str, Any]) -> dict[str, Any]:
    payload: dict[str, Any] = event.get("payload") or {}
    record: dict[str, Any] = payload.get("record") or payload
    return record


def _join_words(text: object) -> str:
    return " ".join(str(text or "").split())


def _describe_anything(fact: _Fact) -> Parts:
    what = fact.text()
    return [fact.by, _say(f": {fact.noun.replace('_', ' ')} {fact.move}{f': {what}' if what else ''}")]


def _describe_post(fact: _Fact) -> Parts:
    kind, _, ident = str(fact.event.get("target") or "").partition(":")
    place = ident if kind == "conversation" else ""
    whom = _list_receivers(fact, place)
    text = (fact.text(), "conversation", place) if place else _say(fact.text())
    return [fact.by, *([_say(" → "), *whom] if whom else []), _say(": "), text]


def _list_receivers(fact: _Fact, place: str) -> Parts:
    """Return the channel, or the agents that a message was posted to."""
    channel = fact.names.conversation(place) if place else ""
    if channel:
        return [(channel, "conversation", place)]
    metadata: dict[str, Any] = fact.event.get("metadata") or {}
    found: Parts = []
    for ident in metadata.get("targetAgents") or ():
        found += [_say(", "), fact.show_agent(str(ident))]
    return found[1:]


def _describe_ask(fact: _Fact) -> Parts:
    text = fact.text()
    return [fact.by, _say(" asked "), fact.agent("target"), _say(f": {text}" if text else "")]


def _describe_flight(fact: _Fact) -> Parts:
    flight = fact.link("flight", "flight")
    return [fact.agent("target"), _say(": "), flight, _say(f" {fact.move}{fact.reason()}")]


def _describe_delivery(fact: _Fact) -> Parts:
    return [fact.agent("sender"), _say(" → "), fact.agent("target"), _say(f": delivery {fact.move}")]


def _describe_agent(fact: _Fact) -> Parts:
    who = fact.show_agent(str(fact.record.get("agentId") or fact.record.get("id")))
    if fact.move in _STATES:
        return [who, _say(f" is {fact.move}")]
    why = _join_words(fact.payload.get("reason")) if fact.move == "retired" else ""
    return [fact.by, _say(f" {fact.move} "), who, _say(f": {why}" if why else "")]


def _describe_session(fact: _Fact) -> Parts:
    return [fact.agent("agentId"), _say(f": {fact.noun} {fact.move} ({fact.record.get('harness')})")]


def _describe_member(fact: _Fact) -> Parts:
    ident = str(fact.record.get("conversationId") or "")
    place = (fact.names.conversation(ident) if ident else "") or "a conversation"
    moved = "left" if fact.record.get("leftAt") else "joined"
    return [fact.agent("agentId"), _say(f" {moved} "), (place, "conversation", ident)]


def _describe_attention(fact: _Fact) -> Parts:
    title = _join_words(fact.record.get("title"))
    if fact.move == "created":
        who = fact.agent("agentId") if fact.record.get("agentId") else _say("scout")
        return [who, _say(" → "), fact.link("the person", "attention"), _say(f": {title}")]
    return [fact.by, _say(f" {fact.move} “{title}”")]


def _describe_work(fact: _Fact) -> Parts:
    done = fact.payload.get("move") or fact.move
    work = fact.link("work", "work_item")
    return [fact.by, _say(": "), work, _say(f" {done}, {fact.record.get('state')}: {fact.text()}")]


def _describe_reservation(fact: _Fact) -> Parts:
    globs = _join_words(" ".join(fact.record.get("globs") or ()))
    if fact.move == "created":
        return [fact.agent("agentId"), _say(f" reserved {globs}")]
    return [fact.agent("agentId"), _say(f": reservation {fact.move} of {globs}{fact.reason()}")]


def _describe_schedule(fact: _Fact) -> Parts:
    why = _join_words(fact.payload.get("reason"))
    text = _join_words(fact.record.get("body"))
    return [fact.by, _say(f": schedule {fact.move}{f' ({why})' if why else ''}: {text}")]


def _describe_token(fact: _Fact) -> Parts:
    label = _join_words(fact.record.get("label"))
    kind = f"{fact.record.get('kind')} token {fact.move}"
    return [fact.by, _say(f": {kind}{f' ({label})' if label else ''}")]


# What describes an event: its type without `collab.`, else its noun.
_SENTENCES: dict[str, Callable[[_Fact], Parts]] = {
    "message.posted": _describe_post,
    "ask.created": _describe_ask,
    "conversation.member": _describe_member,
    "flight": _describe_flight,
    "delivery": _describe_delivery,
    "agent": _describe_agent,
    "session": _describe_session,
    "endpoint": _describe_session,
    "attention": _describe_attention,
    "work_item": _describe_work,
    "reservation": _describe_reservation,
    "schedule": _describe_schedule,
    "token": _describe_token,
}
# Nouns whose record a reader may want to look at.
_REFERENCED = frozenset(_SENTENCES) - {
    "message.posted",
    "ask.created",
    "conversation.member",
    "agent",
    "token",
}


# -- the reader ----------------------------------------------------------------------------------------

_VERBS = (("was", "were"), ("is", "are"), ("has", "have"))


def rephrase(text: str, name: str) -> str:
    """Replace the reader's name by `you` in a sentence written by Scout."""
    for singular, plural in _VERBS:
        text = text.replace(f"{name} {singular} ", f"you {plural} ")
    words = [_replace_in_word(word, name) for word in text.split(" ")]
    return " ".join(words)


def _replace_in_word(word: str, name: str) -> str:
    """Replace the name in one word, with its punctuation; a longer path is another name."""
    rest = word.removeprefix(name)
    return f"you{rest}" if word.startswith(name) and rest in ("", ".", ",", ":", ";", ")") else word
