"""The time slider: how much happened when, and the way to any moment."""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode

from scout.base.refusal import Refused
from scout.base.time import Time
from scout.protocol.overview import Activity, ShowActivity
from scout.protocol.scout import Scout
from scout.web.html import Html, join, tag

BUCKETS = 120
_HEIGHT = 40
_STEPS = (("1 h earlier", -3600), ("10 min earlier", -600), ("1 min earlier", -60), ("1 min later", 60))


class PastPlace(NamedTuple):
    """Where a link of the slider leads: the path of a view and its query, without the moment."""

    path: str
    query: Mapping[str, str]

    def link(self, at: Time | str) -> str:
        return f"{self.path}?{urlencode({**self.query, 'at': str(at)})}"


async def read_activity(scout: Scout) -> Activity | None:
    """Return the activity from the first event to the last; None if this caller may not count events."""
    try:
        return await scout.call(ShowActivity(buckets=BUCKETS))
    except Refused:
        return None


def build_slider(activity: Activity | None, place: PastPlace, at: Time | None) -> Html:
    """Return the slider as a picture with a link for each part, a range, and a field for any moment."""
    drawn = None
    if activity is not None and activity.to > activity.from_:
        drawn = join(_draw(activity, place, at), _build_range(activity, place, at))
    return tag(
        "section",
        drawn,
        tag("div", _list_steps(activity, place, at), _build_field(place, at), cls="slider-steps"),
        cls="slider",
        aria_label="Time",
        data_own=True,
    )


# -- the picture -------------------------------------------------------------------------------------


def _draw(activity: Activity, place: PastPlace, at: Time | None) -> Html:
    highest = max(activity.counts, default=0) or 1
    bars = [
        _draw_bar(activity, place, number, round(_HEIGHT * count / highest), count)
        for number, count in enumerate(activity.counts)
        if count
    ]
    size = f"0 0 {len(activity.counts) * 10} {_HEIGHT}"
    label = f"{sum(activity.counts)} events between {_write(activity.from_)} and {_write(activity.to)}"
    return tag(
        "svg",
        bars,
        _draw_marker(activity, at) if at is not None else None,
        viewBox=size,
        preserveAspectRatio="none",
        cls="activity",
        role="group",
        aria_label=label,
    )


def _draw_bar(activity: Activity, place: PastPlace, number: int, height: int, count: int) -> Html:
    begins, ends = (_find_time(activity, number + more) for more in (0, 1))
    counted = "1 event" if count == 1 else f"{count} events"
    words = f"{_write(begins)} to {_write(ends)}: {counted}"
    bar = tag(
        "rect",
        tag("title", words),
        x=number * 10 + 1,
        y=_HEIGHT - max(height, 2),
        width=8,
        height=max(height, 2),
    )
    return tag("a", bar, href=place.link(ends), aria_label=f"Scout at {_write(ends)}", tabindex=-1)


def _draw_marker(activity: Activity, at: Time) -> Html:
    share = at.since(activity.from_) / activity.to.since(activity.from_)
    x = round(min(max(share, 0.0), 1.0) * len(activity.counts) * 10)
    return tag("rect", x=max(x - 2, 0), y=0, width=4, height=_HEIGHT, cls="marker")


def _find_time(activity: Activity, number: int) -> Time:
    whole = activity.to.since(activity.from_)
    return activity.from_.plus(whole * number / len(activity.counts))


def _write(at: Time) -> str:
    return f"{str(at)[:10]} {str(at)[11:19]} UTC"


# -- controls ----------------------------------------------------------------------------------------


def _build_range(activity: Activity, place: PastPlace, at: Time | None) -> Html:
    """Return the range that the page's module turns into a link to its moment."""
    whole = activity.to.since(activity.from_)
    now = at.since(activity.from_) if at is not None else whole
    return tag(
        "input",
        type="range",
        min=0,
        max=1000,
        value=round(min(max(now / whole, 0.0), 1.0) * 1000),
        cls="slider-range",
        aria_label="Moment",
        data_slider=place.link(""),
        data_from=str(activity.from_),
        data_to=str(activity.to),
    )


def _list_steps(activity: Activity | None, place: PastPlace, at: Time | None) -> list[Html]:
    base = at or (activity.last.at if activity is not None else None)
    if base is None:
        return []
    return [
        tag("a", label, href=place.link(_clip(activity, base.plus(seconds))), cls="button")
        for label, seconds in _STEPS
        if at is not None or seconds < 0
    ]


def _clip(activity: Activity | None, at: Time) -> Time:
    """Return a moment that the history has."""
    return min(max(at, activity.first.at), activity.last.at) if activity is not None else at


def _build_field(place: PastPlace, at: Time | None) -> Html:
    hidden = [tag("input", type="hidden", name=name, value=value) for name, value in place.query.items()]
    field = tag(
        "input",
        name="at",
        cls="input",
        value=str(at) if at is not None else None,
        placeholder="10 minutes ago",
        required=True,
    )
    button = tag("button", "Show", type="submit", cls="button")
    return tag(
        "form", hidden, tag("label", "Moment", field), button, action=place.path, method="get", cls="filters"
    )
