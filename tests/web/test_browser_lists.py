"""Lists and regions while the world changes: nothing moves under a hand, nothing piles up, and the way back is kept."""

from __future__ import annotations

import pytest

from tests.waiting import ended, eventually
from tests.web.browsing import in_browser, settled, until

pytestmark = pytest.mark.promise("X28")
PAGES = (
    *("/", "/jobs", "/jobs/hello", "/jobs/new", "/runs", "/agents", "/agents/reporter", "/workflows"),
    *("/workflows/invoices", "/deliveries", "/monitors", "/alerts", "/nodes", "/events", "/more", "/simulate"),
)
#: From now on: what moves up or down, with by how many pixels. Columns may become some pixels wider.
MOVES = """() => { window.moves = []; new PerformanceObserver((list) => {
  for (const one of list.getEntries()) for (const { node, previousRect, currentRect } of one.sources)
    if (Math.abs(currentRect.y - previousRect.y) > 1)
      window.moves.push([currentRect.y - previousRect.y, node?.outerHTML?.slice(0, 120) || ""]);
}).observe({ type: "layout-shift" }); }"""
#: As after an answer that took long, a region is not asked for again for some seconds.
SLOW = """async () => { for (const one of (await import(document.querySelector("script[type=module]").src)).regions)
  one.next = performance.now() + 5000; }"""
#: How long each region was left alone between one answer and the next question, in milliseconds.
PAUSES = """() => {
  const found = {}, ended = {};
  for (const { name, startTime, responseEnd } of performance.getEntriesByType("resource")) {
    if (!name.includes("/ui/now/")) continue;
    (found[name] ||= []).push(...(ended[name] ? [startTime - ended[name]] : []));
    ended[name] = responseEnd;
  }
  return found;
}"""


def api(browsing):
    return browsing.server.client(browsing.server.token)


def add(browsing, name, **fields):
    with api(browsing) as client:
        answer = client.post("/api/jobs", json={"name": name, "every": "6h", "command": ["true"], **fields})
        assert answer.status_code == 201, answer.text


@in_browser
def test_new_rows_wait_while_somebody_points_at_the_list_and_come_when_asked_for(browsing):
    page = browsing.tab("/runs?job=hello")
    settled(page)
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
        page.locator("tbody tr").nth(49).wait_for()
        page.locator("tbody tr", has_text="success").nth(49).wait_for()
        settled(page)
        page.evaluate(MOVES)
        for _ in range(3):
            client.post("/api/jobs:run", json={"ids": names[:12]})
            last = client.post(f"/api/jobs/{names[-1]}/run", json={}).json()["id"]
            page.locator(f"tr[data-id={last}]", has_text="success").wait_for()
        settled(page)
        numbers = page.eval_on_selector_all("tbody tr", "rows => rows.map((one) => one.dataset.id)")
        assert (len(numbers), numbers) == (50, sorted(set(numbers), reverse=True))
        assert page.evaluate("window.moves") == []

        page.evaluate("scrollTo(0, 600)")
        later = client.post(f"/api/jobs/{names[-1]}/run", json={}).json()["id"]
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
def test_a_row_that_was_answered_goes_although_it_is_pointed_at_and_the_server_is_slow(browsing):
    add(browsing, "asks-slowly", approval=True)
    with api(browsing) as client:
        client.post("/api/jobs/asks-slowly/run", json={})
    page = browsing.tab()
    row = page.locator("#needs li", has_text="asks-slowly asks:")
    row.wait_for()
    settled(page)
    page.route("**/api/runs/**", lambda route: (page.evaluate(SLOW), route.continue_()))
    row.get_by_role("button", name="Reject").click()
    row.wait_for(state="detached")
    assert page.locator("#needs").is_visible()


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
    page = browsing.tab(bypass_csp=True)
    # Where runs pile up, the verdict says so in more words: on a machine that is slow enough it takes another line.
    page.add_style_tag(content="#verdict { height: 12em; overflow: hidden }")
    page.wait_for_selector("#going:has-text('Nothing runs.')")
    settled(page)
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    before = session.send("Memory.getDOMCounters")
    page.evaluate(MOVES)
    page.evaluate("performance.clearResourceTimings()")
    with api(browsing) as client:
        for _ in range(4):
            client.post("/api/jobs:run", json={"ids": names[:-1]})
            ended(client, client.post(f"/api/jobs/{names[-1]}/run", json={}).json()["id"])
            page.wait_for_selector("#going:has-text('Nothing runs.')")
            settled(page)
    pauses = page.evaluate(PAUSES)
    assert len(pauses) >= 4
    assert all(len(found) >= 3 and min(found) > 990 for found in pauses.values()), pauses
    moves = page.evaluate("window.moves")
    assert [node for _, node in moves if node.startswith("<section")] == []  # rows of the timeline may change places
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
    settled(page)
    marks = page.locator("#timeline td.cut a")
    waiting = []
    page.route("**/static/more.*", lambda route: waiting.append(route))  # noqa: PLW0108 - playwright marks functions
    marks.first.focus()
    line = page.locator("[data-aloud]")
    assert marks.first.get_attribute("aria-label") in line.inner_text()
    page.keyboard.press("ArrowRight")
    eventually(lambda: page.evaluate("true") and waiting, bool, "loading what keys do")
    waiting[0].continue_()
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
        answers.append(route)
        if len(answers) <= 2:
            route.fulfill(status=200, content_type="text/html", body=text)
        elif len(answers) > 3:
            route.continue_()

    page.route("**/ui/now/record", answer)
    page.reload()
    page.wait_for_selector("#record[data-soon]")
    eventually(lambda: page.evaluate("true") and answers, lambda found: len(found) == 3, "a third question")
    answers[2].continue_()
    page.wait_for_selector("#record:not([data-soon])")
    assert "lost today" in page.inner_text("#record")
