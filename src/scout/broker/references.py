"""Short ids as people write them: a unique prefix, `last`, `only`, or an agent with one such record.

Before a request is handled, each of its id fields is expanded to a full id, from the same lists and with the
same permissions as the operations that list and show these records.
"""

import functools
import re
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
from msgspec.structs import replace

from scout.base.ids import parse_prefix
from scout.base.record import Record
from scout.base.refusal import Candidate, Refused, Remedy
from scout.broker.operations import (
    access,
    allowances,
    attention,
    channels,
    flights,
    inbox,
    questions,
    talk,
    work,
)
from scout.broker.people import bindings, schedules, users
from scout.broker.sessions import records
from scout.broker.transaction.transaction import Transaction
from scout.broker.tree import reservations
from scout.model.access.allowance import Allowance
from scout.model.access.grant import Grant, GrantState
from scout.model.access.token import Token, TokenState
from scout.model.agent import Agent
from scout.model.ask import Ask
from scout.model.attention import Attention
from scout.model.card import Card
from scout.model.conversation import Conversation, Message
from scout.model.delivery import Delivery
from scout.model.endpoint import Endpoint
from scout.model.flight import Flight
from scout.model.people.binding import Binding
from scout.model.people.schedule import Schedule
from scout.model.people.user import ConnectorKey
from scout.model.problems.request import NotFound
from scout.model.problems.target import AmbiguousTarget
from scout.model.question import Question
from scout.model.reservation import Reservation
from scout.model.session import Session
from scout.model.work_item import WorkItem
from scout.protocol.access import ListCards, ListGrants, ListTokens, ShowCard
from scout.protocol.allowances import GetAllowance, ListAllowances
from scout.protocol.asks import GetAsk, GetFlight, ListFlights
from scout.protocol.attention import (
    AnswerAttention,
    ApproveAttention,
    DenyAttention,
    GetAttention,
    ListAttention,
)
from scout.protocol.channels import GetConversation, ListConversations
from scout.protocol.correction import list_parameters
from scout.protocol.inbox import GetDelivery, ListDeliveries
from scout.protocol.people.bindings import ListBindings, ShowBinding
from scout.protocol.people.schedules import GetSchedule, ListSchedules
from scout.protocol.people.users import ListKeys, ShowKey
from scout.protocol.questions import GetQuestion, ListQuestions
from scout.protocol.request import Page, Request
from scout.protocol.reservations import GetReservation, ListReservations
from scout.protocol.sessions import GetSession, ListSessions
from scout.protocol.talk import GetMessage, Latest
from scout.protocol.work import GetWork, ListWork

_SHORT = re.compile(r"([a-z]{3})_([0-9a-hjkmnp-tv-z]{4,25})")
_SHOWN = 20
_MANY = 200
_WORDS = frozenset({"last", "only"})
_DECIDING = (AnswerAttention, ApproveAttention, DenyAttention)  # items that the caller raised are passed over

R = TypeVar("R", bound=Request[Any])
ReadRecord = Callable[[Transaction, str], object]
Listed = Callable[
    [Transaction, str | None, bool], Page[Any]
]  # arguments: agent (None: all), whether only open records


class _Noun(NamedTuple):
    """A record type: its name, how to read one, how to list them, and the listing operation."""

    name: str
    record: type[Record]
    read: ReadRecord | None = None
    listed: Listed | None = None
    operation: str = ""


def _build_reader(
    handler: Callable[[Transaction, Any], object], request: type[Request[Any]], field: str
) -> ReadRecord:
    """Return a function that reads one record through its show operation."""
    return lambda tx, ident: handler(tx, request(**{field: ident}))


def _list_flights(tx: Transaction, agent: str | None, is_open: bool) -> Page[Any]:
    """Return the flights that the caller asked for; if there are none, all that it may read."""
    wanted = ListFlights(agent=agent, open=is_open, limit=_SHOWN)
    mine = flights.list_flights(tx, replace(wanted, mine=True)) if agent is None else None
    return mine if mine is not None and mine.items else flights.list_flights(tx, wanted)


def _list_sessions(tx: Transaction, agent: str | None, is_open: bool) -> Page[Any]:
    return records.list_sessions(tx, ListSessions(agent=agent, live=is_open, limit=_SHOWN))


def _list_attention(tx: Transaction, agent: str | None, is_open: bool) -> Page[Any]:
    found = attention.list_attention(tx, ListAttention(all=not is_open, limit=_MANY))
    newest = sorted(found.items, key=lambda one: one.id, reverse=True)
    named = tx.resolve(agent).agent.id if agent is not None else None
    return Page(items=tuple(one for one in newest if named in (None, one.agent_id)))


def _list_allowances(tx: Transaction, agent: str | None, is_open: bool) -> Page[Any]:
    return allowances.list_allowances(tx, ListAllowances(all=not is_open, limit=_SHOWN))


def _list_reservations(tx: Transaction, agent: str | None, is_open: bool) -> Page[Any]:
    """Return the caller's own reservations; if it has none, all that it may see."""
    wanted = ListReservations(agent=agent, all=not is_open, limit=_SHOWN)
    mine = tuple(one for one in reservations.list_held_by(tx, tx.sender)[:_SHOWN])
    return Page(items=mine) if agent is None and mine else reservations.list_reservations(tx, wanted)


def _list_schedules(tx: Transaction, agent: str | None, is_open: bool) -> Page[Any]:
    if agent is not None:
        return Page(items=schedules.find_by_name(tx, agent))
    return schedules.list_schedules(tx, ListSchedules(all=not is_open, limit=_SHOWN))


def _list_questions(tx: Transaction, agent: str | None, is_open: bool) -> Page[Any]:
    return questions.list_questions(tx, ListQuestions(owed=is_open, limit=_SHOWN))


def _list_work(tx: Transaction, agent: str | None, is_open: bool) -> Page[Any]:
    return work.list_work(tx, ListWork(all=not is_open, limit=_SHOWN))


def _list_conversations(tx: Transaction, agent: str | None, is_open: bool) -> Page[Any]:
    return channels.list_conversations(tx, ListConversations(limit=_SHOWN))


def _list_cards(tx: Transaction, agent: str | None, is_open: bool) -> Page[Any]:
    return access.list_cards(tx, ListCards(limit=_SHOWN))


def _list_asks(tx: Transaction, agent: str | None, is_open: bool) -> Page[Any]:
    found = _list_flights(tx, agent, is_open).items
    return Page(items=tuple(tx.need(Ask, "ask", one.ask_id) for one in found))


def _list_tokens(tx: Transaction, agent: str | None, is_open: bool) -> Page[Any]:
    """Return active tokens only: an ended one cannot be rotated or revoked."""
    found = access.list_tokens(tx, ListTokens(limit=_MANY)).items
    return Page(items=tuple(one for one in found if one.state is TokenState.ACTIVE))


def _list_grants(tx: Transaction, agent: str | None, is_open: bool) -> Page[Any]:
    found = access.list_grants(tx, ListGrants(limit=_MANY)).items
    return Page(items=tuple(one for one in found if one.state is GrantState.ACTIVE))


def _list_keys(tx: Transaction, agent: str | None, is_open: bool) -> Page[Any]:
    return users.list_keys(tx, ListKeys(all=not is_open, limit=_SHOWN))


def _list_bindings(tx: Transaction, agent: str | None, is_open: bool) -> Page[Any]:
    return bindings.list_bindings(tx, ListBindings(all=not is_open, limit=_SHOWN))


def _list_messages(tx: Transaction, agent: str | None, is_open: bool) -> Page[Any]:
    newest = talk.list_latest(tx, Latest(limit=_SHOWN)).items
    return Page(items=tuple(one.message for one in newest if one.message is not None))


def _list_deliveries(tx: Transaction, agent: str | None, is_open: bool) -> Page[Any]:
    return inbox.list_deliveries(tx, ListDeliveries(limit=_SHOWN))


def _resolve_agent(tx: Transaction, ident: str) -> object:
    return tx.resolve(ident)


# Id prefix → record type.
_NOUNS: Mapping[str, _Noun] = {
    "agt": _Noun("agent", Agent, _resolve_agent),
    "alw": _Noun(
        "allowance",
        Allowance,
        _build_reader(allowances.get, GetAllowance, "allowance_id"),
        _list_allowances,
        "allow.list",
    ),
    "ask": _Noun("ask", Ask, _build_reader(flights.get_ask, GetAsk, "ask_id"), _list_asks, "flight.list"),
    "att": _Noun(
        "attention item",
        Attention,
        _build_reader(attention.get, GetAttention, "attention_id"),
        _list_attention,
        "attention",
    ),
    "bnd": _Noun(
        "binding",
        Binding,
        _build_reader(bindings.show, ShowBinding, "binding_id"),
        _list_bindings,
        "binding.list",
    ),
    "cnv": _Noun(
        "conversation",
        Conversation,
        _build_reader(channels.get_conversation, GetConversation, "conversation_id"),
        _list_conversations,
        "conversation.list",
    ),
    "crd": _Noun(
        "card", Card, _build_reader(access.show_card, ShowCard, "card_id"), _list_cards, "card.list"
    ),
    "dlv": _Noun(
        "delivery",
        Delivery,
        _build_reader(inbox.get_delivery, GetDelivery, "delivery_id"),
        _list_deliveries,
        "delivery.list",
    ),
    "ept": _Noun("endpoint", Endpoint),
    "flt": _Noun(
        "flight", Flight, _build_reader(flights.get, GetFlight, "flight_id"), _list_flights, "flight.list"
    ),
    "grt": _Noun("grant", Grant, None, _list_grants, "grant.list"),
    "key": _Noun(
        "chat account",
        ConnectorKey,
        _build_reader(users.show_key, ShowKey, "key_id"),
        _list_keys,
        "user.keys",
    ),
    "msg": _Noun(
        "message",
        Message,
        _build_reader(talk.get_message, GetMessage, "message_id"),
        _list_messages,
        "latest",
    ),
    "qst": _Noun(
        "question",
        Question,
        _build_reader(questions.get, GetQuestion, "question_id"),
        _list_questions,
        "question.list",
    ),
    "rsv": _Noun(
        "reservation",
        Reservation,
        _build_reader(reservations.get, GetReservation, "reservation_id"),
        _list_reservations,
        "reserve.list",
    ),
    "sch": _Noun(
        "schedule",
        Schedule,
        _build_reader(schedules.show_schedule, GetSchedule, "schedule_id"),
        _list_schedules,
        "cron.list",
    ),
    "ses": _Noun(
        "session",
        Session,
        _build_reader(records.get_session, GetSession, "session_id"),
        _list_sessions,
        "session.list",
    ),
    "tok": _Noun("token", Token, None, _list_tokens, "token.list"),
    "wrk": _Noun(
        "work item", WorkItem, _build_reader(work.get, GetWork, "work_item_id"), _list_work, "work.list"
    ),
}

# Request fields that hold an id → the default prefix.
_FIELDS: Mapping[str, str] = {
    "flight_id": "flt",
    "ask_id": "ask",
    "session_id": "ses",
    "target_session_id": "ses",
    "reply_to_session_id": "ses",
    "session": "ses",
    "attention_id": "att",
    "attention_ids": "att",
    "allowance_id": "alw",
    "reservation_id": "rsv",
    "schedule_id": "sch",
    "flight": "flt",
    "question_id": "qst",
    "work_item_id": "wrk",
    "other": "wrk",
    "work": "wrk",
    "conversation_id": "cnv",
    "conversation": "cnv",
    "message_id": "msg",
    "in_reply_to": "msg",
    "delivery_id": "dlv",
    "delivery_ids": "dlv",
    "card_id": "crd",
    "token_id": "tok",
    "grant_id": "grt",
    "key_id": "key",
    "binding_id": "bnd",
    "endpoint_id": "ept",
    "id": "flt",  # in `why`, which takes any id
    **dict.fromkeys(("ref", "to", "address", "agent", "agent_id", "owner_id", "reviewer_id"), ""),
}
# Fields in which an agent's name means its only open record of this type.
_OF_AGENTS = frozenset(
    {"id", "flight_id", "session_id", "attention_id", "attention_ids", "reservation_id", "schedule_id"}
)
# Record types for which a read request falls back to an agent's newest record if none is open.
_SHOWN_AFTERWARDS = frozenset({"flight", "session"})
# Record types whose list shows only open records by default.
_ENDED = frozenset(
    {"attention item", "allowance", "binding", "chat account", "reservation", "schedule", "work item"}
)


def needs_expansion(request: Request[Any]) -> bool:
    """Whether a field of the request holds a short id."""
    for name, value in zip(*_read_fields(request), strict=True):
        if value.__class__ is str and _is_short(name, value):
            return True
        if value.__class__ is tuple and any(_is_short(name, text) for text in value):
            return True
    return False


def expand_references(tx: Transaction, request: R) -> R:
    """Return the request with full ids; refuse an ambiguous id with its candidates."""
    changes: dict[str, Any] = {}
    for name, texts in _list_references(request):
        whole = tuple(_expand_one(tx, request, name, text) for text in texts)
        changes[name] = whole if isinstance(getattr(request, name), tuple) else whole[0]
    return replace(request, **changes)


def _list_references(request: Request[Any]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the id fields of a request with their values."""
    held = list(zip(*_read_fields(request), strict=True))
    texts = [(name, (value,)) for name, value in held if isinstance(value, str)]
    several = [(name, cast(tuple[str, ...], value)) for name, value in held if isinstance(value, tuple)]
    return [*texts, *several]


def _read_fields(request: Request[Any]) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return the names of the id fields of a request, and their values."""
    names, read = _list_fields(request.__class__)
    return names, read(request)


@functools.cache
def _list_fields(request: type[Request[Any]]) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    """Return the id fields of a kind of request, and what reads them."""
    names = tuple(name for name in request.__struct_fields__ if name in _FIELDS)
    if len(names) < 2:
        return names, lambda one: tuple(getattr(one, name) for name in names)
    return names, attrgetter(*names)  # several values are a tuple


def _is_short(field: str, text: str) -> bool:
    if "_" in text:
        short = _SHORT.fullmatch(text) if parse_prefix(text) is None else None
        return short is not None and short[1] in _NOUNS
    noun = _NOUNS.get(_FIELDS[field])
    listed = noun is not None and noun.listed is not None
    return listed and (text in _WORDS or field in _OF_AGENTS)


def _expand_one(tx: Transaction, request: Request[Any], field: str, text: str) -> str:
    if not _is_short(field, text):
        return text
    short = _SHORT.fullmatch(text)
    noun = _NOUNS[short[1] if short else _FIELDS[field]]
    if short is not None:
        found = _find_by_prefix(tx, noun, text)
    elif text in _WORDS:
        found = _list_candidates(tx, noun, None, is_open=text == "only")[: 1 if text == "last" else None]
    else:
        found = _list_of_agent(tx, noun, text, shown=not request.writes)
    if len(found) > 1 and isinstance(request, _DECIDING):
        found = [one for one in found if _may_decide(tx, one.address)] or found
    if len(found) == 1:
        return found[0].address
    raise Refused(_build_ambiguous(request, field, text, noun, found) if found else _build_none(noun, text))


def _may_decide(tx: Transaction, ident: str) -> bool:
    return attention.get(tx, GetAttention(attention_id=ident)).may_decide


def _find_by_prefix(tx: Transaction, noun: _Noun, text: str) -> list[Candidate]:
    """Return the records with this id prefix that the caller may read."""
    found = tx.ledger.beginning(noun.record, text, _SHOWN)
    return [Candidate(address=ident) for ident in found if _may_read(tx, noun, ident)]


def _may_read(tx: Transaction, noun: _Noun, ident: str) -> bool:
    """Whether the caller may read the record; types without a reader are for the operator only."""
    if noun.read is None:
        return tx.is_operator
    try:
        noun.read(tx, ident)
    except Refused:
        return False
    return True


def _list_candidates(tx: Transaction, noun: _Noun, agent: str | None, *, is_open: bool) -> list[Candidate]:
    if noun.listed is None:
        return []
    return [
        Candidate(address=one.id, why=_get_title(one))
        for one in noun.listed(tx, agent, is_open).items[:_SHOWN]
    ]


def _list_of_agent(tx: Transaction, noun: _Noun, agent: str, *, shown: bool) -> list[Candidate]:
    """Return an agent's open records; for a read request, fall back to its newest record."""
    found = _list_candidates(tx, noun, agent, is_open=True)
    if found or not shown or noun.name not in _SHOWN_AFTERWARDS:
        return found
    return _list_candidates(tx, noun, agent, is_open=False)[:1]


def _get_title(record: Any) -> str:
    """Return a one-line title of the record."""
    text = next(
        (getattr(record, name) for name in ("title", "body", "name") if getattr(record, name, "")), ""
    )
    return str(text).strip().partition("\n")[0][:80]


def _build_ambiguous(
    request: Request[Any], field: str, text: str, noun: _Noun, found: list[Candidate]
) -> AmbiguousTarget:
    """Return the refusal of an ambiguous id, with the request repeated for the first candidates."""
    own = list_parameters(request)
    key = next(info.encode_name for info in msgspec.structs.fields(type(request)) if info.name == field)
    again = [{**own, key: one.address} for one in found[:3]]
    return AmbiguousTarget(
        address=text,
        count=len(found),
        retry=found[0].address,
        noun=noun.name,
        candidates=tuple(found),
        remedies=tuple(Remedy(operation=request.operation, parameters=one) for one in again),
    )


def _build_none(noun: _Noun, text: str) -> NotFound:
    ended = noun.name in _ENDED and _SHORT.fullmatch(text) is None
    parameters, why = ({"all": True}, "include ended ones") if ended else ({}, "list them")
    look = Remedy(operation=noun.operation, parameters=parameters, why=why)
    return NotFound(noun=noun.name, id=text[:200], remedies=(look,) if noun.operation else ())
