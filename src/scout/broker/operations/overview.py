"""Status, summary (needs you, running, finished), the log, feeds and search."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.base.time import Time
from scout.broker.operations import agents, attention
from scout.broker.routing import conversations
from scout.broker.routing.reserved_files import list_relevant_reservations
from scout.broker.routing.unread import count_unread, find_broadcast
from scout.broker.routing.views import build_agent_view, build_flight_view
from scout.broker.transaction.paging import build_page, decode_bound, decode_cursor, get_page_size
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import AgentPath
from scout.model.agent import Agent
from scout.model.conversation import Conversation, Member, Message, derive_broadcast_id
from scout.model.events.envelope import Event, list_concerned
from scout.model.events.talk import AttentionEvent, MessagePosted
from scout.model.flight import Flight
from scout.model.node import Node, NodeState
from scout.model.problems.request import HistoryPurged
from scout.model.retention.archive import Archive
from scout.policy.machine import HarnessFact, MachineFacts, MachineProblem, list_machine_problems
from scout.policy.permit import Deed, Subject, may_read_attention
from scout.protocol.correction import list_parameters
from scout.protocol.log import ReadFeed, ReadLog, Watch
from scout.protocol.overview import (
    HistoryProgress,
    ListNodes,
    MarkLooked,
    Now,
    ReloadSettings,
    SeenMark,
    SettingsReloaded,
    ShowNow,
    ShowStatus,
    Status,
)
from scout.protocol.request import Page, Request
from scout.protocol.talk import Hit, Search
from scout.store.history.feed import FAR_BEHIND, read_mark
from scout.store.ledger import LAST, Ledger
from scout.store.retention.draft import measure_reach
from scout.store.search import SearchHit, list_places
from scout.store.search import search as find_words
from scout.store.touched import EventReader

OpenLedger = Callable[[], Ledger]
Readable = Callable[[Event, frozenset[str]], bool]
_SHOWN = 20
_COUNTED = 1000
_NODES = 1000
_NEWEST = (1 << 63) - 1
_STRETCH = 500
_SEARCHED = 10_000  # events scanned for one page of a filtered log


def show_status(tx: Transaction, request: ShowStatus) -> Status:
    """Return the daemon's status."""
    services = tx.services
    return replace(
        services.status,
        node=services.node,  # it may have been renamed since the start
        paused=services.paused,
        connectors=dict(services.connector_states),
        history=_find_history_progress(tx),
        meshed=services.in_mesh,
        telemetry=services.read_telemetry(),
    )


def _find_history_progress(tx: Transaction) -> HistoryProgress | None:
    """Return how far the history is, if it is further behind than a request waits for."""
    indexed, events = read_mark(tx.ledger.connection) or 0, tx.ledger.last_seq()
    return HistoryProgress(indexed=indexed, events=events) if events - indexed > FAR_BEHIND else None


def reload_settings(tx: Transaction, request: ReloadSettings) -> SettingsReloaded:
    """Reload the settings file. Running requests keep the old rules."""
    tx.permit(Deed.ADMINISTER, Subject(name=tx.services.node))
    fresh = tx.services.reload()
    return SettingsReloaded(changed=fresh.changed, needs_restart=fresh.needs_restart)


def show_now(tx: Transaction, request: ShowNow) -> Now:
    """Return a summary since the caller's last check."""
    ledger, me = tx.ledger, tx.actor.agent_id or ""
    user = attention.find_inbox_user(tx)
    since = request.since or _get_last_look(tx, me)
    needs = attention.list_in_turn(tx, user, limit=_SHOWN).items if user else ()
    if tx.is_operator:
        opened = ledger.many(Flight, "flights_due", now=1 << 62, limit=_SHOWN)
    else:
        opened = ledger.many(Flight, "flights_open_for", agent=me, before=LAST, limit=_SHOWN)
    moment = int(since or 0)
    finished = ledger.many(Flight, "flights_finished_for", agent=me, since=moment, limit=_SHOWN)
    live = agents.list_live(tx, _SHOWN)
    return Now(
        at=tx.now,
        since=since,
        needs_me=tuple(attention.show_item(tx, one) for one in needs),
        needs_by_agent=attention.list_needs(tx, user) if user else (),
        unread=count_unread(tx, me),
        open=tuple(build_flight_view(tx, one) for one in opened),
        finished=tuple(build_flight_view(tx, one) for one in finished),
        finished_count=ledger.value("flights_finished_count", agent=me, since=moment, limit=_COUNTED),
        online=tuple(build_agent_view(tx, one) for one in live),
        agents=agents.count_agents(tx),
        paused=tx.services.paused,
        reservations=list_relevant_reservations(tx),
        problems=_list_problems(tx) if tx.is_operator else (),
    )


def _list_problems(tx: Transaction) -> tuple[MachineProblem, ...]:
    """Return what is wrong with this machine, as far as it is known without asking any program."""
    services, behind = tx.services, _find_history_progress(tx)
    here = services.installation
    facts = MachineFacts(
        damage=services.read_damage(),
        free=here.count_free_bytes() if here is not None else None,
        running=services.version,
        installed=here.read_version() if here is not None else "",
        default_harness=services.default_harness,
        harnesses={
            name: HarnessFact(ready=probe.ready, missing=probe.missing, hint=probe.hint)
            for name, probe in services.ready.items()
        },
        connectors=services.connector_states,
        history=(behind.indexed, behind.events) if behind is not None else None,
        unreachable=_list_unreachable(tx) if services.meshed else {},
    )
    return list_machine_problems(facts)


def _list_unreachable(tx: Transaction) -> dict[str, Time | None]:
    nodes = tx.ledger.many(Node, "nodes_all", before=LAST, limit=_NODES)
    return {one.name: one.lost_at for one in nodes if one.state is NodeState.UNREACHABLE}


def _get_last_look(tx: Transaction, me: str) -> Time | None:
    looked_at = tx.ledger.read_last_look(me)
    return Time(looked_at) if looked_at is not None else None


def mark_seen(tx: Transaction, request: MarkLooked) -> SeenMark:
    """Record the time of the caller's last check; a time in the future counts as now."""
    at = Time(min(request.at, tx.now))
    tx.ledger.mark_look(tx.sender, at)
    return SeenMark(at=at)


def list_nodes(tx: Transaction, request: ListNodes) -> Page[Node]:
    """List the nodes that this one knows."""
    wanted = get_page_size(request.limit, tx.rules.limits)
    bound = decode_bound(request.cursor)
    found = tx.ledger.many(Node, "nodes_all", before=bound, limit=wanted + 1)
    return build_page(found, wanted, lambda node: node.id)


# -- the log -----------------------------------------------------------------------------------------


def build_event_filter(tx: Transaction, request: Watch | ReadLog, look: OpenLedger) -> Readable:
    """Return a predicate: an event matches the request and is readable; `look` opens the ledger."""
    agent_id = _find_agent_id(tx, request)
    reached = filter_for_agent(tx, agent_id, look) if agent_id else None
    ids = {one for one in (_find_conversation_id(tx, request), request.work, request.flight) if one}
    family = request.family or ""
    subtree = AgentPath.parse(request.subtree) if isinstance(request, Watch) and request.subtree else None
    may_read = build_read_filter(tx, look)
    inside = _build_subtree_filter(subtree, look) if subtree else None

    def wanted(event: Event, about: frozenset[str]) -> bool:
        if family and not str(event.__struct_config__.tag).startswith(family):
            return False
        mine = reached is None or agent_id in about or reached(event)
        return mine and ids <= about and (inside is None or inside(about)) and may_read(event, about)

    return wanted


def _find_agent_id(tx: Transaction, request: Watch | ReadLog) -> str | None:
    return tx.resolve(request.agent).agent.id if request.agent else None


def _find_conversation_id(tx: Transaction, request: Watch | ReadLog) -> str | None:
    if not request.conversation:
        return None
    if request.conversation.startswith("cnv_"):
        found = tx.need(Conversation, "conversation", request.conversation)
        return conversations.require_readable(tx, found).id
    return conversations.require_channel(tx, request.conversation).id


def _build_subtree_filter(
    subtree: AgentPath, look: OpenLedger, users: Sequence[str] = ()
) -> Callable[[frozenset[str]], bool]:
    """Return a predicate: an event concerns an agent in the subtree or of one of the users.

    Lookups are cached.
    """
    known: dict[str, bool] = {}

    def below(ident: str) -> bool:
        if ident not in known:
            agent = look().get(Agent, ident)
            known[ident] = agent is not None and (subtree.contains(agent.path) or agent.owner in users)
        return known[ident]

    return lambda about: any(below(ident) for ident in about if ident.startswith("agt_"))


def build_read_filter(tx: Transaction, look: OpenLedger) -> Readable:
    """Return a predicate: the operator reads all; an agent reads about itself, its subtree and conversations.

    A person reads about all agents of their own. Attention items and messages of others stay private.
    """
    if tx.is_operator:
        return lambda event, about: True
    actor, me, path = tx.actor, tx.actor.agent_id or "", tx.caller.path
    to_all = derive_broadcast_id(tx.actor.user) if tx.actor.user else None
    inside = _build_subtree_filter(path, look, actor.own_users) if path is not None else None

    def may_read(event: Event, about: frozenset[str]) -> bool:
        if isinstance(event, AttentionEvent):
            return may_read_attention(actor, event.payload.record)
        if me in about or any(takes_part(ident) for ident in about if ident.startswith("cnv_")):
            return True
        return inside is not None and not isinstance(event, MessagePosted) and inside(about)

    def takes_part(ident: str) -> bool:
        if ident == to_all:
            return True
        member = look().one(Member, "membership", conversation=ident, agent=me)
        return member is not None and member.left_at is None

    return may_read


def read_log(tx: Transaction, request: ReadLog) -> Page[Event]:
    """Return the events that the caller may read, oldest first."""
    wanted = get_page_size(request.limit, tx.rules.limits)
    matches = build_event_filter(tx, request, lambda: tx.ledger)

    def filtered(event: Event) -> bool:
        return matches(event, list_concerned(event))

    agent_id = _find_agent_id(tx, request)
    if request.newest or request.before is not None:
        before = _NEWEST if request.before is None else _check_number(request.before, "before")
        check_left(tx, before - 1, request)
        return _read_last_events(tx, agent_id, filtered, before, wanted)
    after = _check_number(request.after)
    check_left(tx, after and after + 1, request)
    found: list[Event] = []
    seen = 0
    for event in _read_events(tx, agent_id, after):
        seen, after = seen + 1, event.seq
        if filtered(event):
            found.append(event)
        if len(found) == wanted:
            break
    most = _SEARCHED if agent_id is None else _STRETCH
    more = seen == most or len(found) == wanted
    return Page(items=tuple(found), next=str(after) if more else None)


def _read_events(tx: Transaction, agent_id: str | None, after: int) -> Iterable[Event]:
    """Return the events scanned for one page: all, or those about one agent."""
    if agent_id is None:
        return tx.ledger.log.read_after(after, _SEARCHED)
    return read_events_about_after(tx, agent_id, after, _STRETCH)


def _check_number(number: int, field: str = "after") -> int:
    if not 0 <= number <= _NEWEST:
        raise Refused(BadRequest(problem="log numbers start at 1", field=field))
    return number


def _read_last_events(
    tx: Transaction, agent_id: str | None, filtered: Callable[[Event], bool], before: int, wanted: int
) -> Page[Event]:
    """Return the newest matching events before a number, oldest first; the log is scanned backwards."""
    back = (
        _read_backwards(tx, before, wanted)
        if agent_id is None
        else read_events_about_before(tx, agent_id, before)
    )
    found, seen, last = list[Event](), 0, before
    for event in islice(back, _SEARCHED):
        seen, last = seen + 1, event.seq
        if filtered(event):
            found.append(event)
        if len(found) == wanted:
            break
    more = last > 1 and (seen == _SEARCHED or len(found) == wanted)
    return Page(items=tuple(reversed(found)), next=str(last) if more else None)


def _read_backwards(tx: Transaction, before: int, wanted: int) -> Iterator[Event]:
    """Yield the log backwards, read in chunks: the first has what is wanted, the next ones grow."""
    end, chunk = min(tx.ledger.last_seq(), before - 1), wanted
    while end > 0:
        begin = max(end - min(chunk, _STRETCH), 0)
        yield from reversed(list(tx.ledger.log.read_after(begin, end - begin)))
        end, chunk = begin, chunk * 4


def read_feed(tx: Transaction, request: ReadFeed) -> Page[Event]:
    """Return the events about an agent, oldest first: messages, deliveries, flights, sessions, errors."""
    agent, after = agents.find(tx, request.address, Deed.READ), _check_number(request.after)
    check_left(tx, after and after + 1, request)
    wanted = get_page_size(request.limit, tx.rules.limits)
    found = read_events_about_after(tx, agent.id, after, wanted + 1)
    looked_at = found[:wanted]
    may_read = build_read_filter(tx, lambda: tx.ledger)
    shown = tuple(one for one in looked_at if _may_show(may_read, one))
    return Page(items=shown, next=str(looked_at[-1].seq) if len(found) > wanted else None)


def _may_show(may_read: Readable, event: Event) -> bool:
    """Whether an event of a readable agent is not private to others."""
    private = isinstance(event, AttentionEvent | MessagePosted)
    return not private or may_read(event, list_concerned(event))


def search(tx: Transaction, request: Search) -> Page[Hit]:
    """Search messages and work items that the caller may read, newest first."""
    wanted = get_page_size(request.limit, tx.rules.limits)
    connection = tx.ledger.connection
    places = None if tx.is_operator else list_places(connection, tx.sender)
    found = find_words(connection, request.query, places, decode_cursor(request.cursor), wanted + 1)
    listed = build_page(found, wanted, lambda one: one.cursor)
    return Page(items=tuple(_build_hit(one) for one in listed.items), next=listed.next)


def _build_hit(found: SearchHit) -> Hit:
    return Hit(
        noun=found.noun,
        id=found.id,
        conversation_id=found.conversation_id,
        sender=found.sender,
        at=found.time,
        snippet=found.snippet,
    )


# -- events about one agent --------------------------------------------------------------------------


def read_events_about_after(tx: Transaction, agent_id: str, after: int, limit: int) -> list[Event]:
    """Return the next events about an agent, oldest first."""
    named = tx.ledger.log.list_concerning(agent_id, after, limit)
    said = _read_group_messages(tx, agent_id, "followed_next", "messages_after", limit, after=after)
    found = {event.seq: event for event in (*named, *said)}
    return [found[seq] for seq in sorted(found)[:limit]]


def read_events_about_before(tx: Transaction, agent_id: str, before: int) -> Iterator[Event]:
    """Yield all events about an agent before a sequence number, newest first, read lazily."""
    while True:
        named = tx.ledger.log.list_concerning_back(agent_id, before, _STRETCH)
        said = _read_group_messages(tx, agent_id, "followed_back", "messages_before", _STRETCH, before=before)
        found = {event.seq: event for event in (*named, *said)}
        stretch = sorted(found, reverse=True)[:_STRETCH]
        yield from (found[seq] for seq in stretch)
        if len(stretch) < _STRETCH:
            return
        before = stretch[-1]


def _read_group_messages(
    tx: Transaction, agent_id: str, places: str, messages: str, limit: int, **bound: int
) -> list[Event]:
    """Return group messages to an agent, from at most `limit` conversations and the broadcasts."""
    since = _find_entry(tx, agent_id)
    heads = [(row[0], row[-1]) for row in tx.ledger.rows(places, agent=agent_id, **bound)]
    begun = sorted((one for one in heads if one[1] is not None), key=lambda one: one[1])
    chosen = [ident for ident, _ in (begun if "after" in bound else begun[::-1])[:limit]]
    to_all = find_broadcast(tx, agent_id)
    chosen = [*dict.fromkeys((*chosen, *((to_all.id,) if to_all else ())))]
    found: list[Message] = []
    for ident in chosen:
        some = tx.ledger.many(Message, messages, conversation=ident, limit=limit, **bound)
        found += [one for one in some if to_all is None or ident != to_all.id or one.seq > since]
    found.sort(key=lambda one: one.seq, reverse="before" in bound)
    events = [tx.ledger.log.get(one.seq) for one in found[:limit]]
    return [event for event in events if event is not None]


def _find_entry(tx: Transaction, agent_id: str) -> int:
    """Return the sequence number of the agent's first event; later broadcasts reach it."""
    return tx.ledger.log.find_first_seq(agent_id)


def filter_for_agent(tx: Transaction, agent_id: str, look: Callable[[], Ledger]) -> Callable[[Event], bool]:
    """Return a predicate: the event is a group message that reaches the agent."""
    agent = tx.agent(agent_id)
    to_all = derive_broadcast_id(agent.owner) if agent is not None and agent.owner else None
    since = _find_entry(tx, agent_id)

    def is_said_to(event: Event) -> bool:
        if not isinstance(event, MessagePosted):
            return False
        if event.target.id == to_all:
            return event.seq > since
        member = look().one(Member, "membership", conversation=event.target.id, agent=agent_id)
        return member is not None and member.left_at is None

    return is_said_to


# -- what was purged -----------------------------------------------------------------------------------


def check_left(tx: Transaction, seq: int, request: Request[Any]) -> None:
    """Refuse to read from an event on that was purged. 0 is the beginning of what is left."""
    purged = measure_reach(tx.ledger.connection).purged
    if purged is not None and 0 < seq <= purged.last:
        same = {name: value for name, value in list_parameters(request).items() if name != "before"}
        parameters = {**same, "after": purged.last}
        left = Remedy(operation=request.operation, parameters=parameters, why="read what is left")
        raise Refused(build_purged(tx, f"event {seq}", purged, left))


def check_record_left(tx: Transaction, noun: str, ident: str) -> None:
    """Refuse to explain a record all of whose events were purged."""
    purged = measure_reach(tx.ledger.connection).purged
    if purged is not None and _is_touched(tx, ident, purged.last):
        look = Remedy(operation="archive.list", parameters={}, why="see what is archived and what was purged")
        raise Refused(build_purged(tx, f"the history of {noun} {ident}", purged, look))


def _is_touched(tx: Transaction, ident: str, until: int) -> bool:
    message = tx.get(Message, ident) if ident.startswith("msg_") else None
    if message is not None:
        return message.seq <= until
    return EventReader(tx.ledger.connection).is_touched(ident, until)


def build_purged(tx: Transaction, what: str, purged: Archive, *remedies: Remedy) -> HistoryPurged:
    """Return the refusal of something that was purged."""
    return HistoryPurged(
        what=what,
        first_left=purged.last + 1,
        purged_at=purged.updated_at,
        purged_by=tx.address(purged.by),
        remedies=remedies,
    )
