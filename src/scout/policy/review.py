"""Whether today's policy still decides as a stored decision says, from the facts that it rested on."""

from msgspec.structs import replace

from scout.base.codec import decode
from scout.base.refusal import Refused, code_of
from scout.model.events.envelope import WakeFact
from scout.model.problems.session import WakeBudget
from scout.policy.reach import WakeAction
from scout.policy.wake import WakeFacts, decide_wake

__all__ = ["differs", "in_words"]

_BUDGET = code_of(WakeBudget)


def in_words(wake: WakeFact) -> str:
    """A decision in a line: what is done, to whom, by which rule, and who was passed over."""
    session = f" in {wake.session_id}" if wake.session_id else ""
    whom = f" {wake.agent_id}{session}" if wake.agent_id else ""
    instead = f", instead of {wake.instead_of}" if wake.instead_of else ""
    passed = "".join(f"; not {one.agent_id} ({one.role}: {one.why})" for one in wake.passed_over)
    return f"{wake.action}{whom} ({wake.rule}){instead}{passed}"


def differs(stored: WakeFact) -> str:
    """What today's policy decides from the facts of a stored decision; nothing when that is the same."""
    try:
        facts = decode(stored.facts, WakeFacts)
    except Refused as refusal:
        return f"cannot be decided again: {refusal.diagnostic.message}"
    reaches = {reach.agent_id: reach for reach in facts.reaches}
    today = decide_wake(facts.occasion, reaches, facts.routing).stored
    if stored.rule == _BUDGET and today.action == WakeAction.WAKE:
        # How often others were woken before is not in the facts: what was held is a wake but for that.
        today = replace(today, action=WakeAction.HOLD, rule=_BUDGET)
    words = in_words(today)
    return "" if words == in_words(stored) else words
