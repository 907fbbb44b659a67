"""The resolver for every form of address, explained step by step, and the target of a message."""

import functools
from collections.abc import Callable

from scout.base.record import Record
from scout.base.refusal import PLACEHOLDER, BadRequest, Diagnostic, Refused, Remedy
from scout.base.time import Time
from scout.identity.address import require_text
from scout.identity.grammar import parse_handle
from scout.identity.lexer import lex, read_bare_branch
from scout.identity.mention import Mention, Mentions, find_mentions
from scout.identity.name import (
    ID_KINDS,
    AliasName,
    BranchName,
    HandleName,
    IdName,
    Name,
    OperatorName,
    PathName,
    ProjectName,
    RelativeName,
    RootName,
    SessionName,
)
from scout.identity.path import AgentPath
from scout.model.agent import Agent
from scout.model.session import Session
from scout.policy.choose import Demand
from scout.policy.directory import Directory, Viewpoint
from scout.policy.resolver import refusals
from scout.policy.resolver.handle import Handles, Resolution, Stuck


def resolve(
    text: object, directory: Directory, caller: Viewpoint, now: Time, *, needs_endpoint: bool = True
) -> Resolution:
    """Return the one agent and endpoint that the address means for this caller, or refuse.

    Without `needs_endpoint`, an agent whose endpoints are ambiguous or do not match is accepted too.
    """
    words = require_text(text)
    forms = _Forms(words, directory, caller, now)
    forms.handles.needs_endpoint = needs_endpoint
    try:
        return forms.resolve_bare_branch() or forms.resolve_name(_read(words))
    except Stuck as stuck:
        raise Refused(stuck.explain()) from None


@functools.lru_cache(maxsize=4096)
def _read(words: str) -> Name:
    """Parse a name. Cached, because a fleet uses the same few names repeatedly."""
    return lex(words)


class _Forms:
    """Resolves each form of address to an agent."""

    def __init__(self, text: str, directory: Directory, caller: Viewpoint, now: Time) -> None:
        self.text = text
        self.directory = directory
        self.caller = caller
        self.handles = Handles(text, "branch", directory, caller, now)

    def resolve_name(self, name: Name) -> Resolution:
        self.handles.form = str(name.__struct_config__.tag)
        match name:
            case HandleName():
                return self.handles.resolve_handle(name.address, root=self.text if name.bare else None)
            case PathName(path=path):
                return self._resolve_path(path)
            case RelativeName():
                return self._resolve_relative(name)
            case RootName():
                return self._resolve_root()
            case OperatorName():
                return self._resolve_operator()
            case BranchName(text=text):
                return self.handles.resolve_agent(
                    self.handles.find_born(text),
                    "birth branch",
                    "no agent of your project has this birth branch",
                )
            case IdName():
                return self._resolve_id(name)
            case SessionName():
                return self.handles.resolve_session(self._find_session(name))
            case ProjectName(directory=directory):
                return self._resolve_project(directory)
            case AliasName(name=alias):
                return self.handles.resolve_alias(self.directory.alias(alias), alias)
            case _:  # a channel, the only form that does not name an agent
                send = Remedy(operation="send", parameters={"channel": name.name, "body": PLACEHOLDER})
                raise self.handles.build_unknown("a channel is not an agent", send)

    def resolve_bare_branch(self) -> Resolution | None:
        """Resolve a dotted word without `@` as a birth branch of the caller's project, if it is one."""
        text = None if self.text.startswith("@") else read_bare_branch(self.text)
        born = self.handles.find_born(text) if text else None
        if born is None:
            return None
        try:
            other, _ = self.handles.find_agent(parse_handle(self.text))
        except (Stuck, Refused):
            other = born
        if other.id != born.id:
            both = (f"branch:{self.text}", f"@{self.text}")
            raise Stuck(lambda: refusals.build_two_readings(self.text, both))
        return self.handles.choose_instance(born, Demand(), "birth branch")

    def _resolve_path(self, path: AgentPath) -> Resolution:
        agent = self.directory.at_path(path)
        if agent is None:
            project = Remedy(operation="ask", parameters={"projectPath": str(path), "body": PLACEHOLDER})
            ancestors = self._list_ancestors(path)
            raise Stuck(
                lambda: refusals.build_unknown(self.text, "no agent has this path", ancestors, project)
            )
        return self.handles.resolve_agent(agent, "path", "")

    def _list_ancestors(self, path: AgentPath) -> list[str]:
        above = path.parent
        while above is not None and self.directory.at_path(above) is None:
            above = above.parent
        return [str(above)] if above is not None else []

    def _resolve_relative(self, name: RelativeName) -> Resolution:
        agent = self._get_caller_agent()
        if name.up:
            agent = self._parent(agent)
        if name.suffix:
            return self._resolve_path(AgentPath.parse(f"{agent.path}{name.suffix}"))
        return self.handles.resolve_agent(agent, "relative to the caller", "")

    def _parent(self, agent: Agent) -> Agent:
        found = self.directory.agent(agent.parent_id) if agent.parent_id else None
        if found is None:
            reason = "your parent is not in the directory" if agent.parent_id else "you have no parent"
            tell = Remedy(operation="notify", parameters={"message": PLACEHOLDER}, why="tell the person")
            raise self.handles.build_unknown(
                reason, tell, Remedy(operation="who", parameters={}, why="list agents")
            )
        return found

    def _get_caller_agent(self) -> Agent:
        agent = self.directory.agent(self.caller.agent_id) if self.caller.agent_id else None
        if agent is None:
            raise self.handles.build_unknown("relative addresses work only for agents")
        return agent

    def _resolve_root(self) -> Resolution:
        project, branch = self.caller.project_root, self.caller.root_branch
        if project is None:
            raise self.handles.build_unknown("you are not in a project")
        agent = self.handles.find_born(branch) if branch else None
        return self.handles.resolve_agent(
            agent or self.directory.of_project(project), "root of the project", "it has no agent yet"
        )

    def _resolve_operator(self) -> Resolution:
        if self.caller.user is None:
            raise self.handles.build_unknown("the caller has no user")
        return self._resolve_path(AgentPath.root(self.caller.user, "direct"))

    def _resolve_project(self, directory: str) -> Resolution:
        agent = self.directory.of_project(directory)
        if agent is None:
            ask = Remedy(operation="ask", parameters={"projectPath": directory, "body": PLACEHOLDER})
            raise self.handles.build_unknown("this project has no agent yet; asking it creates one", ask)
        return self.handles.resolve_agent(agent, "base agent of the project", "")

    def _resolve_id(self, name: IdName) -> Resolution:
        match name.kind:
            case "agt":
                return self.handles.resolve_agent(self.directory.agent(name.id), "id", "no agent has this id")
            case "ses":
                return self.handles.resolve_session(self.directory.session(name.id))
            case "ept":
                endpoint = self.directory.endpoint(name.id)
                agent = self.directory.agent(endpoint.agent_id) if endpoint else None
                return self.handles.resolve_agent(agent, "id", "no endpoint has this id", endpoint_id=name.id)
            case _:
                raise self.handles.build_unknown(f"it is the id of a {ID_KINDS[name.kind]}, not of an agent")

    def _find_session(self, name: SessionName) -> Session | None:
        if name.id is not None:
            return self.directory.session(name.id)
        return self.directory.native_session(name.harness or "", name.native_id or "")


# -- the target of a message: the structured target first, then the leading mention, never a guess -----

ResolveAddress = Callable[[str], Resolution]


class Targeting(Record):
    """The target and the rule that decided; soft mentions are hints, `unresolved` is noted in the receipt.

    `leading`: the agent mentioned at the start of the body, even if the target was given separately.
    """

    rule: str
    target: Resolution | None = None
    leading: Resolution | None = None
    soft: tuple[str, ...] = ()
    unresolved: tuple[Diagnostic, ...] = ()


def decide_target(body: str, to: str | None, elsewhere: bool, resolve: ResolveAddress) -> Targeting:
    """Return the target of a body. `elsewhere`: a channel, conversation or broadcast replaces `to`."""
    mentions = _read_mentions(body)
    soft = _list_soft(mentions)
    if to is not None:
        found, (leading, noted) = resolve(to), _try_mention(mentions.leading, resolve)
        return Targeting(rule="structured target", target=found, leading=leading, soft=soft, unresolved=noted)
    if mentions.leading is not None:
        found = _resolve_mention(mentions.leading, resolve)
        return Targeting(rule="leading mention", target=found, leading=found, soft=soft)
    if elsewhere:
        return Targeting(rule="conversation", soft=soft)
    raise Refused(
        BadRequest(
            problem="no target: name an agent or a channel, or begin the body with a mention",
            field="to",
            remedies=(
                Remedy(operation="who", parameters={}, why="list agents"),
                Remedy(operation="send", parameters={"to": PLACEHOLDER, "body": PLACEHOLDER}),
            ),
        )
    )


def list_soft_mentions(body: str) -> tuple[str, ...]:
    """Return the agents that a body mentions after its beginning."""
    return _list_soft(_read_mentions(body))


def _read_mentions(body: str) -> Mentions:
    return find_mentions(body) if "@" in body else Mentions()


def _list_soft(mentions: Mentions) -> tuple[str, ...]:
    return tuple(mention.address.canonical for mention in mentions.soft if mention.address)


def _resolve_mention(mention: Mention, resolve: ResolveAddress) -> Resolution:
    if mention.problem is not None:
        raise Refused(mention.problem)
    return resolve(mention.text)


def _try_mention(
    mention: Mention | None, resolve: ResolveAddress
) -> tuple[Resolution | None, tuple[Diagnostic, ...]]:
    """Resolve a mention beside a structured target; a mention that fails is noted, not refused."""
    if mention is None:
        return None, ()
    try:
        return _resolve_mention(mention, resolve), ()
    except Refused as refusal:
        return None, (refusal.diagnostic,)
