"""Every page, in every theme and width, under the rules of axe: no findings."""

from __future__ import annotations

import pytest

from tests.web.browsing import findings, in_browser

pytestmark = pytest.mark.promise("X28")
PAGES = (
    *("/", "/?view=table", "/jobs", "/jobs?q=zzz", "/jobs/broken", "/jobs/new", "/jobs/hello/edit", "/runs", "/agents"),
    *("/agents/reporter", "/workflows", "/workflows/invoices", "/deliveries", "/monitors", "/alerts", "/nodes"),
    *("/events", "/more", "/find?q=he", "/jobs/none-of-this-name", "/simulate"),
)


def addresses(page, url):
    """The pages above, one run and one delivery."""
    run = page.evaluate("async () => (await (await fetch('/api/runs?job=broken')).json()).items[0].id")
    sent = page.evaluate("async () => (await (await fetch('/api/deliveries')).json()).items[0].id")
    return [url + path for path in (*PAGES, f"/runs/{run}", f"/deliveries/{sent}")]


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390), ("dark", 820)])
@in_browser
def test_axe_finds_nothing_on_any_page(browsing, scheme, width):
    page = browsing.tab(color_scheme=scheme, viewport={"width": width, "height": 900})
    found = {}
    for address in addresses(page, browsing.server.url):
        page.goto(address)
        if problems := findings(page):
            found[address] = problems
    assert found == {}


@in_browser
def test_axe_finds_nothing_in_dialogs_and_at_the_door(browsing):
    page = browsing.tab("/jobs/hello")
    page.get_by_role("button", name="Pause").click()
    page.wait_for_selector("dialog[open]")
    assert findings(page) == []
    page.keyboard.press("Escape")
    page.locator("body").press("?")
    page.wait_for_selector("dialog[open]")
    assert findings(page) == []
    page.context.clear_cookies()
    page.goto(browsing.server.url + "/in")
    assert findings(page) == []
    page.goto(browsing.server.url + "/in/used-or-never-there")
    assert findings(page) == []
