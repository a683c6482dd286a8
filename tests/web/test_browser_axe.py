"""Every page, in every theme and width, under the rules of axe: no findings."""

from __future__ import annotations

import pytest

from tests.web.browsing import findings, in_browser

pytestmark = pytest.mark.promise("X28")
PAGES = (
    *("/", "/?view=table", "/jobs", "/jobs?q=zzz", "/jobs/broken", "/jobs/new", "/jobs/hello/edit", "/runs", "/agents"),
    *("/agents/reporter", "/workflows", "/workflows/invoices", "/deliveries", "/monitors", "/alerts", "/nodes"),
    *("/events", "/more", "/find?q=he", "/jobs/none-of-this-name", "/simulate", "RUN", "WAITS", "DELIVERY", "SLOT"),
)
GROUPS = 4
LOOKS = [(scheme, width) for width in (1280, 820, 390) for scheme in ("light", "dark")]
NAMED = """async () => {
  const of = async (path) => (await (await fetch(path)).json()).items[0];
  const slots = await (await fetch('/api/jobs/offsite')).json();
  const [run, waits] = [await of('/api/runs?job=broken'), await of('/api/runs?job=asks')];
  const sent = await of('/api/deliveries');
  return { RUN: `/runs/${run.id}`, WAITS: `/runs/${waits.id}`, DELIVERY: `/deliveries/${sent.id}`,
    SLOT: `/jobs/offsite/slots/${slots.next_run_at || slots.monitor.expected_at}` };
}"""


@pytest.mark.parametrize("part", range(GROUPS))
@in_browser
def test_axe_finds_nothing_on_any_page_in_any_theme_and_width(browsing, part):
    page = browsing.tab()
    named = page.evaluate(NAMED)
    found = {}
    for path in PAGES[part::GROUPS]:
        page.goto(browsing.server.url + named.get(path, path))
        for scheme, width in LOOKS:
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 900})
            if problems := findings(page):
                found[path, scheme, width] = problems
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
