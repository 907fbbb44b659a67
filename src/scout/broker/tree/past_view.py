"""The tree of agents as it was at a moment. What work trees held then is not known."""

from collections.abc import Sequence

from scout.broker.effects.reminders import get_record_title
from scout.broker.past.reader import PastReader
from scout.broker.transaction.transaction import Transaction, build_subject
from scout.broker.tree.view import build_row, find_agents, is_shown, list_related, order_agents, show_flights
from scout.model.agent import Agent
from scout.model.flight import Flight
from scout.model.moment import Moment
from scout.model.work_item import WORK_ITEM, WorkItem, WorkState
from scout.policy.permit import Deed
from scout.protocol.tree.view import AgentTree, CurrentWork, ShowTree, TreeAgent

_MOST = 500  # agents of one answer: each is looked up in the history
_BEGUN = tuple(state for state in WorkState if state not in (*WORK_ITEM.settled, WorkState.OPEN))


def show_tree(tx: Transaction, request: ShowTree, moment: Moment) -> AgentTree:
    """Return the agents that existed and that the caller sees now, in the order of their tree then."""
    past = PastReader(tx, moment)
    seen = [one for one in find_agents(tx, request) if is_shown(tx, one, retired=True)]
    then = [one for one in (past.records.get(Agent, agent.id) for agent in seen) if one is not None]
    there = [one for one in then if is_shown(tx, one, retired=request.retired)]
    ordered = list(order_agents(list_related(there) if request.related else there))
    shown = ordered[:_MOST]
    more = len(ordered) - len(shown)
    notes = (f"{more} more agents are not shown; name the top of a smaller tree",) if more else ()
    return AgentTree(
        agents=tuple(_show_agent(past, agent, depth) for agent, depth in shown),
        projects=tuple(dict.fromkeys(one.project_root for one, _ in shown if one.project_root)),
        notes=notes,
        moment=moment,
    )


def _show_agent(past: PastReader, agent: Agent, depth: int) -> TreeAgent:
    work = _find_work(past, agent, past.list_open_flights(agent.id))
    return build_row(past.tx, agent, depth, past.find_status(agent), work)


def _find_work(past: PastReader, agent: Agent, flights: Sequence[Flight]) -> list[CurrentWork]:
    """Return the flights that an agent had open, and its work items that no flight covered."""
    tx = past.tx
    if not tx.allows(Deed.READ, build_subject(agent)):
        return show_flights(tx, [one for one in flights if one.requester_id == tx.actor.agent_id])
    covered = {one.work_item_id for one in flights}
    begun = [
        one
        for one in past.list_of(WorkItem, agent.id, _BEGUN)
        if one.owner_id == agent.id and one.id not in covered
    ]
    items = [CurrentWork(id=one.id, title=get_record_title(tx, one), state=one.state) for one in begun]
    return [*show_flights(tx, flights), *items]
