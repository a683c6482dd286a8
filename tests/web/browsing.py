"""A real Chromium in a thread of its own, and people who are signed in with it.

Playwright runs an event loop in the thread that uses it. Bodies of tests run there (`in_browser`), so that other tests
of this process can run loops of their own.
"""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import axe_playwright_python
from playwright.sync_api import Browser, Page, sync_playwright

from tests.api.conftest import Server
from tests.waiting import eventually
from tests.web.chromium import chromium

ARGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"
PATIENCE_MS = 60_000  # after which a wait is a failure; nothing takes so long on purpose
#: What a page says of an action goes after ten seconds: on a slow machine before a test has read it, or undone it.
STAYS = "setTimeout = ((real) => (what, ms, ...more) => real(what, ms === 1e4 ? 1e9 : ms, ...more))(setTimeout)"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


class Browsing:
    """A browser, and what went wrong on any of its pages."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._thread = ThreadPoolExecutor(1)
        self._browser: Browser | None = None
        self.wrong: list[str] = []

    def run(self, body, **fixtures):
        """Run the body of a test where the browser lives; pages it opened are closed."""
        return self._thread.submit(self._run, body, fixtures).result(timeout=800)

    def _run(self, body, fixtures):
        self.wrong = []
        if self._browser is None:
            self._playwright = sync_playwright().start()
            self._browser = self._playwright.chromium.launch(executable_path=chromium(), args=list(ARGS))
        try:
            body(self, **fixtures)
            assert self.wrong == []
        finally:
            for context in self._browser.contexts:
                context.close()

    def close(self) -> None:
        def stop():
            if self._browser is not None:
                self._browser.close()
                self._playwright.stop()

        self._thread.submit(stop).result(timeout=300)
        self._thread.shutdown()

    def tab(self, path: str = "/", role: str = "admin", **context) -> Page:
        """A page of somebody who is signed in with that role; what breaks on it fails the test."""
        context = {"viewport": {"width": 1280, "height": 900}, **context}
        assert self._browser is not None
        page = self._browser.new_context(**context).new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.add_init_script(STAYS)
        page.on("pageerror", lambda error: self.wrong.append(f"{page.url}: {error}"))
        page.on("console", self._heard)
        page.on("request", lambda request: self._asked(request.url))
        page.goto(self.link(role))
        if path != "/":
            page.goto(self.server.url + path)
        return page

    def link(self, role: str) -> str:
        """A new link, printed by the command line."""
        answer = self.server.terminal("link", "--role", role)
        assert answer.code == 0, answer.err
        return answer.out.strip()

    def _heard(self, message) -> None:
        if "Content Security Policy" in message.text or "Content-Security-Policy" in message.text:
            self.wrong.append(message.text)

    def _asked(self, url: str) -> None:
        if not url.startswith((self.server.url, "data:", "blob:")):
            self.wrong.append(f"a request to {url}")


def in_browser(test):
    """Run the body of a test in the thread of the browser; its first argument is the fixture `browsing`."""

    @functools.wraps(test)
    def wrapper(browsing, **fixtures):
        browsing.run(test, **fixtures)

    return wrapper


def findings(page: Page) -> list[str]:
    """What axe has against the page as it is shown: rule and element."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("(tags) => axe.run(document, {runOnly: {type: 'tag', values: tags}})", RULES)
    return [f"{one['id']}: {node['html'][:160]}" for one in found["violations"] for node in one["nodes"][:3]]


def until(page: Page, script: str, argument: object = None) -> object:
    """What the script finds in the page, once that is true.

    It is asked again and again from here. Playwright's `wait_for_function` lets the page itself evaluate the text,
    which our Content Security Policy forbids: it passes only where the first look succeeds. A house test refuses it.
    """
    return eventually(lambda: page.evaluate(script, argument), bool, script)


#: Whether everything that the page knows to have changed has been fetched again.
SETTLED = """async () => (await import(document.querySelector("script[type=module]").src)).regions
  .every((one) => !one.dirty && !one.busy && !one.timer)"""


def settled(page: Page) -> None:
    """Wait until the page is live and every region of it shows what the server had to say when it became so."""
    page.wait_for_selector(".live[data-state=live]")
    until(page, SETTLED)
