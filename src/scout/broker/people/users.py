"""Users: add, list, show and rename them, link and unlink their chat accounts, retire and revive them."""

import asyncio

from msgspec.structs import replace

from scout.base.refusal import Refused, Remedy
from scout.broker.operations.lifecycle import retire_agent, revive_agent
from scout.broker.people import accounts, bindings, links
from scout.broker.people.time_zones import load_zone
from scout.broker.routing import users
from scout.broker.routing.views import extend_record
from scout.broker.transaction.call import CallBroker, CallContext
from scout.broker.transaction.paging import build_filtered_page, decode_bound
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import AgentPath
from scout.model.agent import Agent, Lifecycle
from scout.model.events.directory import USER_EVENTS, UserUpdated
from scout.model.people.link_code import LinkCode, is_open_code
from scout.model.people.user import (
    ConnectorKey,
    KeyState,
    User,
    UserMove,
    UserState,
    move_user,
    read_quiet_hours,
    rename_user,
)
from scout.model.problems.request import NotFound
from scout.model.problems.target import AmbiguousTarget, NameTaken
from scout.policy.permit import Deed, Subject
from scout.protocol.people.users import (
    AddUser,
    IssuedCode,
    LinkCodeView,
    LinkUser,
    ListKeys,
    ListUsers,
    RenameUser,
    ReplyTarget,
    RetireUser,
    ReviveUser,
    SetQuietHours,
    ShowKey,
    ShowTarget,
    ShowUser,
    UnlinkUser,
    UserDetail,
    UserView,
)
from scout.protocol.request import Page
from scout.store.ledger import LAST

_MANY = 1000
_OFF = "off"  # in place of quiet hours
_COUNTED = 10_000


# -- permission --------------------------------------------------------------------------------------


def _find_own(tx: Transaction, name: str) -> User:
    """Return a user whom the caller controls: themselves, a sub-user, or anybody for the operator.

    For others the user does not exist.
    """
    user = users.need_user(tx, name)
    if not tx.allows(Deed.CONTROL, _describe_user(user)):
        raise Refused(users.build_unknown_user(tx, name))
    return user


def _describe_user(user: User) -> Subject:
    return Subject(name=user.name, user=user.name, path=AgentPath.root(user.name, users.DIRECT))


def _find_ruled(tx: Transaction, name: str) -> User:
    """Return a user whom the caller may retire: a sub-user of theirs, or anybody else for the operator."""
    user = _find_own(tx, name)
    if user.name not in tx.actor.subusers:
        tx.permit(Deed.ADMINISTER, Subject(name=user.name))
    if user.operator:
        raise Refused(users.build_operator_stays(user))
    return user


# -- adding and reading ------------------------------------------------------------------------------


def add_user(tx: Transaction, request: AddUser) -> UserDetail:
    """Add a person, a group or a sub-user, with the agents that belong to it."""
    tx.permit(Deed.ADMINISTER, Subject(name="users"))
    taken = users.find_user(tx, request.user)
    if taken is not None:
        raise Refused(_build_taken(taken))
    if request.owner is not None:
        users.require_active(tx, users.need_user(tx, request.owner))
    user = users.create_user(
        tx,
        request.user,
        kind=request.kind,
        owner=request.owner.strip("/") if request.owner else None,
        display_name=request.display_name,
    )
    return _show(tx, user)


def _build_taken(user: User) -> NameTaken:
    move = "user.revive" if user.state is UserState.RETIRED else "user.show"
    remedy = Remedy(operation=move, parameters={"user": user.name})
    return NameTaken(
        noun="user", name=user.name, holder_id=user.id, holder_state=str(user.state), remedies=(remedy,)
    )


def list_users(tx: Transaction, request: ListUsers) -> Page[UserView]:
    """List users, newest first: all for the operator, a person's own for others."""
    owner = users.need_user(tx, request.owner).name if request.owner else None

    def read(bound: str, limit: int) -> list[User]:
        if owner is not None:
            return tx.ledger.many(User, "users_owned", owner=owner, before=bound, limit=limit)
        return tx.ledger.many(User, "users_all", before=bound, limit=limit)

    def is_wanted(user: User) -> bool:
        return (request.all or users.is_active(user)) and _may_know(tx, user)

    found = build_filtered_page(read, is_wanted, decode_bound(request.cursor), request.limit, tx.rules.limits)
    return Page(items=tuple(_build_view(tx, one) for one in found.items), next=found.next)


def _may_know(tx: Transaction, user: User) -> bool:
    """Whether the caller may know that a user exists."""
    return user.name == tx.actor.user or tx.allows(Deed.CONTROL, _describe_user(user))


def _build_view(tx: Transaction, user: User) -> UserView:
    mine = tx.allows(Deed.CONTROL, _describe_user(user))
    keys = len(accounts.list_keys(tx, user.name)) if mine else 0
    return extend_record(UserView, user, address=str(AgentPath.root(user.name, users.DIRECT)), keys=keys)


def show_user(tx: Transaction, request: ShowUser) -> UserDetail:
    """Return a user with their chat accounts, open codes, sub-users and agents."""
    return _show(tx, _find_own(tx, request.user))


def _show(tx: Transaction, user: User, *notes: str) -> UserDetail:
    codes = tx.ledger.many(LinkCode, "link_codes_of_user", user=user.name, limit=_MANY)
    owned = tx.ledger.many(User, "users_owned", owner=user.name, before=LAST, limit=_MANY)
    return extend_record(
        UserDetail,
        user,
        address=str(AgentPath.root(user.name, users.DIRECT)),
        gateway=str(AgentPath.root(user.owner, "subuser", user.name)) if user.owner else None,
        keys=tuple(accounts.list_keys(tx, user.name)),
        codes=tuple(
            LinkCodeView(connector=one.connector, expires_at=one.expires_at)
            for one in codes
            if is_open_code(one, tx.now)
        ),
        subusers=tuple(one.name for one in owned if users.is_active(one)),
        agents=sum(not one.is_person for one in _list_live_agents(tx, user)),
        notes=notes,
    )


def rename(tx: Transaction, request: RenameUser) -> UserDetail:
    """Change the name that is shown for a user."""
    user = _find_own(tx, request.user)
    changed = rename_user(user, request.display_name.strip() or None, tx.now, seen=request.revision)
    return _show(tx, tx.record(UserUpdated, changed, move="rename"))


# -- chat accounts -----------------------------------------------------------------------------------


def link(tx: Transaction, request: LinkUser) -> IssuedCode:
    """Issue a one-time code for a chat account."""
    user = users.require_active(tx, _find_own(tx, request.user))
    record, code = links.issue_code(tx, user, request.connector)
    return IssuedCode(
        user=user.name,
        connector=record.connector,
        code=code,
        expires_at=record.expires_at,
        kind=user.kind,
    )


def unlink(tx: Transaction, request: UnlinkUser) -> ConnectorKey:
    """Unlink a chat account."""
    user = _find_own(tx, request.user)
    again = Remedy(operation="user.unlink", parameters={"user": user.name})
    key = _choose_key(tx, user, request.connector, request.key_id, again)
    return links.unlink(tx, key, request.reason)


async def set_quiet_hours(call: CallContext[CallBroker], request: SetQuietHours) -> ConnectorKey:
    """Set or remove the quiet hours of a chat account."""
    if request.time_zone is not None:
        await load_zone(call, request, request.time_zone)
    local = await asyncio.to_thread(call.services.zones.find_local)
    return await call.write_once(request, lambda tx, one: _set_quiet_hours(tx, one, local))


def _set_quiet_hours(tx: Transaction, request: SetQuietHours, local: str) -> ConnectorKey:
    user = _find_own(tx, request.user)
    repeated = {"user": user.name, "connector": request.connector, "hours": request.hours}
    again = Remedy(operation="user.quiet", parameters=repeated)
    key = _choose_key(tx, user, request.connector, request.key_id, again)
    zone = request.time_zone or (key.quiet.time_zone if key.quiet else local)
    quiet = None if request.hours.strip().lower() == _OFF else read_quiet_hours(request.hours, zone)
    return accounts.change_quiet_hours(tx, key, quiet, seen=request.revision)


def _choose_key(
    tx: Transaction, user: User, connector: str | None, key_id: str | None, again: Remedy
) -> ConnectorKey:
    """Return the account that is meant: named by its id, or the only one of the user on a connector.

    `again`: the call to repeat with one of several accounts.
    """
    keys = accounts.list_keys(tx, user.name)
    found = [one for one in keys if connector in (None, one.connector) and key_id in (None, one.id)]
    if len(found) == 1:
        return found[0]
    if not found:
        noun = f"{connector} account of {user.name}" if connector else f"chat account of {user.name}"
        look = Remedy(operation="user.keys", parameters={"user": user.name}, why="list the accounts")
        raise Refused(NotFound(noun=noun, id=(key_id or "only")[:60], remedies=(look,)))
    remedies = tuple(_name_key(again, one) for one in found[:3])
    raise Refused(
        AmbiguousTarget(
            address=user.name,
            count=len(found),
            retry=found[0].id,
            noun="chat account",
            candidates=accounts.list_candidates(found),
            remedies=remedies,
        )
    )


def _name_key(again: Remedy, key: ConnectorKey) -> Remedy:
    return replace(again, parameters={**again.parameters, "connector": key.connector, "keyId": key.id})


def show_target(tx: Transaction, request: ShowTarget) -> ReplyTarget:
    """Return which account a message to the user on a connector goes to, and the rule that decided."""
    user = _find_own(tx, request.user)
    outlet = accounts.find_outlet(tx, AgentPath.root(user.name, request.connector))
    return ReplyTarget(
        connector=outlet.target.connector,
        target_id=outlet.target.target_id,
        key_id=outlet.key_id,
        rule=outlet.rule,
        considered=outlet.considered,
    )


def list_keys(tx: Transaction, request: ListKeys) -> Page[ConnectorKey]:
    """List linked chat accounts, newest first: all for the operator, a person's own for others."""
    user = _find_own(tx, request.user).name if request.user else None

    def read(bound: str, limit: int) -> list[ConnectorKey]:
        if user is not None:
            return tx.ledger.many(ConnectorKey, "keys_of_user", user=user, before=bound, limit=limit)
        return tx.ledger.many(ConnectorKey, "keys_all", before=bound, limit=limit)

    def is_wanted(key: ConnectorKey) -> bool:
        linked = request.all or key.state is KeyState.ACTIVE
        return linked and request.connector in (None, key.connector) and _may_see_key(tx, key)

    return build_filtered_page(read, is_wanted, decode_bound(request.cursor), request.limit, tx.rules.limits)


def _may_see_key(tx: Transaction, key: ConnectorKey) -> bool:
    path = AgentPath.root(key.user, users.DIRECT)
    return tx.allows(Deed.CONTROL, Subject(name=key.user, user=key.user, path=path))


def show_key(tx: Transaction, request: ShowKey) -> ConnectorKey:
    """Return one chat account; for callers who do not control its user it does not exist."""
    key = tx.need(ConnectorKey, "chat account", request.key_id)
    if not _may_see_key(tx, key):
        raise tx.missing("chat account", request.key_id)
    return key


# -- retiring ----------------------------------------------------------------------------------------


def retire(tx: Transaction, request: RetireUser) -> UserDetail:
    """Retire a user with everything that belongs to it; the answer says what happened."""
    user = _find_ruled(tx, request.user)
    retired, notes = _retire_one(tx, user, request.reason, seen=request.revision)
    return _show(tx, retired, *notes)


def _retire_one(
    tx: Transaction, user: User, reason: str, *, seen: int | None = None
) -> tuple[User, list[str]]:
    owned = tx.ledger.many(User, "users_owned", owner=user.name, before=LAST, limit=_MANY)
    below = [one for one in owned if users.is_active(one)]
    agents = [*_list_live_agents(tx, user), *_list_gateway(tx, user)]
    keys = accounts.list_keys(tx, user.name)
    move = UserMove.RETIRE
    gone = move_user(
        user,
        move,
        tx.now,
        seen=seen,
        reason=reason,
        retired_agents=tuple(one.id for one in agents),
        retired_users=tuple(one.name for one in below),
    )
    tx.record(USER_EVENTS[move], gone, move=move, reason=reason)
    why = f"the user {user.name} is retired"
    closed = bindings.close_of_user(tx, user.name, why)
    for key in keys:
        links.unlink(tx, key, why)
    links.revoke_codes(tx, user.name, why)
    for agent in agents:
        retire_agent(tx, tx.need(Agent, "agent", agent.id), why)
    notes = [
        f"{_count(len(agents), 'agent')} retired; asks to them fail, mail is returned to its senders",
        *([f"{_count(len(keys), 'chat account')} unlinked"] if keys else []),
        *([f"{_count(closed, 'binding')} closed"] if closed else []),
    ]
    for one in below:
        notes.append(f"sub-user {one.name} retired")
        notes += [f"{one.name}: {text}" for text in _retire_one(tx, one, why)[1]]
    return gone, notes


def _list_live_agents(tx: Transaction, user: User) -> list[Agent]:
    found = tx.ledger.many(Agent, "agents_of_owner", owner=user.name, before=LAST, limit=_COUNTED)
    return [one for one in found if one.lifecycle is not Lifecycle.RETIRED]


def _list_gateway(tx: Transaction, user: User) -> list[Agent]:
    """Return the live gateway agent of a sub-user; it belongs to the owner."""
    path = AgentPath.root(user.owner, "subuser", user.name) if user.owner else None
    agent = tx.ledger.one(Agent, "agent_at_path", path=str(path)) if path else None
    return [agent] if agent is not None and agent.lifecycle is not Lifecycle.RETIRED else []


def revive(tx: Transaction, request: ReviveUser) -> UserDetail:
    """Revive a user with the agents and sub-users that were retired with it."""
    user = _find_ruled(tx, request.user)
    if user.owner is not None:
        users.require_active(tx, users.need_user(tx, user.owner))
    revived, notes = _revive_one(tx, user, seen=request.revision)
    notes.append(f"chat accounts are linked again by a code: scout user link {user.name} CONNECTOR")
    return _show(tx, revived, *notes)


def _revive_one(tx: Transaction, user: User, *, seen: int | None = None) -> tuple[User, list[str]]:
    move, agents, below = UserMove.REVIVE, user.retired_agents, user.retired_users
    back = tx.record(USER_EVENTS[move], move_user(user, move, tx.now, seen=seen), move=move)
    why = f"the user {user.name} is revived"
    still = [one for one in (tx.agent(ident) for ident in agents) if one is not None]
    gone = [one for one in still if one.lifecycle is Lifecycle.RETIRED]
    for agent in gone:
        revive_agent(tx, agent, why)
    notes = [f"{_count(len(gone), 'agent')} revived"]
    for name in below:
        one = users.find_user(tx, name)
        if one is not None and not users.is_active(one):
            notes.append(f"sub-user {name} revived")
            notes += [f"{name}: {text}" for text in _revive_one(tx, one)[1]]
    return back, notes


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
