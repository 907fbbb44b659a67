"""Bindings: chats that are bound to a conversation or an agent."""

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.broker.people import accounts
from scout.broker.people.chat_places import find_binding_at
from scout.broker.routing import conversations
from scout.broker.routing.views import extend_record
from scout.broker.transaction.paging import build_filtered_page, decode_bound
from scout.broker.transaction.transaction import Transaction, build_subject, require_local
from scout.model.agent import Agent
from scout.model.conversation import Conversation
from scout.model.events.directory import BINDING_EVENTS, BindingCreated
from scout.model.people.binding import (
    Binding,
    BindingMove,
    BindingState,
    Surface,
    check_binding,
    move_binding,
)
from scout.model.problems.target import NameTaken
from scout.policy.permit import Deed, Subject
from scout.protocol.people.bindings import (
    AddBinding,
    BindingView,
    CloseBinding,
    ListBindings,
    ReopenBinding,
    ShowBinding,
)
from scout.protocol.request import Page
from scout.store.ledger import LAST

_MANY = 1000


def add(tx: Transaction, request: AddBinding) -> BindingView:
    """Bind a chat, or a thread in it, to a conversation or an agent."""
    connector = accounts.check_connector(tx, request.connector)
    agent, place, user = _find_target(tx, request)
    _check_chat(tx, user, connector, request.chat)
    _check_free(tx, connector, request.chat, request.topic_id)
    binding = Binding(
        id=tx.mint("bnd"),
        created_at=tx.now,
        updated_at=tx.now,
        surface=Surface.CONNECTOR,
        name=connector,
        external_id=request.chat,
        topic_id=request.topic_id,
        conversation_id=place.id if place else None,
        agent_id=agent.id if agent else None,
        user=user,
        created_by=tx.sender,
    )
    return _show(tx, tx.record(BindingCreated, check_binding(binding), move="create"))


def _find_target(tx: Transaction, request: AddBinding) -> tuple[Agent | None, Conversation | None, str]:
    """Return the agent or conversation that the caller may bind, and the user whose binding it becomes."""
    named = (request.channel, request.conversation_id, request.agent)
    if sum(one is not None for one in named) != 1:
        problem = "name one of channel, conversationId and agent"
        raise Refused(BadRequest(problem=problem, field="channel"))
    if request.agent is not None:
        agent = require_local(tx, tx.resolve(request.agent).agent)
        tx.permit(Deed.CONTROL, build_subject(agent))
        return agent, None, agent.owner or tx.services.operator
    name = request.channel or request.conversation_id or ""
    place = tx.get(Conversation, request.conversation_id) or conversations.require_channel(tx, name)
    conversations.require_permission(tx, Deed.CONTROL, place)
    return None, place, place.owner or tx.actor.user or tx.services.operator


def _check_chat(tx: Transaction, user: str, connector: str, chat: str) -> None:
    """Let a person bind the chats of their linked accounts; others are the operator's to bind."""
    own = [one for name in tx.actor.own_users for one in accounts.list_keys(tx, name)]
    if (connector, chat) not in [(one.connector, one.chat_id) for one in own]:
        tx.permit(Deed.ADMINISTER, Subject(name=f"{connector} chat {chat[:60]}", user=user))


def _check_free(tx: Transaction, connector: str, chat: str, topic: str | None) -> None:
    held = find_binding_at(tx, connector, chat, topic)
    if held is None:
        return
    close = Remedy(operation="binding.close", parameters={"bindingId": held.id}, why="free the chat")
    mine = _may_see(tx, held)
    name = f"{connector} chat {chat[:60]}"
    raise Refused(
        NameTaken(
            noun="binding",
            name=name,
            holder_id=held.id if mine else "",
            holder_state=str(held.state),
            remedies=(close,) if mine else (),
        )
    )


def list_bindings(tx: Transaction, request: ListBindings) -> Page[BindingView]:
    """List bindings, newest first: all for the operator, a person's own for others."""

    def read(bound: str, limit: int) -> list[Binding]:
        return tx.ledger.many(Binding, "bindings_all", before=bound, limit=limit)

    def is_wanted(binding: Binding) -> bool:
        return (request.all or binding.state is BindingState.ACTIVE) and _may_see(tx, binding)

    found = build_filtered_page(read, is_wanted, decode_bound(request.cursor), request.limit, tx.rules.limits)
    return Page(items=tuple(_show(tx, one) for one in found.items), next=found.next)


def show(tx: Transaction, request: ShowBinding) -> BindingView:
    """Return one binding."""
    return _show(tx, _find(tx, request.binding_id))


def _find(tx: Transaction, ident: str) -> Binding:
    """Return a binding of the caller's; for others it does not exist."""
    binding = tx.need(Binding, "binding", ident)
    if not _may_see(tx, binding):
        raise tx.missing("binding", ident)
    return binding


def _may_see(tx: Transaction, binding: Binding) -> bool:
    return tx.is_operator or binding.user in tx.actor.own_users


def _show(tx: Transaction, binding: Binding) -> BindingView:
    if binding.conversation_id is not None:
        target = conversations.name_conversation(tx, binding.conversation_id)
    else:
        target = tx.address(binding.agent_id)
    return extend_record(BindingView, binding, target=target)


def close(tx: Transaction, request: CloseBinding) -> BindingView:
    """Close a binding."""
    binding = _find(tx, request.binding_id)
    return _show(tx, _move(tx, binding, BindingMove.CLOSE, request.reason, seen=request.revision))


def reopen(tx: Transaction, request: ReopenBinding) -> BindingView:
    """Reopen a binding, if its chat is still free."""
    binding = _find(tx, request.binding_id)
    if binding.state is BindingState.CLOSED:
        _check_free(tx, binding.name, binding.external_id, binding.topic_id)
    return _show(tx, _move(tx, binding, BindingMove.REOPEN, "", seen=request.revision))


def _move(
    tx: Transaction, binding: Binding, move: BindingMove, reason: str, *, seen: int | None = None
) -> Binding:
    moved = move_binding(binding, move, tx.now, seen=seen, reason=reason)
    return tx.record(BINDING_EVENTS[move], moved, move=move, reason=reason)


def close_bindings_of_chat(tx: Transaction, connector: str, chat: str, reason: str) -> None:
    """Close the bindings of a chat and its threads."""
    place = {"surface": Surface.CONNECTOR, "name": connector, "chat": chat, "limit": _MANY}
    for binding in tx.ledger.many(Binding, "bindings_of_chat", **place):
        _move(tx, binding, BindingMove.CLOSE, reason)


def close_of_user(tx: Transaction, user: str, reason: str) -> int:
    """Close the bindings of a user; return how many there were."""
    found = tx.ledger.many(Binding, "bindings_of_user", user=user, before=LAST, limit=_MANY)
    active = [one for one in found if one.state is BindingState.ACTIVE]
    for binding in active:
        _move(tx, binding, BindingMove.CLOSE, reason)
    return len(active)
