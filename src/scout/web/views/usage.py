"""Usage: the two ledgers of tokens by day, harness and agent, drawn and as tables, with the daily caps."""

from collections.abc import Sequence
from urllib.parse import urlencode

from scout.policy.usage import Account
from scout.protocol.insight import GroupBy, ShowUsage, Spent, UsageReport
from scout.web.drawing import (
    Part,
    choose_top,
    draw,
    draw_rect,
    draw_strip,
    draw_words,
    show_amount,
    show_number,
)
from scout.web.html import Child, Html, join, tag
from scout.web.layout import PageBody
from scout.web.parts import build_panel, cut, show_address, show_command, show_empty
from scout.web.views.request import PageRequest

_FAMILIES = ("collab.usage",)
_PERIODS = (7, 14, 30, 90)
_GROUPS = ((GroupBy.HARNESS, "Harness"), (GroupBy.AGENT, "Agent"), (GroupBy.MODEL, "Model"))
_MOST = 12  # bars of one group; the table has them all
_WIDE, _HIGH, _LEFT, _FOOT = 1000, 220, 48, 24


async def show_usage(request: PageRequest) -> PageBody:
    """Return the plots of a period: by day, then by harness, agent and model."""
    asked = request.query.get("days", "")
    days = int(asked) if asked.isascii() and asked.isdecimal() and int(asked) in _PERIODS else 14
    agent = request.query.get("agent") or None
    daily = await request.scout.call(ShowUsage(days=days, agent=agent, at=request.at))
    if not any(_count(one.protocol_overhead) or _count(one.harness_execution) for one in daily.trend):
        body = _show_nothing(days)
    else:
        panels = [build_panel("By day", show_days(daily), show_table("Day", daily.trend), cls="wide")]
        for by, word in _GROUPS:
            found = await request.scout.call(ShowUsage(days=days, agent=agent, by=by, at=request.at))
            panels.append(
                build_panel(
                    f"By {word.lower()}", show_group(word, found), show_table(word, found.trend), cls="wide"
                )
            )
        body = join(*panels)
    main = join(_build_period(request, days, agent), tag("div", show_totals(daily), body, cls="columns"))
    heading = join("Usage of ", show_address(daily.agent)) if daily.agent else None
    return PageBody("Usage", main, _FAMILIES, heading, moment=daily.moment or None)


def _show_nothing(days: int) -> Html:
    empty = show_empty(
        f"No tokens were used in the last {days} days.",
        "Ask an agent, and what its turns use appears here. In a terminal:",
        "scout usage",
    )
    return build_panel("By day", empty, cls="wide")


def _build_period(request: PageRequest, days: int, agent: str | None) -> Html:
    past = {"at": request.at} if request.at else {}
    kept = {"agent": agent, **past} if agent else past
    links = [
        tag(
            "a",
            f"{one} days",
            href=f"/usage?{urlencode({'days': one, **kept})}",
            aria_current="true" if one == days else None,
        )
        for one in _PERIODS
    ]
    clear = tag("a", "All agents", href=f"/usage?{urlencode({'days': days, **past})}") if agent else None
    return tag("nav", links, clear, cls="tabs", aria_label="Period")


# -- totals and caps -----------------------------------------------------------------------------------


def _count(account: Account) -> int:
    return account.totals.total_tokens


def show_totals(report: UsageReport) -> Html:
    """Return the sums of both ledgers, and the caps."""
    spent, overhead = report.totals["harness_execution"], report.totals["protocol_overhead"]
    share = 100 * _count(overhead) / _count(spent) if _count(spent) else 0
    figures = (
        ("Execution", _count(spent), f"{spent.totals.reports} reports", "accent"),
        (
            "Overhead",
            _count(overhead),
            f"{share:.1f} % of execution" if share else "text of Scout",
            "warn",
        ),
    )
    boxes = [
        tag(
            "div",
            tag("span", tag("span", cls=f"dot dot-{colour}"), name, cls="figure-name"),
            tag("span", show_amount(tokens), cls="figure-value", title=f"{tokens:,} tokens"),
            tag("span", words, cls="quiet"),
            cls="figure",
        )
        for name, tokens, words, colour in figures
    ]
    return build_panel("Tokens", tag("div", boxes, _show_caps(report), cls="figures"), cls="wide")


def _show_caps(report: UsageReport) -> Html:
    """Return the daily caps: how much of each is used today, or how to set one."""
    caps = report.caps
    shown = [
        _show_cap("All agents", caps.spent_today, caps.tokens_per_day),
        _show_cap(
            f"{report.agent}" if report.agent else caps.highest or "",
            caps.highest_today,
            caps.agent_tokens_per_day,
        ),
    ]
    if not any(shown):
        words = tag("span", "No daily cap is set.", cls="quiet")
        return tag("div", words, show_command("scout config set limits.tokensPerDay 5000000"), cls="figure")
    return tag("div", shown, cls="figure caps")


def _show_cap(who: str, spent: int, cap: int | None) -> Html | None:
    if cap is None:
        return None
    share = 100 * spent / cap if cap else 100
    words = f"{who or 'Each agent'}: {spent:,} of {cap:,} tokens today ({share:.0f} %)"
    colour = "bad" if share >= 100 else "warn" if share > 80 else "good"
    rest = max(0, cap - spent)
    bar = draw_strip(words, (Part(min(spent, cap), colour, words), Part(rest, "rest", f"{rest:,} left")))
    return tag("div", tag("span", words), bar, cls="cap")


# -- pictures ------------------------------------------------------------------------------------------


def show_days(report: UsageReport) -> Html:
    """Return one pair of bars for each day, side by side: the ledgers are never added up."""
    trend = report.trend
    top = choose_top([max(_count(one.harness_execution), _count(one.protocol_overhead)) for one in trend])
    step = (_WIDE - _LEFT) / len(trend)
    tall = _HIGH - _FOOT - 8
    drawn = list[Child]()
    for part in (0, 0.5, 1):
        y = 8 + tall * (1 - part)
        drawn.append(tag("line", x1=_LEFT, x2=_WIDE, y1=show_number(y), y2=show_number(y), cls="axis"))
        drawn.append(draw_words(_LEFT - 6, y + 4, show_amount(top * part), "axis-words"))
    every = max(1, -(-len(trend) // 14))
    for number, one in enumerate(trend):
        x, wide = _LEFT + step * number + step * 0.15, step * 0.35
        pair = ((_count(one.harness_execution), "accent"), (_count(one.protocol_overhead), "warn"))
        for place, (tokens, colour) in enumerate(pair):
            high = tall * tokens / top
            drawn.append(
                draw_rect((x + wide * place, 8 + tall - high, max(wide - 1, 1), high), f"fill-{colour}")
            )
        drawn.append(draw_rect((_LEFT + step * number, 8, step, tall), "hover", _describe(one)))
        if number % every == 0:
            drawn.append(draw_words(x, _HIGH - 6, one.key[5:]))
    label = f"Tokens by day, from {trend[0].key} to {trend[-1].key}. The table below has the numbers."
    return join(_show_legend(), tag("div", draw(label, (_WIDE, _HIGH), drawn, cls="plot"), cls="plot-box"))


def _show_legend() -> Html:
    pairs = (("accent", "Execution: turns of harnesses"), ("warn", "Overhead: text that Scout adds"))
    marks = [
        tag("span", tag("span", cls=f"dot dot-{colour}"), words, cls="legend-mark") for colour, words in pairs
    ]
    return tag("p", marks, cls="legend")


def _describe(one: Spent) -> str:
    spent, overhead = _count(one.harness_execution), _count(one.protocol_overhead)
    return f"{one.key}: {spent:,} execution, {overhead:,} overhead"


def show_group(word: str, report: UsageReport) -> Html:
    """Return the largest groups as bars, one under the other."""
    shown = report.trend[:_MOST]
    top = max([max(_count(one.harness_execution), _count(one.protocol_overhead)) for one in shown] + [1])
    rows = [
        tag(
            "div",
            tag("span", _name(word, one.key), cls="bar-name"),
            tag("div", _draw_bar(one, "accent", top), _draw_bar(one, "warn", top), cls="bar-pair"),
            tag("span", show_amount(_count(one.harness_execution)), cls="c-number"),
            cls="bar-row",
        )
        for one in shown
    ]
    return tag("div", rows, cls="bars")


def _name(word: str, key: str) -> Child:
    if word == "Agent":
        return show_address(key)
    return "not told" if key == "-" else cut(key, 60)


def _draw_bar(one: Spent, colour: str, top: int) -> Html:
    tokens = _count(one.harness_execution if colour == "accent" else one.protocol_overhead)
    return draw_strip(
        _describe(one), (Part(tokens, colour, _describe(one)), Part(top - tokens, "none", _describe(one)))
    )


def show_table(word: str, trend: Sequence[Spent]) -> Html:
    """Return the numbers, for those who do not see the picture."""
    head = [
        tag("th", name, scope="col") for name in (word, "Execution", "In", "Out", "Estimated", "Overhead")
    ]
    rows = [
        tag(
            "tr",
            tag("th", _name(word, one.key), scope="row"),
            [tag("td", f"{number:,}") for number in _list_numbers(one)],
        )
        for one in reversed(trend if word == "Day" else trend[::-1])
    ]
    table = tag("table", tag("thead", tag("tr", head)), tag("tbody", rows), cls="numbers")
    return tag(
        "details",
        tag("summary", "Numbers"),
        tag("div", table, cls="table-box", tabindex=0),
        data_key=f"{word} numbers",
    )


def _list_numbers(one: Spent) -> tuple[int, ...]:
    spent, overhead = one.harness_execution.totals, one.protocol_overhead.totals
    return (
        spent.total_tokens,
        spent.prompt_tokens,
        spent.completion_tokens,
        spent.estimated_tokens,
        overhead.total_tokens,
    )
