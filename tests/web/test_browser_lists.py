"""Lists and regions while the world changes: nothing moves under a hand, nothing piles up, and the way back is kept."""

from __future__ import annotations

import pytest

from tests.web.browsing import in_browser, until

pytestmark = pytest.mark.promise("X28")
PAGES = (
    *("/", "/jobs", "/jobs/hello", "/jobs/new", "/runs", "/agents", "/agents/reporter", "/workflows"),
    *("/workflows/invoices", "/deliveries", "/monitors", "/alerts", "/nodes", "/events", "/more", "/simulate"),
)
SHIFTS = """() => { window.shifts = []; new PerformanceObserver((list) => {
  for (const one of list.getEntries()) if (!one.hadRecentInput) window.shifts.push([one.value,
    one.sources.map((source) => source.node?.outerHTML?.slice(0, 120) || "")]);
}).observe({ type: "layout-shift", buffered: true }); }"""


def api(browsing):
    return browsing.server.client(browsing.server.token)


def add(browsing, name, **fields):
    with api(browsing) as client:
        answer = client.post("/api/jobs", json={"name": name, "every": "6h", "command": ["true"], **fields})
        assert answer.status_code == 201, answer.text


@in_browser
def test_new_rows_wait_while_somebody_points_at_the_list_and_come_when_asked_for(browsing):
    page = browsing.tab("/runs?job=hello")
    page.wait_for_selector(".live[data-state=live]")
    page.wait_for_timeout(1200)
    first = page.locator("tbody tr").first
    first.hover()
    before = page.locator("tbody tr").count()
    name, place = first.get_attribute("data-id"), first.bounding_box()
    with api(browsing) as client:
        client.post("/api/jobs/hello/run", json={})
        page.get_by_role("button", name="1 new").wait_for()
    assert (first.get_attribute("data-id"), first.bounding_box()) == (name, place)
    page.get_by_role("button", name="1 new").click()
    until(page, "(count) => document.querySelectorAll('tbody tr').length > count", before)
    assert first.get_attribute("data-id") != name
    page.locator(".newer").wait_for(state="detached")


@in_browser
def test_new_runs_push_no_rows_and_wait_for_who_has_scrolled_into_the_list(browsing):
    names = [f"pours-{number}" for number in range(52)]
    for name in names:
        add(browsing, name)
    with api(browsing) as client:
        client.post("/api/jobs:run", json={"ids": names})
        page = browsing.tab("/runs")
        page.wait_for_selector(".live[data-state=live]")
        page.locator("tbody tr").nth(49).wait_for()
        page.wait_for_timeout(2500)
        page.evaluate(SHIFTS)
        page.wait_for_timeout(100)
        page.evaluate("window.shifts = []")
        for _ in range(3):
            client.post("/api/jobs:run", json={"ids": names[:12]})
            page.wait_for_timeout(1200)
        last = client.post(f"/api/jobs/{names[0]}/run", json={}).json()["id"]
        page.locator(f"tr[data-id={last}]", has_text="success").wait_for()
        numbers = page.eval_on_selector_all("tbody tr", "rows => rows.map((one) => one.dataset.id)")
        assert (len(numbers), numbers) == (50, sorted(set(numbers), reverse=True))
        shifts = page.evaluate("window.shifts")
        assert sum(value for value, _ in shifts) < 0.1, shifts  # columns may be some pixels wider

        page.evaluate("scrollTo(0, 600)")
        later = client.post(f"/api/jobs/{names[0]}/run", json={}).json()["id"]
        page.get_by_role("button", name="1 new").wait_for()
        assert page.eval_on_selector_all("tbody tr", "rows => rows.map((one) => one.dataset.id)") == numbers
        page.get_by_role("button", name="1 new").click()
        page.locator(f"tr[data-id={later}]").wait_for()
        assert page.evaluate("scrollY") < 100
        page.locator(".newer").wait_for(state="detached")


@in_browser
def test_what_runs_say_changes_no_width_and_no_height_of_the_rows(browsing):
    add(browsing, "terse")
    add(browsing, "talks", command=["sh", "-c", "echo many words that fill more than a line; sleep 0; exit 3"], retry=0)
    places = "[...document.querySelectorAll('#runs th, #runs tbody tr')].map((one) => one.getBoundingClientRect())"
    sizes = f"() => {places}.map((one) => [Math.round(one.x), Math.round(one.width), Math.round(one.height)])"
    with api(browsing) as client:
        client.post("/api/jobs/terse/run", json={})
        page = browsing.tab("/runs?job=terse")
        page.locator("tbody tr", has_text="success").wait_for()
        headings, row = page.evaluate(sizes)[:8], page.evaluate(sizes)[8][2]
        client.post("/api/jobs/talks/run", json={})
        page.goto(browsing.server.url + "/runs?job=talks")
        page.locator("tbody tr", has_text="error").wait_for()
    assert page.evaluate(sizes)[:8] == headings
    assert page.evaluate(sizes)[8][2] == row


@in_browser
def test_a_row_that_was_answered_goes_although_it_is_pointed_at(browsing):
    for name in ("asks-1", "asks-2"):
        add(browsing, name, approval=True)
    with api(browsing) as client:
        for name in ("asks-1", "asks-2"):
            client.post(f"/api/jobs/{name}/run", json={})
    page = browsing.tab()
    rows = [page.locator("#needs li", has_text=f"{name} asks:") for name in ("asks-1", "asks-2")]
    for row in rows:
        row.wait_for()
    rows[0].get_by_role("button", name="Reject").click()
    page.wait_for_selector("#undo:has-text('Rejected')")
    rows[0].wait_for(state="detached")
    assert rows[1].is_visible()
    rows[1].get_by_role("button", name="Reject").click()
    rows[1].wait_for(state="detached")


@in_browser
def test_the_way_back_restores_place_and_selection(browsing):
    for number in range(40):
        add(browsing, f"back-{number:02}")
    page = browsing.tab("/jobs?q=back-&order=name")
    page.get_by_label("Select back-30").check()
    page.get_by_label("Select back-31").check()
    page.get_by_role("link", name="back-35").scroll_into_view_if_needed()
    place = page.evaluate("scrollY")
    assert place > 0
    page.get_by_role("link", name="back-35").click()
    page.wait_for_url("**/jobs/back-35")
    page.go_back()
    page.wait_for_selector("[data-count]:has-text('2 selected')")
    assert page.url.endswith("/jobs?q=back-&order=name")
    assert page.get_by_label("Select back-30").is_checked()
    assert not page.get_by_label("Select back-29").is_checked()
    until(page, "(place) => Math.abs(scrollY - place) < 5", place)


@in_browser
def test_under_a_burst_a_region_is_fetched_once_a_second_nothing_shifts_and_nothing_piles_up(browsing):
    names = [f"burst-{number}" for number in range(40)]
    for name in names:
        add(browsing, name)
    with api(browsing) as client:
        client.post("/api/jobs:run", json={"ids": names})
    page = browsing.tab()
    page.wait_for_selector(".live[data-state=live]")
    page.wait_for_selector("#going:has-text('Nothing runs.')")
    page.wait_for_timeout(2500)
    counted: dict[str, int] = {}
    page.on("request", lambda one: counted.update({one.url: counted.get(one.url, 0) + 1}))
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    before = session.send("Memory.getDOMCounters")
    page.evaluate(SHIFTS)
    began = page.evaluate("performance.now()")
    with api(browsing) as client:
        for _ in range(4):
            client.post("/api/jobs:run", json={"ids": names})
            page.wait_for_timeout(2500)
    seconds = (page.evaluate("performance.now()") - began) / 1000
    regions = {url: number for url, number in counted.items() if "/ui/now/" in url}
    assert len(regions) >= 4
    assert max(regions.values()) <= seconds + 1, regions
    shifts = page.evaluate("window.shifts")
    assert sum(value for value, _ in shifts) < 0.05, shifts  # where runs pile up, the verdict says so in more words
    session.send("HeapProfiler.collectGarbage")
    after = session.send("Memory.getDOMCounters")
    assert after["jsEventListeners"] <= before["jsEventListeners"] + 20
    assert after["nodes"] <= before["nodes"] * 2 + 2_000


@in_browser
def test_arrow_keys_walk_the_marks_of_the_timeline_and_a_line_reads_them_out(browsing):
    with api(browsing) as client:
        client.post("/api/jobs/broken/run", json={})
    page = browsing.tab()
    page.wait_for_selector("#timeline td.cut a")
    page.wait_for_timeout(1500)
    marks = page.locator("#timeline td.cut a")
    marks.first.focus()
    line = page.locator("[data-aloud]")
    assert marks.first.get_attribute("aria-label") in line.inner_text()
    page.keyboard.press("ArrowRight")
    until(page, "document.activeElement === document.querySelectorAll('.tl td.cut a')[1]")
    assert marks.nth(1).get_attribute("aria-label") in line.inner_text()


@in_browser
def test_a_later_visit_costs_at_most_eight_kilobytes(browsing):
    page = browsing.tab()
    page.goto(browsing.server.url + "/more")
    page.goto(browsing.server.url + "/")
    sizes = page.evaluate("""() =>
        [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
        .filter((one) => !one.name.includes("/ui/")).map((one) => [one.name, one.transferSize])""")
    assert sum(size for _, size in sizes) <= 8 * 1024, sizes
    assert all(size == 0 for name, size in sizes if "/static/" in name), sizes


@pytest.mark.parametrize("how", ["320", "spacing", "zoom", "font"])
@in_browser
def test_narrow_spaced_zoomed_and_in_another_font_no_page_scrolls_sideways(browsing, how):
    width = {"320": 320, "spacing": 390, "zoom": 640, "font": 390}[how]
    page = browsing.tab("/", viewport={"width": width, "height": 800}, bypass_csp=True)
    style = {
        "spacing": "* { line-height: 1.5 !important; letter-spacing: .12em; word-spacing: .16em !important; }",
        "font": "* { font-family: 'DejaVu Sans', monospace !important; }",
    }.get(how)
    wide = {}
    for path in PAGES:
        page.goto(browsing.server.url + path)
        if style:
            page.add_style_tag(content=style)
        if (found := page.evaluate("document.documentElement.scrollWidth")) > width:
            wide[path] = found
    assert wide == {}


@in_browser
def test_what_is_still_being_counted_is_asked_for_until_it_is_there(browsing):
    page, answers = browsing.tab(), []
    text = '<section id="record" data-region="/ui/now/record" data-live="run" data-soon>Being counted.</section>'

    def answer(route):
        answers.append(route.request.url)
        if len(answers) <= 2:
            route.fulfill(status=200, content_type="text/html", body=text)
        else:
            route.continue_()

    page.route("**/ui/now/record", answer)
    page.reload()
    page.wait_for_selector("#record[data-soon]")
    page.wait_for_selector("#record:not([data-soon])")
    assert "lost today" in page.inner_text("#record")
    assert len(answers) >= 3
