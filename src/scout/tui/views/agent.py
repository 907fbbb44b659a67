"""One agent: how it is reached, its flights, and what happened to it."""

from typing import ClassVar

from textual.app import ComposeResult

from scout.protocol.agents import AgentDetail, AgentView, ShowAgent
from scout.protocol.asks import FlightView, ListFlights
from scout.protocol.log import ReadLog
from scout.protocol.work import ListWork, WorkView
from scout.tui.describe import (
    AGENT_MARKS,
    FLIGHT_MARKS,
    describe_live_line,
    describe_presence,
    describe_state,
)
from scout.tui.rows import Row, RowColumn, RowList, build_note, build_title
from scout.tui.sentences import build_event_row
from scout.tui.text import format_age, show_text
from scout.tui.view import ScreenView, ViewHost
from scout.tui.views.work import WORK_STYLES

_FEW = 20


def find_node(agent: AgentView) -> str | None:
    """Return the node of an agent of another node."""
    return agent.node if agent.is_remote else None


def refer_to_node(agent: AgentView) -> str:
    """Return where the sessions of an agent of another node are, and the command that opens one there."""
    return f"Its sessions are on {agent.node}. Run it there: scout open {show_text(agent.canonical)}"


class AgentDetailView(ScreenView):
    """The agent. Enter goes to a flight."""

    key: ClassVar[str] = "agent"
    nouns: ClassVar[frozenset[str]] = frozenset(
        {"agent", "endpoint", "session", "flight", "message", "work_item"}
    )

    def __init__(self, host: ViewHost, address: str) -> None:
        super().__init__(host)
        self._address = address
        self._agent: AgentDetail | None = None
        self._flights: tuple[FlightView, ...] = ()
        self._work: tuple[WorkView, ...] = ()
        self._feed: list[Row] = []

    @property
    def subject(self) -> str:
        agent = self._agent
        return show_text(self.host.names.name(agent.address, find_node(agent)) if agent else self._address)

    def compose(self) -> ComposeResult:
        yield RowList((RowColumn(1), RowColumn(14), RowColumn(0), RowColumn(16, right=True)))

    async def load(self) -> None:
        self._agent = await self.host.call(ShowAgent(address=self._address))
        page = await self.host.call(ListFlights(agent=self._agent.id, limit=_FEW))
        self._flights = page.items
        self._work = (await self.host.call(ListWork(owner_id=self._agent.id, limit=_FEW))).items
        log = await self.host.call(ReadLog(agent=self._agent.id, newest=True, limit=_FEW))
        self._feed = [build_event_row(event, self.host.names) for event in reversed(log.items)]
        self.draw()

    def tick(self) -> None:
        if self._agent is not None:
            self.query_one(RowList).set_rows([*self._list_facts(self._agent), *self._list_rest()])

    def _list_facts(self, agent: AgentDetail) -> list[Row]:
        mark, style = AGENT_MARKS[agent.status]
        facts = [
            ("status", f"{mark} {describe_presence(agent)}, {agent.lifecycle}", style),
            ("node", show_text(find_node(agent)), ""),
            ("path", show_text(agent.path), ""),
            ("description", show_text(agent.description), ""),
            ("folder", show_text(agent.working_dir), ""),
            ("harness", " ".join(filter(None, (agent.config.harness, agent.config.model))), ""),
            ("unread", str(agent.unread) if agent.unread else "", ""),
        ]
        rows = [
            Row("", (("", ""), (name, "dim"), (text, how), ("", ""))) for name, text, how in facts if text
        ]
        for session in agent.sessions:
            told = f"{session.harness} {session.state}, {format_age(session.updated_at)}"
            where = f" · open in a terminal of {show_text(session.terminal.by)}" if session.terminal else ""
            rows.append(
                Row("", (("", ""), ("session", "dim"), (f"{told}{where}", ""), (session.id[:14], "dim")))
            )
        rows += [
            Row("", (("", ""), ("note", "yellow"), (show_text(one), ""), ("", ""))) for one in agent.notes
        ]
        return rows

    def _list_rest(self) -> list[Row]:
        flights = [
            Row(
                flight.id,
                (
                    FLIGHT_MARKS[flight.state],
                    (show_text(self.host.names.name(flight.requester_address, flight.requester_node)), ""),
                    (f"{show_text(flight.body)[:60]} · {describe_live_line(flight, self.host.names)}", ""),
                    describe_state(flight),
                ),
            )
            for flight in self._flights
        ]
        none = [build_note("  None yet. Press r to ask it.")]
        return [
            build_note(""),
            build_title("Flights"),
            *(flights or none),
            *self._list_work(),
            build_note(""),
            build_title("Feed", "newest first"),
            *(Row("", row.cells, free=True) for row in self._feed),
        ]

    def _list_work(self) -> list[Row]:
        """Return the open work that the agent owns, below a heading; nothing if there is none."""
        rows = [
            Row(
                item.id,
                (
                    ("●", WORK_STYLES[item.state]),
                    (item.state, ""),
                    (show_text(item.title), ""),
                    (format_age(item.updated_at), "dim"),
                ),
            )
            for item in self._work
        ]
        return [build_note(""), build_title("Work"), *rows] if rows else []

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        self.host.show_record(event.key)

    def do_open(self) -> None:
        if self._agent is not None and self._agent.is_remote:
            self.host.say(refer_to_node(self._agent), "yellow")
        else:
            self.host.open_session(self._agent.address if self._agent else self._address)

    def do_reply(self) -> None:
        self.host.compose_ask(self._agent.address if self._agent else self._address)

    def do_why(self) -> None:
        self.host.explain(self.query_one(RowList).key)
