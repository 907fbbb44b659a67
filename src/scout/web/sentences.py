"""Events as sentences, with links to what they are about."""

from collections.abc import Callable
from typing import Any

from scout.model.events.envelope import Event
from scout.model.events.event_types import get_event_type
from scout.web.html import Child, Html, join, tag
from scout.web.names import AgentNames
from scout.web.parts import cut, link_conversation, link_flight, shorten

_TEXTS = ("text", "title", "body", "reason", "name")
_EXPLAINED = ("msg", "ask", "flt", "dlv", "qst", "wrk", "att")
_PRESENCE = ("online", "offline", "sleeping", "woken", "heartbeat")


class _Fact:
    """The parts of one event."""

    def __init__(self, event: Event, names: AgentNames) -> None:
        _, self.noun, move = get_event_type(type(event)).split(".", 2)
        self.move = move.replace("_", " ")
        self.event, self.names = event, names
        self.record: Any = getattr(event.payload, "record", event.payload)

    def agent(self, field: str) -> Html:
        return self.names.show(getattr(self.record, field, None))

    @property
    def by(self) -> Html:
        kind, _, ident = str(self.event.source).partition(":")
        return self.names.show(ident) if kind == "agent" and ident else tag("span", kind or "scout")

    @property
    def text(self) -> str:
        found = next((getattr(self.record, name) for name in _TEXTS if getattr(self.record, name, None)), "")
        return cut(str(found), 160)

    @property
    def ident(self) -> str:
        return str(getattr(self.record, "id", ""))


def write_sentence(event: Event, names: AgentNames) -> Html:
    """Return an event as one sentence."""
    fact = _Fact(event, names)
    write = _SENTENCES.get(f"{fact.noun}.{fact.move}") or _SENTENCES.get(fact.noun)
    if write is not None:
        return join(*write(fact))
    words = f": {fact.text}" if fact.text else ""
    return join(fact.by, f": {fact.noun.replace('_', ' ')} {fact.move}{words}")


def find_subject(event: Event) -> str:
    """Return the id that `why` explains: the record's, if its state has reasons, else the event's."""
    record: Any = getattr(event.payload, "record", event.payload)
    ident = str(getattr(record, "id", "") or getattr(record, "message_id", ""))
    return ident if ident.partition("_")[0] in _EXPLAINED else event.id


def _write_post(fact: _Fact) -> tuple[Child, ...]:
    targets = [fact.names.show(one) for one in fact.event.metadata.target_agents]
    kind, _, ident = str(fact.event.target).partition(":")
    where = link_conversation(ident, "message") if kind == "conversation" else tag("span", "message")
    whom = join(" → ", *targets) if targets else None
    return fact.by, whom, " ", where, f": {fact.text}"


def _write_ask(fact: _Fact) -> tuple[Child, ...]:
    return fact.by, " asked ", fact.agent("target"), f": {fact.text}" if fact.text else None


def _write_flight(fact: _Fact) -> tuple[Child, ...]:
    why = fact.record.reason
    tail = f": {cut(why, 160)}" if why and why != fact.move else None
    return fact.agent("target"), ": ", link_flight(fact.ident, "flight"), f" {fact.move}", tail


def _write_delivery(fact: _Fact) -> tuple[Child, ...]:
    return fact.agent("sender"), " → ", fact.agent("target"), f": delivery {fact.move}"


def _write_agent(fact: _Fact) -> tuple[Child, ...]:
    who = fact.names.show(getattr(fact.record, "agent_id", None) or fact.ident)
    if fact.move in _PRESENCE:
        return who, f" is {fact.move}"
    return fact.by, f" {fact.move} ", who


def _write_session(fact: _Fact) -> tuple[Child, ...]:
    return fact.agent("agent_id"), f": {fact.noun} {fact.move} ({fact.record.harness})"


def _write_member(fact: _Fact) -> tuple[Child, ...]:
    moved = "left" if fact.record.left_at else "joined"
    return (
        fact.agent("agent_id"),
        f" {moved} ",
        link_conversation(fact.record.conversation_id, "a conversation"),
    )


def _write_attention(fact: _Fact) -> tuple[Child, ...]:
    title = cut(fact.record.title, 160)
    if fact.move == "created":
        asked = tag("a", "the person", href="/inbox")
        return fact.agent("agent_id") if fact.record.agent_id else "scout", " → ", asked, f": {title}"
    return fact.by, f" {fact.move} “{title}”"


def _write_work(fact: _Fact) -> tuple[Child, ...]:
    done = getattr(fact.event.payload, "move", None) or fact.move
    item = tag("a", "work", href=f"/work/{fact.ident}")
    return fact.by, ": ", item, f" {done}, {fact.record.state}: {fact.text}"


def _write_token(fact: _Fact) -> tuple[Child, ...]:
    kind = f"{fact.record.kind} token {shorten(fact.ident)}"
    return fact.by, f": {kind} {fact.move}", f" ({fact.record.label})" if fact.record.label else None


_SENTENCES: dict[str, Callable[[_Fact], tuple[Child, ...]]] = {
    "message.posted": _write_post,
    "ask.created": _write_ask,
    "conversation.member": _write_member,
    "flight": _write_flight,
    "delivery": _write_delivery,
    "agent": _write_agent,
    "session": _write_session,
    "endpoint": _write_session,
    "attention": _write_attention,
    "work_item": _write_work,
    "token": _write_token,
}
