"""One request in one transaction: its caller, its time, what it reads, and the events it appends."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from scout.base.record import Record
from scout.base.refusal import Diagnostic, Refused, Remedy
from scout.base.time import Time
from scout.broker.transaction.cache import Cache
from scout.broker.transaction.services import Services
from scout.model.access.grant import Grant, GrantScope, is_valid_grant
from scout.model.access.token import TokenKind
from scout.model.agent import Agent
from scout.model.alias import Alias
from scout.model.conversation import Conversation
from scout.model.delivery import Delivery
from scout.model.endpoint import Endpoint
from scout.model.events.envelope import Changed, Event, Metadata
from scout.model.problems.request import Forbidden, NotFound, NotOwner
from scout.model.problems.target import RemoteTarget
from scout.model.ref import Ref
from scout.model.remote_agent import RemoteAgent
from scout.policy.directory import Instance, Viewpoint, get_instance
from scout.policy.permit import Actor, Deed, Permission, Subject, permit
from scout.policy.resolver.handle import (
    Resolution,
    find_shorter_alias,
    format_agent_address,
    minimize_address,
)
from scout.policy.resolver.resolve import resolve
from scout.ports import Surroundings
from scout.store.directory import StoredDirectory, View
from scout.store.ledger import Ledger


class Stored(Protocol):
    """A record as the log stores it: under its id."""

    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=Record)
S = TypeVar("S", bound=Stored)

_WHOAMI = Remedy(operation="whoami", parameters={}, why="see whose token this is")


def build_subject(agent: Agent) -> Subject:
    """Return an agent as the subject of a permission check; a refusal shows its address.

    A path names an agent of this node, so a grant on a path is none on an agent of another node.
    """
    return Subject(
        name=agent.id,
        agent_id=agent.id,
        path=None if agent.is_remote else agent.path,
        user=agent.owner,
        node=agent.node,
        project_root=agent.project_root,
    )


class Transaction:
    """Handed to every operation. `place` is what the disk says of the directory that the request names.

    `here` is the directory of the caller, if it is in a project. `cache` is shared by
    all transactions; readers have a separate one.
    """

    def __init__(
        self,
        services: Services,
        ledger: Ledger,
        actor: Actor,
        caller: Viewpoint,
        *,
        here: Surroundings | None = None,
        place: Surroundings | None = None,
        cache: Cache | None = None,
    ) -> None:
        self.services = services
        self.rules = services.rules
        self.ledger = ledger
        self.actor = actor
        self.caller = caller
        self.here = here
        self.place = place
        self.now: Time = services.clock.now()
        self._ids = services.ids.series()
        self.events: list[Event] = []
        self.cache = cache or Cache()
        self._view: View | None = None
        self.new_roots: list[str] = []
        # Sizes of the stored files that the request names.
        self.files: Mapping[str, int] = {}
        # Deliveries of plain messages to people, which their foreground agents may get too.
        self.mail_to_people: list[Delivery] = []
        # Alarms for the operator, raised even if the request is refused.
        self.alarms: list[Diagnostic] = []
        # The routes chosen by the last decision about each agent, for what is delivered to it.
        self.routes: dict[str, Any] = {}
        # The turn that starts after the commit, if it was prepared in this transaction.
        self.prepared: Any = None

    # -- facts -----------------------------------------------------------------------------------

    @property
    def sender(self) -> str:
        """Return the agent in whose name the request runs; refuse a credential without one."""
        if self.actor.agent_id is None:
            needs = ("the token of an agent",)
            raise Refused(Forbidden(action="act", subject="this Scout", needs=needs))
        return self.actor.agent_id or self.services.system_agent

    def append(
        self,
        kind: type[Event],
        target: str,
        payload: Any,
        metadata: Metadata = Metadata(),
        source: str | None = None,
    ) -> Event:
        """Append one event under the credential of this request; guests are refused."""
        if self.actor.kind is TokenKind.GUEST:
            needs = ("the token of an agent",)
            raise Refused(Forbidden(action="change", subject="this Scout", needs=needs))
        last = self.cache.last_seq
        event = kind(
            id=f"evt_{next(self._ids)}",
            seq=(self.ledger.last_seq() if last is None else last) + 1,
            time=self.now,
            source=Ref.to(source or self.sender),
            target=Ref.to(target),
            payload=payload,
            metadata=replace(metadata, token_id=token) if (token := self.actor.token_id) else metadata,
        )
        self.ledger.appended.append(event)
        self.events.append(event)
        changed = payload.record if payload.__class__ is Changed else getattr(payload, "record", payload)
        self.cache.apply(event.seq, changed)
        return event

    def record(
        self,
        kind: type[Event],
        record: S,
        *,
        move: str | None = None,
        reason: str = "",
        metadata: Metadata = Metadata(),
        source: str | None = None,
        target: str | None = None,
    ) -> S:
        """Append the event that a record has changed to this."""
        by = source or self.sender
        payload = Changed(record=record, move=move, by=by, reason=reason)
        self.append(kind, target or record.id, payload, metadata, by)
        return record

    def mint(self, prefix: str) -> str:
        """Return a new id."""
        return f"{prefix}_{next(self._ids)}"

    def continue_as(self, actor: Actor, caller: Viewpoint) -> "Transaction":
        """Return the same transaction in the name of another actor; its events follow those up to now."""
        other = Transaction(self.services, self.ledger, actor, caller, cache=self.cache)
        other.now, other._ids, other.events = self.now, self._ids, self.events
        other.new_roots = self.new_roots
        return other

    # -- permissions------------------------------------------------------------------------------

    def permit(self, deed: Deed, subject: Subject) -> Permission:
        """Return the permission, or refuse with what would allow it."""
        try:
            return permit(self.actor, deed, subject, self._find_grants(), self.now)
        except Refused:
            hidden = self._is_hidden(subject.agent_id)
            if hidden:  # a refusal tells nothing about an agent that the caller may not see
                subject = replace(subject, path=None, project_root=None)
            plain = "another user's agent" if subject.name == subject.agent_id else subject.name
            shown = plain if hidden else self.address(subject.agent_id) or subject.name
            return permit(self.actor, deed, replace(subject, name=shown), self._find_grants(), self.now)

    def _is_hidden(self, agent_id: str | None) -> bool:
        agent = self.agent(agent_id)
        return agent is not None and not self.view.shows(agent)

    def allows(self, deed: Deed, subject: Subject) -> bool:
        """Whether it would be permitted."""
        try:
            permit(self.actor, deed, subject, self._find_grants(), self.now)
        except Refused:
            return False
        return True

    def _find_grants(self) -> list[Grant]:
        """Return the grants of the caller and of all agents of its user."""
        agent, user = self.actor.agent_id, self.actor.user
        kept = self.cache.grants
        if (agent, user) not in kept:
            own = self.ledger.many(Grant, "grants_of_agent", agent=agent) if agent else []
            shared = self.ledger.many(Grant, "grants_of_user", user=user) if user else []
            kept[agent, user] = [*own, *shared]
        return kept[agent, user]

    @property
    def is_operator(self) -> bool:
        return self.actor.kind is TokenKind.OPERATOR

    # -- names -------------------------------------------------------------------------------------

    @property
    def view(self) -> View:
        """Return whose names the caller sees: its own user's, a person's sub-users', and granted ones."""
        if self._view is None:
            self._view = self.cache.views.get(self.actor) or self._find_view()
        return self._view

    def _find_view(self) -> View:
        grants = self._find_grants()
        view = self._build_view([one.scope for one in grants if is_valid_grant(one, self.now)])
        if not grants:  # grants may end with time
            self.cache.views[self.actor] = view
        return view

    def _build_view(self, scopes: Sequence[GrantScope]) -> View:
        user = self.actor.user
        if self.is_operator:
            return View(user, everybody=True)
        users = [user, self.actor.group, *self.actor.subusers, *(scope.user for scope in scopes)]
        return View(
            user,
            users=tuple(one for one in users if one),
            paths=tuple(scope.path for scope in scopes if scope.path),
            projects=tuple(scope.project_root for scope in scopes if scope.project_root),
        )

    @cached_property
    def directory(self) -> StoredDirectory:
        """Return the directory as the caller sees it."""
        return self._open_directory(self.view)

    @cached_property
    def everybody(self) -> StoredDirectory:
        """Return the whole directory, for names that must be unique."""
        return self._open_directory(View(self.actor.user, everybody=True))

    def directory_of(self, user: str) -> StoredDirectory:
        """Return the directory of one user's agents."""
        return self._open_directory(View(user, users=(user,)))

    def _open_directory(self, view: View) -> StoredDirectory:
        within, meshed = self.rules.periods.online_within, self.services.meshed
        return StoredDirectory(self.ledger, view, self.now, within, meshed=meshed)

    def resolve(self, text: str) -> Resolution:
        """Return the agent that an address means for the caller, or refuse; the endpoint is chosen later."""
        key = (text, self.view, self.caller.project_root)
        found = self.cache.names.get(key)
        if found is None:
            found = resolve(text, self.directory, self.caller, self.now, needs_endpoint=False)
            self.cache.keep(key, found, self.endpoints(found.agent.id))
        return found

    def agent(self, agent_id: str | None) -> Agent | None:
        """Return an agent by id; read once per request unless the request changes it."""
        if agent_id is None:
            return None
        kept = self.cache.agents
        if agent_id not in kept:
            kept[agent_id] = self.ledger.get(Agent, agent_id)
        return kept[agent_id]

    def endpoints(self, agent_id: str) -> list[Endpoint]:
        """Return an agent's endpoints; cached likewise."""
        kept = self.cache.endpoints
        if agent_id not in kept:
            found = self.ledger.many(Endpoint, "endpoints_of", agent=agent_id)
            remote = None if found else self.remote_agent(agent_id)
            kept[agent_id] = found if remote is None else list(remote.endpoints)
        return kept[agent_id]

    def remote_agent(self, agent_id: str) -> RemoteAgent | None:
        """Return an agent of another node as its node lists it."""
        return self.ledger.remote_agent(agent_id) if self.services.meshed else None

    def conversation(self, conversation_id: str) -> Conversation | None:
        """Return a conversation by id; cached likewise."""
        kept = self.cache.conversations
        found = kept.get(conversation_id) or self.ledger.get(Conversation, conversation_id)
        if found is not None:
            kept[conversation_id] = found
        return found

    def has_any(self, what: str) -> bool:
        """Whether any `chats`, `children`, `items` or `reservations` exist; cached likewise.

        Most Scouts have none, and then what follows from them need not be looked for.
        """
        kept = self.cache.existing
        if what not in kept:
            kept[what] = bool(self.ledger.value(f"{what}_exist"))
        return kept[what]

    def address(self, agent_id: str | None) -> str:
        """Return the name under which an agent is shown; its id if it has none."""
        agent = self.agent(agent_id)
        if agent is None:
            return agent_id or ""
        key = (agent.id, self.actor.user)
        kept = self.cache.addresses
        if key not in kept:
            kept[key] = format_agent_address(agent, self.everybody, self.services.node)
        return kept[key]

    def alias(self, agent: Agent) -> str | None:
        """Return an alias of the caller's that is shorter than the agent's address."""
        return find_shorter_alias(agent, self.address(agent.id), self.everybody)

    def instance(self, agent: Agent, session_id: str | None = None) -> Instance:
        """Return the instance for one session of an agent, or for the agent itself."""
        try:
            own = agent.id if agent.is_remote else str(agent.path)
            found = self.resolve(f"session:{session_id}" if session_id else own)
        except Refused:
            return Instance(agent=agent)
        return get_instance(agent, found.choice.endpoint if found.agent.id == agent.id else None)

    def minimal(self, instance: Instance) -> str:
        """Return the shortest address that reaches an instance."""
        return minimize_address(instance, self.directory, self.now)

    def get(self, kind: type[T], ident: str | None) -> T | None:
        """Return the record with this id."""
        if ident is None:
            return None
        if kind is Agent:
            return self.agent(ident)  # pyright: ignore[reportReturnType] (T is Agent)
        known = self.cache.recent.get(ident)
        return known if known.__class__ is kind else self.ledger.get(kind, ident)

    def need(self, kind: type[T], noun: str, ident: str) -> T:
        """Return the record with this id, or refuse."""
        found = self.get(kind, ident)
        if found is None:
            raise self.missing(noun, ident)
        return found

    def missing(self, noun: str, ident: str) -> Refused:
        return Refused(NotFound(noun=noun, id=ident[:200]))


def require_local(tx: Transaction, agent: Agent) -> Agent:
    """Return the agent; refuse one of another node, which alone has its sessions and settings."""
    if agent.is_remote:
        raise Refused(RemoteTarget(address=tx.address(agent.id), node=agent.node))
    return agent


def find_session_alias(tx: Transaction, session_id: str | None) -> str | None:
    """Return the name of an agent's second live session, as an address."""
    found = tx.ledger.one(Alias, "alias_of_session", session=session_id) if session_id else None
    return f"@{found.name}" if found else None


def name_session(tx: Transaction, session_id: str | None, agent_id: str) -> str:
    """Return the address that reaches this session."""
    return find_session_alias(tx, session_id) or tx.address(agent_id)


def require_owner(tx: Transaction, noun: str, ident: str, *movers: str | None) -> None:
    """Refuse unless the caller is one of these or controls one; the refusal names the first."""
    named = _find_agents(tx, movers)
    if tx.sender in [one.id for one in named]:
        return
    if any(tx.allows(Deed.CONTROL, build_subject(one)) for one in named):
        return
    if named and not any(tx.view.shows(one) for one in named):
        raise tx.missing(noun, ident)  # a record of another user
    needs = (*(f"the token of {tx.address(one.id)}" for one in named), "the operator's token")
    owner = named[0].id if named else ""
    raise Refused(NotOwner(noun=noun, id=ident, owner_id=owner, needs=needs, remedies=(_WHOAMI,)))


def require_reader(tx: Transaction, *parties: str | None) -> None:
    """Refuse unless the caller is one of these or may read one."""
    named = _find_agents(tx, parties)
    known = tx.actor.agent_id in [one.id for one in named]
    if not known and not any(tx.allows(Deed.READ, build_subject(one)) for one in named):
        tx.permit(Deed.READ, build_subject(named[0]))


def _find_agents(tx: Transaction, idents: tuple[str | None, ...]) -> list[Agent]:
    found = [tx.agent(one) for one in dict.fromkeys(idents)]
    return [one for one in found if one is not None]


WriteAsBroker = Callable[[Callable[[Transaction], Any]], Awaitable[Any]]
ReadLedger = Callable[[Callable[[Ledger], Any]], Awaitable[Any]]
