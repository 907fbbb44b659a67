"""Requests about connectors, and posts to people."""

import asyncio
from typing import Protocol

from scout.base.refusal import BadRequest, Candidate, Refused, Remedy
from scout.broker.operations import attention, talk
from scout.broker.people import outbound
from scout.broker.people.accounts import list_keys
from scout.broker.people.chat_posts import find_home, queue_post
from scout.broker.people.supervisor import Connectors
from scout.broker.routing import users
from scout.broker.transaction.call import CallBroker, CallContext
from scout.broker.transaction.paging import build_page, decode_bound, get_page_size
from scout.broker.transaction.transaction import Transaction
from scout.model.conversation import Message
from scout.model.people.chat_post import ChatPost
from scout.model.problems.chats import ConnectorFailed
from scout.model.problems.request import Forbidden, NotFound
from scout.policy.nearest import rank_names
from scout.policy.permit import Deed, Subject
from scout.ports.connector import ConnectorError, ConnectorKits, ConnectorSetup, SetupField
from scout.protocol.people.connectors import (
    AddConnector,
    ConnectorField,
    ConnectorState,
    ConnectorView,
    ListConnectors,
    ListPosts,
    PostedToUser,
    PostToUser,
    ProveConnector,
    RemoveConnector,
    ShowConnector,
)
from scout.protocol.request import Page
from scout.protocol.talk import Send

_MANY = 1000


class ConnectorBroker(CallBroker, Protocol):
    """The broker with its connectors."""

    connectors: Connectors


ConnectorCall = CallContext[ConnectorBroker]


# -- setting up --------------------------------------------------------------------------------------


async def add_connector(call: ConnectorCall, request: AddConnector) -> ConnectorView:
    """Prove the credentials, store them, and start the connector; an earlier one is replaced."""
    kits = _require_kits(call, "set up")
    fields = _find_fields(kits, request.connector)
    setup = ConnectorSetup(connector=request.connector, values=_check_values(request, fields))
    prepared = await _prove(kits, setup)
    connectors = call.broker.connectors
    await connectors.stop(request.connector)
    await asyncio.to_thread(kits.store, prepared)
    connectors.start(request.connector)
    await connectors.wait_for_start(request.connector)
    return await show_connector(call, ShowConnector(connector=request.connector))


async def _prove(kits: ConnectorKits, setup: ConnectorSetup) -> ConnectorSetup:
    """Return the set-up to store, once the platform has accepted its credentials."""
    try:
        prepared = await kits.prepare(setup)
        connector = await asyncio.to_thread(kits.build, prepared)
        try:
            await connector.check()
        finally:
            await connector.close()
    except ConnectorError as error:
        raise _build_failure(setup.connector, error) from None
    return prepared


def _build_failure(name: str, error: ConnectorError) -> Refused:
    needs = Remedy(operation="connector.show", parameters={"connector": name}, why="see what it needs")
    again = Remedy(operation="connector.add", parameters={"connector": name}, why="with other values")
    told = (needs, again)
    return Refused(ConnectorFailed(connector=name, kind=error.kind, reason=error.reason, remedies=told))


def _check_values(request: AddConnector, fields: tuple[SetupField, ...]) -> dict[str, str]:
    """Return the given values; refuse unknown names and missing values."""
    names = {field.name for field in fields}
    unknown = sorted(set(request.values) - names)
    if unknown:
        problem = f"{request.connector} has no '{unknown[0][:40]}'; it has {', '.join(sorted(names))}"
        raise Refused(BadRequest(problem=problem, field="values"))
    missing = [one for one in fields if one.default is None and not request.values.get(one.name, "").strip()]
    if missing:
        problem = f"{request.connector} needs {', '.join(one.name for one in missing)}"
        look = Remedy(
            operation="connector.show", parameters={"connector": request.connector}, why="see what it needs"
        )
        raise Refused(BadRequest(problem=problem, field="values", remedies=(look,)))
    return {name: value.strip() for name, value in request.values.items() if value.strip()}


async def remove_connector(call: ConnectorCall, request: RemoveConnector) -> ConnectorView:
    """Stop a connector and remove its file; one that is not set up is refused."""
    kits = _require_kits(call, "remove")
    await _require_setup(kits, request.connector)
    await call.broker.connectors.stop(request.connector)
    await asyncio.to_thread(kits.forget, request.connector)
    await call.broker.as_system(lambda tx: tx.ledger.move_cursor(request.connector, None))
    return await show_connector(call, ShowConnector(connector=request.connector))


async def prove_connector(call: ConnectorCall, request: ProveConnector) -> ConnectorView:
    """Prove the credentials again, and post to the caller's own chats."""
    kits = _require_kits(call, "test")
    await _require_setup(kits, request.connector)
    await _prove(kits, await asyncio.to_thread(kits.read, request.connector))
    await call.write(lambda tx: _post_test(tx, request))
    return await show_connector(call, ShowConnector(connector=request.connector))


def _post_test(tx: Transaction, request: ProveConnector) -> None:
    user = tx.actor.user or tx.services.operator
    keys = [one for one in list_keys(tx, user) if one.connector == request.connector]
    for key in keys:
        place = find_home(tx, key)
        if place is not None:
            queue_post(tx, request.connector, place, user, key=key, text=request.text, urgent=True)
    if not keys:
        link = {"user": user, "connector": request.connector}
        remedy = Remedy(operation="user.link", parameters=link, why="link your account")
        raise Refused(NotFound(noun=f"{request.connector} account of", id=user, remedies=(remedy,)))


# -- reading -----------------------------------------------------------------------------------------


async def list_connectors(call: ConnectorCall, request: ListConnectors) -> Page[ConnectorView]:
    """List connectors by name."""
    kits = call.broker.connectors.kits
    known = list(kits.list_known()) if kits is not None and request.all else []
    names = sorted({*call.broker.connectors.list_names(), *known})
    return Page(items=tuple(_show(call, name, ()) for name in names))


async def show_connector(call: ConnectorCall, request: ShowConnector) -> ConnectorView:
    """Show a connector with its fields; secrets are left out."""
    kits = _require_kits(call, "see")
    fields = _find_fields(kits, request.connector)
    values = await asyncio.to_thread(_read_values, kits, request.connector)
    shown = tuple(_show_field(field, values) for field in fields)
    return _show(call, request.connector, shown)


def _show(call: ConnectorCall, name: str, fields: tuple[ConnectorField, ...]) -> ConnectorView:
    health = call.broker.connectors.get_health(name)
    if health is None:
        return ConnectorView(connector=name, state=ConnectorState.OFF, fields=fields)
    account = health.account
    return ConnectorView(
        connector=name,
        state=health.state,
        account=(account.address or account.name or account.id) if account is not None else "",
        problem=health.problem,
        since=health.since,
        waiting=call.broker.glance().value("chat_posts_waiting", connector=name, limit=_MANY),
        fields=fields,
    )


def _show_field(field: SetupField, values: dict[str, str]) -> ConnectorField:
    return ConnectorField(
        name=field.name,
        question=field.question,
        secret=field.secret,
        default=field.default,
        value=None if field.secret else values.get(field.name),
    )


def _read_values(kits: ConnectorKits, name: str) -> dict[str, str]:
    """Return what is set for a connector; nothing if its file cannot be read, which its state tells."""
    try:
        return kits.read(name).values if name in kits.list_stored() else {}
    except Refused:
        return {}


async def _require_setup(kits: ConnectorKits, name: str) -> None:
    """Refuse a connector that is unknown or not set up."""
    _find_fields(kits, name)
    if name not in await asyncio.to_thread(kits.list_stored):
        raise _build_unknown(kits, name, is_known=True)


def _require_kits(call: ConnectorCall, deed: str) -> ConnectorKits:
    """Return the kits; only the operator may use them, and only a daemon has them."""
    call.glance().permit(Deed.ADMINISTER, Subject(name="connectors"))
    kits = call.broker.connectors.kits
    if kits is None:
        raise Refused(Forbidden(action=deed, subject="connectors", needs=("a running daemon",)))
    return kits


def _find_fields(kits: ConnectorKits, name: str) -> tuple[SetupField, ...]:
    found = kits.list_known().get(name)
    if found is None:
        raise _build_unknown(kits, name, is_known=False)
    return found


def _build_unknown(kits: ConnectorKits, name: str, *, is_known: bool) -> Refused:
    known = list(kits.list_known())
    near = tuple(Candidate(address=one) for one in rank_names(name, known, 3))
    add = Remedy(operation="connector.add", parameters={"connector": name}, why="set it up")
    look = Remedy(operation="connector.list", parameters={"all": True}, why="list the known connectors")
    if is_known:
        return Refused(NotFound(noun="connector", id=name, remedies=(add,)))
    return Refused(NotFound(noun="connector", id=name[:60], candidates=near, remedies=(look,)))


# -- posts -------------------------------------------------------------------------------------------


def post_to_user(tx: Transaction, request: PostToUser) -> PostedToUser:
    """Post a message to a person or a group, and queue it for each of their chats."""
    user = users.need_user(tx, request.user)
    said = Send(to=f"/{user.name}/{users.DIRECT}", body=request.body, attachments=request.attachments)
    receipt = talk.send(tx, said)
    message = tx.need(Message, "message", receipt.message_id)
    shown = outbound.post_message(tx, message, user.name)
    return PostedToUser(
        message_id=message.id, conversation_id=message.conversation_id, user=user.name, posts=tuple(shown)
    )


def list_posts(tx: Transaction, request: ListPosts) -> Page[ChatPost]:
    """List posts, newest first."""
    own = attention.find_inbox_user(tx)
    if own is None or (request.user not in (None, own) and not tx.is_operator):
        raise Refused(Forbidden(action="read", subject="posts", needs=("the token of that person",)))
    named = users.need_user(tx, request.user).name if request.user else None
    user = named or (None if tx.is_operator else own)
    wanted, bound = get_page_size(request.limit, tx.rules.limits), decode_bound(request.cursor)
    query, values = ("chat_posts_all", {}) if user is None else ("chat_posts_of_user", {"user": user})
    found = tx.ledger.many(ChatPost, query, before=bound, limit=wanted + 1, **values)
    return build_page(found, wanted, lambda one: one.id)
