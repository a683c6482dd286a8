"""What an open page costs while its fleet runs: memory over a long time, processor time at 2,000 events a second."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from bench.contenders import WAKEFUL
from bench.figures import Run
from bench.measures import Column, Plan, Table
from bench.measures.http import Answering, serving
from bench.server import Server, running
from tests.web.browsing import ARGS
from tests.web.chromium import chromium
from wakeful import Scheduler

CALM_RATE, BUSY_RATE = 20, 1_000  # runs a second; each writes two events
EVERY_S = 10  # as close as recurring starts may be
MINUTES, QUICK_MINUTES, BUSY_S = 10.0, 0.5, 60.0
SAMPLE_S, WARM_S, WAITED_S = 60.0, 90.0, 30.0
PAGES = {"Now": "/", "Runs": "/runs"}
MIB = 2**20
#: What the page itself sees: tasks that kept it from answering, what moved, and its part fetches.
WATCH = """() => {
  window.__seen = {tasks: [], shift: 0};
  new PerformanceObserver((list) => { for (const one of list.getEntries()) __seen.tasks.push(one.duration); })
    .observe({type: "longtask", buffered: true});
  new PerformanceObserver((list) => { for (const one of list.getEntries()) __seen.shift += one.value; })
    .observe({type: "layout-shift", buffered: true});
}"""


class Sample(NamedTuple):
    """An open page at one moment, after what nobody holds was thrown away."""

    heap_mib: float
    nodes: float
    process_mib: float
    server_mib: float


class Open:
    """A page that somebody has open, in a process of its own."""

    def __init__(self, browser: Browser, server: Answering, path: str) -> None:
        self.server = server
        self.fetched = self.told = 0
        page: Page = browser.new_context(viewport={"width": 1280, "height": 1040}).new_page()
        self.page = page
        page.goto(f"http://127.0.0.1:{server.port}/in")
        page.locator("[name=token]").fill(server.token)
        page.get_by_role("button", name="Sign in").click()
        page.goto(f"http://127.0.0.1:{server.port}{path}")
        page.wait_for_selector(".live[data-state=live]", timeout=60_000)
        self.pid = process_of(browser, page)
        self._cdp: CDPSession = page.context.new_cdp_session(page)
        for domain in ("Performance", "HeapProfiler", "Network"):
            self._cdp.send(f"{domain}.enable")
        self._cdp.on("Network.eventSourceMessageReceived", self._heard)
        page.on("request", self._asked)
        page.evaluate(WATCH)

    def _heard(self, _: Any) -> None:
        self.told += 1

    def _asked(self, request: Any) -> None:
        self.fetched += "/ui/" in request.url

    def sample(self) -> Sample:
        self._cdp.send("HeapProfiler.collectGarbage")
        found = {one["name"]: one["value"] for one in self._cdp.send("Performance.getMetrics")["metrics"]}
        nodes, heap = found["Nodes"], found["JSHeapUsedSize"] / MIB
        return Sample(heap, nodes, rss_mib(self.pid), rss_mib(self.server.pid))


def process_of(browser: Browser, page: Page) -> int:
    """The process of a page: the one that is busy while the page is."""
    cdp = browser.new_browser_cdp_session()
    found = [one["id"] for one in cdp.send("SystemInfo.getProcessInfo")["processInfo"] if one["type"] == "renderer"]
    cdp.detach()
    before = {pid: cpu_s(pid) for pid in found}
    page.evaluate("() => { const end = performance.now() + 500; while (performance.now() < end); }")
    return max(found, key=lambda pid: cpu_s(pid) - before[pid])


def cpu_s(pid: int) -> float:
    """Processor time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def rss_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


@contextmanager
def browsing() -> Iterator[Browser]:
    """Chromium, with a process for each page."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=[*ARGS, "--enable-precise-memory-info"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def fleet(server: Server, store: str, rate: int) -> Iterator[tuple[Answering, str]]:
    """A served store in which so many runs start each second, and its address."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        url = server.database(folder) if store == "PostgreSQL" else f"sqlite:///{folder}/wakeful.db"
        WAKEFUL.ask("tick", folder=str(folder), count=rate * EVERY_S, first=time.time() + 3, every=EVERY_S)
        with serving(folder) as answering:
            yield answering, url


def events_until_now(url: str) -> int:
    """How many events of runs there have been."""

    async def ask() -> int:
        async with Scheduler(url) as scheduler:
            _, newest = await scheduler.server_side.event_ids()
            groups = await scheduler.server_side.read_events(max(0, newest - 50), ["run"], 200)
            return groups[-1].seq if groups else 0

    with ThreadPoolExecutor(1) as thread:  # playwright's own loop runs in this one
        return thread.submit(lambda: asyncio.run(ask())).result()


def memory(plan: Plan, minutes: float) -> Table:
    """Both stores are served at once: memory is looked at, not time."""
    columns = [Column("minutes", "minutes"), Column("events", "events /s")]
    columns += [Column(f"{what}_{when}", f"{words} {when}") for what, words in (("heap", "page's heap MiB"),
                ("nodes", "elements and texts"), ("process", "page's process MiB"), ("server", "server MiB"))
                for when in ("warm", "last")]  # fmt: skip
    columns += [Column("shift", "layout shift")]
    table = Table("live-memory", f"A page that is open for {minutes:g} minutes", columns, ours="", section="record")
    with ExitStack() as stack:
        server, browser = stack.enter_context(running()), stack.enter_context(browsing())
        opened: dict[str, tuple[Open, str]] = {}
        for store in ("SQLite", "PostgreSQL"):
            answering, url = stack.enter_context(fleet(server, store, CALM_RATE))
            for name, path in PAGES.items():
                opened[f"{store}, {name}"] = Open(browser, answering, path), url
        any_page = next(iter(opened.values()))[0].page
        any_page.wait_for_timeout(min(WARM_S, minutes * 20) * 1000)
        counted = {url: events_until_now(url) for _, url in opened.values()}
        began, samples = time.time(), {name: [one.sample()] for name, (one, _) in opened.items()}
        while time.time() < began + minutes * 60:
            any_page.wait_for_timeout(min(SAMPLE_S, minutes * 20) * 1000)
            for name, (one, _) in opened.items():
                samples[name].append(one.sample())
                plan.say(f"  {(time.time() - began) / 60:.0f} min, {name}: {_said(samples[name][-1])}")
        for name, (one, url) in opened.items():
            spent = time.time() - began
            table.add(name, {**_grown(samples[name]), "minutes": spent / 60,
                             "events": (events_until_now(url) - counted[url]) / spent,
                             "shift": one.page.evaluate("__seen.shift")})  # fmt: skip
    return table


def _said(sample: Sample) -> str:
    return ", ".join(f"{name} {value:,.1f}" for name, value in sample._asdict().items())


def _grown(samples: list[Sample]) -> Run:
    first, last = samples[0], samples[-1]
    found: Run = {}
    for field in Sample._fields:
        name = field.removesuffix("_mib")
        found[f"{name}_warm"], found[f"{name}_last"] = getattr(first, field), getattr(last, field)
    return found


def storm(plan: Plan, store: str, server: Server, seconds: float) -> Run:
    """One open page while 2,000 events a second are written."""
    with fleet(server, store, BUSY_RATE) as (answering, url), browsing() as browser:
        one = Open(browser, answering, "/")
        one.page.wait_for_timeout(10_000)
        one.page.evaluate("__seen.tasks.length = 0; __seen.shift = 0")
        one.told = one.fetched = 0
        before, events, began = (cpu_s(answering.pid), cpu_s(one.pid)), events_until_now(url), time.time()
        one.page.wait_for_timeout(seconds * 1000)
        spent, after = time.time() - began, (cpu_s(answering.pid), cpu_s(one.pid))
        tasks = one.page.evaluate("__seen.tasks")
        run: Run = {
            "events": (events_until_now(url) - events) / spent,
            "server": 100 * (after[0] - before[0]) / spent,
            "page": 100 * (after[1] - before[1]) / spent,
            "told": one.told / spent,
            "fetched": one.fetched / spent,
            "long": len(tasks),
            "longest": max(tasks, default=0),
            "shift": one.page.evaluate("__seen.shift"),
        }
        plan.say(f"  {store}: {run}")
        return run


def measure(plan: Plan) -> list[Table]:
    minutes = plan.minutes if plan.minutes is not None else QUICK_MINUTES if plan.quick else MINUTES
    columns = [
        Column("events", "events /s"),
        Column("server", "server's CPU %"),
        Column("page", "page's CPU %"),
        Column("told", "messages of the stream /s"),
        Column("fetched", "parts fetched /s"),
        Column("long", "tasks over 50 ms"),
        Column("longest", "longest ms"),
        Column("shift", "layout shift"),
    ]
    table = Table("live", "The page Now while runs start and end", columns, ours="", section="record")
    with running() as server:
        for store in ("SQLite", "PostgreSQL"):
            table.add(store, storm(plan, store, server, BUSY_S / 6 if plan.quick else BUSY_S))
    return [table, memory(plan, minutes)]
