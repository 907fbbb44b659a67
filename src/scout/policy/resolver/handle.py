"""Handles: the agent that a handle means, and the handle that an agent is shown by.

A handle is an alias, or it means a single agent and its instance. Each step is recorded. The address shown
for an agent depends on the live agents, never on their sessions.
"""

from collections.abc import Callable, Iterable
from itertools import combinations

from msgspec.structs import replace

from scout.base.record import Record
from scout.base.refusal import Candidate, Diagnostic, Refused, Remedy
from scout.base.time import Time
from scout.identity.address import Address
from scout.identity.minimal import shorten_address
from scout.model.agent import Agent, Lifecycle
from scout.model.alias import Alias, AliasState, AliasTarget
from scout.model.node import NodeState
from scout.model.problems.target import AmbiguousEndpoint, HarnessMismatch, ModelMismatch
from scout.model.session import Session
from scout.policy.choose import Choice, ChoiceAction, Demand, choose
from scout.policy.directory import (
    OUTSIDE,
    Directory,
    Instance,
    Viewpoint,
    Wanted,
    get_instance,
    is_instance,
    list_instances,
)
from scout.policy.resolver import refusals

_DIMENSIONS = ("workspace_qualifier", "profile", "node")
_SHOWN = 20
_OF_ENDPOINTS = (AmbiguousEndpoint, HarnessMismatch, ModelMismatch)


class HandleStep(Record):
    """One rule that was tried, and the number of agents left after it (2 means several)."""

    rule: str
    left: int


class Resolution(Record):
    """The result of resolving an address for one caller, and the rule that decided.

    `demand`: the session, harness, model and node that a handle or an alias names.
    """

    text: str
    form: str
    agent: Agent
    choice: Choice
    canonical: str
    rule: str
    steps: tuple[HandleStep, ...]
    demand: Demand = Demand()
    alias_id: str | None = None
    alias_revision: int | None = None

    @property
    def endpoint_id(self) -> str | None:
        return self.choice.endpoint.id if self.choice.endpoint else None


class Stuck(Exception):  # noqa: N818 (no error: the answer is being made)
    """No single result. The diagnostic is built only when needed, because building it resolves names too."""

    def __init__(self, explain: Callable[[], Diagnostic]) -> None:
        super().__init__()
        self.explain = explain


def minimize_address(instance: Instance, directory: Directory, now: Time) -> str:
    """Return the shortest address of an instance for a caller outside every project and node."""

    def means_the_same(shorter: Address) -> bool:
        try:
            handles = Handles(shorter.canonical, "handle", directory, OUTSIDE, now)
            handles.needs_endpoint = bool(instance.harness or instance.model)
            found = handles.resolve_handle(shorter)
        except (Stuck, Refused):
            return False
        return found.agent.id == instance.agent.id and found.canonical == instance.canonical

    aliases = (alias.name for alias in directory.aliases_of(instance.agent.id, _SHOWN))
    usable = [name for name in aliases if means_the_same(Address(definition_id=name))]
    if instance.address is None:
        return min((str(instance.agent.path), *(f"@{name}" for name in sorted(usable))), key=len)
    shortest = shorten_address(instance.address, means_the_same, usable)
    # A broken alias may hide the name, or only the session id may name an endpoint: use the agent's address.
    hidden = shortest == instance.canonical and not means_the_same(instance.address)
    return format_agent_address(instance.agent, directory) if hidden else shortest


def find_alias_fault(alias: Alias, directory: Directory) -> str | None:
    """Return why an alias no longer resolves, or None if it does."""
    if alias.state is AliasState.BROKEN:
        return alias.reason or "it is marked as broken"
    if directory.find(Wanted(definition_id=alias.name, own=True), 1):
        return "an agent of this name was registered later"
    if alias.target.session_id is not None:
        return None if directory.session(alias.target.session_id) else "its session is gone"
    agent = directory.agent(alias.target.agent_id or "")
    if agent is None or agent.lifecycle is Lifecycle.RETIRED:
        return "its agent is retired" if agent else "its agent is gone"
    if alias.target.node not in (None, agent.node):
        return f"its agent lives on {agent.node}, not on {alias.target.node}"
    return None


def _build_demand(named: Address | AliasTarget) -> Demand:
    return Demand(harness=named.harness, model=named.model, node=named.node)


class Handles:
    """One resolution in progress: the caller's view and the steps taken so far."""

    def __init__(self, text: str, form: str, directory: Directory, caller: Viewpoint, now: Time) -> None:
        self.text = text
        self.form = form
        self.directory = directory
        self.caller = caller
        self.now = now
        self.needs_endpoint = True
        self.steps: list[HandleStep] = []

    def resolve_handle(self, address: Address, root: str | None = None) -> Resolution:
        """Resolve a handle; `root` is the bare word that was typed, which may be the root branch."""
        if address.is_bare:
            alias = self.directory.alias(address.definition_id)
            if alias is not None and alias.state is not AliasState.REMOVED:
                return self.resolve_alias(alias, alias.name)
        if root is not None and root == self.caller.root_branch:
            born = self.find_born(root)
            if born is not None:
                return self.choose_instance(born, Demand(), "root branch")
        agent, rule = self.find_agent(address)
        found = self.choose_instance(agent, Demand(harness=address.harness, model=address.model), rule)
        return replace(found, demand=_build_demand(address))

    def resolve_alias(self, alias: Alias | None, name: str) -> Resolution:
        if alias is None:
            raise self.build_unknown("no alias has this name")
        fault = find_alias_fault(alias, self.directory)
        if fault:
            raise Stuck(lambda: self._build_alias_broken(alias, fault))
        target = alias.target
        self._note_step("alias", 1)
        if target.session_id is not None:
            found = self.resolve_session(self.directory.session(target.session_id))
        else:
            agent = self.directory.agent(target.agent_id or "")
            assert agent is not None  # or the alias would be at fault
            found = self.choose_instance(agent, Demand(harness=target.harness, model=target.model), "alias")
        demand = replace(_build_demand(target), session_id=target.session_id)
        return replace(found, rule="alias", demand=demand, alias_id=alias.id, alias_revision=alias.revision)

    def _build_alias_broken(self, alias: Alias, fault: str) -> Diagnostic:
        found = self.directory.find(Wanted(definition_id=alias.name, own=True), _SHOWN)
        target = self.directory.agent(alias.target.agent_id or "")
        readings = [
            *found,
            *([target] if target and target.lifecycle is not Lifecycle.RETIRED else []),
        ]
        return refusals.build_alias_broken(
            alias, fault, self._list_candidates(readings), target, is_taken=bool(found)
        )

    def resolve_session(self, session: Session | None) -> Resolution:
        if session is None:
            raise Stuck(lambda: refusals.build_no_session(self.text))
        agent = self.directory.agent(session.agent_id)
        return self.resolve_agent(agent, "session", "its agent is gone", session_id=session.id)

    # -- the one agent ----------------------------------------------------------------------------

    def find_agent(self, address: Address) -> tuple[Agent, str]:
        """Return the agent that the address resolves to, and the rule that decided."""
        wanted, found = self._find_matching(build_wanted(address))
        moved = self._find_moved(wanted) if not found else None
        if moved is not None:
            return moved, "moved"
        if not found:
            raise Stuck(lambda: self._build_nothing(address, wanted))
        if len(found) == 1:
            return found[0], "only match"
        own = self._find_own_clone(wanted)
        if own is not None:
            return own, "own clone"
        exact = find_exact(wanted, self.directory)
        self._note_step("exact", len(exact))
        if len(exact) == 1:
            return exact[0], "exact"
        pool = replace(wanted, exact=bool(exact))
        if address.harness or address.model:
            pool = replace(pool, harness=address.harness, model=address.model)
            found = self._find("harness and model", pool)
            if not found:
                raise Stuck(lambda: self._build_mismatch(address, pool))
            if len(found) == 1:
                return found[0], "harness and model"
        return self._break_tie(pool)

    def _find_matching(self, wanted: Wanted) -> tuple[Wanted, tuple[Agent, ...]]:
        """Return matching agents of the caller's node; if there are none, those of other nodes."""
        if self.caller.node and wanted.node is None:
            here = replace(wanted, node=self.caller.node)
            found = self._find("own node", here)
            if found:
                return here, found
        return wanted, self._find("matching", wanted)

    def _find_moved(self, wanted: Wanted) -> Agent | None:
        """Return the agent that moved from the caller's node to another one, and left its address behind."""
        found = self.directory.retired(wanted) if wanted.node == self.caller.node else None
        live = found is not None and found.is_remote and found.lifecycle is not Lifecycle.RETIRED
        return found if live else None

    def _find_own_clone(self, wanted: Wanted) -> Agent | None:
        """Return the agent of the caller's clone if it matches the name."""
        project = self.caller.project_root
        own = self.directory.of_project(project) if project is not None else None
        if own is None or own.definition_id != wanted.definition_id:
            return None
        asked = ((wanted.workspace, own.workspace), (wanted.profile, own.profile), (wanted.node, own.node))
        return own if all(text in (None, value) for text, value in asked) else None

    def _break_tie(self, pool: Wanted) -> tuple[Agent, str]:
        """Break a tie: the only agent online, else the only one in the caller's project."""
        project = self.caller.project_root
        rules: list[tuple[str, Wanted]] = [("only one online", replace(pool, online=True))]
        if project is not None:
            rules.append(("own project", replace(pool, project_root=project)))
        for rule, narrowed in rules:
            found = self._find(rule, narrowed)
            if len(found) == 1:
                return found[0], rule
        raise Stuck(lambda: self._build_ambiguous(pool))

    # -- the instance -----------------------------------------------------------------------------

    def resolve_agent(
        self,
        agent: Agent | None,
        rule: str,
        otherwise: str,
        endpoint_id: str | None = None,
        session_id: str | None = None,
    ) -> Resolution:
        """Resolve an agent found by a unique name; retired agents are refused."""
        if agent is None:
            raise self.build_unknown(otherwise)
        if agent.lifecycle is Lifecycle.RETIRED:
            raise Stuck(lambda: self._build_retired(agent))
        return self.choose_instance(agent, Demand(session_id=session_id), rule, endpoint_id)

    def choose_instance(
        self, agent: Agent, demand: Demand, rule: str, endpoint_id: str | None = None
    ) -> Resolution:
        """Return the instance of an agent: an exact harness and model match, else what `choose` picks."""
        exact = demand.session_id is not None or endpoint_id is not None
        whose = (None, self.caller.agent_id) if exact else (None,)
        visible = [one for one in self.directory.endpoints(agent.id) if one.isolated_for in whose]
        pool = [one for one in visible if endpoint_id in (None, one.id)]
        spelt = (demand.harness, demand.model)
        named = list_instances(agent, [one for one in pool if is_instance(one)])
        equal = [one for one in named if one.endpoints and (one.harness, one.model) == spelt]
        if equal and not demand.session_id:
            pool = list(equal[0].endpoints)
        asked = replace(demand, caller=self.caller)
        try:
            choice = choose(agent, lambda: self._format_address(agent), pool, asked, now=self.now)
        except Refused as refusal:
            told = refusal.diagnostic
            if self.needs_endpoint or not isinstance(told, _OF_ENDPOINTS):
                raise Stuck(
                    lambda: replace(told, candidates=self._suggest_others(agent, demand, told))
                ) from None
            choice = Choice(action=ChoiceAction.START, rule="no endpoint is needed", harness=demand.harness)
        return Resolution(
            text=self.text,
            form=self.form,
            agent=agent,
            choice=choice,
            canonical=get_instance(agent, choice.endpoint).canonical,
            rule=rule,
            steps=tuple(self.steps),
        )

    def _suggest_others(self, agent: Agent, demand: Demand, told: Diagnostic) -> tuple[Candidate, ...]:
        """Return agents of the same definition with the requested harness and model, as suggestions only."""
        if told.candidates or agent.definition_id is None or not (demand.harness or demand.model):
            return told.candidates
        wanted = Wanted(definition_id=agent.definition_id, harness=demand.harness, model=demand.model)
        return self._list_candidates(self.directory.find(wanted, _SHOWN), demand)

    # -- explaining -------------------------------------------------------------------------------

    def _find(self, rule: str, wanted: Wanted) -> tuple[Agent, ...]:
        """Return at most two agents; whether there are more makes no difference."""
        found = self.directory.find(wanted, 2)
        self._note_step(rule, len(found))
        return found

    def _note_step(self, rule: str, left: int) -> None:
        self.steps.append(HandleStep(rule=rule, left=left))

    def find_born(self, branch: str) -> Agent | None:
        project = self.caller.project_root
        return self.directory.at_branch(project, branch) if project is not None else None

    def build_unknown(self, reason: str, *remedies: Remedy) -> Stuck:
        return Stuck(lambda: refusals.build_unknown(self.text, reason, (), *remedies))

    def _format_address(self, agent: Agent) -> str:
        return format_agent_address(agent, self.directory, self.caller.node)

    def _list_candidates(self, agents: Iterable[Agent], asked: Demand = Demand()) -> tuple[Candidate, ...]:
        """Return each agent's address with the requested harness and model."""
        wanted = [Instance(agent=agent, harness=asked.harness, model=asked.model) for agent in agents]
        return tuple(self._build_candidate(one, asked) for one in wanted)[:_SHOWN]

    def _list_instances(self, agents: Iterable[Agent], asked: Demand) -> tuple[Candidate, ...]:
        """Return each agent's instances by address, distinguished by the requested harness and model."""
        known = ((agent, self.directory.endpoints(agent.id)) for agent in agents)
        found = (
            one
            for agent, endpoints in known
            for one in list_instances(agent, [each for each in endpoints if is_instance(each)])
        )
        named = (self._build_candidate(one, asked) for one in found)
        return tuple({one.address: one for one in named}.values())[:_SHOWN]

    def _build_candidate(self, one: Instance, asked: Demand) -> Candidate:
        address = find_address(one.agent, self.directory, self.caller.node)
        if address is None:
            return Candidate(address=one.canonical, canonical=one.canonical, agent_id=one.agent.id)
        harness = one.harness if asked.harness else None
        model = one.model if asked.model else None
        text = replace(address, harness=harness, model=model).canonical
        return Candidate(address=text, canonical=one.canonical, agent_id=one.agent.id)

    def _build_ambiguous(self, pool: Wanted) -> Diagnostic:
        asked = Demand(harness=pool.harness, model=pool.model)
        found = self._list_candidates(self.directory.find(pool, _SHOWN), asked)
        return refusals.build_ambiguous(self.text, self.directory.count(pool), found)

    def _build_mismatch(self, address: Address, pool: Wanted) -> Diagnostic:
        found = self.directory.find(replace(pool, harness=None, model=None), _SHOWN)
        endpoints = [one for agent in found for one in self.directory.endpoints(agent.id)]
        with_harness = self.directory.find(replace(pool, model=None), 1)
        near = self._list_instances(found, Demand(harness=pool.harness, model=pool.model))
        return refusals.build_mismatch(self.text, address, endpoints, bool(with_harness), near)

    def _build_retired(self, agent: Agent) -> Diagnostic:
        if agent.is_remote:  # only its own node knows whether it is retired, and may revive it
            return refusals.build_unknown(self.text, f"{agent.node} no longer lists it", ())
        return refusals.build_retired(self.text, agent)

    def _build_nothing(self, address: Address, wanted: Wanted) -> Diagnostic:
        node = self.directory.node(address.node) if address.node else None
        if node is not None and node.state is not NodeState.ONLINE:
            return refusals.build_peer_unreachable(node)
        if address.node and node is None:
            near = refusals.find_nearest_nodes(address.node, self.directory)
            if near:
                return refusals.build_unknown_node(self.text, address, near)
        tombstone = self.directory.retired(wanted)
        if tombstone is not None:
            return refusals.build_retired(self.text, tombstone)
        siblings = self.directory.find(Wanted(definition_id=address.definition_id), _SHOWN)
        if siblings:
            near = sorted(
                self._list_candidates(siblings),
                key=lambda one: refusals.measure_distance(self.text, one.address),
            )
            return refusals.build_no_such_qualifier(self.text, address, tuple(near))
        places = self._list_candidates(self.directory.in_workspace(address.definition_id, _SHOWN))
        names = refusals.find_nearest_names(address.definition_id, self.directory)
        return refusals.build_unknown(self.text, "", [*names, *(one.address for one in places)])


# -- the address of an agent -------------------------------------------------------------------------


def format_agent_address(agent: Agent, directory: Directory, node: str | None = None) -> str:
    """Return the shortest handle that resolves to this agent for a caller outside every project, on `node`.

    The handle never contains a harness or model. An agent without a handle is shown by its path, one of
    another node by its id.
    """
    address = find_address(agent, directory, node)
    if address is None and agent.is_remote:
        return Instance(agent=agent).canonical
    return address.canonical if address else str(agent.path)


def find_address(agent: Agent, directory: Directory, node: str | None = None) -> Address | None:
    """Return the same as an `Address`; None for an agent that is addressed only by its path."""
    canonical = Instance(agent=agent).address
    spellings = _list_spellings(canonical) if canonical else []
    return next((one for one in spellings if _is_resolved_to(one, agent, directory, node)), None)


def find_shorter_alias(agent: Agent, address: str, directory: Directory) -> str | None:
    """Return the agent's shortest active alias that is shorter than its address."""
    names = [
        f"@{alias.name}"
        for alias in directory.aliases_of(agent.id, _SHOWN)
        if alias.state is AliasState.ACTIVE
        and (alias.target.session_id, alias.target.harness, alias.target.model) == (None, None, None)
        and not directory.find(Wanted(definition_id=alias.name, own=True), 1)
    ]
    return min((name for name in names if len(name) < len(address)), key=len, default=None)


def build_wanted(address: Address) -> Wanted:
    """Return the query for the agents a handle matches, regardless of harness and model."""
    return Wanted(
        definition_id=address.definition_id,
        workspace=address.workspace_qualifier,
        profile=address.profile,
        node=address.node,
    )


def find_exact(wanted: Wanted, directory: Directory) -> tuple[Agent, ...]:
    """Return at most two agents with exactly this workspace and profile; prefer one without a node."""
    exact = directory.find(replace(wanted, exact=True), 2)
    if len(exact) > 1 and wanted.node is None:
        homeless = directory.find(replace(wanted, exact=True, homeless=True), 2)
        return homeless if len(homeless) == 1 else exact
    return exact


def find_closest(wanted: Wanted, agents: Iterable[Agent]) -> list[Agent]:
    """Return the agents with exactly this workspace and profile, or else all agents that match the query."""
    pool = [one for one in agents if _has_qualifiers(one, wanted)]
    exact = [one for one in pool if (one.workspace, one.profile) == (wanted.workspace, wanted.profile)]
    return exact or pool


def _has_qualifiers(agent: Agent, wanted: Wanted) -> bool:
    names = ("definition_id", "workspace", "profile", "node")
    return all(getattr(wanted, name) in (None, getattr(agent, name)) for name in names)


def _list_spellings(canonical: Address) -> list[Address]:
    """Return every combination of the agent's qualifiers, shortest text first."""
    given = [name for name in _DIMENSIONS if getattr(canonical, name)]
    chosen = [kept for count in range(len(given) + 1) for kept in combinations(given, count)]
    texts = [
        Address(definition_id=canonical.definition_id, **{name: getattr(canonical, name) for name in kept})
        for kept in chosen
    ]
    return sorted(texts, key=lambda one: len(one.canonical))


def _is_resolved_to(address: Address, agent: Agent, directory: Directory, node: str | None) -> bool:
    """Whether the handle resolves to this agent, judged by agent names alone."""
    alias = directory.alias(address.definition_id) if address.is_bare else None
    if alias is not None and alias.state is not AliasState.REMOVED:
        return False
    wanted = build_wanted(address)
    here = replace(wanted, node=node) if node and wanted.node is None else wanted
    pool = here if directory.find(here, 1) else wanted
    found = directory.find(pool, 2)
    if not found:
        tombstone = directory.retired(wanted)
        return tombstone is not None and tombstone.id == agent.id
    meant = found if len(found) == 1 else find_exact(pool, directory)
    return [one.id for one in meant] == [agent.id]
