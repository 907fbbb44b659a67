"""Tasks: an agent is made for one ask, and retired by the sweeper when the ask is done."""

from contextlib import suppress

from msgspec.structs import replace

from scout.base.refusal import Candidate, Diagnostic, Refused, Remedy
from scout.base.time import Time
from scout.broker.operations import asks
from scout.broker.operations.flights import find_flight
from scout.broker.people.permissions import may_see, require_control
from scout.broker.routing import attention_items, registration, routes
from scout.broker.transaction.paging import build_filtered_page, decode_bound
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import AgentPath, Kind, is_segment
from scout.model.agent import Agent, AgentConfig
from scout.model.ask import Ask, AskReceipt
from scout.model.conversation import Message, check_body
from scout.model.flight import FLIGHT, Flight
from scout.model.problems.target import AmbiguousEndpoint, AmbiguousTarget
from scout.model.session import Session
from scout.policy.permit import check_directory
from scout.ports import Surroundings
from scout.protocol.asks import MakeAsk
from scout.protocol.people.tasks import CreateTask, GetTask, ListTasks, TaskView
from scout.protocol.request import Page
from scout.store.ledger import LAST

_FEW = 20
_SHOWN = 3  # of the tasks that the beginning of an id may mean


def create_task(tx: Transaction, request: CreateTask) -> AskReceipt:
    """Create an agent for a task and ask it, in one transaction."""
    owner = tx.actor.user or tx.services.operator
    path = AgentPath.root(owner, "task", tx.mint("agt").partition("_")[2])
    require_control(tx, owner, path)
    place = tx.place if request.project_path is not None else _find_allowed_place(tx)
    config = AgentConfig(
        description=attention_items.shorten_title(check_body(request.body)),
        harness=request.harness or (place.harness if place else None),
        model=request.model or (place.model if place and request.harness is None else None),
    )
    folder = place.project_root if place else None
    registration.register_agent_at(tx, path, registration.check_config(tx, config), folder=folder)
    ask = MakeAsk(
        to=str(path),
        body=request.body,
        harness=request.harness,
        model=request.model,
        reply_mode=request.reply_mode,
        within=request.within,
        attachments=request.attachments,
    )
    try:
        return asks.make_ask(tx, ask)
    except Refused as refusal:
        raise Refused(_drop_path(refusal.diagnostic, path)) from None


def _drop_path(problem: Diagnostic, path: AgentPath) -> Diagnostic:
    """Drop the remedies that name the agent of the task, and its path: the refusal undoes its creation."""
    kept = tuple(one for one in problem.remedies if str(path) not in one.parameters.values())
    if isinstance(problem, AmbiguousEndpoint):
        return replace(problem, remedies=kept, address="the task", agent_id=None, candidates=())
    return replace(problem, remedies=kept)


def _find_allowed_place(tx: Transaction) -> Surroundings | None:
    """Return the project that the caller is in, if programs may be started there."""
    here = tx.here
    if here is None:
        return None
    with suppress(Refused):
        home = tx.services.places.home
        check_directory(here.project_root, tx.services.roots, tx.actor, home, here.repository)
        return here
    return None


# -- reading -------------------------------------------------------------------------------------------


def list_tasks(tx: Transaction, request: ListTasks) -> Page[TaskView]:
    """List the tasks of the caller's user, newest first."""
    owner = tx.actor.user or tx.services.operator

    def read(bound: str, limit: int) -> list[Agent]:
        return tx.ledger.many(Agent, "tasks_of_owner", owner=owner, before=bound, limit=limit)

    def is_wanted(agent: Agent) -> bool:
        flight = _find_flight(tx, agent)
        if flight is None or not may_see(tx, agent):
            return False
        return not request.open or flight.state not in FLIGHT.terminal

    found = build_filtered_page(read, is_wanted, decode_bound(request.cursor), request.limit, tx.rules.limits)
    return Page(items=tuple(_build_view(tx, one) for one in found.items), next=found.next)


def show_task(tx: Transaction, request: GetTask) -> TaskView:
    """Show a task; another user's is reported as not found."""
    agent = _find_task(tx, request.task_id)
    if agent is None or agent.kind is not Kind.TASK or not may_see(tx, agent):
        raise tx.missing("task", request.task_id)
    return _build_view(tx, agent)


def _find_task(tx: Transaction, text: str) -> Agent | None:
    """Return the agent of a task: by the beginning of its id, by its address, or by its flight."""
    owner = tx.actor.user or tx.services.operator
    if text.startswith(("flt_", "ask_")):
        return tx.agent(find_flight(tx, text).target)
    if text.startswith("/"):
        return tx.ledger.one(Agent, "agent_at_path", path=text)  # also once it is retired
    if not is_segment(text) or text.startswith("agt_"):
        return tx.resolve(text).agent
    near = tx.ledger.many(Agent, "agents_at", start=f"/{owner}/task/{text}", limit=_FEW)
    found = [one for one in near if one.kind is Kind.TASK and may_see(tx, one)]
    if len(found) > 1:
        raise Refused(_build_ambiguous(text, found))
    return found[0] if found else None


def _build_ambiguous(text: str, found: list[Agent]) -> AmbiguousTarget:
    """Return the refusal of the beginning of several ids."""
    ids = [one.path.segments[-1] for one in reversed(found)]
    remedies = (Remedy(operation="task.show", parameters={"taskId": one}) for one in ids[:_SHOWN])
    return AmbiguousTarget(
        address=text,
        count=len(ids),
        retry=ids[0],
        noun="task",
        candidates=tuple(Candidate(address=one) for one in ids[:_SHOWN]),
        remedies=tuple(remedies),
    )


def _find_flight(tx: Transaction, agent: Agent) -> Flight | None:
    """Return the newest flight of the ask that a task agent was made for."""
    found = tx.ledger.many(Flight, "flights_to", agent=agent.id, before=LAST, limit=_FEW)
    first = found[-1] if found else None
    return next((one for one in found if first is not None and one.ask_id == first.ask_id), None)


def _build_view(tx: Transaction, agent: Agent) -> TaskView:
    flight = _find_flight(tx, agent)
    assert flight is not None  # a task agent is created together with its ask
    ask, session = tx.get(Ask, flight.ask_id), tx.get(Session, flight.session_id)
    message = tx.get(Message, ask.message_id) if ask is not None else None
    finished: Time | None = flight.finished_at
    return TaskView(
        id=agent.path.segments[-1],
        agent_id=agent.id,
        address=tx.address(agent.id),
        lifecycle=agent.lifecycle,
        state=flight.state,
        body=message.body if message is not None else "",
        output=flight.output,
        reason=flight.reason,
        error=flight.error,
        ask_id=flight.ask_id,
        flight_id=flight.id,
        folder=routes.get_folder(agent),
        harness=session.harness if session is not None else agent.config.harness,
        model=(session.model_observed or session.model_requested) if session is not None else None,
        effort=session.effort if session is not None else None,
        created_at=agent.created_at,
        finished_at=finished,
    )
