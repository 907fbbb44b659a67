"""Events as sentences, such as `you → @hudson: hello all`, and the mesh in words. Every surface uses them.

A sentence is a list of parts: words, and the records that some of them stand for. The command line and the
terminal application print the words; the page makes links of the records. Sentences are built from events as
JSON has them, since the command line decodes nothing more. They hold text of others: a surface makes its
control characters visible before it prints it. Times are formatted by the surface: a terminal shows local
time, and the page does so by script.
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

        def node(self, ident: str) -> str:
            """Return the name of a node."""
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


def _describe_node(fact: _Fact) -> Parts:
    if fact.move in ("paused", "resumed"):  # who did it matters more than where
        return _describe_anything(fact)
    return [_say(describe_node_event(fact.move.replace(" ", "_"), fact.record))]


def _describe_envelope(fact: _Fact) -> Parts:
    """Return how far an envelope to another node has come."""
    node = fact.names.node(str(fact.record.get("nodeId")))
    return [_say(f"{fact.record.get('kind')} {describe_envelope_state(fact.move, node)}")]


def _describe_received(fact: _Fact) -> Parts:
    node = fact.names.node(str(fact.record.get("nodeId")))
    problem: dict[str, Any] = fact.record.get("problem") or {}
    why = f": {_join_words(problem['message'])}" if problem else ""
    return [_say(f"{fact.record.get('kind')} from node {node} {fact.record.get('outcome')}{why}")]


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
    "node": _describe_node,
    "envelope": _describe_envelope,
    "envelope.received": _describe_received,
}
# Nouns whose record a reader may want to look at.
_REFERENCED = frozenset(_SENTENCES) - {
    "message.posted",
    "ask.created",
    "conversation.member",
    "agent",
    "token",
    "node",
    "envelope",
    "envelope.received",
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


# -- the mesh: names -----------------------------------------------------------------------------------

_ON_ITS_WAY = {
    "queued": "waits to be sent to node {node}",
    "forwarded": "was forwarded to the server of the mesh, and node {node} has not confirmed it",
    "accepted": "was accepted by node {node}",
    "delivered": "was delivered on node {node}",
    "refused": "was refused by node {node}",
    "expired": "was given up before node {node} confirmed it",
}
_NODE_EVENTS = {
    "created": "{node} joined the mesh",
    "admitted": "{node} joined the mesh again",
    "lost": "{node} is unreachable",
    "recovered": "{node} is back",
    "left": "{node} left the mesh",
    "removed": "{node} was removed from the mesh",
    "renamed": "a node is now called {node}",
    "key_rotated": "{node} has another key",
    "refused": "{node} was refused",
}


def add_node(name: str, node: str | None) -> str:
    """Return an agent's name with its node, if that is another one and the name does not have it."""
    return f"{name} on {node}" if node and f"node:{node}" not in name else name


def find_node(agent: dict[str, Any]) -> str | None:
    """Return the node of an agent of another node; None for an agent of this one."""
    return str(agent["node"]) if str(agent.get("createdBy") or "").startswith("nod_") else None


def count_machines(number: int, kind: str = "") -> str:
    """Return a number of machines in words; `kind`: an adjective."""
    words = f"{kind} machine".lstrip()
    return f"1 {words}" if number == 1 else f"{number} {words}s"


# -- the mesh: nodes and links -------------------------------------------------------------------------


def format_since(moment: object) -> str:
    """Return the time of day of a moment, for sentences that the broker writes; empty without one."""
    return f"{str(moment)[11:16]} UTC" if moment is not None else ""


def describe_node_state(state: str, since: str = "") -> str:
    """Return the state of a node; `since`: when it was lost."""
    return f"{state} since {since}" if since and state == "unreachable" else state


def list_roles(node: dict[str, Any]) -> list[str]:
    """Return what a node is in its mesh, besides a machine of your own."""
    roles = {
        "here": node.get("here"),
        "founder": node.get("founder"),
        "guest": node.get("relation") == "guest",
    }
    return [name for name, is_so in roles.items() if is_so]


def describe_queue(node: dict[str, Any], since: str = "") -> str:
    """Return what waits for a node; `since`: from when the oldest is."""
    number = int(node.get("queued") or 0)
    if not number:
        return "nothing waits"
    oldest = f", the oldest {since}" if since else ""
    return f"{number} not confirmed{oldest}"


def describe_presence(status: str, program: str | None) -> str:
    """Return the status of an agent, or what its program does if that says more than `online`."""
    if status == "online" and program is not None and program != "idle":
        return program
    return status.replace("_", " ")


def describe_mesh(view: dict[str, Any]) -> str:
    """Return the mesh of this machine in one line: its role, the connection, and the machines."""
    if not view["member"]:
        return f"{view['node']} belongs to no mesh"
    role = "founded" if view.get("founder") else "joined"
    away = ", ".join(view.get("unreachable", ()))
    machines = f"{count_machines(view['nodes'])}{f', not reachable: {away}' if away else ''}"
    return f"{role} at {view['url']}, {describe_link(view)}, {machines}"


def describe_link(view: dict[str, Any]) -> str:
    """Return the connection of this machine to the server of the mesh."""
    if view.get("stopped"):
        return "stopped; `scout mesh up` starts it again"
    if view.get("connected"):
        return "connected"
    why = f"not connected ({view.get('problem') or 'no answer'})"
    return f"{why}, out of date: not synced since {view['since']}" if view.get("outOfDate") else why


def describe_server(server: dict[str, Any]) -> str:
    """Return the server that this machine runs."""
    if not server["running"]:
        return f"not running ({server.get('problem') or 'stopped'})"
    others = count_machines(server.get("connections", 0), "other")
    return f"nats-server {server.get('version', '')}, {others} connected"


# -- the mesh: what is on its way ----------------------------------------------------------------------


def describe_receipt(receipt: dict[str, Any] | None) -> str:
    """Return how far something has come on its way to another node; empty for what stays on this one."""
    if not receipt:
        return ""
    problem: dict[str, Any] = receipt.get("problem") or {}
    said = describe_envelope_state(receipt.get("state") or "queued", str(receipt["node"]))
    return f"{said}: {problem['message']}" if problem else said


def describe_envelope_state(state: str, node: str) -> str:
    """Return the state of an envelope to a node, without its subject."""
    return _ON_ITS_WAY[state].format(node=node)


def describe_node_event(move: str, node: dict[str, Any]) -> str:
    """Return an event about a node; this machine was created at its first start."""
    if move == "created" and node.get("local"):
        return f"this machine is called {node['name']}"
    return _NODE_EVENTS.get(move, "{node} was updated").format(node=node.get("name"))
