"""One session: what it is, what it uses, and what its program writes, live and read-only."""

from scout.base.refusal import Refused
from scout.model.session import SessionState
from scout.protocol.observation import Tail, TailEntry, TailSession
from scout.protocol.sessions import GetSession, SessionView
from scout.web.drawing import Part, draw_strip, show_amount
from scout.web.html import EMPTY, Html, join, lines, tag
from scout.web.layout import PageBody
from scout.web.parts import (
    build_panel,
    link_flight,
    quote_text,
    shorten,
    show_address,
    show_command,
    show_empty,
    show_facts,
    show_state,
    show_time,
)
from scout.web.views.request import PageRequest
from scout.web.views.sessions import build_stop, show_memory, show_processor

_FAMILIES = ("collab.session", "collab.endpoint")
_LINES = 100


async def show_session(request: PageRequest) -> PageBody:
    """Return one session and the end of its transcript. The page reads the rest as it is written."""
    ident = request.segments[0]
    session = await request.scout.call(GetSession(session_id=ident))
    tail = problem = None
    try:
        tail = await request.scout.call(TailSession(session_id=ident, limit=_LINES))
    except Refused as refused:  # the rest of the page is worth showing without it
        problem = refused.diagnostic.message
    main = tag(
        "div",
        build_panel("Output", _show_output(session, tail, problem), cls="two-thirds"),
        build_panel("Facts", _show_facts(session, tail), cls="third"),
        cls="columns",
    )
    open_it = show_command(f"scout open {session.id}")
    stop = build_stop(session.id, session.address) if session.state is not SessionState.ENDED else None
    actions = tag("div", open_it, stop, cls="actions", data_page_keys=True)
    heading = join("Session ", tag("span", shorten(session.id), cls="quiet"))
    return PageBody(f"Session of {session.address}", main, _FAMILIES, heading, actions)


def _show_facts(session: SessionView, tail: Tail | None) -> Html:
    model = session.model_observed or session.model_resolved or session.model_requested
    flight = link_flight(session.flight_id) if session.flight_id else None
    ended = show_time(session.ended_at, ago=False) if session.ended_at else None
    facts = (
        ("State", show_state(session.state, session.program_state or session.state)),
        ("Agent", show_address(session.address)),
        ("Works on", flight),
        ("Harness", session.harness),
        ("Model", model),
        ("Folder", session.cwd),
        ("Process", str(session.pid) if session.pid else None),
        ("CPU", show_processor(session.load) if session.load else None),
        ("Memory", show_memory(session.load) if session.load else None),
        ("Processes", str(session.load.processes) if session.load else None),
        ("Tokens", _show_tokens(session)),
        ("Context", _show_context(tail)),
        ("Idle since", show_time(session.last_event_at) if not session.flight_id else None),
        ("Open in a terminal", show_time(session.terminal.since) if session.terminal else None),
        ("Started", show_time(session.created_at, ago=False)),
        ("Ended", ended),
        ("Reason", session.reason),
        ("Its own id", ", ".join(session.native_ids.values())),
    )
    return tag("div", show_facts(facts), data_key=session.id)


def _show_tokens(session: SessionView) -> str | None:
    used = session.tokens
    if not used.total_tokens:
        return None
    words = f"{used.total_tokens:,} ({used.prompt_tokens:,} in, {used.completion_tokens:,} out)"
    return f"{words}, estimated in part" if used.estimated else words


def _show_context(tail: Tail | None) -> Html | None:
    """Return how full the context is, where the harness tells; without its size, only the tokens in it."""
    if tail is None or tail.context_tokens is None:
        return None
    used, window = tail.context_tokens, tail.context_window
    if not window:
        return tag("span", f"{show_amount(used)} tokens", title=f"{used:,} tokens; its size is not told")
    share = 100 * used / window
    words = f"{share:.0f} % of {show_amount(window)} tokens"
    colour = "bad" if share > 90 else "warn" if share > 75 else "accent"
    bar = draw_strip(
        f"Context: {words}", (Part(share, colour, words), Part(100 - min(share, 100), "rest", words))
    )
    return tag("div", words, bar, title=f"{used:,} of {window:,} tokens")


def _show_output(session: SessionView, tail: Tail | None, problem: str | None) -> Html:
    log = _show_log(session)
    if tail is None:
        return tag("div", tag("p", problem or "", cls="quiet"), log)
    live = session.state in (SessionState.STARTING, SessionState.LIVE)
    entries = build_transcript(tail, live=live)
    if not tail.lines and not live:
        entries = show_empty("Its program has written nothing.", "The output of a turn appears here.")
    return join(entries, tag("p", f"Read from {tail.source}. Scout keeps no copy.", cls="quiet"), log)


def build_transcript(tail: Tail, *, live: bool) -> Html:
    """Return the last entries of a transcript. While it is live, the page adds new ones as they come."""
    return tag(
        "div",
        [_show_entry(one) for one in tail.lines],
        cls="transcript",
        role="log",
        aria_label="Output of the program",
        tabindex=0,
        data_own=True,
        data_key=f"tail {tail.session_id}",
        data_tail=tail.session_id if live else None,
        data_next=tail.next,
    )


def _show_entry(entry: TailEntry) -> Html:
    who = tag("span", entry.who, show_time(entry.at), cls="said-by")
    return tag("div", who, tag("pre", lines(entry.text)), cls="said", data_who=entry.who)


def _show_log(session: SessionView) -> Html:
    if not session.log_tail:
        return EMPTY
    return tag(
        "details",
        tag("summary", "Errors of the program"),
        quote_text("\n".join(session.log_tail)),
        data_key="errors",
    )
