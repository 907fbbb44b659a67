"""Standing decisions of a person: made while deciding or beforehand, used at once, listed and revoked."""

from scout.base.refusal import BadRequest, Refused
from scout.broker.operations import attention
from scout.broker.routing.permissions import asker_of
from scout.broker.routing.views import enriched
from scout.broker.transaction.paging import before, sought
from scout.broker.transaction.transaction import Turn
from scout.model.allowance import (
    Allowance,
    AllowanceKind,
    AllowanceMove,
    AllowanceScope,
    AllowanceState,
    check_allowance,
    is_valid_allowance,
    revoke_allowance,
)
from scout.model.attention import Attention
from scout.model.events.talk import AllowanceCreated, AllowanceRevoked
from scout.model.permission import PermissionRequest
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

__all__ = ["add", "get", "list_allowances", "remember", "revoke"]

_SHOWN = 20


# -- making ------------------------------------------------------------------------------------------


def add(turn: Turn, request: AddAllowance) -> AllowanceView:
    """Decide beforehand."""
    user = _person(turn)
    given = (request.agent, request.project, request.everywhere or None)
    if sum(one is not None for one in given) != 1:
        problem = "for whom? give one of --agent, --project and --everywhere"
        raise Refused(BadRequest(problem=problem, field="agent"))
    agent = turn.resolve(request.agent).agent if request.agent else None
    scope = AllowanceScope.AGENT if agent else AllowanceScope.PROJECT
    return _made(
        turn,
        user=user,
        kind=_kind(request),
        scope=AllowanceScope.EVERYWHERE if request.everywhere else scope,
        agent_id=agent.id if agent else None,
        project_root=_root(turn, request),
        tool=request.tool,
        command=request.command,
        arguments="" if request.command else None,
        path=request.path,
        expires_at=request.until,
        reason=request.reason,
    )


def _kind(request: AddAllowance) -> AllowanceKind:
    if request.command and (request.path or request.tool):
        problem = "a command is allowed as it is, without a tool or a path"
        raise Refused(BadRequest(problem=problem, field="command"))
    if request.command:
        return AllowanceKind.COMMAND
    return AllowanceKind.PATH if request.path else AllowanceKind.TOOL


def _root(turn: Turn, request: AddAllowance) -> str | None:
    if request.project is None:
        return None
    place = turn.place
    return place.project_root or place.directory if place else request.project


def _person(turn: Turn) -> str:
    """The user whom a person's own credential stands for; a program decides nothing for later."""
    user = attention.inbox_of(turn)
    if user is None:
        needs = ("the token of a person",)
        raise Refused(Forbidden(action="allow", subject="standing decisions", needs=needs))
    return user


def _made(turn: Turn, **fields: object) -> AllowanceView:
    allowance = Allowance(
        id=turn.mint("alw"),
        created_at=turn.now,
        updated_at=turn.now,
        created_by=turn.sender,
        **fields,  # pyright: ignore[reportArgumentType] (fields of the record)
    )
    if allowance.expires_at is not None and allowance.expires_at <= turn.now:
        raise Refused(BadRequest(problem="its end is in the past", field="until"))
    made = turn.record(AllowanceCreated, check_allowance(allowance), move="create", reason=allowance.reason)
    return _view(turn, made)


def remember(turn: Turn, item: Attention, request: ApproveAttention) -> Allowance:
    """What is being approved is approved from now on: the same request, or as much more as is asked for."""
    user, wish = _person(turn), item.permission
    if wish is None or wish.observed or wish.cut:
        problem = "only what a program asks to do, and what is known whole, can be let through from now on"
        raise Refused(BadRequest(problem=problem, field="always"))
    scope = request.scope or AllowanceScope.AGENT
    asker = asker_of(turn, item)
    shape = _shape(wish, request)
    return _made(
        turn,
        user=user,
        scope=scope,
        agent_id=item.agent_id if scope is AllowanceScope.AGENT else None,
        project_root=asker.project_root if scope is AllowanceScope.PROJECT else None,
        expires_at=request.until,
        attention_id=item.id,
        **shape,
    )


def _shape(wish: PermissionRequest, request: ApproveAttention) -> dict[str, object]:
    """Exactly this, unless the person says: any use of the tool, or of the tool on some files."""
    if request.path is not None:
        return {"kind": AllowanceKind.PATH, "tool": wish.tool, "path": request.path}
    if request.any_use:
        return {"kind": AllowanceKind.TOOL, "tool": wish.tool}
    if wish.command is not None:
        return {"kind": AllowanceKind.COMMAND, "command": wish.command, "arguments": wish.arguments}
    return {"kind": AllowanceKind.TOOL, "tool": wish.tool, "arguments": wish.arguments}


# -- looking -----------------------------------------------------------------------------------------


def list_allowances(turn: Turn, request: ListAllowances) -> Page[AllowanceView]:
    """What is let through, newest first."""
    user = _person(turn)
    query = "allowances_all" if request.all else "allowances_open"
    listed = sought(
        lambda bound, limit: turn.ledger.many(Allowance, query, user=user, before=bound, limit=limit),
        lambda one: request.all or is_valid_allowance(one, turn.now),
        before(request.cursor),
        request.limit,
        turn.rules.limits,
    )
    return Page(items=tuple(_view(turn, one) for one in listed.items), next=listed.next)


def get(turn: Turn, request: GetAllowance) -> AllowanceView:
    """One standing decision, and what it let through last."""
    return _view(turn, _own(turn, request.allowance_id), shown=_SHOWN)


def revoke(turn: Turn, request: RevokeAllowance) -> AllowanceView:
    """The person is asked again; doing it twice changes nothing."""
    found = _own(turn, request.allowance_id)
    if found.state is AllowanceState.REVOKED:
        return _view(turn, found)
    gone = revoke_allowance(found, turn.now, reason=request.reason)
    turn.record(AllowanceRevoked, gone, move=AllowanceMove.REVOKE, reason=request.reason)
    return _view(turn, gone)


def _own(turn: Turn, ident: str) -> Allowance:
    user, found = _person(turn), turn.need(Allowance, "allowance", ident)
    if found.user != user and not turn.is_operator:
        raise turn.missing("allowance", ident)
    return found


def _view(turn: Turn, allowance: Allowance, shown: int = 0) -> AllowanceView:
    used = (
        turn.ledger.many(Attention, "attention_let_through", allowance=allowance.id, limit=shown)
        if shown
        else []
    )
    return enriched(
        AllowanceView,
        allowance,
        agent_address=turn.address(allowance.agent_id) if allowance.agent_id else "",
        expired=allowance.expires_at is not None and allowance.expires_at <= turn.now,
        let_through=tuple(attention.view_of(turn, one) for one in used),
    )
