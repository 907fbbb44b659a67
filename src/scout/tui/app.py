"""The application: one screen with a view in it, fed by one stream of events."""

import asyncio
import contextlib
import os
import shlex
import subprocess
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from msgspec.structs import replace
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.css.query import NoMatches
from textual.screen import Screen
from textual.widgets import Static

from scout.base.codec import decode
from scout.base.refusal import Family, Refused, Remedy
from scout.client.client import Scout
from scout.client.environment import Environment
from scout.model.ask import AskReceipt
from scout.policy.sentences import add_node
from scout.protocol.agents import Identity, WhoAmI
from scout.protocol.insight import Why
from scout.protocol.keys import PAGE_VIEWS, Key, list_keys
from scout.protocol.operations import OPERATIONS, build_command_line
from scout.protocol.overview import Now, ShowNow, ShowStatus
from scout.protocol.request import Request
from scout.tui.attachments import store_files
from scout.tui.bars import TABS, BottomBar, TopBar
from scout.tui.bindings import OF_LISTS, list_bindings, list_hints
from scout.tui.composer import AskDialog
from scout.tui.describe import build_explanation
from scout.tui.dialogs import Chooser, KeyHelp, TextDialog, build_go_to
from scout.tui.drafts import DraftBook
from scout.tui.finder import Finder
from scout.tui.live import Live, StreamState
from scout.tui.names import NameBook
from scout.tui.refusal import RefusalDialog
from scout.tui.text import show_text
from scout.tui.view import ScreenView
from scout.tui.views.agent import AgentDetailView
from scout.tui.views.agents import AgentsView
from scout.tui.views.conversation import ConversationDetail
from scout.tui.views.conversations import ConversationsView
from scout.tui.views.diff import DiffView
from scout.tui.views.flight import FlightDetail
from scout.tui.views.flights import FlightsView
from scout.tui.views.inbox import InboxView
from scout.tui.views.log import LogView
from scout.tui.views.mesh import MeshMachines
from scout.tui.views.now import NowView
from scout.tui.views.work import WorkListView
from scout.tui.views.work_item import WorkItemDetail

T = TypeVar("T")
_VIEWS: dict[str, type[ScreenView]] = {
    "now": NowView,
    "inbox": InboxView,
    "agents": AgentsView,
    "flights": FlightsView,
    "conversations": ConversationsView,
    "work": WorkListView,
    "log": LogView,
    "mesh": MeshMachines,
}
_DRAFTS = "tui-drafts.json"  # in the data folder
_PAUSE = 0.2  # seconds between two reads of a view


class ScoutApp(App[None]):
    """Scout in a terminal."""

    CSS_PATH = "style.tcss"
    TITLE = "Scout"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = list_bindings()

    def __init__(
        self,
        scout: Scout,
        *,
        command: Sequence[str] = (),
        act_as: str | None = None,
        drafts: DraftBook | None = None,
    ) -> None:
        super().__init__()
        self.theme = "ansi-dark"
        self._scout = scout
        self._command = tuple(command) or (sys.executable, "-m", "scout")
        self._act_as = act_as
        self._me: Identity | None = None
        self.names = NameBook()
        self.drafts = drafts or DraftBook()
        self._live = Live(scout, self._take_events, self._take_link)
        self._views: dict[str, ScreenView] = {}
        self._stack: list[ScreenView] = []
        self._top = ""
        self._going = asyncio.Lock()  # one view is opened or closed at a time
        self._draft_place = ""  # the place of the draft that is being sent
        self._needs_stale = asyncio.Event()
        self._was_lost = False

    # -- the screen ------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield TopBar()
        yield Static("", id="subject", markup=False)
        yield Container(id="body")
        yield BottomBar()

    async def on_mount(self) -> None:
        await self.show_view("now")
        self.run_worker(self._refresh(), exit_on_error=True)
        self.run_worker(self._begin(), exit_on_error=True)
        self.set_interval(1.0, self._tick)

    async def _begin(self) -> None:
        """Learn who the person is, read the newest part of the log, and follow it."""
        while True:
            try:
                self._me = await self._scout.call(WhoAmI())
                await self.names.begin(self._scout, self._me)
                await self._live.begin()
                break
            except Refused as refused:
                if refused.diagnostic.family is Family.CREDENTIAL:
                    self._take_link(StreamState.REFUSED)
                    self.say(refused.diagnostic.message, "alarm")
                    return
                self._take_link(StreamState.LOST)
                await asyncio.sleep(1)
        self.run_worker(self._count_needs(), exit_on_error=True)
        with contextlib.suppress(Refused):
            await self._live.follow()

    async def _refresh(self) -> None:
        """Read the view that is shown again and again, whenever something changed that it shows."""
        while True:
            view = self.view
            if self.names.wanted and await self.names.look_up(self._scout):
                view.is_stale = True
            if view.is_stale and view.is_mounted:
                view.is_stale, view.is_reading = False, True
                try:
                    await view.load()
                    self._draw_bars()
                except Refused as refused:
                    view.is_stale = refused.diagnostic.family is Family.LIMIT
                    if not self._was_lost:
                        self.say(show_text(refused.diagnostic.message), "red")
                except NoMatches:
                    if view.is_shown:  # else it was closed while it was read
                        raise
                finally:
                    view.is_reading = False
            await asyncio.sleep(_PAUSE)

    async def _count_needs(self) -> None:
        """Keep the number of items that need the person, and the pause, in the first line."""
        self._needs_stale.set()
        while True:
            await self._needs_stale.wait()
            self._needs_stale.clear()
            with contextlib.suppress(Refused):
                self.show_needs(await self._scout.call(ShowNow()))
                self._show_mesh((await self._scout.call(ShowStatus())).meshed)
            await asyncio.sleep(1)

    def show_needs(self, now: Now) -> None:
        for bar in self._home.query(TopBar):
            bar.needs = sum(one.open for one in now.needs_by_agent)
            bar.is_paused = now.paused is not None
            bar.refresh()

    def _show_mesh(self, is_meshed: bool) -> None:
        for bar in self._home.query(TopBar):
            bar.is_meshed = is_meshed
            bar.refresh()

    def _take_events(self, events: list[dict[str, Any]]) -> None:
        for event in events:
            for view in (*self._views.values(), *self._stack):
                view.note(event)
            if str(event["type"]).startswith(("collab.attention.", "collab.node.")):
                self._needs_stale.set()

    def _take_link(self, link: StreamState) -> None:
        for bar in self._home.query(TopBar):
            bar.link = link
            bar.refresh()
        if link is StreamState.LOST:
            self._was_lost = True
            self.say("The daemon does not answer. Reconnecting; if it was stopped: scout up", "yellow")
        elif link is StreamState.OPEN and self._was_lost:
            self._was_lost = False
            for view in (*self._views.values(), *self._stack):
                view.is_stale = True
            self.say("Connected again. No event was missed.", "green")

    def _tick(self) -> None:
        self.view.draw()
        self._draw_bars()
        self.drafts.save()

    def on_unmount(self) -> None:
        self.drafts.save()

    def on_descendant_focus(self) -> None:
        if self._top:
            self._draw_bars()

    @property
    def _home(self) -> Screen[Any]:
        """The screen with the views; a dialog may lie above it."""
        return self.screen_stack[0] if self.screen_stack else Screen[Any]()

    @property
    def view(self) -> ScreenView:
        """The view that is shown."""
        return self._stack[-1] if self._stack else self._views[self._top]

    async def show_view(self, name: str) -> None:
        """Show one of the views of the first line."""
        async with self._going:
            left = self._views.get(self._top)
            if name != self._top and isinstance(left, InboxView):
                left.forget_decided()
            if name not in self._views:
                self._views[name] = await self._mount(_VIEWS[name](self))
            closed, self._stack, self._top = self._stack, [], name
            self._draw_view()
            for view in closed:
                await view.remove()

    async def _push_view(self, view: ScreenView) -> None:
        async with self._going:
            self._stack.append(await self._mount(view))
            self._draw_view()

    async def _mount(self, view: ScreenView) -> ScreenView:
        """Build a view out of sight: keys and events reach it only when all its parts are there."""
        view.display = False
        await self._home.query_one("#body").mount(view)
        return view

    def _draw_view(self) -> None:
        current = self.view
        for view in self._home.query(ScreenView):
            view.display = view is current
        self.say("")
        self._draw_bars()
        current.focus_first()

    def _draw_bars(self) -> None:
        for top in self._home.query(TopBar):
            top.view = self._top
            top.refresh()
        for subject in self._home.query("#subject").results(Static):
            subject.update(self.view.subject)
        hints = list_hints(self.view.key, filter(lambda row: self.view.offers(row.action), self._list_keys()))
        back = [("Esc", "back")] if self._stack else []
        typing = self.view.typing_keys if self.view.is_shown else []
        for bottom in self._home.query(BottomBar):
            bottom.set_keys([*back, *(typing or hints)])

    def _list_keys(self) -> list[Key]:
        """Return the keys that do something in the view that is shown."""
        return [row for row in list_keys(self.view.key) if self._has_meaning(row.action)]

    def _has_meaning(self, action: str) -> bool:
        if action == "filter":
            return hasattr(self.view, "set_filter")
        common = action in OF_LISTS or action.startswith("view.") or hasattr(self, f"press_{action}")
        return common or self.view.can(action)

    # -- what views use (`ViewHost`) -----------------------------------------------------------------------

    @property
    def own_id(self) -> str:
        return (self._me.agent_id or "") if self._me else ""

    @property
    def recent(self) -> Sequence[dict[str, Any]]:
        return tuple(self._live.events)

    async def call(self, request: Request[T]) -> T:
        return await self._scout.call(request)

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        self.run_worker(self._guard(work), exit_on_error=True)

    async def _guard(self, work: Coroutine[Any, Any, object]) -> None:
        """Do something, and show a refusal with its remedies as long as there are any to choose."""
        following: Coroutine[Any, Any, object] | None = work
        while following is not None:
            try:
                await following
                return
            except Refused as refused:
                remedy = await self.ask_person(RefusalDialog(refused.diagnostic))
                following = self._run_remedy(remedy) if remedy is not None else None

    async def ask_person(self, dialog: Screen[T]) -> T | None:
        return await self.push_screen_wait(dialog)

    def say(self, text: str, style: str = "") -> None:
        for bar in self._home.query(BottomBar):
            bar.say(show_text(text), style)

    def copy(self, text: str) -> None:
        self.copy_to_clipboard(text)

    def show_record(self, ident: str) -> None:
        self.start(self._show_record(ident))

    async def _show_record(self, ident: str) -> None:
        kind = ident.partition("_")[0]
        if kind == "att":
            await self.show_view("inbox")
            inbox = self.view
            assert isinstance(inbox, InboxView)
            inbox.show_item(ident)
        elif kind == "wrk":
            await self._push_view(WorkItemDetail(self, ident))
        elif kind in ("flt", "ask"):
            await self._push_view(FlightDetail(self, ident))
        elif kind == "cnv":
            await self._push_view(ConversationDetail(self, ident))
        elif ident.startswith(("@", "/", "agt_")):
            await self._push_view(AgentDetailView(self, ident))
        else:
            await self._explain(ident)

    def compose_ask(self, to: str = "", conversation_id: str | None = None) -> None:
        self.start(self._compose(to, conversation_id))

    async def _compose(self, to: str, conversation_id: str | None) -> None:
        order = await self.ask_person(AskDialog(self, to, conversation_id))
        if order is not None:
            self._draft_place = order.place
            stored = await store_files(self, order.files)
            await self._take_receipt(await self.call(replace(order.request, attachments=stored)))

    async def _take_receipt(self, receipt: AskReceipt) -> None:
        self.drafts.forget(self._draft_place)
        await self._show_record(receipt.flight_id)
        where = show_text(add_node(receipt.address or receipt.target, receipt.node))
        self.say(f"Asked {where}: {receipt.flight_id} is {receipt.state}.", "green")

    def show_diff(self, flight_id: str) -> None:
        self.start(self._push_view(DiffView(self, flight_id)))

    def open_session(self, address: str) -> None:
        self._run_command("open", address)

    def explain(self, ident: str) -> None:
        if ident:
            self.start(self._explain(ident))

    async def _explain(self, ident: str) -> None:
        told = await self.call(Why(id=ident))
        await self.ask_person(Chooser("Why", [], build_explanation(told, self.names)))

    async def _run_remedy(self, remedy: Remedy) -> None:
        """Run a remedy: a change through the daemon, everything else as its command in this terminal."""
        request = OPERATIONS[remedy.operation].request
        if request is None or not request.writes:
            self._run_command(*shlex.split(build_command_line(remedy))[1:], wait=True)
            return
        done = await self.call(decode(remedy.parameters, request))
        if isinstance(done, AskReceipt):
            await self._take_receipt(done)
        else:
            self.say(f"Done: {build_command_line(remedy)}", "green")

    def _run_command(self, *words: str, wait: bool = False) -> None:
        """Leave the screen, run a command of Scout in this terminal, and come back."""
        own = ("--as", self._act_as) if self._act_as and words[0] == "open" else ()
        with self.suspend():
            code = subprocess.run([*self._command, *words, *own], check=False).returncode
            if wait or code:
                os.write(1, b"\nPress Enter to return to Scout.")
                sys.stdin.readline()
        self.refresh(layout=True)
        self.say(
            f"Back. {shlex.join(['scout', *words])} ended with {code}.", "green" if code == 0 else "yellow"
        )

    # -- keys ------------------------------------------------------------------------------------------

    def action_press(self, key: str) -> None:
        """Do what a key of the table means in the view that is shown."""
        self.say("")
        rows = [row for row in self._list_keys() if key in row.keys]
        if rows:
            self._do(rows[0].action)
        elif any(key in row.keys for row in PAGE_VIEWS):
            self.say("Sessions and the tree are on the page: scout web", "yellow")
        else:
            self.say(f"{key} does nothing here. ? lists the keys.", "yellow")

    def _do(self, action: str) -> None:
        if action.startswith("view."):
            self.start(self.show_view(action.removeprefix("view.")))
        elif not self.view.act(action):
            getattr(self, f"press_{action}")()

    def action_go_to(self) -> None:
        self.start(self._go_to())

    async def _go_to(self) -> None:
        action = await self.ask_person(build_go_to())
        if action:
            self._do(action)

    def press_help(self) -> None:
        self.push_screen(KeyHelp(self._list_keys()))

    def press_find(self) -> None:
        self.start(self._find())

    async def _find(self) -> None:
        found = await self.ask_person(Finder(self, self._list_keys()))
        if found and found.startswith("do:"):
            self._do(found.removeprefix("do:"))
        elif found:
            await self._show_record(found)

    def press_ask(self) -> None:
        self.compose_ask()

    def press_filter(self) -> None:
        self.start(self._filter(getattr(self.view, "set_filter")))  # noqa: B009 (only some views have it)

    async def _filter(self, set_filter: Any) -> None:
        hints = {"flights": "words, open, mine", "log": "words, @agent, collab.flight", "work": "words, mine"}
        hint = hints.get(self.view.key, "words")
        text = await self.ask_person(TextDialog("Filter", hint=hint))
        if text is not None:
            set_filter(text)
            self._draw_bars()

    def press_back(self) -> None:
        if self._stack:
            self.start(self._go_back())
        elif self._top != "now":
            self.start(self.show_view("now"))

    async def _go_back(self) -> None:
        async with self._going:
            if self._stack:
                closed = self._stack.pop()
                self._draw_view()
                await closed.remove()

    async def on_top_bar_picked(self, event: TopBar.Picked) -> None:
        await self.show_view(event.view)


assert set(_VIEWS) == {name for name, _ in TABS}


def run(act_as: str | None = None, *, mouse: bool = True) -> int:
    """Run the application with the daemon and the credential of this shell; return its exit code."""
    file = Path(Environment().where.home) / _DRAFTS
    app = ScoutApp(Scout(act_as=act_as), act_as=act_as, drafts=DraftBook(file))
    app.run(mouse=mouse)
    return app.return_code or 0
