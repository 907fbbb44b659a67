"""Several users on one machine, each with agents and records of every kind; whose they are stands in their text.

Each name and each text of a user holds a mark such as `zz-bob-`. So any answer tells whose records it shows.
"""

import random
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from scout.base.codec import decode, encode
from scout.broker.local import LocalScout
from scout.broker.people import links
from scout.broker.people.links import ChatAccount
from scout.broker.routing import registration, users
from scout.broker.transaction.transaction import Transaction
from scout.broker.upkeep import housekeeping
from scout.identity.path import AgentPath
from scout.model.access.grant import Action
from scout.model.agent import AgentConfig
from scout.model.endpoint import EndpointState, Transport
from scout.model.people.user import UserKind
from scout.protocol.access import AddGrant, CreateToken, SetAlias
from scout.protocol.agents import Resolve
from scout.protocol.asks import MakeAsk
from scout.protocol.attention import Consult
from scout.protocol.channels import CreateChannel
from scout.protocol.endpoints import RegisterEndpoint
from scout.protocol.inbox import ListInbox
from scout.protocol.operations import REQUESTS
from scout.protocol.people.bindings import AddBinding
from scout.protocol.people.users import AddUser, LinkUser
from scout.protocol.questions import CreateQuestion
from scout.protocol.request import Request
from scout.protocol.talk import PutBlob, Send
from scout.protocol.work import CreateWork
from tests.broker.rig import Rig

# name → owner; `ada` is the operator.
OWNERS: dict[str, str | None] = {
    "ada": None,
    "bob": None,
    "club": None,
    "kid": "bob",
    "tot": "kid",
    "pet": "ada",
}
PERSON = "direct"
_MARK = re.compile(r"zz-(\w+?)-")


def mark(user: str, number: object = 0) -> str:
    return f"zz-{user}-{number}"


def find_marks(told: object) -> set[str]:
    """The users whose records an answer shows."""
    return set(_MARK.findall(told if isinstance(told, str) else encode(told).decode()))


class World:
    """The agents of each user by their path, their tokens, and every record's id by user and kind."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.tokens: dict[str, str] = {}
        self.agents: dict[str, list[str]] = {}
        self.records: dict[str, dict[str, list[str]]] = {}
        self.grants: list[AddGrant] = []

    async def seat(self, path: str) -> LocalScout:
        """Scout as the agent at a path sees it, with an agent's token; never the operator's."""
        return await self.rig.scout(self.tokens[path])

    def note(self, user: str, kind: str, ident: str) -> None:
        self.records.setdefault(user, {}).setdefault(kind, []).append(ident)


async def build_world(rig: Rig, draw: random.Random) -> World:
    """Users with agents, conversations, asks, work, questions, attention, files, chats and bindings."""
    world = World(rig)
    for user, owner in OWNERS.items():
        kind = UserKind.GROUP if user == "club" else UserKind.PERSON
        if user != "ada":
            shown = None if owner else mark(user, "name")  # an owner's agents see a gateway of that name
            await rig.operator(AddUser(user=user, kind=kind, owner=owner, display_name=shown))
        await _add_agents(world, user, draw)
    for user in OWNERS:
        await _fill(world, user, draw)
    await housekeeping.tidy(rig.broker)  # the words become searchable
    return world


async def _add_agents(world: World, user: str, draw: random.Random) -> None:
    names = [mark(user, number) for number in range(draw.randint(2, 3))]

    def enter(tx: Transaction) -> list[str]:
        paths = [AgentPath.root(user, "agent", name) for name in names]
        paths.append(paths[0].sub(0))
        for path in paths:
            registration.register_agent_at(tx, path, AgentConfig(description=mark(user)))
        return [str(one) for one in (AgentPath.root(user, PERSON), *paths)]

    world.agents[user] = await world.rig.broker.as_system(enter)
    for path in world.agents[user]:
        world.tokens[path] = (await world.rig.operator(CreateToken(agent=path))).secret
        world.note(user, "agt", (await world.rig.operator(Resolve(address=path))).agent_id)


async def _fill(world: World, user: str, draw: random.Random) -> None:
    """One record of each kind at least, all among the agents of one user."""
    person, *programs = world.agents[user]
    one, other = draw.sample(programs, 2)
    seat, text = await world.seat(one), mark(user, "text")
    await seat.call(RegisterEndpoint(transport=Transport.PULL, state=EndpointState.IDLE))
    file = await seat.call(PutBlob(name=mark(user, "file"), data=f"{text}-{draw.random()}".encode()))
    world.note(user, "sha", file.sha256)
    sent = await seat.call(Send(to=other, body=text, attachments=(file.sha256,)))
    world.note(user, "msg", sent.message_id)
    world.note(user, "cnv", sent.conversation_id)
    asked = await (await world.seat(person)).call(MakeAsk(to=one, body=text))
    world.note(user, "flt", asked.flight_id)
    world.note(user, "ask", asked.ask_id)
    channel = await seat.call(CreateChannel(name=mark(user, "channel"), members=(other,)))
    world.note(user, "cnv", channel.id)
    await seat.call(Send(channel=mark(user, "channel"), body=text))
    await (await world.seat(person)).call(Send(broadcast=True, body=text))
    work = await seat.call(CreateWork(title=text, owner_id=other))
    world.note(user, "wrk", work.id)
    question = await seat.call(CreateQuestion(to=other, body=text))
    world.note(user, "qst", question.id)
    item = await seat.call(Consult(question=text, default_action="no"))
    world.note(user, "att", item.id)
    for mail in (await (await world.seat(other)).call(ListInbox())).items:
        if mail.delivery_id:
            world.note(user, "dlv", mail.delivery_id)
    await (await world.seat(person)).call(SetAlias(name=f"a-{mark(user)}", target=one))
    await _link_chat(world, user)


async def _link_chat(world: World, user: str) -> None:
    """A chat account by a code, and a binding of its chat."""
    code = (await world.rig.operator(LinkUser(user=user, connector="matrix"))).code
    chat, group = mark(user, "chat"), user == "club"
    account = ChatAccount(connector="matrix", external_id=mark(user, "id"), chat_id=chat, group=group)
    done = await world.rig.broker.as_system(lambda tx: links.redeem(tx, account, code))
    assert isinstance(done, links.Linked), done
    world.note(user, "key", done.key.id)
    bound = await (await world.seat(world.agents[user][0])).call(
        AddBinding(connector="matrix", chat=chat, channel=mark(user, "channel"))
    )
    world.note(user, "bnd", bound.id)
    assert await world.rig.broker.as_system(lambda tx: users.find_user(tx, user)) is not None


# -- who may see whom: an independent reading of the rules --------------------------------------------------


def list_owned(user: str) -> set[str]:
    """The sub-users of a user, and theirs."""
    direct = {name for name, owner in OWNERS.items() if owner == user}
    return direct.union(*(list_owned(one) for one in direct))


def find_reach(world: World, path: str) -> set[str]:
    """The users of whose records an agent may see anything."""
    user = path.split("/")[1]
    if path == f"/ada/{PERSON}":
        return set(OWNERS)  # in person the operator, who made all these users, and is told so
    reach = {user, *(list_owned(user) if path == f"/{user}/{PERSON}" else ())}
    for grant in world.grants:
        if grant.holder == user or grant.agent == path:
            scope = grant.user or (grant.path or "").split("/")[1]
            reach.add(scope)
    return reach


async def draw_grants(world: World, draw: random.Random, count: int) -> None:
    """Some grants to users or agents, on users or subtrees of others."""
    everybody = [path for paths in world.agents.values() for path in paths]
    for _ in range(count):
        holder: dict[str, Any] = (
            {"holder": draw.choice(list(OWNERS))}
            if draw.random() < 0.5
            else {"agent": draw.choice(everybody)}
        )
        scope: dict[str, Any] = (
            {"user": draw.choice(list(OWNERS))} if draw.random() < 0.5 else {"path": draw.choice(everybody)}
        )
        grant = AddGrant(action=draw.choice(list(Action)), **holder, **scope)
        await world.rig.operator(grant)
        world.grants.append(grant)


# -- every request -----------------------------------------------------------------------------------------

# Required parameters that name a record: the kind of its id. Others get a plain text.
_KINDS = {
    "address": "agt",
    "agent": "agt",
    "to": "agt",
    "flight_id": "flt",
    "ask_id": "ask",
    "message_id": "msg",
    "conversation_id": "cnv",
    "delivery_id": "dlv",
    "delivery_ids": "dlv",
    "question_id": "qst",
    "work_item_id": "wrk",
    "attention_id": "att",
    "key_id": "key",
    "binding_id": "bnd",
    "sha256": "sha",
    "id": "flt",
}
# Optional parameters by which a request names somebody else's record, each tried alone.
_OPTIONAL = {
    "ReadLog": {"agent": "agt", "conversation": "cnv", "work": "wrk"},
    "ListSessions": {"agent": "agt"},
    "ListMessages": {"conversation": "cnv", "to": "agt"},
    "ListDeliveries": {"target": "agt"},
    "ListFlights": {"agent": "agt"},
    "ListWork": {"owner_id": "agt"},
    "ListAttention": {"agent": "agt", "flight": "flt"},
    "ListReservations": {"agent": "agt"},
    "ShowTree": {"address": "agt"},
    "ShowUsage": {"agent": "agt"},
    "ListUsers": {"owner": "usr"},
    "ListKeys": {"user": "usr"},
    "Resolve": {"from_": "agt"},
    "Send": {"to": "agt", "conversation_id": "cnv", "thread": "msg"},
    "Reply": {"in_reply_to": "msg"},
    "MakeAsk": {"to": "agt"},
    "CreateWork": {"owner_id": "agt", "conversation_id": "cnv"},
    "RegisterEndpoint": {"agent_id": "agt"},
    "CreateCard": {"agent": "agt"},
    "CreateToken": {"agent": "agt", "user": "usr"},
    "Need": {"flight_id": "flt", "work_item_id": "wrk"},
    "AddAllowance": {"agent": "agt"},
    "DecideAttention": {"attention_ids": "att", "agent": "agt"},
}
_TRIED = 2  # records of a kind that each request is tried with
_PLAIN: dict[str, Any] = {
    "texts": ("@x",),
    "paths": ("/nowhere/x",),
    "at": "2026-01-01T00:00:00.000Z",
    "on": "condition",
    "kind": "blocks",
    "move": "approve",
    "event": "stop",
    "pid": 1,
    "slugs": ("x",),
    "globs": ("x",),
    "action": "read",
    "hours": "22:00-07:00",
    "connector": "matrix",
    "query": "text",  # a match is set apart in the answer, so the mark itself is not searched for
    "harness": "echo",
}
# Not about records of a user, or for a credential that no user has.
LEFT_OUT = frozenset(
    {
        "CheckRuntime",
        "Enrol",
        "ImportRecords",
        "ListRuntimes",
        "PutBlob",
        "ReportHook",
        "StopCheck",
        "Watch",
    }
)
# A card is a return address: whoever knows its id may use it.
LEFT_OUT_CARDS = frozenset({"ShowCard", "RevokeCard"})
_USER = frozenset({"user", "holder", "owner"})
_SEVERAL = frozenset({"delivery_ids", "attention_ids"})


def build_requests(world: World, about: str, *, writes: bool) -> Iterator[Request[Any]]:
    """Every request, aimed at the records of one user where it names any."""
    for kind in REQUESTS:
        if kind.writes is writes and kind.__name__ not in LEFT_OUT | LEFT_OUT_CARDS:
            yield from _build_each(world, kind, about)


def names_records(request: Request[Any]) -> bool:
    """Whether a request names a record, so that it cannot succeed for who may not reach it."""
    name = type(request).__name__
    required = [one.name for one in msgspec.structs.fields(type(request)) if one.required]
    given = [field for field in _OPTIONAL.get(name, {}) if getattr(request, field, None)]
    return bool(given) or any(one in _KINDS or one in _USER for one in required)


def _build_each(world: World, kind: type[Request[Any]], about: str) -> Iterator[Request[Any]]:
    fields = [one for one in msgspec.structs.fields(kind) if one.required]
    wire = {one.name: one.encode_name for one in msgspec.structs.fields(kind)}
    optional = _OPTIONAL.get(kind.__name__, {})
    choices = [
        {name: (one,) if name in _SEVERAL else one}
        for name, prefix in optional.items()
        for one in _list_values(world, about, prefix)[:_TRIED]
    ]
    length = max([len(_list_pool(world, about, one.name)) for one in fields], default=1)
    for more in choices or [{}]:
        for index in range(max(min(length, _TRIED), 1)):
            values = {one.name: _pick(world, about, one.name, index) for one in fields} | more
            yield decode({wire[name]: value for name, value in values.items()}, kind)


def _list_values(world: World, about: str, prefix: str) -> list[str]:
    return [about] if prefix == "usr" else world.records[about].get(prefix, [])


def _list_pool(world: World, about: str, field: str) -> list[str]:
    return world.records[about].get(_KINDS.get(field, ""), [])


def _pick(world: World, about: str, field: str, index: int) -> Any:
    pool = _list_pool(world, about, field)
    if pool:
        found = pool[index % len(pool)]
        return (found,) if field in _SEVERAL else found
    if field in _USER:
        return about
    return _PLAIN.get(field, "x")
