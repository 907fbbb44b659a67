"""Diff: what changed in the work tree during a flight, as `scout diff` shows it."""

from typing import ClassVar

from textual.app import ComposeResult

from scout.base.refusal import Diagnostic, Refused
from scout.protocol.observation import Diff, ShowDiff
from scout.protocol.operations import build_command_line
from scout.tui.pane import TextPane
from scout.tui.text import Paragraph, shorten_id, show_text
from scout.tui.view import ScreenView, ViewHost

_SHOWN = 2000  # lines of a patch
_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_HEADS = ("+++", "---", "diff ", "index ")


class DiffView(ScreenView):
    """The patch, read-only."""

    key: ClassVar[str] = "diff"
    nouns: ClassVar[frozenset[str]] = frozenset({"flight"})

    def __init__(self, host: ViewHost, flight_id: str) -> None:
        super().__init__(host)
        self._flight_id = flight_id

    @property
    def subject(self) -> str:
        return f"Diff · {shorten_id(self._flight_id)}"

    def compose(self) -> ComposeResult:
        yield TextPane(id="diff")

    async def load(self) -> None:
        try:
            blocks = _show_diff(await self.host.call(ShowDiff(flight_id=self._flight_id)))
        except Refused as refused:
            blocks = _show_refusal(refused.diagnostic)
        self.query_one(TextPane).set_blocks(blocks)


def _show_refusal(problem: Diagnostic) -> list[Paragraph]:
    tries = [Paragraph(f"try: {show_text(build_command_line(one))}", "accent") for one in problem.remedies]
    return [Paragraph(problem.message, "yellow", exact=True), *tries]


def _show_diff(diff: Diff) -> list[Paragraph]:
    when = "so far; the flight is still open" if diff.running else "during the flight"
    head = [Paragraph(f"{show_text(diff.directory)}, {when}", "dim"), Paragraph("")]
    if not diff.patch:
        return [*head, Paragraph("Nothing has changed.")]
    lines = diff.patch.rstrip("\n").split("\n")
    stat = [Paragraph(line, foreign=True) for line in diff.stat.rstrip("\n").split("\n")]
    patch = [Paragraph(line, _choose_style(line), foreign=True) for line in lines[:_SHOWN]]
    is_cut = diff.cut or len(lines) > _SHOWN
    more = [Paragraph(f"There is more: scout diff {diff.flight_id}", "accent")] if is_cut else []
    return [*head, *stat, Paragraph(""), *patch, *more]


def _choose_style(line: str) -> str:
    return "bold" if line.startswith(_HEADS) else _STYLES.get(line[:1], "")
