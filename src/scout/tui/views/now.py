"""Now: what needs you, what runs, what finished since you looked, and what is wrong with the machine."""

from typing import ClassVar

from textual.app import ComposeResult

from scout.protocol.overview import MarkLooked, Now, ShowNow, ShowStatus, Status
from scout.tui.describe import FLIGHT_MARKS, RISK_MARKS, describe_live_line, describe_state, name_target
from scout.tui.rows import Row, RowColumn, RowList, build_note, build_title
from scout.tui.text import format_age, shorten_ids, show_text
from scout.tui.view import ScreenView

_FEW = 8


class NowView(ScreenView):
    """The summary. Enter goes to the item, the flight or the agent."""

    key: ClassVar[str] = "now"
    nouns: ClassVar[frozenset[str]] = frozenset(
        {"attention", "flight", "agent", "endpoint", "session", "node", "message", "connector"}
    )

    _now: Now | None = None
    _status: Status | None = None

    def compose(self) -> ComposeResult:
        yield RowList((RowColumn(1), RowColumn(20), RowColumn(0), RowColumn(16, right=True)))

    async def load(self) -> None:
        self._now = await self.host.call(ShowNow())
        self._status = await self.host.call(ShowStatus())
        self.host.show_needs(self._now)
        self.draw()

    def tick(self) -> None:
        if self._now is not None:
            self.query_one(RowList).set_rows(self._build_rows(self._now))

    def _build_rows(self, now: Now) -> list[Row]:
        problems = self._list_problems(now)
        rows = [*([build_title("Problems"), *problems, build_note("")] if problems else [])]
        rows += [*self._list_needs(now), build_note(""), *self._list_open(now), build_note("")]
        rows += [*self._list_finished(now), build_note("")]
        online = ", ".join(show_text(agent.address) for agent in now.online[:_FEW])
        rows.append(build_title("Online", f"{len(now.online)} of {now.agents} agents"))
        if online:
            rows.append(build_note(f"  {online}", ""))
        if now.agents == 0:
            rows.append(build_note("  Register one: scout agent register NAME --harness claude"))
        return rows

    def _list_problems(self, now: Now) -> list[Row]:
        found: list[Row] = []
        if now.paused is not None:
            why = f": {show_text(now.paused.reason)}" if now.paused.reason else ""
            found.append(build_note(f"  This machine is paused{why}. Nothing starts; scout resume", "yellow"))
        for name, state in (self._status.connectors if self._status else {}).items():
            if state not in ("connected", "running", "ok"):
                found.append(build_note(f"  {show_text(name)}: {show_text(state)}", "yellow"))
        return found

    def _list_needs(self, now: Now) -> list[Row]:
        total = sum(one.open for one in now.needs_by_agent)
        if not total:
            return [build_title("Needs you"), build_note("  Nothing needs you.")]
        rows = [
            Row(
                item.id,
                (
                    RISK_MARKS[item.risk],
                    (show_text(self.host.names.name(item.agent_address, item.agent_node)) or "scout", ""),
                    (shorten_ids(show_text(item.title)), "bold"),
                    (f"{item.kind} {format_age(item.created_at)}", "dim"),
                ),
            )
            for item in now.needs_me[:_FEW]
        ]
        more = [build_note(f"  … and {total - len(rows)} more: press 2")] if total > len(rows) else []
        return [build_title("Needs you", str(total)), *rows, *more]

    def _list_open(self, now: Now) -> list[Row]:
        if not now.open:
            return [build_title("Working"), build_note("  Nothing is running. Press c to ask an agent.")]
        rows = [
            Row(
                flight.id,
                (
                    FLIGHT_MARKS[flight.state],
                    (name_target(flight), ""),
                    (f"{show_text(flight.body)[:60]} · {describe_live_line(flight, self.host.names)}", ""),
                    describe_state(flight),
                ),
            )
            for flight in now.open
        ]
        return [build_title("Working", str(len(rows))), *rows]

    def _list_finished(self, now: Now) -> list[Row]:
        if not now.finished:
            return [build_title("Finished"), build_note("  Nothing has finished since you looked.")]
        since = f", {format_age(now.since)} ago" if now.since else ""
        extra = f"{now.finished_count} since you looked{since}".replace("now ago", "just now")
        title = build_title("Finished", extra)
        rows = [
            Row(
                flight.id,
                (
                    FLIGHT_MARKS[flight.state],
                    (name_target(flight), ""),
                    (describe_live_line(flight, self.host.names), ""),
                    (f"{format_age(flight.finished_at)} ago".replace("now ago", "now"), "dim"),
                ),
            )
            for flight in now.finished[:_FEW]
        ]
        return [title, *rows]

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        self.host.show_record(event.key)

    def do_why(self) -> None:
        self.host.explain(self.query_one(RowList).key)

    def do_seen(self) -> None:
        self.host.start(self._mark_seen())

    async def _mark_seen(self) -> None:
        if self._now is not None:
            await self.host.call(MarkLooked(at=self._now.at))
            self.host.say("Marked as seen.", "green")
            await self.load()
