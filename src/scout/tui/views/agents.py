"""Agents, by their paths: state, address, sessions, and what they do."""

from collections import Counter
from typing import ClassVar

from textual.app import ComposeResult

from scout.policy.sentences import add_node
from scout.protocol.agents import AgentView as AgentRecord
from scout.protocol.agents import Who
from scout.protocol.sessions import ListSessions
from scout.tui.describe import AGENT_MARKS, describe_presence
from scout.tui.rows import Row, RowColumn, RowList, build_note
from scout.tui.text import format_age, show_text
from scout.tui.view import ScreenView, ViewHost
from scout.tui.views.agent import find_node, refer_to_node

_PAGE = 200


class AgentsView(ScreenView):
    """The list. Children stand below their parents."""

    key: ClassVar[str] = "agents"
    nouns: ClassVar[frozenset[str]] = frozenset({"agent", "endpoint", "session", "flight", "attention"})

    def __init__(self, host: ViewHost) -> None:
        super().__init__(host)
        self._agents: list[AgentRecord] = []
        self._sessions: Counter[str] = Counter()
        self._more = False
        self._query = ""

    @property
    def subject(self) -> str:
        return f"filter: {show_text(self._query)}" if self._query else ""

    def compose(self) -> ComposeResult:
        yield RowList(
            (RowColumn(1), RowColumn(30), RowColumn(11), RowColumn(9), RowColumn(0), RowColumn(5, right=True))
        )

    async def load(self) -> None:
        page = await self.host.call(Who(query=self._query or None, all_nodes=True, limit=_PAGE))
        live = await self.host.call(ListSessions(live=True, limit=_PAGE))
        self._agents = sorted(page.items, key=lambda agent: str(agent.path))
        self._more = page.next is not None
        self._sessions = Counter(session.agent_id for session in live.items)
        self.draw()

    def tick(self) -> None:
        rows = [self._build_row(agent) for agent in self._agents]
        if not rows:
            rows = [build_note("  No agents. Register one: scout agent register NAME --harness claude")]
        if self._more:
            rows.append(build_note(f"  … only the newest {_PAGE}; press / to search"))
        self.query_one(RowList).set_rows(rows)

    def _build_row(self, agent: AgentRecord) -> Row:
        known = {str(one.path) for one in self._agents}
        path = str(agent.path)
        depth = sum(1 for one in known if path.startswith(f"{one}/"))
        count = self._sessions[agent.id]
        sessions = f"{count} live" if count else ""
        return Row(
            agent.address,
            (
                AGENT_MARKS[agent.status],
                (f"{'  ' * min(depth, 6)}{show_text(add_node(agent.address, find_node(agent)))}", ""),
                (describe_presence(agent), AGENT_MARKS[agent.status][1]),
                (sessions, ""),
                (show_text(agent.description) or show_text(agent.config.harness), "dim"),
                (format_age(agent.last_active_at or agent.updated_at), "dim"),
            ),
        )

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        self.host.show_record(event.key)

    def do_open(self) -> None:
        address = self.query_one(RowList).key
        agent = next((one for one in self._agents if one.address == address), None)
        if agent is not None and agent.is_remote:
            self.host.say(refer_to_node(agent), "yellow")
        elif agent is not None:
            self.host.open_session(address)

    def do_reply(self) -> None:
        self.host.compose_ask(self.query_one(RowList).key)

    def set_filter(self, text: str) -> None:
        """Show only agents whose name or description has these words."""
        self._query = text
        self.is_stale = True
