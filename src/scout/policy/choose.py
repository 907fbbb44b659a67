"""Choosing an endpoint of an agent: strict filters first, then ordered preferences."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum

from scout.base.record import Record
from scout.base.refusal import PLACEHOLDER, Candidate, Refused, Remedy
from scout.base.time import Time
from scout.identity.model_word import matches_model
from scout.model.agent import Agent, PermissionProfile
from scout.model.endpoint import BROKEN, Endpoint, EndpointState, Transport, is_online
from scout.model.problems.session import NoSession
from scout.model.problems.target import AmbiguousEndpoint, HarnessMismatch, ModelMismatch, PeerUnreachable
from scout.policy.directory import OUTSIDE, Viewpoint


class ChoiceAction(StrEnum):
    """The step required before the endpoint can accept a delivery."""

    DELIVER = "deliver"
    WAKE = "wake"
    START = "start"


class Demand(Record):
    """The caller and its requirements.

    `may_start`: if no attached endpoint uses the named harness, start a session with it.
    """

    session_id: str | None = None
    harness: str | None = None
    model: str | None = None
    node: str | None = None
    permission: PermissionProfile | None = None
    caller: Viewpoint = OUTSIDE
    may_start: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether the caller requires nothing."""
        return not (self.session_id or self.harness or self.model or self.node or self.permission)


class PassedOverEndpoint(Record):
    endpoint_id: str
    why: str


class Choice(Record):
    """The chosen endpoint (None: start a session) and the rule that decided."""

    action: ChoiceAction
    rule: str
    endpoint: Endpoint | None = None
    harness: str | None = None
    passed_over: tuple[PassedOverEndpoint, ...] = ()


def choose(
    agent: Agent,
    address: Callable[[], str],
    endpoints: Sequence[Endpoint],
    demand: Demand,
    *,
    now: Time,
    projects: Mapping[str, str] | None = None,
) -> Choice:
    """Choose the endpoint. `projects` maps session ids to project roots.

    `address` returns the agent's name and is called only for a refusal.
    """
    if demand.is_empty:  # most agents have one endpoint or none: then there is nothing to compare
        match endpoints:
            case []:
                return Choice(action=ChoiceAction.START, rule="new session")
            case [only] if only.state not in BROKEN and _is_for(only, demand):
                return _build_choice(only, "only endpoint", now)
            case _:
                pass
    pool = _Pool(agent.id, address, endpoints, projects or {})
    pool.keep("made for another caller", lambda one: _is_for(one, demand))
    pool.require(agent, demand)
    return pool.choose_preferred(demand, now)


def choose_default_harness(
    agent: str | None,
    project: str | None,
    configured: str | None,
    ready: Collection[str],
    address: str,
) -> str:
    """Return the harness for a new session: agent's, project's, configured, or the only one that is ready."""
    named = agent or project or configured
    if named:
        return named
    if len(ready) == 1:
        return next(iter(ready))
    raise Refused(_build_ambiguous(address, sorted(ready)))


class _Pool:
    """The remaining endpoints, and why the others were rejected."""

    def __init__(
        self,
        agent_id: str,
        address: Callable[[], str],
        endpoints: Sequence[Endpoint],
        projects: Mapping[str, str],
    ) -> None:
        self.agent_id = agent_id
        self._address = address
        self.projects = projects
        self.endpoints = list(endpoints)
        self.passed_over: list[PassedOverEndpoint] = []

    @property
    def address(self) -> str:
        return self._address()

    def keep(self, why_not: str, test: Callable[[Endpoint], bool]) -> None:
        gone = [one for one in self.endpoints if not test(one)]
        self.passed_over += [PassedOverEndpoint(endpoint_id=one.id, why=why_not) for one in gone]
        self.endpoints = [one for one in self.endpoints if test(one)]

    def require(self, agent: Agent, demand: Demand) -> None:
        """Keep the endpoints that meet every requirement of the caller; no requirement is relaxed."""
        self._require_session(demand)
        if self.endpoints:
            self._require_harness(demand)
        if not self.endpoints:
            return  # nothing attached yet: a session is started as demanded
        self._require_model(demand)
        if demand.node:
            self.keep("on another node", lambda one: one.node == demand.node)
            if not self.endpoints:
                raise Refused(PeerUnreachable(node=demand.node, remedies=self._suggest_start(demand)))
        if demand.permission:
            default = agent.config.permission_profile
            self.keep(
                "another permission profile",
                lambda one: (one.permission_profile or default) == demand.permission,
            )
            if not self.endpoints:
                raise Refused(self._build_no_session(demand))

    def _require_session(self, demand: Demand) -> None:
        if demand.session_id is not None:
            self.keep("another session", lambda one: one.session_id == demand.session_id)
            if not self.endpoints:
                raise Refused(self._build_no_session(demand))

    def _require_harness(self, demand: Demand) -> None:
        if demand.harness is None or _is_open(self.endpoints):
            return
        attached = _drop_repeats(one.harness for one in self.endpoints)
        self.keep("another harness", lambda one: one.harness == demand.harness)
        if not self.endpoints and (demand.session_id is not None or not demand.may_start):
            mismatch = HarnessMismatch(
                address=self.address,
                requested=demand.harness,
                attached=attached,
                remedies=self._suggest_start(demand),
            )
            raise Refused(mismatch)

    def _require_model(self, demand: Demand) -> None:
        asked = demand.model
        if asked is None or _is_open(self.endpoints):
            return
        attached = _drop_repeats(one.model for one in self.endpoints)
        self.keep("another model", lambda one: one.model is not None and matches_model(asked, one.model))
        if not self.endpoints:
            mismatch = ModelMismatch(
                address=self.address, requested=asked, attached=attached, remedies=self._suggest_start(demand)
            )
            raise Refused(mismatch)

    def choose_preferred(self, demand: Demand, now: Time) -> Choice:
        broken = "it is stopped, failed, stale or unreachable"
        if any(one.state not in BROKEN for one in self.endpoints):
            self.keep(broken, lambda one: one.state not in BROKEN)
        elif any(one.state is not EndpointState.STOPPED for one in self.endpoints):
            self.keep("it has been stopped", lambda one: one.state is not EndpointState.STOPPED)
        else:
            return self._choose_fresh(demand)
        caller = demand.caller
        rungs: tuple[tuple[str, Callable[[Endpoint], bool]], ...] = (
            ("active", lambda one: is_online(one, now)),
            ("preferred", lambda one: one.preferred),
            (
                "same project",
                lambda one: (
                    self._require_project(one) is not None
                    and self._require_project(one) == caller.project_root
                ),
            ),
            ("same node", lambda one: one.node == caller.node),
        )
        rule = "exact session" if demand.session_id else "only endpoint"
        for name, test in rungs:
            if len(self.endpoints) == 1:
                break
            if any(test(one) for one in self.endpoints):
                before = len(self.endpoints)
                self.keep(f"not {name}", test)
                rule = name if len(self.endpoints) < before else rule
        return self._choose_one(rule, now)

    def _require_project(self, endpoint: Endpoint) -> str | None:
        return self.projects.get(endpoint.session_id) if endpoint.session_id else None

    def _choose_one(self, rule: str, now: Time) -> Choice:
        named = [one for one in self.endpoints if one.transport is not Transport.PULL or is_online(one, now)]
        if len({one.harness for one in named}) > 1:
            harnesses = _drop_repeats(one.harness for one in named)
            raise Refused(_build_ambiguous(self.address, harnesses, self.agent_id))
        latest = max(self.endpoints, key=lambda one: (one.last_seen or 0, one.id))
        if len(self.endpoints) > 1:
            rule = "most recently seen"
            self.keep("seen less recently", lambda one: one is latest)
        return _build_choice(latest, rule, now, tuple(self.passed_over))

    def _choose_fresh(self, demand: Demand) -> Choice:
        """Choose a new session, in the harness of the stopped endpoints if they share one.

        Pull endpoints are ignored: Scout did not start them, so they do not show which harness it can start.
        """
        started = [one for one in self.endpoints if one.transport is not Transport.PULL]
        harnesses = _drop_repeats(one.harness for one in started)
        if demand.session_id is not None:
            raise Refused(self._build_no_session(demand))
        if len(harnesses) > 1:
            raise Refused(_build_ambiguous(self.address, harnesses, self.agent_id))
        self.keep("it has been stopped", lambda one: False)
        harness = demand.harness or next(iter(harnesses), None)
        return Choice(
            action=ChoiceAction.START,
            rule="new session",
            harness=harness,
            passed_over=tuple(self.passed_over),
        )

    def _build_no_session(self, demand: Demand) -> NoSession:
        return NoSession(
            address=self.address,
            harness=demand.harness,
            session=demand.session_id,
            remedies=self._suggest_start(demand),
        )

    def _suggest_start(self, demand: Demand) -> tuple[Remedy, ...]:
        wishes = {
            "harness": demand.harness,
            "model": demand.model,
            "node": demand.node,
            "permission": demand.permission,
        }
        named = {key: str(value) for key, value in wishes.items() if value}
        start = Remedy(operation="session.start", parameters={"agent": self.address, **named})
        if demand.session_id is None:
            return (start,)
        attach = {"agent": self.address, "session": demand.session_id}
        return (Remedy(operation="session.attach", parameters=attach), start)


def _is_for(endpoint: Endpoint, demand: Demand) -> bool:
    """Whether the endpoint is shared, or was made for this caller."""
    return endpoint.isolated_for in (None, demand.caller.agent_id)


def _build_choice(
    endpoint: Endpoint, rule: str, now: Time, passed_over: tuple[PassedOverEndpoint, ...] = ()
) -> Choice:
    action = ChoiceAction.DELIVER if is_online(endpoint, now) else ChoiceAction.WAKE
    return Choice(
        action=action, rule=rule, endpoint=endpoint, harness=endpoint.harness, passed_over=passed_over
    )


def _is_open(endpoints: Sequence[Endpoint]) -> bool:
    """Whether no endpoint reports a harness or model, so that any may be requested."""
    return all(one.harness is None and one.model is None for one in endpoints)


def _drop_repeats(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


def _build_ambiguous(
    address: str, harnesses: Sequence[str], agent_id: str | None = None
) -> AmbiguousEndpoint:
    texts = [f"{address}.harness:{harness}" for harness in harnesses if address.startswith("@")]
    asks = [{"to": address, "body": PLACEHOLDER, "harness": harness} for harness in harnesses]
    look = Remedy(operation="runtimes", parameters={}, why="see which harnesses are ready")
    reach = Remedy(operation="show", parameters={"address": address}, why="how it is reached")
    more = (reach,) if harnesses and not texts else ()  # only a handle can name a harness
    return AmbiguousEndpoint(
        address=address,
        harnesses=tuple(harnesses),
        agent_id=agent_id,
        retry=next(iter(texts), ""),
        candidates=tuple(Candidate(address=text) for text in texts),
        remedies=(*(Remedy(operation="ask", parameters=ask) for ask in asks), *more) or (look,),
    )
