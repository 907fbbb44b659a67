"""Events as sentences, such as `you → @hudson: hello all`. Every surface that shows the log uses them.

They are built from events as JSON has them, since the command line decodes nothing more. A sentence holds
text of others: a surface makes its control characters visible before it prints it.
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


_TEXTS = ("text", "title", "body", "reason", "name")
_STATES = ("online", "offline", "sleeping", "woken", "heartbeat")


def build_sentence(event: dict[str, Any], names: EventNames) -> tuple[str, str]:
    """Return an event as a sentence, and the id of the record that a reader may want to look at, if any."""
    _, noun, move = str(event["type"]).split(".", 2)
    payload: dict[str, Any] = event.get("payload") or {}
    record: dict[str, Any] = payload.get("record") or payload
    by = _name_source(event, names)
    fact = _Fact(event, record, by, move.replace("_", " "), names)
    special = _SENTENCES.get(f"{noun}.{move}")
    if special is not None:
        return special(fact), ""
    if noun in _NOUNS:
        build, has_reference = _NOUNS[noun]
        return build(fact), str(record.get("id") or "") if has_reference else ""
    what = _get_text(record)
    return f"{by}: {noun.replace('_', ' ')} {fact.move}{f': {what}' if what else ''}", ""


class _Fact:
    """The parts of one event."""

    def __init__(
        self, event: dict[str, Any], record: dict[str, Any], by: str, move: str, names: EventNames
    ) -> None:
        self.event, self.record, self.by, self.move, self.names = event, record, by, move, names
        self.payload: dict[str, Any] = event.get("payload") or {}

    def agent(self, field: str) -> str:
        """Return the name of the agent in a field of the record."""
        ident = self.record.get(field)
        return self.names.agent(str(ident)) if ident else ""

    def reason(self) -> str:
        """Return `: why` of the record, unless the move says the same."""
        why = _join_words(self.record.get("reason"))
        return f": {why}" if why and why != self.move else ""


def _join_words(text: object) -> str:
    return " ".join(str(text or "").split())


def _name_source(event: dict[str, Any], names: EventNames) -> str:
    kind, _, ident = str(event.get("source") or "").partition(":")
    return names.agent(ident) if kind == "agent" and ident else kind or "scout"


def _get_text(record: dict[str, Any]) -> str:
    return next((_join_words(record[name]) for name in _TEXTS if record.get(name)), "")


def _describe_post(fact: _Fact) -> str:
    kind, _, ident = str(fact.event.get("target") or "").partition(":")
    channel = fact.names.conversation(ident) if kind == "conversation" else ""
    metadata: dict[str, Any] = fact.event.get("metadata") or {}
    targets: list[str] = metadata.get("targetAgents") or []
    whom = channel or ", ".join(map(fact.names.agent, targets))
    return f"{fact.by}{f' → {whom}' if whom else ''}: {_get_text(fact.record)}"


def _describe_ask(fact: _Fact) -> str:
    text = _get_text(fact.record)
    return f"{fact.by} asked {fact.agent('target')}{f': {text}' if text else ''}"


def _describe_flight(fact: _Fact) -> str:
    return f"{fact.agent('target')}: flight {fact.move}{fact.reason()}"


def _describe_delivery(fact: _Fact) -> str:
    return f"{fact.agent('sender')} → {fact.agent('target')}: delivery {fact.move}"


def _describe_agent(fact: _Fact) -> str:
    who = fact.names.agent(str(fact.record.get("agentId") or fact.record.get("id")))
    if fact.move in _STATES:
        return f"{who} is {fact.move}"
    why = _join_words(fact.payload.get("reason")) if fact.move == "retired" else ""
    return f"{fact.by} {fact.move} {who}{f': {why}' if why else ''}"


def _describe_session(fact: _Fact) -> str:
    noun = str(fact.event["type"]).split(".")[1]
    return f"{fact.agent('agentId')}: {noun} {fact.move} ({fact.record.get('harness')})"


def _describe_member(fact: _Fact) -> str:
    place = fact.names.conversation(str(fact.record.get("conversationId"))) or "a conversation"
    moved = "left" if fact.record.get("leftAt") else "joined"
    return f"{fact.agent('agentId')} {moved} {place}"


def _describe_attention(fact: _Fact) -> str:
    title = _join_words(fact.record.get("title"))
    if fact.move == "created":
        return f"{fact.agent('agentId') or 'scout'} → the person: {title}"
    return f"{fact.by} {fact.move} “{title}”"


def _describe_work(fact: _Fact) -> str:
    done = fact.payload.get("move") or fact.move
    return f"{fact.by}: work {done}, {fact.record.get('state')}: {_get_text(fact.record)}"


def _describe_reservation(fact: _Fact) -> str:
    globs = _join_words(" ".join(fact.record.get("globs") or ()))
    if fact.move == "created":
        return f"{fact.agent('agentId')} reserved {globs}"
    return f"{fact.agent('agentId')}: reservation {fact.move} of {globs}{fact.reason()}"


def _describe_schedule(fact: _Fact) -> str:
    why = _join_words(fact.payload.get("reason"))
    text = _join_words(fact.record.get("body"))
    return f"{fact.by}: schedule {fact.move}{f' ({why})' if why else ''}: {text}"


_SENTENCES: dict[str, Callable[[_Fact], str]] = {
    "message.posted": _describe_post,
    "ask.created": _describe_ask,
    "conversation.member": _describe_member,
}
# Noun → sentence, and whether the id of the record follows it.
_NOUNS: dict[str, tuple[Callable[[_Fact], str], bool]] = {
    "flight": (_describe_flight, True),
    "delivery": (_describe_delivery, True),
    "agent": (_describe_agent, False),
    "session": (_describe_session, True),
    "endpoint": (_describe_session, True),
    "attention": (_describe_attention, True),
    "work_item": (_describe_work, True),
    "reservation": (_describe_reservation, True),
    "schedule": (_describe_schedule, True),
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
