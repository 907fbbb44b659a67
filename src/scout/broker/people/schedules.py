"""Schedules: made, changed, listed, shown, run by hand, paused, resumed and removed by a person."""

import asyncio
from collections.abc import Sequence
from datetime import tzinfo
from typing import Any

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Candidate, Refused, Remedy, WrongState
from scout.broker.effects import scheduled_runs
from scout.broker.operations import lifecycle
from scout.broker.people import runs
from scout.broker.people.permissions import may_see, require_control
from scout.broker.people.time_zones import load_zone, repeat_request
from scout.broker.routing import attention_items, conversations, posts, registration
from scout.broker.routing.views import extend_record
from scout.broker.transaction.admission import Admitted
from scout.broker.transaction.call import CallBroker, CallContext, run_once
from scout.broker.transaction.paging import (
    build_filtered_page,
    decode_bound,
    decode_number,
    encode_cursor,
    get_page_size,
)
from scout.broker.transaction.transaction import Transaction, build_subject
from scout.identity.path import AgentPath, Kind, is_segment
from scout.model.agent import Agent, AgentConfig, Lifecycle
from scout.model.conversation import check_body
from scout.model.events.directory import (
    SCHEDULE_EVENTS,
    ScheduleCreated,
    ScheduleEvent,
    ScheduleFailed,
    ScheduleFired,
    ScheduleHeld,
    ScheduleSkipped,
)
from scout.model.flight import Flight
from scout.model.people.schedule import (
    SCHEDULE,
    Missed,
    Overlap,
    Schedule,
    ScheduleMove,
    ScheduleState,
    change_schedule,
    check_schedule,
    end_schedule,
    pause_schedule,
    resume_schedule,
)
from scout.model.problems.people import MalformedCron
from scout.model.problems.request import NotFound
from scout.model.problems.target import NameTaken
from scout.policy.directory import Instance
from scout.policy.nearest import rank_names
from scout.policy.people.cron import check_cron, describe_cron, format_in_zone, list_times
from scout.policy.people.firing import plan_next
from scout.policy.permit import Deed
from scout.policy.resolver.resolve import Resolution
from scout.protocol.people.schedules import (
    AddSchedule,
    GetSchedule,
    LastRun,
    ListSchedules,
    PauseSchedule,
    ReadScheduleLog,
    RemoveSchedule,
    ResumeSchedule,
    RunSchedule,
    RunView,
    ScheduleView,
    UpcomingRun,
    UpdateSchedule,
)
from scout.protocol.request import Page
from scout.store.ledger import LAST

_SHOWN = 5  # times of one schedule
_MANY = 200
_END = (1 << 63) - 1
_SEARCHED = 2000  # events of one page of a log
_TIMED = ("cron", "time_zone", "jitter")  # what the next run follows from
_NONE = "none"  # in place of a channel: the answers go to the owner
_OUTCOMES: dict[type[ScheduleEvent], str] = {
    ScheduleFired: "fired",
    ScheduleHeld: "held",
    ScheduleSkipped: "skipped",
    ScheduleFailed: "failed",
}

ScheduleCall = CallContext[CallBroker]


# -- making and changing -------------------------------------------------------------------------------


async def add_schedule(call: ScheduleCall, request: AddSchedule) -> ScheduleView:
    """Create a schedule with its cron agent."""
    cron = _check_cron(request, request.cron)
    name = request.time_zone or await asyncio.to_thread(call.services.zones.find_local)
    zone = await load_zone(call, request, name)
    return await call.write_once(request, lambda tx, one: _create(tx, one, cron, name, zone))


def _create(tx: Transaction, request: AddSchedule, cron: str, zone_name: str, zone: tzinfo) -> ScheduleView:
    ident, owner = tx.mint("sch"), tx.actor.user or tx.services.operator
    path = _check_path(tx, owner, request.name or ident.partition("_")[2])
    target = _find_target(tx, request)
    config = AgentConfig(description=attention_items.shorten_title(check_body(request.body)))
    schedule = Schedule(
        id=ident,
        created_at=tx.now,
        updated_at=tx.now,
        owner=owner,
        agent_id=registration.register_agent_at(tx, path, config).id,
        cron=cron,
        time_zone=zone_name,
        target=target,
        body=request.body,
        missed=request.missed or Missed.ONCE,
        overlap=request.overlap or Overlap.SKIP,
        jitter=request.jitter or 0,
        channel_id=_find_channel(tx, request.channel),
        created_by=tx.sender,
    )
    following = plan_next(schedule, zone, tx.now)
    schedule = replace(schedule, slot=following.slot, next_at=following.at)
    tx.record(ScheduleCreated, check_schedule(schedule), move="create")
    _join_channel(tx, schedule)
    return build_schedule_view(tx, schedule, zone, count=_SHOWN)


def _check_path(tx: Transaction, owner: str, name: str) -> AgentPath:
    """Return the path of the cron agent, if the caller may create it and it is free."""
    if not is_segment(name):
        problem = f"'{name:.60}' cannot be a name: letters, digits and . _ ~ - and not a path word"
        raise Refused(BadRequest(problem=problem, field="name"))
    path = AgentPath.root(owner, "cron", name)
    require_control(tx, owner, path)
    holder = tx.everybody.at_path(path)
    if holder is not None:
        look = Remedy(operation="cron.list", parameters={}, why="see your schedules")
        taken = NameTaken(noun="agent", name=name, holder_id=holder.id, holder_state=holder.lifecycle)
        raise Refused(replace(taken, remedies=(look,)))
    return path


def _find_target(tx: Transaction, request: AddSchedule) -> str:
    """Return the canonical address of the agent that is asked; a project's agent is created if needed."""
    if (request.to is None) == (request.project_path is None):
        raise Refused(BadRequest(problem="name one of to and projectPath", field="to"))
    if request.to is not None:
        return _resolve_target(tx, request.to)
    assert tx.place is not None  # the request names a directory
    agent = registration.ensure_base_agent(tx, tx.place)
    tx.permit(Deed.ASK, build_subject(agent))
    return Instance(agent=agent).canonical


def _resolve_target(tx: Transaction, address: str) -> str:
    """Return the canonical address of an agent; a harness or model only if the text names one."""
    found = tx.resolve(address)
    tx.permit(Deed.ASK, build_subject(found.agent))
    return found.canonical if _is_particular(found) else Instance(agent=found.agent).canonical


def _is_particular(found: Resolution) -> bool:
    demand = found.demand
    return bool(demand.harness or demand.model or demand.session_id)


def _find_channel(tx: Transaction, name: str | None) -> str | None:
    """Return the id of a channel that the caller may join: the cron agent speaks there."""
    if name is None or name == _NONE:
        return None
    return conversations.require_joinable(tx, conversations.require_channel(tx, name)).id


def _join_channel(tx: Transaction, schedule: Schedule) -> None:
    """Let the cron agent speak in the channel that gets its answers."""
    if schedule.channel_id is not None:
        posts.ensure_member(tx, schedule.channel_id, schedule.agent_id)


async def update_schedule(call: ScheduleCall, request: UpdateSchedule) -> ScheduleView:
    """Change a schedule; a new time counts from now."""
    schedule = await call.read(lambda tx: find_schedule(tx, request.schedule_id))
    cron = schedule.cron if request.cron is None else _check_cron(request, request.cron)
    name = request.time_zone or schedule.time_zone
    zone = await load_zone(call, request, name)
    return await call.write_once(request, lambda tx, one: _update(tx, one, cron, name, zone))


def _update(tx: Transaction, request: UpdateSchedule, cron: str, name: str, zone: tzinfo) -> ScheduleView:
    schedule = _find_own(tx, request.schedule_id)
    given: dict[str, Any] = {
        "cron": cron,
        "time_zone": name,
        "target": _resolve_target(tx, request.to) if request.to else None,
        "body": check_body(request.body) if request.body is not None else None,
        "missed": request.missed,
        "overlap": request.overlap,
        "jitter": request.jitter,
    }
    changes = {key: value for key, value in given.items() if value is not None}
    if request.channel is not None:
        changes["channel_id"] = _find_channel(tx, request.channel)
    wanted = replace(schedule, **changes)
    timed = any(getattr(wanted, key) != getattr(schedule, key) for key in _TIMED)
    active = schedule.state is ScheduleState.ACTIVE
    following = plan_next(wanted, zone, tx.now) if timed and active else None
    changed = change_schedule(schedule, tx.now, seen=request.revision, following=following, **changes)
    _record(tx, changed, ScheduleMove.CHANGE)
    _join_channel(tx, changed)
    return build_schedule_view(tx, changed, zone, count=_SHOWN)


# -- moves -----------------------------------------------------------------------------------------------


def pause(tx: Transaction, request: PauseSchedule) -> ScheduleView:
    """Pause a schedule."""
    schedule = _find_own(tx, request.schedule_id)
    paused = pause_schedule(schedule, tx.now, seen=request.revision, reason=request.reason)
    return build_schedule_view(tx, _record(tx, paused, ScheduleMove.PAUSE))


async def resume(call: ScheduleCall, request: ResumeSchedule) -> ScheduleView:
    """Resume a schedule with the first time after now."""
    schedule = await call.read(lambda tx: find_schedule(tx, request.schedule_id))
    zone = await load_zone(call, request, schedule.time_zone)
    return await call.write_once(request, lambda tx, one: _resume(tx, one, zone))


def _resume(tx: Transaction, request: ResumeSchedule, zone: tzinfo) -> ScheduleView:
    schedule = _find_own(tx, request.schedule_id)
    following = plan_next(schedule, zone, tx.now)
    resumed = resume_schedule(schedule, following, tx.now, seen=request.revision)
    return build_schedule_view(tx, _record(tx, resumed, ScheduleMove.RESUME), zone, count=_SHOWN)


def remove_schedule(tx: Transaction, request: RemoveSchedule) -> ScheduleView:
    """End a schedule and retire its cron agent."""
    schedule = _find_own(tx, request.schedule_id)
    ended = end_schedule(schedule, request.reason or "removed", tx.now, seen=request.revision)
    _record(tx, ended, ScheduleMove.END)
    scheduled_runs.close_schedule_item(tx, ended, "it was removed")
    agent = tx.need(Agent, "agent", schedule.agent_id)
    if agent.lifecycle is not Lifecycle.RETIRED:
        lifecycle.retire_agent(tx, agent, ended.reason)
    return build_schedule_view(tx, ended)


def _record(tx: Transaction, schedule: Schedule, move: ScheduleMove) -> Schedule:
    return tx.record(SCHEDULE_EVENTS[move], schedule, move=move, reason=schedule.reason)


async def run_schedule(call: ScheduleCall, request: RunSchedule) -> ScheduleView:
    """Start a run now. The ask is the cron agent's, and the log names the credential of the caller."""

    def admit(tx: Transaction) -> tuple[Schedule, Admitted]:
        schedule = _find_own(tx, request.schedule_id)
        agent = tx.need(Agent, "agent", schedule.agent_id)
        return schedule, runs.admit_cron_agent(tx.services, tx.ledger, agent, call.token_id)

    schedule, who = await call.read(admit)
    zone = await load_zone(call, request, schedule.time_zone)
    return await call.broker.write(who, lambda tx: run_once(tx, request, lambda tx, one: _run(tx, one, zone)))


def _run(tx: Transaction, request: RunSchedule, zone: tzinfo) -> ScheduleView:
    schedule = tx.need(Schedule, "schedule", request.schedule_id)
    working = scheduled_runs.find_open_run(tx, schedule)
    if working is not None and schedule.overlap is not Overlap.CANCEL:
        raise Refused(_build_busy(working))
    SCHEDULE.after(schedule.state, ScheduleMove.FIRE)
    return build_schedule_view(tx, runs.start_by_hand(tx, schedule), zone, count=_SHOWN)


def _build_busy(working: Flight) -> WrongState:
    remedies = (
        Remedy(operation="flight.wait", parameters={"flightId": working.id}, why="wait for the run"),
        Remedy(operation="flight.cancel", parameters={"flightId": working.id}, why="end the run"),
    )
    accepts = (str(ScheduleMove.CHANGE), str(ScheduleMove.PAUSE), str(ScheduleMove.END))
    return WrongState(
        noun="schedule", state="running", move="run", accepts=accepts, terminal=False, remedies=remedies
    )


# -- reading -------------------------------------------------------------------------------------------


def find_schedule(tx: Transaction, ident: str) -> Schedule:
    """Return a schedule that the caller may see; another user's is reported as not found."""
    schedule = tx.need(Schedule, "schedule", ident)
    if not _may_see(tx, schedule):
        raise tx.missing("schedule", ident)
    return schedule


def _find_own(tx: Transaction, ident: str) -> Schedule:
    """Return a schedule that the caller may change."""
    schedule = find_schedule(tx, ident)
    agent = tx.need(Agent, "agent", schedule.agent_id)
    require_control(tx, schedule.owner, agent.path)
    return schedule


def _may_see(tx: Transaction, schedule: Schedule) -> bool:
    agent = tx.agent(schedule.agent_id)
    return agent is not None and may_see(tx, agent)


def find_by_name(tx: Transaction, name: str) -> tuple[Schedule, ...]:
    """Return the schedule of a cron agent by its name or address, or those that ask another agent."""
    owner = tx.actor.user or tx.services.operator
    named = tx.everybody.at_path(AgentPath.root(owner, "cron", name)) if is_segment(name) else None
    agent = named or _find_asked(tx, owner, name)
    if agent.kind is Kind.CRON:
        own = tx.ledger.one(Schedule, "schedule_of_agent", agent=agent.id)
        return (own,) if own is not None and _may_see(tx, own) else ()
    found = tx.ledger.many(Schedule, "schedules_of_owner", owner=owner, before=LAST, limit=_MANY)
    asking = [one for one in found if one.state is not ScheduleState.ENDED and _asks(tx, one, agent)]
    return tuple(one for one in asking if _may_see(tx, one))


def _find_asked(tx: Transaction, owner: str, name: str) -> Agent:
    """Return the agent of an address; a plain word that is none is refused as the name of a schedule."""
    try:
        return tx.resolve(name).agent
    except Refused:
        if not is_segment(name):
            raise
    found = tx.ledger.many(Schedule, "schedules_of_owner", owner=owner, before=LAST, limit=_MANY)
    agents = [tx.agent(one.agent_id) for one in found if one.state is not ScheduleState.ENDED]
    names = [one.path.segments[-1] for one in agents if one is not None and may_see(tx, one)]
    near = tuple(Candidate(address=one) for one in rank_names(name, names, 3))
    look = Remedy(operation="cron.list", parameters={}, why="list your schedules")
    raise Refused(NotFound(noun="schedule", id=name[:60], candidates=near, remedies=(look,)))


def _asks(tx: Transaction, schedule: Schedule, agent: Agent) -> bool:
    try:
        return tx.resolve(schedule.target).agent.id == agent.id
    except Refused:
        return False


def list_schedules(tx: Transaction, request: ListSchedules) -> Page[ScheduleView]:
    """List the schedules that the caller may see, newest first."""

    def read(bound: str, limit: int) -> list[Schedule]:
        if tx.is_operator:
            return tx.ledger.many(Schedule, "schedules_all", before=bound, limit=limit)
        return tx.ledger.many(Schedule, "schedules_of_owner", owner=tx.actor.user, before=bound, limit=limit)

    def is_wanted(one: Schedule) -> bool:
        return (request.all or one.state is not ScheduleState.ENDED) and _may_see(tx, one)

    found = build_filtered_page(read, is_wanted, decode_bound(request.cursor), request.limit, tx.rules.limits)
    return Page(items=tuple(_build_view(tx, one) for one in found.items), next=found.next)


def show_schedule(tx: Transaction, request: GetSchedule) -> ScheduleView:
    """Show a schedule with its next times."""
    return _build_view(tx, find_schedule(tx, request.schedule_id), count=_SHOWN)


def _build_view(tx: Transaction, schedule: Schedule, count: int = 0) -> ScheduleView:
    """Return the view of a schedule in a reader thread, which may read its time zone from the disk."""
    zone = _try_zone(tx, schedule.time_zone)
    shown = build_schedule_view(tx, schedule, zone, count=count)
    unknown = f"the time zone {schedule.time_zone} is unknown on this machine"
    return shown if zone is not None else replace(shown, notes=(unknown,))


def build_schedule_view(
    tx: Transaction, schedule: Schedule, zone: tzinfo | None = None, *, count: int = 0
) -> ScheduleView:
    """Return a schedule in words. With its zone, also its next times as clocks there show them."""
    times: Sequence[UpcomingRun] = ()
    if zone is not None and schedule.slot is not None:
        slots = [schedule.slot, *list_times(schedule.cron, zone, schedule.slot, max(count - 1, 0))]
        times = [UpcomingRun(at=one, in_zone=format_in_zone(one, zone)) for one in slots]
    channel = tx.conversation(schedule.channel_id) if schedule.channel_id else None
    return extend_record(
        ScheduleView,
        schedule,
        address=tx.address(schedule.agent_id),
        target_address=_show_target(tx, schedule),
        words=describe_cron(schedule.cron),
        channel=channel.name if channel else None,
        next_in_zone=times[0].in_zone if times else None,
        last=_build_last_run(tx, schedule),
        upcoming=tuple(times) if count else (),
    )


def _show_target(tx: Transaction, schedule: Schedule) -> str:
    """Return the agent that a schedule asks by its address; by the stored text if it means none now."""
    try:
        found = tx.resolve(schedule.target)
    except Refused:
        return schedule.target
    return schedule.target if _is_particular(found) else tx.address(found.agent.id)


def _build_last_run(tx: Transaction, schedule: Schedule) -> LastRun | None:
    flight = scheduled_runs.find_last_flight(tx, schedule)
    if flight is None:
        return None
    reason = flight.reason if flight.finished_at is not None else ""
    return LastRun(
        flight_id=flight.id,
        state=flight.state,
        started_at=schedule.last_at or flight.created_at,
        reason=reason,
    )


# -- the log -------------------------------------------------------------------------------------------


def list_runs(tx: Transaction, request: ReadScheduleLog) -> Page[RunView]:
    """List the runs of a schedule, newest first. A limited number of events is searched at once."""
    schedule = find_schedule(tx, request.schedule_id)
    wanted, bound = get_page_size(request.limit, tx.rules.limits), decode_number(request.cursor, _END)
    facts = tx.ledger.log.list_at_back(schedule.id, bound, _SEARCHED)
    found = [one for one in facts if isinstance(one, ScheduleEvent) and type(one) in _OUTCOMES]
    shown = tuple(_build_run_view(tx, one) for one in found[:wanted])
    if len(found) > wanted:
        return Page(items=shown, next=encode_cursor(shown[-1].seq))
    return Page(items=shown, next=encode_cursor(facts[-1].seq) if len(facts) == _SEARCHED else None)


def _build_run_view(tx: Transaction, event: ScheduleEvent) -> RunView:
    """Return one entry of the log, with the flight of a run that started."""
    record, outcome = event.payload.record, _OUTCOMES[type(event)]
    flight = scheduled_runs.find_last_flight(tx, record) if outcome == "fired" else None
    slot, zone = record.last_slot, _try_zone(tx, record.time_zone)
    return RunView(
        seq=event.seq,
        at=event.time,
        outcome=outcome,
        slot=slot,
        in_zone=format_in_zone(slot, zone) if slot is not None and zone is not None else None,
        reason=event.payload.reason,
        ask_id=flight.ask_id if flight else None,
        flight_id=flight.id if flight else None,
        state=flight.state if flight else None,
        output=attention_items.shorten_title(flight.output) if flight and flight.output else None,
    )


def _try_zone(tx: Transaction, name: str) -> tzinfo | None:
    """Return a time zone, read from the disk in a reader thread; None if it is unknown here."""
    try:
        return tx.services.zones.load(name)
    except Refused:
        return None


# -- times ---------------------------------------------------------------------------------------------


def _check_cron(request: AddSchedule | UpdateSchedule, text: str) -> str:
    """Return a cron text that can be read; a refusal repeats the request with a corrected one."""
    try:
        return check_cron(text)
    except Refused as refusal:
        problem = refusal.diagnostic
        assert isinstance(problem, MalformedCron)  # it refuses nothing else
        raise Refused(repeat_request(request, problem, [{"cron": problem.example}])) from None
