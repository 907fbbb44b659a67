"""Why: a decision explained from the log alone."""

from scout.protocol.insight import ExplainedDecision, Explanation, Why
from scout.web.html import Html, join, tag
from scout.web.layout import PageBody
from scout.web.parts import Column, build_list, build_panel, shorten, show_facts, show_time
from scout.web.views.request import PageRequest

_COLUMNS = (
    Column("Event", "c-state"),
    Column("By", "c-agent"),
    Column("Why", "c-what"),
    Column("When", "c-when"),
)


async def show_why(request: PageRequest) -> PageBody:
    """Return why a record is as it is."""
    why = await request.scout.call(Why(id=request.segments[0]))
    main = join(
        build_panel("In short", tag("p", why.says), cls="wide"),
        build_panel(
            "Decisions", list_decisions(why) or tag("p", "No agent had to be woken.", cls="quiet"), cls="wide"
        ),
        build_panel("Steps", _list_steps(why), cls="wide"),
    )
    heading = join(
        f"Why: {why.noun.replace('_', ' ')} ", tag("span", shorten(why.id), cls="quiet", title=why.id)
    )
    return PageBody(f"Why {shorten(why.id)}", tag("div", main, cls="columns"), (), heading)


def list_decisions(why: Explanation) -> list[Html]:
    """Return each stored wake decision: the rule, who was chosen, and who was passed over and why."""
    return [_show_decision(one) for one in why.decisions]


def _show_decision(one: ExplainedDecision) -> Html:
    passed = [tag("li", f"{shorten(other.agent_id)}: {other.why}") for other in one.passed_over]
    facts = show_facts(
        (
            ("Outcome", one.outcome),
            ("Rule", one.rule),
            ("Because", one.reason),
            ("Woken", shorten(one.holder) if one.holder else None),
            ("Instead of", one.instead_of),
            ("Passed over", tag("ul", passed) if passed else None),
            ("Today", one.differs),
            ("When", show_time(one.at, ago=False)),
        )
    )
    return tag("div", facts, cls="decision")


def _list_steps(why: Explanation) -> Html:
    rows = [
        (str(step.seq), None, (step.type.removeprefix("collab."), step.by, step.reason, show_time(step.at)))
        for step in why.steps
    ]
    return build_list("steps", "Steps", _COLUMNS, rows)
