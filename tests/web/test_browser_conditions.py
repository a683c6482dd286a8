"""The dashboard where things go wrong: a dead server, hostile text, no script, small screens, changes of clocks."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from tests.api.conftest import Server
from tests.web.browsing import in_browser, settled
from wakeful.kernel.views.timeline import Timeline
from wakeful.surfaces.web.now import ticks_of
from wakeful.surfaces.web.rendering import Times

pytestmark = pytest.mark.promise("X28")
HOSTILE = '<script>document.title="owned"</script>"><img src=x onerror=alert(1)>\u202eevil\x1b[31mred\x1b[0m\u200b😀'
PAGES = (
    *("/", "/jobs", "/jobs/hello", "/runs", "/agents", "/agents/reporter", "/workflows", "/workflows/invoices"),
    *("/deliveries", "/monitors", "/alerts", "/nodes", "/events", "/more", "/find?q=he", "/jobs/new", "/simulate"),
    "/jobs/broken/edit",
)


def api(browsing):
    return browsing.server.client(browsing.server.token)


@in_browser
def test_without_script_every_page_reads_every_link_works_and_no_button_is_shown(browsing):
    page = browsing.tab(java_script_enabled=False)
    seen: set[str] = set()
    for path in PAGES:
        answer = page.goto(browsing.server.url + path)
        assert answer is not None
        assert answer.status == 200, path
        assert page.locator("h1").count() == 1, path
        assert page.locator("button:visible").count() == 0, path
        seen |= {one.get_attribute("href") or "" for one in page.locator("a[href^='/']").all()[:12]}
    for path in sorted(seen):
        answer = page.request.get(browsing.server.url + path, headers={"Accept": "text/html"})
        assert answer.status == 200, path


@in_browser
def test_hostile_text_in_every_field_is_text(browsing):
    with api(browsing) as client:
        body = {"name": "hostile <b>x</b>", "every": "6h", "command": ["sh", "-c", f"printf '%s' '{HOSTILE}'; exit 3"]}
        assert client.post("/api/jobs", json={**body, "retry": 0}).status_code == 201
        job = client.get(f"/api/jobs?q={'hostile'}").json()["items"][0]["id"]
        run = client.post(f"/api/jobs/{job}/run", json={}).json()["id"]
        client.post("/api/agents/reporter/events", json={"text": HOSTILE})
        client.post(f"/api/jobs/{job}/pause", json={"note": HOSTILE})
    page = browsing.tab(f"/runs/{run}")
    page.wait_for_selector("#run:has-text('error')")
    for path in ("/", "/jobs", f"/jobs/{job}", f"/jobs/{job}/edit", f"/runs/{run}", "/runs", "/agents/reporter",
                 "/more", "/find?q=hostile", f"/jobs?q={'%3Cscript%3E'}"):  # fmt: skip
        page.goto(browsing.server.url + path)
        settled(page)
        assert page.title() != "owned", path
        assert page.locator("img").count() == 0, path
        text = page.content()
        assert path.endswith("/edit") or "\u202e" not in text, path  # a form holds what is stored, as it is
        assert path.endswith("/edit") or "\x1b" not in text, path
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1"), path
    page.goto(f"{browsing.server.url}/runs/{run}")
    assert "red" in page.locator("#log .t-bad").inner_text(), "colours of a terminal become classes"


@in_browser
def test_the_longest_name_fits_every_page_and_width(browsing):
    name = "W" * 200
    with api(browsing) as client:
        assert client.post("/api/jobs", json={"name": name, "every": "6h", "command": ["true"]}).status_code == 201
        client.post(f"/api/jobs/{name}/run", json={})
        client.post(f"/api/jobs/{name}/pause", json={"note": name})
    page, wide = browsing.tab(), {}
    for path in (
        "/",
        "/jobs?q=WW",
        f"/jobs/{name}",
        f"/jobs/{name}/edit",
        "/runs",
        "/find?q=WW",
        "/more",
        f"/jobs/{name}x",
    ):
        page.goto(browsing.server.url + path)
        for width in (1280, 820, 390):
            page.set_viewport_size({"width": width, "height": 800})
            if (found := page.evaluate("document.documentElement.scrollWidth")) > width:
                wide[path[:12], width] = found
    assert wide == {}


@in_browser
def test_on_a_phone_there_is_a_bar_at_the_bottom_and_nothing_is_cut_off(browsing):
    page = browsing.tab(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    for path in PAGES:
        page.goto(browsing.server.url + path)
        assert page.evaluate("[innerWidth, document.documentElement.scrollWidth]") == [390, 390], path
    bar = page.locator("nav").bounding_box()
    assert bar is not None
    assert round(bar["y"] + bar["height"]) == 800
    assert [one.inner_text() for one in page.locator("nav a:visible").all()] == [
        "Now",
        "Jobs",
        "Runs",
        "Agents",
        "More",
    ]
    for path in ("/", "/jobs", "/jobs/new", "/simulate"):
        page.goto(browsing.server.url + path)
        touched = "nav a:visible, main .btn:visible, main select:visible, main form.edit input:visible"
        sizes = [one.bounding_box() for one in page.locator(touched).all()]
        assert all(box["height"] >= 44 for box in sizes), path
        boxes = [one.bounding_box() for one in page.locator("input[type=checkbox]:visible").all()]
        assert all(box["height"] >= 24 for box in boxes), path


@in_browser
def test_dark_is_the_systems_choice_unless_somebody_chose(browsing):
    page = browsing.tab(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 20, 23)"


@in_browser
def test_the_first_visit_takes_three_requests_and_less_than_fifty_kilobytes(browsing):
    page = browsing.tab()
    answers = []
    fresh = page.context.browser.new_context()
    fresh.add_cookies(page.context.cookies())
    first = fresh.new_page()
    first.on("response", lambda answer: answers.append(answer))  # noqa: PLW0108 - playwright marks functions
    first.goto(browsing.server.url + "/")
    first.wait_for_selector(".live[data-state=live]")
    loaded = [one for one in answers if one.request.resource_type in ("document", "stylesheet", "script", "image")]
    assert len(loaded) == 3, [one.url for one in loaded]
    plain = {one.request.resource_type: len(one.body()) for one in loaded}
    assert plain["document"] <= 32 * 1024
    assert plain["stylesheet"] <= 24_000
    assert plain["script"] <= 12_000
    assert sum(one.request.sizes()["responseBodySize"] for one in loaded) < 20_000


@in_browser
def test_what_a_person_points_at_selects_or_types_stays_while_the_world_changes(browsing):
    page = browsing.tab("/jobs?q=hello")
    page.wait_for_selector(".live[data-state=live]")
    page.get_by_label("Select hello").check()
    page.locator("form.filters input[type=search]").fill("hel")
    with api(browsing) as client:
        for _ in range(3):
            client.post("/api/jobs/hello/pause", json={})
            with page.expect_response("**/ui/jobs/**"):
                client.post("/api/jobs/hello/resume", json={})
    assert page.get_by_label("Select hello").is_checked()
    assert page.locator("form.filters input[type=search]").input_value() == "hel"


@in_browser
def test_a_killed_server_is_said_and_the_page_is_whole_again_by_itself(browsing):
    page, events = browsing.tab(), browsing.tab("/events")
    for one in (page, events):
        one.wait_for_selector(".live[data-state=live]")
    server = browsing.server
    server.process.kill()
    page.wait_for_selector("#verdict:has-text('lost the server')")
    assert page.title().startswith("?")
    assert page.locator(".live").inner_text() == "no server"
    again = Server(server.terminal, "--config", "wakeful.yaml", "--port", str(server.port))
    page.locator("#lost").wait_for(state="detached")
    page.wait_for_selector(".live[data-state=live]")
    server.process = again.process
    page.wait_for_selector("#verdict h1")
    assert not page.title().startswith("?")
    events.wait_for_selector("link[rel=icon]:not([href*=icon-unsure])", state="attached")
    assert not events.title().startswith("?"), "also on a page of which no part is fetched again"


@in_browser
def test_a_server_that_is_silent_is_lost_within_twenty_seconds(browsing):
    page = browsing.tab()
    page.clock.install()
    page.add_init_script("""EventSource = class extends EventTarget { constructor() {
      super(); setTimeout(() => this.dispatchEvent(new MessageEvent("hello", { data: "{}" }))); } close() {} }""")
    page.goto(browsing.server.url + "/jobs")
    page.wait_for_selector(".live[data-state=live]")
    page.clock.run_for(15_500)
    assert "lost the server" in page.locator("main").inner_text()


@in_browser
def test_what_was_to_come_and_is_past_is_fetched_again_without_an_event(browsing):
    page = browsing.tab()
    page.clock.install()
    page.goto(browsing.server.url + "/jobs/hello")
    settled(page)
    with page.expect_request("**/ui/job/ahead?*"):
        page.evaluate("""() => { for (const one of document.querySelectorAll("#ahead time[data-until]"))
          one.dataset.until = new Date(Date.now() + 3000).toISOString(); }""")
        page.clock.run_for(5_000)


@in_browser
def test_times_are_those_of_the_readers_zone_with_the_jobs_own_beside_them(browsing):
    with api(browsing) as client:
        body = {"name": "in-tokyo", "cron": "0 9 * * *", "tz": "Asia/Tokyo", "command": ["true"]}
        assert client.post("/api/jobs", json=body).status_code == 201
    page = browsing.tab("/jobs/in-tokyo", timezone_id="Asia/Dubai")
    page.wait_for_selector("#ahead li:has-text('04:00')")
    assert "09:00 in Asia/Tokyo" in page.locator("#ahead li").first.inner_text()
    page.goto(browsing.server.url + "/jobs")
    assert "04:00" in page.locator("tr", has_text="in-tokyo").inner_text()
    assert "Times are Asia/Dubai" in page.locator("footer").inner_text()
    plain = browsing.tab("/jobs/in-tokyo", timezone_id="Asia/Dubai", java_script_enabled=False)
    assert "Asia/Dubai" not in plain.content(), "without script times are the server's, and it is named"


@in_browser
def test_a_clock_that_is_wrong_does_not_make_countdowns_wrong(browsing):
    page = browsing.tab("/jobs/hello")
    page.clock.install(time=datetime.now(UTC) + timedelta(minutes=5))
    page.goto(browsing.server.url + "/jobs/hello")
    page.clock.run_for(3000)
    shown = page.evaluate(
        "() => [...document.querySelectorAll('#ahead [data-until]')].map((one) => [one.dataset.until, one.textContent])"
    )
    assert len(shown) == 5
    for until, words in shown:
        left = (datetime.fromisoformat(until) - datetime.now(UTC)).total_seconds()
        hours, minutes = (int((re.search(rf"(\d+) {unit}", words) or [0, 0])[1]) for unit in ("h", "min"))
        assert abs(left - hours * 3600 - minutes * 60) < 200, (until, words)


@pytest.mark.parametrize(
    ("now", "hours"),
    [(datetime(2026, 3, 29, 10, tzinfo=UTC), 23), (datetime(2026, 10, 25, 10, tzinfo=UTC), 25)],
)
def test_on_a_day_on_which_clocks_change_the_hours_of_the_timeline_are_those_of_the_wall(now, hours):
    times = Times(int(now.timestamp() * 1000), "Europe/Berlin")
    day = hours * 3_600_000
    line = Timeline(times.midnight(), times.now, times.midnight() + day, [], 0, [])
    ticks = ticks_of(line, 2, times)
    hours_shown = [times.plain(at) for at in ticks]
    assert hours_shown == [f"{hour:02}:00" for hour in range(2 if hours == 25 else 4, 24, 2)]
    assert all(re.fullmatch(r"\d\d:00", times.plain(at)) for at in ticks)


def test_a_week_of_the_timeline_has_a_line_at_every_midnight():
    times = Times(int(datetime(2026, 11, 18, 12, tzinfo=UTC).timestamp() * 1000), "UTC")
    reach = 7 * 86_400_000
    ticks = ticks_of(Timeline(times.now - reach, times.now, times.now + reach, [], 0, []), 24, times)
    assert [times.day(at) for at in (ticks[0], ticks[-1])] == ["Thu 12", "Wed 25"]
    assert len(ticks) == 14
