"""Flight: its timeline, what it says, what it changed, and what you can do with it."""

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from scout.base.codec import to_plain
from scout.base.refusal import Refused
from scout.base.time import Time
from scout.model.flight import FlightState
from scout.model.moment import Moment
from scout.policy.sentences import describe_receipt
from scout.protocol.asks import FlightView, GetFlight
from scout.protocol.insight import Explanation, Why
from scout.protocol.observation import Diff, ShowDiff, TailSession
from scout.protocol.scout import Scout
from scout.protocol.sessions import GetSession
from scout.web.html import Child, Html, join, lines, tag
from scout.web.layout import PageBody
from scout.web.parts import (
    build_button,
    build_panel,
    build_remedy,
    cut,
    link_conversation,
    quote_text,
    shorten,
    show_address,
    show_command,
    show_facts,
    show_state,
    show_time,
)
from scout.web.timeline import draw_timeline, list_segments
from scout.web.views.request import PageRequest
from scout.web.views.session import build_transcript
from scout.web.views.talk import build_ask_box
from scout.web.views.why import list_decisions

_OPEN = (FlightState.QUEUED, FlightState.RUNNING, FlightState.WAITING)
_SHOWN = 2000  # lines of a patch
_FAMILIES = (
    "collab.envelope",
    "collab.flight",
    "collab.delivery",
    "collab.session",
    "collab.attention",
    "collab.message",
)


async def show_flight(request: PageRequest) -> PageBody:
    """Return one flight."""
    scout = request.scout
    flight = await scout.call(GetFlight(flight_id=request.segments[0], at=request.at))
    moment = flight.moment or None
    why = _read_until(await scout.call(Why(id=flight.id)), moment)
    now = moment.at if moment is not None else Time.parse(datetime.now(UTC).isoformat())
    timeline = draw_timeline(list_segments(why.steps, now))
    main = join(
        _show_facts(flight),
        build_panel("Timeline", timeline, cls="wide"),
        _show_result(flight),
        None if moment else await _show_present(request, flight),
        _show_why(why),
        _show_ask_back(flight),
    )
    heading = join("Flight ", tag("span", shorten(flight.id), cls="quiet", title=flight.id))
    body = tag("div", main, cls="columns", data_key=flight.id)
    actions = None if moment else _list_actions(flight)
    return PageBody(f"Flight {shorten(flight.id)}", body, _FAMILIES, heading, actions, moment=moment)


async def _show_present(request: PageRequest, flight: FlightView) -> Html:
    """Return what is known only now: the live output, and what changed in the work tree."""
    if flight.target_node is not None:
        return _show_elsewhere(flight, flight.target_node)
    diff = await _read_diff(request.scout, flight.id) if request.get_flag("diff") else None
    return join(
        await _show_output(request.scout, flight),
        _show_changes(flight, diff, asked=request.get_flag("diff")),
    )


def _show_elsewhere(flight: FlightView, node: str) -> Html:
    """Return what can be seen only on the node that runs the flight."""
    commands = [tag("p", show_command(f"scout {words} {flight.id}")) for words in ("flight get", "diff")]
    words = f"Its session, its output and its work tree are on {node}. Run these there:"
    return build_panel(f"On {node}", tag("p", words), commands, cls="wide", ident="elsewhere")


def _read_until(why: Explanation, moment: Moment | None) -> Explanation:
    """Return the steps and decisions up to a moment."""
    if moment is None:
        return why
    return replace(
        why,
        says="",
        steps=tuple(one for one in why.steps if one.seq <= moment.seq),
        decisions=tuple(one for one in why.decisions if one.seq <= moment.seq),
    )


def _list_actions(flight: FlightView) -> Child:
    ident: dict[str, object] = {"flightId": flight.id}
    if flight.state in _OPEN:
        return build_button("Cancel", "flight.cancel", ident, icon="stop", cls="danger", done="Cancelled.")
    return build_button("Retry", "flight.retry", ident, icon="retry", done="Asked again.")


def _show_facts(flight: FlightView) -> Html:
    on = flight.waiting_on
    facts = show_facts(
        (
            ("State", join(show_state(flight.state), " ", tag("span", flight.phase, cls="quiet"))),
            # While it runs, the reason is its last sign of life: the tool that it used.
            (
                "Doing" if flight.state is FlightState.RUNNING else "Why",
                tag("span", flight.reason, data_field="reason") if flight.reason else None,
            ),
            ("Waits for", f"{on.kind.replace('_', ' ')} {on.ref or ''}" if on is not None else None),
            ("Until", show_time(on.until) if on is not None and on.until is not None else None),
            ("From", show_address(flight.requester_address, flight.requester_node)),
            ("To", show_address(flight.target_address, flight.target_node)),
            ("On its way", f"The ask {describe_receipt(to_plain(flight.mesh))}." if flight.mesh else None),
            ("Conversation", link_conversation(flight.conversation_id, shorten(flight.conversation_id))),
            (
                "Session",
                tag("a", shorten(flight.session_id), href=f"/sessions/{flight.session_id}")
                if flight.session_id
                else None,
            ),
            ("Harness", flight.harness_observed or flight.harness_requested),
            ("Model", flight.model_observed or flight.model_resolved or flight.model_requested),
            ("Attempts", flight.attempts if flight.attempts > 1 else None),
            ("Asked", show_time(flight.created_at, ago=False)),
            ("In the terminal", show_command(f"scout wait {flight.id}") if flight.state in _OPEN else None),
        )
    )
    return build_panel("What was asked", quote_text(flight.body), facts, cls="wide", ident="asked")


def _show_result(flight: FlightView) -> Html | None:
    if flight.error is not None:
        remedies = [tag("p", build_remedy(one)) for one in flight.remedies or flight.error.remedies]
        words = tag("p", f"{flight.error.code}: {flight.error.message}", cls="refusal")
        return build_panel("Failed", words, remedies, cls="wide", ident="result")
    if flight.output is not None:
        return build_panel("Answer", quote_text(flight.output), cls="wide", ident="result")
    return None


async def _show_output(scout: Scout, flight: FlightView) -> Html | None:
    """Return the newest lines of the session: from its transcript, else from its program's output."""
    if flight.session_id is None:
        return None
    try:
        tail = await scout.call(TailSession(session_id=flight.session_id, limit=40))
    except Refused:
        return await _show_log(scout, flight.session_id)
    return build_panel(
        "Live output",
        build_transcript(tail, live=flight.state in _OPEN),
        note=tag("span", "read-only", cls="quiet"),
        cls="wide",
    )


async def _show_log(scout: Scout, session_id: str) -> Html | None:
    try:
        session = await scout.call(GetSession(session_id=session_id))
    except Refused:
        return None
    if not session.log_tail:
        return None
    return build_panel("Live output", quote_text("\n".join(session.log_tail)), cls="wide")


async def _read_diff(scout: Scout, flight_id: str) -> Diff | str:
    try:
        return await scout.call(ShowDiff(flight_id=flight_id))
    except Refused as refused:
        return refused.diagnostic.message


def _show_changes(flight: FlightView, diff: Diff | str | None, *, asked: bool) -> Html:
    if not asked:
        link = tag(
            "a",
            "Show what changed in the work tree",
            cls="button",
            href=f"/flights/{flight.id}?diff=1#changes",
            data_key_press="d",
            aria_keyshortcuts="d",
        )
        body = tag("p", link, data_page_keys=True)
        return build_panel("Changes", body, cls="wide", ident="changes")
    if isinstance(diff, str) or diff is None:
        return build_panel("Changes", tag("p", diff or "", cls="quiet"), cls="wide", ident="changes")
    patch = diff.patch.split("\n")
    cut_off = diff.cut or len(patch) > _SHOWN
    more = show_command(f"scout diff {flight.id}") if cut_off else None
    body = show_patch(patch[:_SHOWN]) if diff.patch else tag("p", "Nothing has changed.", cls="quiet")
    return build_panel(
        "Changes", quote_text(diff.stat) if diff.stat else None, body, more, cls="wide", ident="changes"
    )


def show_patch(patch: Sequence[str]) -> Html:
    """Return the lines of a patch, coloured by what they do."""
    return tag("pre", [_show_patch_line(line) for line in patch], cls="patch", tabindex=0)


def _show_patch_line(line: str) -> Html:
    kind = {"+": "added", "-": "removed", "@": "place"}.get(line[:1], "")
    return tag("span", lines(line), cls=f"line {kind}".strip())


def _show_why(why: Explanation) -> Html:
    return build_panel("Why", tag("p", why.says), list_decisions(why), cls="wide")


def _show_ask_back(flight: FlightView) -> Html:
    box = build_ask_box(flight.target_address, conversation_id=flight.conversation_id, label="Ask back")
    return build_panel("Ask back", box, cls="wide", note=tag("span", cut(flight.target_address), cls="quiet"))
