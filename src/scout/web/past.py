"""Views of the past: the notice above each, and how a moment is kept."""

from urllib.parse import urlencode

from scout.protocol.overview import Activity
from scout.web.html import Child, Html, join, tag
from scout.web.layout import PageBody
from scout.web.parts import show_time
from scout.web.slider import PastPlace, build_slider


def build_banner(activity: Activity | None, place: PastPlace, body: PageBody) -> Html:
    """Return the notice above a view while a moment of the past is chosen, with the slider.

    A view whose past is not kept shows the present, and says so.
    """
    if body.moment is None:
        words = join(f"{body.title}: the past of this view is not kept. You see the present.")
    else:
        change = " Nothing can be changed here. " if not body.read_only else " "
        words = join("You see Scout as it was at ", show_time(body.moment.at, ago=False), ".", change)
    slider = build_slider(activity, place, body.moment.at if body.moment is not None else None)
    return join(build_notice(words, place), slider)


def build_notice(words: Child, place: PastPlace) -> Html:
    """Return a notice with the way back to the present."""
    back = tag("a", "Back to now", href=_write_present(place), cls="button", data_back=True)
    return tag("p", tag("span", words), back, cls="banner past-banner", role="status")


def _write_present(place: PastPlace) -> str:
    return f"{place.path}?{urlencode(place.query)}" if place.query else place.path
