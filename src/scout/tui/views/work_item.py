"""One work item: what it is, whose move it is, and its history from the log."""

from typing import ClassVar

from textual.app import ComposeResult

from scout.protocol.work import GetWork, WorkView
from scout.tui.pane import TextPane
from scout.tui.text import Paragraph, fit, format_clock, shorten_id, show_text
from scout.tui.view import ScreenView, ViewHost
from scout.tui.views.work import WORK_STYLES
from scout.tui.work_actions import WorkActions, list_work_moves


class WorkItemDetail(WorkActions, ScreenView):
    """The item. The moves are keys."""

    key: ClassVar[str] = "work item"
    nouns: ClassVar[frozenset[str]] = frozenset({"work_item"})

    def __init__(self, host: ViewHost, ident: str) -> None:
        super().__init__(host)
        self._ident = ident
        self._item: WorkView | None = None

    @property
    def item(self) -> WorkView | None:
        return self._item

    @property
    def subject(self) -> str:
        return f"Work · {self._ident}"

    def compose(self) -> ComposeResult:
        yield TextPane(id="work-item")

    async def load(self) -> None:
        self._item = await self.host.call(GetWork(work_item_id=self._ident))
        self.draw()

    def tick(self) -> None:
        if self._item is not None:
            self.query_one(TextPane).set_blocks(self._build_blocks(self._item))

    def _build_blocks(self, item: WorkView) -> list[Paragraph]:
        blocks = [Paragraph(show_text(item.title), "bold", foreign=True), Paragraph("")]
        blocks += [
            Paragraph(f"{fit(name, 11)} {text}", style) for name, text, style in self._list_facts(item)
        ]
        moves = list_work_moves(item.state, self.key)
        blocks += [Paragraph(moves or "It is settled.", "accent")]
        for title, text in (
            ("Description", item.description),
            ("Progress", item.progress.summary),
            ("Reason", item.reason),
        ):
            if text:
                blocks += [Paragraph(""), Paragraph(title, "bold"), Paragraph(text, foreign=True)]
        blocks += [Paragraph(show_text(note), "yellow") for note in item.notes]
        return [*blocks, Paragraph(""), Paragraph("History", "bold"), *self._list_steps(item)]

    def _list_facts(self, item: WorkView) -> list[tuple[str, str, str]]:
        names, on = self.host.names, item.waiting_on
        percent = f", {item.progress.percent:.0f} %" if item.progress.percent is not None else ""
        waits = f"{on.kind.replace('_', ' ')} {show_text(on.ref)}".strip() if on else ""
        links = [f"{one.kind} {shorten_id(one.work_item_id)}" for one in item.relations]
        links += [f"{shorten_id(one.work_item_id)} {one.kind} it" for one in item.related_by]
        facts = [
            ("state", f"{item.state}{percent}", WORK_STYLES[item.state]),
            ("owner", show_text(names.name(item.owner_address)), ""),
            ("next move", show_text(names.name(item.next_move_address)), ""),
            ("asked by", show_text(names.name(item.requester_address)), ""),
            ("waits for", waits, "yellow"),
            ("acceptance", item.acceptance.value, ""),
            ("priority", item.priority.value, ""),
            ("labels", show_text(", ".join(item.labels)), ""),
            ("due", format_clock(item.due_at) if item.due_at else "", ""),
            ("related", ", ".join(links), ""),
        ]
        return [fact for fact in facts if fact[1]]

    def _list_steps(self, item: WorkView) -> list[Paragraph]:
        names = self.host.names
        return [
            Paragraph(
                f"{format_clock(step.at)} {fit(step.move.replace('_', ' '), 10)} {fit(step.state, 9)} "
                f"{show_text(names.name(step.by))}  {show_text(step.reason)}",
                "dim",
                cut=True,
            )
            for step in reversed(item.steps)
        ]
