"""The web page in Chromium: first paint against the size of the store, event to pixel, memory, bytes."""

import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import BrowserContext, Page, sync_playwright

from bench.daemon import Daemon, daemon
from bench.figure import Figure
from bench.seed import seed

VIEWS = (
    *("/", "/inbox", "/agents", "/flights", "/conversations", "/work", "/log"),
    *("/sessions", "/tree", "/schedules", "/usage"),
)
AGENTS, FLIGHTS, MESSAGES = 10_000, 100_000, 1_000_000
EVENTS, RATE, ROUNDS, FLIPS = 50_000, 200, 7, 40
WRITERS = 8  # that write events at once: their commits are shared
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
_COUNT = "Object.keys(window.seen).filter((key) => key.endsWith('running')).length"
_WATCH = """() => {
  window.seen = {};
  new MutationObserver((changes) => requestAnimationFrame(() => {
    for (const { target } of changes) {
      const row = target.closest?.('[data-key]');
      const state = row?.querySelector('.state')?.dataset.state;
      if (state) window.seen[row.dataset.key + ' ' + state] ??= Date.now();
    }
  })).observe(document.getElementById('main'), {subtree: true, attributes: true, attributeFilter: ['data-state']});
}"""


def figures(scale: float = 1.0) -> Iterator[Figure]:
    """Every figure of the page; nothing where there is no Chromium."""
    if shutil.which("chromium") is None:
        return
    with tempfile.TemporaryDirectory(prefix="scout-bench-") as folder:
        yield from _paint(Path(folder), scale)
        with daemon(Path(folder) / "live") as broker, _a_context() as context:
            page = context.new_page()
            yield _load(page, broker)
            yield from _follow(page, broker)
            yield _remember(page, broker, max(2000, round(EVENTS * min(scale, 1))))


@contextmanager
def _a_context() -> Generator[BrowserContext]:
    with sync_playwright() as driver:
        arguments = ["--no-sandbox", "--enable-precise-memory-info"]
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        try:
            yield browser.new_context()
        finally:
            browser.close()


def _sign_in(page: Page, broker: Daemon) -> str:
    page.goto(broker.call("POST", "/v1/web/links", {})["url"])
    page.locator("#live[data-live=live]").wait_for()
    return page.url.rstrip("/")


# -- first paint ---------------------------------------------------------------------------------------


def _paint(folder: Path, scale: float) -> Iterator[Figure]:
    empty, full = folder / "empty", folder / "full"
    for home in (empty, full):
        with daemon(home):  # makes the store
            pass
    sizes = [max(100, round(size * min(scale, 1))) for size in (AGENTS, FLIGHTS, MESSAGES)]
    seed(full, agents=sizes[0], flights=sizes[1], messages=sizes[2])
    with daemon(empty) as small, daemon(full) as large, _a_context() as context:
        pages = [(context.new_page(), broker) for broker in (small, large)]
        bases = [_sign_in(page, broker) for page, broker in pages]
        for path in VIEWS:
            seen: list[list[_Load]] = [[], []]
            for _ in range(ROUNDS):  # in turn, so that the load of the machine is the same for both
                for number, (page, _broker) in enumerate(pages):
                    seen[number].append(_visit(page, f"{bases[number]}{path}"))
            small_load, large_load = (_Load(*map(statistics.median, zip(*one, strict=True))) for one in seen)
            name = f"page {path}, {{}}: {sizes[2]:,} messages against none"
            paint = large_load.paint / max(small_load.paint, 1)
            work = large_load.processor / max(small_load.processor, 1)
            yield Figure(name=name.format("first paint"), result=paint, unit="x", goal=1.5)
            # A busy machine delays a paint; it does not change how much there is to do.
            yield Figure(name=name.format("processor time of the tab"), result=work, unit="x")
            yield Figure(name=f"page {path}, first paint", result=large_load.paint, unit="ms")


class _Load(NamedTuple):
    """One visit: milliseconds to the first paint, and of processor time that the tab took."""

    paint: float
    processor: float


def _visit(page: Page, url: str) -> _Load:
    tools: Any = page.context.new_cdp_session(page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def measure() -> float:
        found: Any = tools.send("Performance.getMetrics")["metrics"]
        return next(float(one["value"]) for one in found if one["name"] == "TaskDuration") * 1000

    before = measure()
    page.goto(url)
    load = _Load(float(page.evaluate(_PAINT)), measure() - before)
    tools.detach()
    return load


# -- bytes ---------------------------------------------------------------------------------------------


def _load(page: Page, broker: Daemon) -> Figure:
    sizes: list[int] = []
    page.on("response", lambda answer: sizes.append(int(answer.headers.get("content-length", "0"))))
    _sign_in(page, broker)
    return Figure(name="page, first load", result=sum(sizes) / 1000, unit="kB", goal=200)


# -- event to pixel ------------------------------------------------------------------------------------


def _follow(page: Page, broker: Daemon) -> Iterator[Figure]:
    """Flights change their state while other events arrive; a change counts when the frame with it is drawn."""
    base = page.url.rstrip("/")
    made = broker.call("POST", "/v1/agents", {"definitionId": "worker", "projectRoot": None})
    token = made["token"]
    broker.call("POST", "/v1/endpoints", {}, token)
    asked = [
        broker.call("POST", "/v1/asks", {"to": "@worker", "body": f"number {number}"})["flightId"]
        for number in range(FLIPS)
    ]
    page.goto(f"{base}/flights")
    page.locator("#live[data-live=live]").wait_for()
    page.evaluate(_WATCH)
    with _chatter(broker) as count:
        began, first = time.monotonic(), count[0]
        changed: dict[str, str] = {}
        for ident in asked:
            record = broker.call("POST", f"/v1/flights/{ident}/start", {}, token)
            changed[f"{ident} running"] = record["updatedAt"]
            time.sleep(0.05)
        rate = (count[0] - first) / (time.monotonic() - began)
        until = time.monotonic() + 30
        while page.evaluate(_COUNT) < FLIPS and time.monotonic() < until:
            time.sleep(0.1)
    seen: dict[str, int] = page.evaluate("window.seen")
    delays = sorted(seen[key] - _milliseconds(page, at) for key, at in changed.items())
    yield Figure(
        name="page, events while it is measured", result=rate, unit="events/s", goal=RATE, at_least=True
    )
    yield Figure(
        name="page, event to pixel, p95", result=delays[int(len(delays) * 0.95)], unit="ms", goal=100
    )
    yield Figure(name="page, event to pixel, p50", result=statistics.median(delays), unit="ms")


def _milliseconds(page: Page, at: str) -> float:
    found: Any = page.evaluate(f"Date.parse('{at}')")
    return float(found)


@contextmanager
def _chatter(broker: Daemon) -> Generator[list[int]]:
    """Messages of two writers; `count` is the number of events so far."""
    count, ended = [0], threading.Event()
    before = _last(broker)

    def write() -> None:
        while not ended.wait(0.012):
            broker.call("POST", "/v1/messages", {"to": "@worker", "body": "chatter"})
            count[0] = _last(broker) - before if count[0] % 20 == 0 else count[0] + 2

    writers = [threading.Thread(target=write, daemon=True) for _ in range(2)]
    for writer in writers:
        writer.start()
    try:
        yield count
    finally:
        count[0] = _last(broker) - before
        ended.set()
        for writer in writers:
            writer.join()


def _last(broker: Daemon) -> int:
    items = broker.call("GET", "/v1/log?newest=true&limit=1")["items"]
    return int(items[-1]["seq"]) if items else 0


# -- memory --------------------------------------------------------------------------------------------


def _remember(page: Page, broker: Daemon, events: int) -> Figure:
    """The heap after this many events, against the heap after the first thousand."""
    base = page.url.partition("/flights")[0]
    page.goto(f"{base}/")
    page.locator("#live[data-live=live]").wait_for()
    tools: Any = page.context.new_cdp_session(page)

    def heap() -> float:
        tools.send("HeapProfiler.collectGarbage")
        used: Any = tools.send("Runtime.getHeapUsage")["usedSize"]
        return float(used)

    def write(_: int) -> None:
        broker.call("POST", "/v1/messages", {"to": "@worker", "body": "history"})

    def write_until(number: int) -> None:
        with ThreadPoolExecutor(WRITERS) as writers:
            while _last(broker) < number:
                list(writers.map(write, range(100)))

    began = _last(broker)
    write_until(began + 1000)
    first = heap()
    write_until(began + events)
    page.wait_for_timeout(1000)
    return Figure(name=f"page, memory after {events:,} events", result=heap() / first, unit="x", goal=1.5)
