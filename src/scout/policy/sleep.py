"""Whether an agent sleeps: nothing of it is open, nobody has it open, and it was idle for its time."""

from scout.identity.path import Kind
from scout.model.agent import Agent, Lifecycle
from scout.policy.swept import EndTask, Rest, Round, Sleep, StayAwake

__all__ = ["rest_due"]

# What keeps an agent awake, by the fields of `Rest`, in the order in which it is told.
_AWAKE = {
    "flights": "a flight to it is open",
    "leased": "it has taken something from its inbox",
    "attention": "something of it needs a person",
    "working": "it works, or is being started",
    "live": "a session of it is live by itself",
    "terminal": "a session of it is open in a terminal",
    "unresumable": "a program of it runs that could not be resumed",
    "kept_warm": "it is kept warm",
    "by_hand": "it was started by hand",
    "elsewhere": "another node looks after it",
}
_NEVER = frozenset({Kind.CONNECTOR, Kind.SYSTEM})


def rest_due(agent: Agent, rest: Rest, this: Round) -> Sleep | StayAwake | EndTask | None:
    """Put it to sleep or end a task that is done, each with the reason; else when it was last active."""
    if agent.lifecycle is not Lifecycle.ACTIVE or agent.kind in _NEVER:
        return None
    task_is_done = agent.kind is Kind.TASK and rest.done and not rest.flights
    if task_is_done and rest.working:
        return None  # its turn ends soon: the next round looks again
    for field, why in _AWAKE.items():
        if getattr(rest, field):
            return StayAwake(noun="agent", id=agent.id, rule=why, active_at=this.now)
    if task_is_done:
        return EndTask(noun="agent", id=agent.id, rule="its task is done")
    if not this.is_past(rest.active_at.plus(this.periods.agent_idle)):
        return StayAwake(noun="agent", id=agent.id, rule="it was active lately", active_at=rest.active_at)
    return Sleep(noun="agent", id=agent.id, rule=f"idle since {rest.active_at}")
