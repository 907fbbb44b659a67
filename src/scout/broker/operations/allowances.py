"""Allowances: a person's standing approvals, created in advance or with a decision; listed and revoked."""

from scout.base.refusal import BadRequest, Refused
from scout.broker.operations import attention
from scout.broker.routing.attention_items import describe_asker
from scout.broker.routing.views import extend_record
from scout.broker.transaction.paging import build_filtered_page, decode_bound
from scout.broker.transaction.transaction import Transaction
from scout.model.access.allowance import (
    Allowance,
    AllowanceKind,
    AllowanceMove,
    AllowanceScope,
    AllowanceState,
    check_allowance,
    is_valid_allowance,
    revoke_allowance,
)
from scout.model.access.permission import PermissionRequest
from scout.model.attention import Attention
from scout.model.events.talk import AllowanceCreated, AllowanceRevoked
from scout.model.problems.request import Forbidden
from scout.protocol.allowances import (
    AddAllowance,
    AllowanceView,
    GetAllowance,
    ListAllowances,
    RevokeAllowance,
)
from scout.protocol.attention import ApproveAttention
from scout.protocol.request import Page

_SHOWN = 20


# -- creating ----------------------------------------------------------------------------------------


def add(tx: Transaction, request: AddAllowance) -> AllowanceView:
    """Create an allowance in advance."""
    user = _require_person(tx)
    given = (request.agent, request.project, request.everywhere or None)
    if sum(one is not None for one in given) != 1:
        problem = "give one of --agent, --project and --everywhere"
        raise Refused(BadRequest(problem=problem, field="agent"))
    agent = tx.resolve(request.agent).agent if request.agent else None
    scope = AllowanceScope.AGENT if agent else AllowanceScope.PROJECT
    return _create(
        tx,
        user=user,
        kind=_choose_kind(request),
        scope=AllowanceScope.EVERYWHERE if request.everywhere else scope,
        agent_id=agent.id if agent else None,
        project_root=_find_root(tx, request),
        tool=request.tool,
        command=request.command,
        arguments="" if request.command else None,
        path=request.path,
        expires_at=request.until,
        reason=request.reason,
    )


def _choose_kind(request: AddAllowance) -> AllowanceKind:
    if request.command and (request.path or request.tool):
        problem = "a command is allowed as it is, without a tool or a path"
        raise Refused(BadRequest(problem=problem, field="command"))
    if request.command:
        return AllowanceKind.COMMAND
    return AllowanceKind.PATH if request.path else AllowanceKind.TOOL


def _find_root(tx: Transaction, request: AddAllowance) -> str | None:
    if request.project is None:
        return None
    place = tx.place
    return place.project_root or place.directory if place else request.project


def _require_person(tx: Transaction) -> str:
    """Return the user behind a person's own credential; programs may not create allowances."""
    user = attention.find_inbox_user(tx)
    if user is None:
        needs = ("the token of a person",)
        raise Refused(Forbidden(action="allow", subject="standing decisions", needs=needs))
    return user


def _create(tx: Transaction, **fields: object) -> AllowanceView:
    allowance = Allowance(
        id=tx.mint("alw"),
        created_at=tx.now,
        updated_at=tx.now,
        created_by=tx.sender,
        **fields,  # pyright: ignore[reportArgumentType] (fields of the record)
    )
    if allowance.expires_at is not None and allowance.expires_at <= tx.now:
        raise Refused(BadRequest(problem="the expiry time is in the past", field="until"))
    made = tx.record(AllowanceCreated, check_allowance(allowance), move="create", reason=allowance.reason)
    return _show(tx, made)


def remember(tx: Transaction, item: Attention, request: ApproveAttention) -> Allowance:
    """Create an allowance from an approval: for the same request, or as wide as the approval asks."""
    user, wish = _require_person(tx), item.permission
    if wish is None or wish.observed or wish.cut:
        problem = "only a permission request that Scout knows in full can be allowed from now on"
        raise Refused(BadRequest(problem=problem, field="always"))
    scope = request.scope or AllowanceScope.AGENT
    asker = describe_asker(tx, item)
    shape = _choose_shape(wish, request)
    return _create(
        tx,
        user=user,
        scope=scope,
        agent_id=item.agent_id if scope in (AllowanceScope.AGENT, AllowanceScope.SESSION) else None,
        session_id=asker.session_id if scope is AllowanceScope.SESSION else None,
        project_root=asker.project_root if scope is AllowanceScope.PROJECT else None,
        expires_at=request.until,
        attention_id=item.id,
        **shape,
    )


def _choose_shape(wish: PermissionRequest, request: ApproveAttention) -> dict[str, object]:
    """Return what the allowance covers: exactly this request, any use of the tool, or the tool on a path."""
    if request.path is not None:
        return {"kind": AllowanceKind.PATH, "tool": wish.tool, "path": request.path}
    if request.any_use:
        return {"kind": AllowanceKind.TOOL, "tool": wish.tool}
    if wish.command is not None:
        return {"kind": AllowanceKind.COMMAND, "command": wish.command, "arguments": wish.arguments}
    return {"kind": AllowanceKind.TOOL, "tool": wish.tool, "arguments": wish.arguments}


# -- reading -----------------------------------------------------------------------------------------


def list_allowances(tx: Transaction, request: ListAllowances) -> Page[AllowanceView]:
    """List the user's allowances, newest first."""
    user = _require_person(tx)
    query = "allowances_all" if request.all else "allowances_open"
    listed = build_filtered_page(
        lambda bound, limit: tx.ledger.many(Allowance, query, user=user, before=bound, limit=limit),
        lambda one: request.all or is_valid_allowance(one, tx.now),
        decode_bound(request.cursor),
        request.limit,
        tx.rules.limits,
    )
    return Page(items=tuple(_show(tx, one) for one in listed.items), next=listed.next)


def get(tx: Transaction, request: GetAllowance) -> AllowanceView:
    """Return one allowance with the latest requests that it approved."""
    return _show(tx, _get_own(tx, request.allowance_id), shown=_SHOWN)


def revoke(tx: Transaction, request: RevokeAllowance) -> AllowanceView:
    """Revoke an allowance, so that the person is asked again; safe to repeat."""
    found = _get_own(tx, request.allowance_id)
    if found.state is AllowanceState.REVOKED:
        return _show(tx, found)
    gone = revoke_allowance(found, tx.now, reason=request.reason)
    tx.record(AllowanceRevoked, gone, move=AllowanceMove.REVOKE, reason=request.reason)
    return _show(tx, gone)


def _get_own(tx: Transaction, ident: str) -> Allowance:
    user, found = _require_person(tx), tx.need(Allowance, "allowance", ident)
    if found.user != user and not tx.is_operator:
        raise tx.missing("allowance", ident)
    return found


def _show(tx: Transaction, allowance: Allowance, shown: int = 0) -> AllowanceView:
    used = (
        tx.ledger.many(Attention, "attention_let_through", allowance=allowance.id, limit=shown)
        if shown
        else []
    )
    return extend_record(
        AllowanceView,
        allowance,
        agent_address=tx.address(allowance.agent_id) if allowance.agent_id else "",
        expired=allowance.expires_at is not None and allowance.expires_at <= tx.now,
        let_through=tuple(attention.show_item(tx, one) for one in used),
    )
