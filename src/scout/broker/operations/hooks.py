"""Hook events of enrolled sessions, and the context that each session gets in response."""

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from scout.broker.effects import exit_check, foreground, session_end
from scout.broker.effects.exit_check import NO_FILES, UncommittedFiles
from scout.broker.operations import attention, decisions, endpoints, inbox, insight, live_turn
from scout.broker.routing import attention_items, routes
from scout.broker.routing.unread import START, Unread, count_unread, list_unread, mark_read
from scout.broker.transaction.admission import build_viewpoint
from scout.broker.transaction.transaction import Transaction, build_subject, name_session
from scout.model.access.permission import build_request
from scout.model.access.token import TokenKind
from scout.model.agent import Agent
from scout.model.attention import Attention, AttentionKind
from scout.model.delivery import Delivery, DeliveryState, is_due
from scout.model.endpoint import Endpoint, EndpointMove, EndpointState, record_heartbeat
from scout.model.session import SESSION, Session, SessionMove, SessionState
from scout.policy.host_text import (
    Mail,
    Standing,
    build_mail_text,
    build_opening_lines,
    build_unread_line,
    is_mail,
)
from scout.policy.permit import Deed
from scout.protocol.attention import DismissAttention
from scout.protocol.endpoints import Heartbeat
from scout.protocol.enrolment import HookAnswer, HookEvent, ReportHook
from scout.protocol.inbox import AckInbox, InboxItem
from scout.protocol.insight import ShowBrief
from scout.store.ledger import LAST

MAILS = 3  # messages handed over at once, so that they do not crowd out the session's own task
_SOME = 200
_LOOKED_AT = 20
_FETCHING = frozenset({HookEvent.STOP, HookEvent.TOOL_USE})


def report_hook(tx: Transaction, request: ReportHook, files: UncommittedFiles = NO_FILES) -> HookAnswer:
    """Handle one hook event of an enrolled session, reported by the host that enrolled it.

    `files`: the uncommitted files of a spawned agent that stops.
    """
    session = tx.need(Session, "session", request.session_id)
    agent = tx.need(Agent, "agent", session.agent_id)
    subject = replace(build_subject(agent), name=session.id, enrolled_by=session.enrolled_by)
    tx.permit(Deed.FETCH_MAIL if request.event in _FETCHING else Deed.REPORT_HOOK, subject)
    act_as_session(tx, agent, session)
    if request.event is not HookEvent.SESSION_END and session.state is not SessionState.LIVE:
        SESSION.after(session.state, SessionMove.READY)  # refuses: the session must enrol again
    if request.event is HookEvent.STOP:
        return _on_stop(tx, session, request, files)
    return _EVENTS[request.event](tx, session, request)


def act_as_session(tx: Transaction, agent: Agent, session: Session) -> None:
    """Act as the session for the rest of the transaction; the log keeps the host's credential."""
    tx.actor = replace(
        tx.actor,
        kind=TokenKind.AGENT,
        user=agent.owner,
        agent_id=agent.id,
        path=agent.path,
        session_id=session.id,
    )
    tx.caller = build_viewpoint(tx.services, tx.ledger, tx.actor, agent)


# -- the events --------------------------------------------------------------------------------------


def _on_session_start(tx: Transaction, session: Session, request: ReportHook) -> HookAnswer:
    _record_sign_of_life(tx, session)
    brief = insight.build_brief(tx, ShowBrief())
    standing = Standing(
        address=name_session(tx, session.id, session.agent_id),
        project=brief.me.project,
        asks=len(brief.flights),
        questions=len(brief.questions),
        work=len(brief.work),
        unread=brief.unread,
    )
    return HookAnswer(context=build_opening_lines(standing, session.harness))


def _on_prompt(tx: Transaction, session: Session, request: ReportHook) -> HookAnswer:
    """Acknowledge the mail in a submitted prompt, so that its asks start running."""
    _mark_working(tx, session)
    _withdraw_permissions(tx, session)
    typed = bool(request.prompt) and not is_mail(request.prompt)
    taken = [] if typed else _find_leased(tx, session)
    if taken:
        inbox.acknowledge(tx, AckInbox(delivery_ids=tuple(one.id for one in taken)))
    live_turn.begin_turn(tx, session, taken)
    return HookAnswer(context=build_unread_line(count_unread(tx, session.agent_id), session.harness))


def _find_leased(tx: Transaction, session: Session) -> list[Delivery]:
    """Return the agent's deliveries that are leased to this session."""
    waiting = tx.ledger.many(Delivery, "inbox", agent=session.agent_id, after="", limit=_SOME)
    return [one for one in waiting if one.state is DeliveryState.LEASED and one.leased_by == session.id]


def _on_stop(tx: Transaction, session: Session, request: ReportHook, files: UncommittedFiles) -> HookAnswer:
    """Send the turn's answer first; then hand over new mail, name what is owed, or mark the endpoint idle."""
    endpoint = _record_sign_of_life(tx, session)
    _withdraw_permissions(tx, session)
    ended = live_turn.end_turn(tx, session, request.last_text)
    if ended.context:
        return HookAnswer(context=ended.context, notice=ended.notice)
    due = () if tx.services.paused else _find_due(tx, session)  # mail handed over here starts another turn
    told = _hand_over(tx, session, _limit_to_one_ask(due))
    if not told.context:
        told = _report_obligations(tx, session, files)
    if not told.context and endpoint is not None and endpoint.state is EndpointState.WORKING:
        routes.record_endpoint_move(tx, endpoint, EndpointMove.RELEASE)
    notices = (ended.notice, told.notice)
    return replace(told, notice="\n".join(one for one in notices if one))


def _report_obligations(tx: Transaction, session: Session, files: UncommittedFiles) -> HookAnswer:
    """Tell a session that stops what its agent owes: it continues, or the person at it gets the notice."""
    decision = exit_check.check_exit(tx, tx.need(Session, "session", session.id), files)
    return HookAnswer(context=decision.text) if decision.blocks else HookAnswer(notice=decision.text)


def _on_tool_use(tx: Transaction, session: Session, request: ReportHook) -> HookAnswer:
    """Hand over plain mail between two tool calls; an ask gets a separate turn."""
    return _hand_over(tx, session, _find_due(tx, session, asks=False)[:MAILS])


def _find_due(tx: Transaction, session: Session, *, asks: bool = True) -> list[Unread]:
    """Return the mail that may be handed to the session now, oldest first."""

    def wanted(one: Delivery) -> bool:
        free = is_due(one, tx.now) and not one.wake and inbox.is_for(one, session.id)
        return free and (asks or one.flight_id is None)

    return list_unread(tx, session.agent_id, _LOOKED_AT, START, wanted)


def _limit_to_one_ask(found: Sequence[Unread]) -> list[Unread]:
    """Return the mail for one turn: some plain messages, and at most one ask."""
    deliveries = {one.id for one in group_deliveries([one.delivery for one in found if one.delivery])}
    kept = [one for one in found if one.delivery is None or one.delivery.id in deliveries]
    return kept[:MAILS]


def group_deliveries(deliveries: Sequence[Delivery]) -> list[Delivery]:
    """Return the deliveries for one turn: some plain messages, and at most one ask."""
    asks = [one for one in deliveries if one.flight_id is not None]
    left_out = {one.id for one in asks[1:]}
    return [one for one in deliveries if one.id not in left_out][:MAILS]


def _hand_over(tx: Transaction, session: Session, found: Sequence[Unread]) -> HookAnswer:
    """Lease mail to the session and render it; group messages are marked as read."""
    items = inbox.lease_and_show(tx, found)
    for one in items:
        if one.conversation_id is not None and one.seq is not None:
            mark_read(tx, session.agent_id, one.conversation_id, one.seq)
    text = build_mail_text([build_mail(tx, one) for one in items], session.harness)
    return HookAnswer(context=text, handed_over=tuple(one.delivery_id for one in items if one.delivery_id))


def build_mail(tx: Transaction, item: InboxItem) -> Mail:
    """Return an inbox item as mail for a session."""
    delivery, message = item.delivery, item.message
    sender = delivery.sender if delivery else message.sender if message else None
    reader = delivery.target if delivery else tx.actor.agent_id
    return Mail(
        by_user=sender is not None and sender == attention_items.find_person_for(tx, reader),
        sender=name_session(tx, message.sender_session_id, message.sender) if message else item.sender,
        message_id=message.id if message else item.delivery_id or "",
        body=message.body if message else item.prompt,
        asks=delivery is not None and delivery.flight_id is not None,
        may_repeat=delivery is not None and (delivery.may_repeat or delivery.attempts > 1),
        for_user=delivery is not None and delivery.rule == foreground.RULE,
    )


def _on_permission_request(tx: Transaction, session: Session, request: ReportHook) -> HookAnswer:
    """Raise a permission request; a person decides it in Scout or at the session's terminal."""
    _mark_working(tx, session)
    wish = build_request(request.tool or session.harness, request.arguments)
    item = attention.raise_permission(tx, wish, request.expires_in)
    return HookAnswer(attention_id=item.id)


def _on_session_end(tx: Transaction, session: Session, request: ReportHook) -> HookAnswer:
    _withdraw_permissions(tx, session)
    session_end.record_session_end(tx, session, f"its {session.harness} session was closed")
    return HookAnswer()


_EVENTS: Mapping[HookEvent, Callable[[Transaction, Session, ReportHook], HookAnswer]] = {
    HookEvent.SESSION_START: _on_session_start,
    HookEvent.PROMPT_SUBMIT: _on_prompt,
    HookEvent.TOOL_USE: _on_tool_use,
    HookEvent.PERMISSION_REQUEST: _on_permission_request,
    HookEvent.SESSION_END: _on_session_end,
}


# -- shared by all events ----------------------------------------------------------------------------


def _record_sign_of_life(tx: Transaction, session: Session) -> Endpoint | None:
    """Record a heartbeat of the session's endpoint."""
    endpoint = routes.find_endpoint(tx, session.id)
    if endpoint is None or not endpoints.is_quiet(tx, endpoint):
        return endpoint and endpoints.store_heartbeat(tx, Heartbeat(endpoint_id=endpoint.id))
    seen = record_heartbeat(endpoint, tx.now)
    tx.ledger.refresh(seen)
    tx.cache.forget()
    return seen


def _mark_working(tx: Transaction, session: Session) -> None:
    endpoint = _record_sign_of_life(tx, session)
    if endpoint is not None and endpoint.state is EndpointState.IDLE:
        routes.record_endpoint_move(tx, endpoint, EndpointMove.CLAIM)


def _withdraw_permissions(tx: Transaction, session: Session) -> None:
    """Dismiss the session's permission requests: it continues, so they were decided at its terminal."""
    raised = tx.ledger.many(Attention, "attention_by_open", agent=session.agent_id, before=LAST, limit=_SOME)
    for item in raised:
        if item.kind is AttentionKind.PERMISSION and item.return_path.session_id == session.id:
            why = "decided in the session itself"
            decisions.dismiss(tx, DismissAttention(attention_id=item.id, reason=why))
