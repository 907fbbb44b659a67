"""Permissions: the credential decides, then the defaults, then grants. Paths are compared by segments."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused, Remedy
from scout.base.time import Time
from scout.identity.path import AgentPath
from scout.model.access.grant import Action, Grant, GrantScope, is_valid_grant
from scout.model.access.token import Token, TokenKind, require_valid
from scout.model.agent import Agent
from scout.model.attention import Attention
from scout.model.problems.request import Forbidden, NotOwner, Unauthenticated
from scout.model.problems.session import DirectoryNotAllowed


class Deed(StrEnum):
    """An action. The first six can be granted. SEE means knowing the name of an agent or alias."""

    SEE = "see"
    ADDRESS = "address"
    ASK = "ask"
    SPAWN = "spawn"
    READ = "read"
    CONTROL = "control"
    APPROVE = "approve"
    ACT_AS = "act_as"
    COMPLETE_FLIGHT = "complete_flight"
    SET_ALIAS = "set_alias"
    ADMINISTER = "administer"
    ENROL = "enrol"
    REPORT_HOOK = "report_hook"
    FETCH_MAIL = "fetch_mail"


class ActorRelation(StrEnum):
    """The relation of an actor to a subject; also the rule name of a permission based on it."""

    ANY = "by its kind of token"
    SELF = "itself"
    BELOW = "itself or a descendant"
    SAME_USER = "of the same user"
    MEMBER = "a conversation it takes part in"
    ACTS_FOR = "its token may act for it"
    SAME_NODE = "of its node"
    SAME_CONNECTOR = "of its connector"
    ENROLLED = "a session that it enrolled"
    PERSON = "the person it is for"
    OWN = "the person's own"
    GROUP = "of the group whose chat it speaks in"


class Actor(Record):
    """The identity behind a credential. `acts_for`: other agents it may act as.

    `subusers`: for a person, the users that belong to them. `group`: the group whose chat a person speaks in.
    """

    kind: TokenKind
    token_id: str
    user: str | None = None
    agent_id: str | None = None
    path: AgentPath | None = None
    session_id: str | None = None
    node: str | None = None
    connector: str | None = None
    acts_for: tuple[str, ...] = ()
    subusers: tuple[str, ...] = ()
    group: str | None = None

    @property
    def is_person(self) -> bool:
        """Whether this is a user in person, and not one of the user's programs."""
        return self.path is not None and self.path.is_person

    @property
    def own_users(self) -> tuple[str, ...]:
        """For a person, the users whose agents they control: their own, and their sub-users."""
        user = self.path.user if self.path is not None and self.is_person else None
        return (user, *self.subusers) if user is not None else ()


class Subject(Record):
    """The subject of an action, with the fields that rules use; `name` is its display name.

    `agent_id`, `path`, `node`: the agent it is or belongs to; the target of a flight; the requester of
    an approval. `requester_token_id`: the credential that made the request.
    """

    name: str
    agent_id: str | None = None
    path: AgentPath | None = None
    user: str | None = None
    node: str | None = None
    project_root: str | None = None
    conversation_id: str | None = None
    members: tuple[str, ...] = ()
    requester_token_id: str | None = None
    enrolled_by: str | None = None

    @property
    def owner(self) -> str | None:
        """The user it belongs to; the user in the path takes precedence."""
        return self.path.user if self.path is not None else self.user


class Permission(Record):
    """An allowed action: the rule or grant that allows it, and its facts."""

    deed: Deed
    rule: str
    actor: Actor
    subject: Subject
    grant_id: str | None = None


class Allowed(Record):
    """A program may start in this directory. `adds_root`: the directory's root becomes an allowed root."""

    directory: str
    rule: str
    root: str
    adds_root: bool = False


_BY_KIND, _ENROLLED = (ActorRelation.ANY,), (ActorRelation.ENROLLED,)
_DEFAULTS: Mapping[TokenKind, Mapping[Deed, tuple[ActorRelation, ...]]] = {
    TokenKind.OPERATOR: {
        **dict.fromkeys(Deed, _BY_KIND),
        Deed.ACT_AS: (ActorRelation.SELF, ActorRelation.SAME_USER, ActorRelation.ACTS_FOR),
        Deed.COMPLETE_FLIGHT: (ActorRelation.SELF,),
    },
    TokenKind.AGENT: {
        Deed.SEE: (ActorRelation.SAME_USER, ActorRelation.OWN, ActorRelation.GROUP),
        Deed.ADDRESS: (
            ActorRelation.SAME_USER,
            ActorRelation.MEMBER,
            ActorRelation.OWN,
            ActorRelation.GROUP,
        ),
        Deed.ASK: (ActorRelation.SAME_USER, ActorRelation.OWN, ActorRelation.GROUP),
        Deed.SPAWN: (ActorRelation.BELOW, ActorRelation.OWN),
        Deed.READ: (ActorRelation.MEMBER, ActorRelation.BELOW, ActorRelation.OWN),
        Deed.CONTROL: (ActorRelation.BELOW, ActorRelation.OWN),
        Deed.APPROVE: (ActorRelation.PERSON, ActorRelation.OWN),
        Deed.SET_ALIAS: (ActorRelation.PERSON,),
        Deed.ACT_AS: (ActorRelation.SELF, ActorRelation.ACTS_FOR),
        Deed.COMPLETE_FLIGHT: (ActorRelation.SELF,),
        Deed.FETCH_MAIL: (ActorRelation.SELF,),
    },
    TokenKind.CONNECTOR: {
        Deed.SEE: (ActorRelation.SAME_CONNECTOR, ActorRelation.SAME_USER),
        Deed.ADDRESS: (ActorRelation.SAME_CONNECTOR,),
        Deed.READ: (ActorRelation.SAME_CONNECTOR,),
        Deed.ACT_AS: (ActorRelation.SAME_CONNECTOR,),
        # The person in the chat: the broker finds the user by the connector key.
        Deed.APPROVE: (ActorRelation.SAME_USER,),
        Deed.SET_ALIAS: (ActorRelation.SAME_USER,),
    },
    TokenKind.NODE: {Deed.ACT_AS: (ActorRelation.SAME_NODE,)},
    TokenKind.GUEST: {Deed.SEE: (ActorRelation.SAME_USER,), Deed.READ: (ActorRelation.SAME_USER,)},
    TokenKind.HOST: {Deed.ENROL: _BY_KIND, Deed.REPORT_HOOK: _ENROLLED, Deed.FETCH_MAIL: _ENROLLED},
    TokenKind.LINK: {},
}

# Sufficient grants: `ask` includes `address`, `control` includes all others, and every grant includes `see`.
_GRANTS: Mapping[Deed, frozenset[Action]] = {
    Deed.SEE: frozenset(Action),
    Deed.ADDRESS: frozenset({Action.ADDRESS, Action.ASK, Action.CONTROL}),
    Deed.ASK: frozenset({Action.ASK, Action.CONTROL}),
    Deed.SPAWN: frozenset({Action.SPAWN, Action.CONTROL}),
    Deed.READ: frozenset({Action.READ, Action.CONTROL}),
    Deed.CONTROL: frozenset({Action.CONTROL}),
}

# Credentials limited to these operations; all others are refused, reads included.
_ONLY: Mapping[TokenKind, frozenset[str]] = {
    TokenKind.HOST: frozenset({"session.enrol", "session.hook"}),
    TokenKind.LINK: frozenset({"whoami", "token.rotate"}),
}

_OPERATOR = "the operator's token"
_OTHER = "a credential that is not the requester's"
_NEEDS: Mapping[Deed, tuple[str, ...]] = {
    Deed.APPROVE: (_OTHER, _OPERATOR),
    Deed.ACT_AS: ("the token of that agent",),
    Deed.ENROL: ("a host token",),
    Deed.REPORT_HOOK: ("the host token that enrolled the session",),
    Deed.FETCH_MAIL: ("the token of that agent", "the host token that enrolled the session"),
}
_WHOAMI = Remedy(operation="whoami", parameters={}, why="see whose token this is")


def identify_actor(token: Token | None, now: Time, agent: Agent | None = None) -> Actor:
    """Return the actor behind a credential; refuse a missing or invalid token, or another agent's."""
    if token is None:
        new = Remedy(operation="token.create", parameters={"kind": "agent"}, why="for the operator")
        needs = ("an agent's token", _OPERATOR)
        raise Refused(Unauthenticated(reason="no credential", needs=needs, remedies=(new,)))
    require_valid(token, now)
    if agent is not None and agent.id != token.agent_id:
        reason, needs = f"the token is not bound to {agent.path}", (f"the token of {agent.path}",)
        raise Refused(Unauthenticated(reason=reason, needs=needs, remedies=(_WHOAMI,)))
    return Actor(
        kind=TokenKind.OPERATOR if token.kind is TokenKind.BROWSER else token.kind,
        token_id=token.id,
        user=token.user if agent is None else agent.owner,
        agent_id=token.agent_id,
        path=agent.path if agent is not None else None,
        session_id=token.session_id,
        node=token.node,
        connector=token.connector,
    )


def check_operation(actor: Actor, operation: str) -> None:
    """Refuse an operation that this kind of credential does not allow, regardless of the other rules."""
    if operation not in _ONLY.get(actor.kind, (operation,)):
        needs = ("the token of an enrolled session", "an agent's token", _OPERATOR)
        raise Refused(Forbidden(action=operation, subject="this Scout", needs=needs))


def permit(actor: Actor, deed: Deed, subject: Subject, grants: Iterable[Grant], now: Time) -> Permission:
    """Return the permission and its rule, or refuse with the required grant or credential."""
    if deed is not Deed.APPROVE or not is_requester(actor, subject):
        for relation in _DEFAULTS[actor.kind].get(deed, ()):
            if _RELATES[relation](actor, subject):
                return Permission(deed=deed, rule=relation, actor=actor, subject=subject)
        for grant in grants:
            if _is_granted(grant, actor, deed, subject) and is_valid_grant(grant, now):
                return Permission(deed=deed, rule="grant", actor=actor, subject=subject, grant_id=grant.id)
    raise Refused(_build_refusal(actor, deed, subject))


def _is_below(actor: Actor, subject: Subject) -> bool:
    return actor.path is not None and subject.path is not None and actor.path.contains(subject.path)


def _has_same_connector(actor: Actor, subject: Subject) -> bool:
    return _are_equal(actor.connector, subject.path.connector if subject.path is not None else None)


_RELATES: Mapping[ActorRelation, Callable[[Actor, Subject], bool]] = {
    ActorRelation.ANY: lambda actor, subject: True,
    ActorRelation.SELF: lambda actor, subject: _are_equal(actor.agent_id, subject.agent_id),
    ActorRelation.BELOW: _is_below,
    ActorRelation.SAME_USER: lambda actor, subject: _are_equal(actor.user, subject.owner),
    ActorRelation.MEMBER: lambda actor, subject: actor.agent_id in subject.members,
    ActorRelation.ACTS_FOR: lambda actor, subject: subject.agent_id in actor.acts_for,
    ActorRelation.SAME_NODE: lambda actor, subject: _are_equal(actor.node, subject.node),
    ActorRelation.SAME_CONNECTOR: _has_same_connector,
    ActorRelation.ENROLLED: lambda actor, subject: _are_equal(actor.token_id, subject.enrolled_by),
    ActorRelation.PERSON: lambda actor, subject: is_person_for(actor, subject.user),
    ActorRelation.OWN: lambda actor, subject: not {subject.owner, subject.user}.isdisjoint(actor.own_users),
    ActorRelation.GROUP: lambda actor, subject: _are_equal(actor.group, subject.owner),
}


def is_person_for(actor: Actor, user: str | None) -> bool:
    """Whether an actor is the user in person, not one of the user's programs."""
    return user is not None and user in actor.own_users[:1]


def _are_equal(one: str | None, other: str | None) -> bool:
    """Whether both values are set and equal."""
    return one is not None and one == other


def is_requester(actor: Actor, subject: Subject) -> bool:
    """Whether an item was raised by this agent or with this credential. Nobody approves their own request."""
    return _are_equal(actor.agent_id, subject.agent_id) or actor.token_id == subject.requester_token_id


def _is_granted(grant: Grant, actor: Actor, deed: Deed, subject: Subject) -> bool:
    """Whether a grant allows the action. Grants apply to agents; a guest can only be granted read access."""
    reads = actor.kind is TokenKind.GUEST and deed in (Deed.SEE, Deed.READ)
    if grant.action not in _find_sufficient(actor, deed) or not (reads or actor.kind is TokenKind.AGENT):
        return False
    held = _are_equal(grant.agent_id, actor.agent_id) or _are_equal(grant.user, actor.user)
    return held and _is_in_scope(grant.scope, subject)


def _find_sufficient(actor: Actor, deed: Deed) -> frozenset[Action]:
    """Return the grants that allow an action. Only a person decides for an agent that they control."""
    decides = deed is Deed.APPROVE and actor.is_person
    return frozenset({Action.CONTROL}) if decides else _GRANTS.get(deed, frozenset())


def _is_in_scope(scope: GrantScope, subject: Subject) -> bool:
    if scope.path is not None:
        return subject.path is not None and scope.path.contains(subject.path)
    project = _are_equal(scope.project_root, subject.project_root)
    channel = _are_equal(scope.conversation_id, subject.conversation_id)
    return project or channel or _are_equal(scope.user, subject.owner)


def _build_refusal(actor: Actor, deed: Deed, subject: Subject) -> Forbidden | NotOwner:
    """Return the refusal with the required grant or credential; an agent can always ask a person."""
    if deed is Deed.COMPLETE_FLIGHT:
        owner, needs = subject.agent_id or "", (f"the token of {subject.path or subject.agent_id}",)
        return NotOwner(noun="flight", id=subject.name, owner_id=owner, needs=needs, remedies=(_WHOAMI,))
    needs, remedy = _NEEDS.get(deed, (_OPERATOR,)), _WHOAMI
    if actor.kind is TokenKind.OPERATOR:
        needs = tuple(one for one in needs if one != _OPERATOR)  # the actor already has it
    if actor.kind is TokenKind.AGENT:
        wish = {"question": f"please {deed.replace('_', ' ')}: {subject.name}"}
        remedy = Remedy(operation="need", parameters=wish, why="a person may do it")
        if deed in _GRANTS:
            action = Action.READ if deed is Deed.SEE else Action(deed)
            needs, remedy = (f"the grant {action}", _OPERATOR), _suggest_grant(actor, action, subject)
    return Forbidden(action=deed, subject=subject.name, needs=needs, remedies=(remedy,))


def _suggest_grant(actor: Actor, action: Action, subject: Subject) -> Remedy:
    """Return the command with which the operator grants exactly this."""
    keys = ("path", "channel", "project", "user")
    values = (subject.path, subject.conversation_id, subject.project_root, subject.owner)
    scope = dict([(key, str(value)) for key, value in zip(keys, values, strict=True) if value][:1])
    parameters = {"action": str(action), "agent": str(actor.path or actor.agent_id), **scope}
    return Remedy(operation="grant.add", parameters=parameters, why="for the operator")


def check_directory(
    directory: str, roots: Sequence[str], actor: Actor, home: str, repository: str | None = None
) -> Allowed:
    """Check whether a program may start here: below an allowed root, or in the operator's repository.

    Paths are real and absolute; `repository` is the git top level that contains the directory.
    """
    for root in roots:
        if _is_inside(root, directory):
            return Allowed(directory=directory, rule="allowed root", root=root)
    if actor.kind is TokenKind.OPERATOR and repository and _is_own(repository, directory, home):
        rule = "the operator's own repository"
        return Allowed(directory=directory, rule=rule, root=repository, adds_root=True)
    own = repository if repository and _is_inside(repository, directory) else directory
    add = {"add": own}
    allow = Remedy(operation="config.roots", parameters=add, why="for the operator")
    raise Refused(DirectoryNotAllowed(directory=directory, roots=tuple(roots), remedies=(allow,)))


def check_granted_directory(directory: str, projects: Sequence[str], user: str) -> str:
    """Return the directory if it is inside a project that was granted to another user than the operator."""
    if any(_is_inside(project, directory) for project in projects):
        return directory
    parameters = {"action": str(Action.SPAWN), "holder": user, "project": directory}
    grant = Remedy(operation="grant.add", parameters=parameters, why="for the operator")
    raise Refused(DirectoryNotAllowed(directory=directory, roots=tuple(projects), remedies=(grant,)))


def check_project(directory: str, home: str, temporary: Sequence[str] = ()) -> str:
    """Return the directory if it can be a project; refuse `/`, the home folder and temporary roots."""
    if _split_path(directory) in [[], *(_split_path(one) for one in (home, *temporary))]:
        remedy = Remedy(operation="who", parameters={}, why="list agents and their projects")
        problem = f"{directory} is not a project: use a project folder"
        raise Refused(BadRequest(problem=problem, field="directory", remedies=(remedy,)))
    return directory


def _is_own(repository: str, directory: str, home: str) -> bool:
    below_home = _is_inside(home, repository) and not _is_inside(repository, home)
    return below_home and _is_inside(repository, directory)


def _is_inside(root: str, directory: str) -> bool:
    parts = _split_path(root)
    return _split_path(directory)[: len(parts)] == parts


def _split_path(directory: str) -> list[str]:
    """Return the segments of a real absolute path; `.` and `..` are refused."""
    parts = [part for part in directory.split("/") if part]
    if not directory.startswith("/") or {".", ".."} & set(parts):
        problem = f"expected a real absolute path, got {directory:.60}"
        raise Refused(BadRequest(problem=problem, field="directory"))
    return parts


def may_read_attention(actor: Actor, item: Attention) -> bool:
    """Whether an actor may read an item with its question and answer."""
    if actor.kind is TokenKind.OPERATOR:
        return True
    if actor.kind is not TokenKind.AGENT:
        return False
    raised = actor.agent_id is not None and actor.agent_id == item.agent_id
    return raised or item.user in actor.own_users
