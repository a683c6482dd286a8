"""The dashboard in a real Chromium: what people do with it, and what it says while the world changes."""

from __future__ import annotations

import re

import pytest

from tests.waiting import eventually
from tests.web.browsing import in_browser, settled

pytestmark = pytest.mark.promise("X28")


def api(browsing):
    return browsing.server.client(browsing.server.token)


def add(browsing, name, **fields):
    with api(browsing) as client:
        answer = client.post("/api/jobs", json={"name": name, "every": "6h", "command": ["true"], **fields})
        assert answer.status_code == 201, answer.text


@in_browser
def test_the_link_signs_in_and_signing_out_ends_it(browsing):
    page = browsing.tab()
    assert page.url == browsing.server.url + "/"
    assert re.match(r"[●○◆■◷▲?] Now", page.title())
    page.goto(browsing.server.url + "/more")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/in")
    page.goto(browsing.server.url + "/jobs")
    assert page.url.endswith("/in")


@in_browser
def test_what_settles_is_seen_without_reloading_and_without_the_page_asking_by_itself(browsing):
    add(browsing, "seen-live")
    page = browsing.tab()
    page.add_init_script("setInterval = ((real) => (what, ms) => ms === 6e4 || real(what, ms))(setInterval)")
    page.goto(f"{browsing.server.url}/jobs/seen-live")
    settled(page)
    with api(browsing) as client:
        client.post("/api/jobs/seen-live/run", json={})
    page.wait_for_selector("#runs td:has-text('success')")
    assert page.locator(".live").inner_text() == "live"


@in_browser
def test_pause_takes_a_note_and_is_undone_with_a_key(browsing):
    add(browsing, "to-pause")
    page = browsing.tab("/jobs/to-pause")
    page.get_by_role("button", name="Pause").click()
    page.get_by_label("Why (optional)").fill("holiday")
    page.locator("dialog").get_by_role("button", name="Pause").click()
    page.wait_for_selector("#job .state:has-text('paused')")
    assert "holiday" in page.locator("#job").inner_text()
    assert page.locator("#undo button").inner_text() == "Undo"
    page.locator("body").press("u")
    page.wait_for_selector("#job .state:has-text('idle')")
    page.wait_for_selector("#actions:has-text('undone by')")


@in_browser
def test_a_removal_is_confirmed_by_name_and_undone_on_the_next_page(browsing):
    add(browsing, "to-remove")
    page = browsing.tab("/jobs/to-remove")
    page.get_by_role("button", name="Delete this job").click()
    page.locator("dialog input").fill("to-remove")
    page.locator("dialog").get_by_role("button", name="Delete this job").click()
    page.wait_for_url("**/jobs")
    page.locator("#undo").get_by_role("button", name="Undo").click()
    page.wait_for_selector("#undo:has-text('to-remove')")
    page.goto(browsing.server.url + "/jobs/to-remove")
    assert "to-remove" in page.locator("h1").inner_text()


@in_browser
def test_a_selection_says_what_it_will_do_and_all_that_match_are_paused_and_resumed(browsing):
    for letter in "abc":
        add(browsing, f"bulk-{letter}")
    page = browsing.tab("/jobs?q=bulk-")
    assert page.get_by_role("button", name=re.compile("^select all 3$")).is_visible()
    page.get_by_label("Select bulk-b").check()
    page.wait_for_selector("[data-preview]:has-text('1 would stop')")
    page.get_by_role("button", name=re.compile("^select all")).click()
    page.wait_for_selector("[data-count]:has-text('3 selected')")
    page.locator(".picked").get_by_role("button", name="Pause").click()
    page.wait_for_selector("dialog[open]")
    assert "3 will change" in page.locator("dialog").inner_text()
    page.locator("dialog").get_by_role("button", name="Pause").click()
    page.wait_for_selector("#undo:has-text('Paused 3')")
    page.locator("tbody .state", has_text="paused").nth(2).wait_for()
    page.locator("#undo").get_by_role("button", name="Undo").click()
    page.locator("tbody .state", has_text="idle").nth(2).wait_for()


@in_browser
def test_many_are_run_and_what_cannot_run_is_said_before(browsing):
    add(browsing, "many-on")
    add(browsing, "many-off", enabled=False)
    page = browsing.tab("/jobs?q=many-o")
    page.get_by_role("button", name=re.compile("^select all")).click()
    page.locator(".picked").get_by_role("button", name="Run now").click()
    page.wait_for_selector("dialog[open]")
    assert "1 cannot: many-off is disabled" in page.locator("dialog").inner_text()
    page.locator("dialog").get_by_role("button", name="Run now").click()
    page.wait_for_selector("#undo:has-text('Started 1, 1 refused')")


@in_browser
def test_a_new_job_shows_its_next_times_while_it_is_typed_and_refused_text_stays(browsing):
    page = browsing.tab("/jobs/new")
    page.get_by_label("Name").fill("typed here")
    page.get_by_label("When").fill("every fooday")
    page.wait_for_selector("#preview:has-text('is not understood')")
    page.get_by_label("Command").fill("echo 'two words'")
    page.get_by_role("button", name="Add").click()
    page.wait_for_selector("[data-refused]:visible")
    assert page.get_by_label("When").input_value() == "every fooday"
    page.get_by_label("When").fill("weekdays at 9am")
    page.wait_for_selector("#preview:has-text('Weekdays at 09:00')")
    assert page.locator("#preview ol li").count() == 5
    page.get_by_role("button", name="Add").click()
    page.wait_for_url("**/jobs/typed%20here")
    with api(browsing) as client:
        job = client.get("/api/jobs/typed here").json()
    assert (job["schedule"], job["payload"]["argv"]) == ("weekdays at 09:00, Europe/Berlin", ["echo", "two words"])


@in_browser
def test_an_edit_says_what_was_and_what_it_becomes(browsing):
    add(browsing, "to-edit", timeout="5m")
    page = browsing.tab("/jobs/to-edit/edit")
    assert page.inner_text("[data-twin]") == "wakeful edit to-edit --when 'every 6 hours'"
    page.get_by_label("Retry").fill("10s, 1m")
    assert page.inner_text("[data-twin]") == "wakeful edit to-edit --retry '10s, 1m'"
    page.get_by_label("Retry").fill("")
    page.get_by_label("Timeout").fill("10m")
    page.wait_for_selector("[data-diff]:has-text('10m')")
    assert page.locator("[data-diff]").inner_text().replace("\n", " ").endswith("5m → 10m")
    page.get_by_role("button", name="Save").click()
    page.wait_for_url("**/jobs/to-edit")
    with api(browsing) as client:
        assert client.get("/api/jobs/to-edit").json()["options"]["timeout"] == "10m"
        page.goto(browsing.server.url + "/jobs/to-edit/edit")
        assert client.patch("/api/jobs/to-edit", json={"retry": 1}).status_code == 200
    page.get_by_label("Timeout").fill("20m")
    page.get_by_role("button", name="Save").click()
    page.wait_for_selector("[data-refused]:visible")
    assert page.get_by_label("Timeout").input_value() == "20m", "somebody changed it since: what was typed stays"


@in_browser
def test_find_leads_to_jobs_runs_and_agents(browsing):
    with api(browsing) as client:
        run = client.get("/api/runs?job=hello").json()["items"][0]["id"]
    page = browsing.tab()
    for text, place in (("hel", "/jobs/hello"), (run, f"/runs/{run}"), ("reporter", "/")):
        page.locator("body").press("/")
        page.locator("form.find input").fill(text)
        page.wait_for_selector("#hits a")
        if text != "reporter":
            page.locator("form.find input").press("Enter")
            page.wait_for_url(f"**{place}")
    assert page.locator("#hits a[href='/agents/reporter']").count() == 1


@in_browser
def test_a_question_is_answered_and_the_answer_is_counted(browsing):
    page = browsing.tab()
    row = page.locator("#needs li", has_text="asks asks:")
    row.get_by_role("button", name="Approve").click()
    page.wait_for_selector("#undo:has-text('Approved')")
    row.wait_for(state="detached")
    with api(browsing) as client:
        assert client.get("/api/actions?limit=1").json()["items"][0]["what"] == "approve"


@in_browser
def test_a_job_that_asks_is_answered_on_its_own_page(browsing):
    add(browsing, "asks-here", command=["true"], approval=True)
    with api(browsing) as client:
        client.post("/api/jobs/asks-here/run", json={})
    page = browsing.tab("/jobs/asks-here")
    assert page.locator("#job").get_by_role("button", name="Reject").is_visible()
    page.locator("#job").get_by_role("button", name="Approve").click()
    page.wait_for_selector("#undo:has-text('Approved asks-here')")
    page.wait_for_selector("#runs td:has-text('success')")
    assert page.locator("#job").get_by_role("button", name="Approve").count() == 0


def to_runs(page):
    """Two keys, of which the second counts for a moment after the first."""
    page.keyboard.press("g")
    page.keyboard.press("r")
    return page.url


@in_browser
def test_every_action_can_be_done_with_the_keyboard_alone(browsing):
    add(browsing, "by-keys")
    page = browsing.tab("/jobs?q=by-keys")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the page"
    page.keyboard.press("Enter")
    page.locator("body").press("j")
    page.wait_for_selector("[data-id]:focus-within")
    page.keyboard.press("x")
    page.wait_for_selector("[data-count]:has-text('1 selected')")
    page.get_by_role("button", name="Pause").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.textContent") == "Pause", "a dialog gives the focus back"
    eventually(lambda: to_runs(page), lambda place: place.endswith("/runs"), "the page of runs")
    page.locator("body").press("?")
    page.wait_for_selector("dialog:has-text('Keys')")


@in_browser
def test_keys_lead_from_a_row_to_why_and_to_the_actions_of_what_is_selected(browsing):
    add(browsing, "by-key-why")
    page = browsing.tab("/jobs?q=by-key-why")
    page.locator("body").press("j")
    page.wait_for_selector("[data-id]:focus-within")
    page.keyboard.press("x")
    page.wait_for_selector("[data-count]:has-text('1 selected')")
    page.keyboard.press(".")
    assert page.evaluate("document.activeElement.textContent") == "Run now"
    page.locator("body").press("y")
    page.wait_for_url("**/jobs/by-key-why")


@in_browser
def test_a_viewer_sees_no_button_and_the_api_refuses_the_same(browsing):
    page = browsing.tab("/jobs/hello", role="viewer")
    assert page.locator("main button:visible").count() == 0
    for path in ("/", "/jobs", "/alerts", "/agents/reporter", "/deliveries"):
        page.goto(browsing.server.url + path)
        assert page.locator("main button:visible").count() == 0, path
    for address in ("jobs/hello/run", "jobs/hello/pause", "jobs:pause", "agents/reporter/wake"):
        status = page.evaluate(
            "(path) => fetch(path, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{}'})"
            ".then((answer) => answer.status)", f"/api/{address}")  # fmt: skip
        assert status == 403, address
    page.goto(browsing.server.url + "/jobs/new")
    assert "this page is for operators" in page.locator("h1").inner_text()


@in_browser
def test_a_run_leads_to_its_error_and_shows_its_attempts(browsing):
    with api(browsing) as client:
        run = client.get("/api/runs?job=broken").json()["items"][0]["id"]
    page = browsing.tab(f"/runs/{run}")
    page.get_by_role("button", name="Next error").click()
    assert page.evaluate("getSelection().toString()") == "error: no disk"
    page.get_by_role("searchbox", name="Find in the output").fill("working")
    page.keyboard.press("Enter")
    assert page.evaluate("getSelection().toString()") == "working"
    page.get_by_role("button", name="Retry").click()
    page.wait_for_selector("#chain:has-text('attempt 2')")


@in_browser
def test_events_are_shown_as_they_come_and_can_be_held(browsing):
    page = browsing.tab("/events?stream=run")
    page.wait_for_selector("[data-quiet]:visible")
    hello = page.locator("#tail li", has_text="hello")
    with api(browsing) as client:  # again and again: the first may come before the page listens
        eventually(lambda: client.post("/api/jobs/hello/run", json={}) and hello.count(), bool, "an event")
    page.get_by_role("button", name="Hold").click()
    assert page.locator(".live").inner_text() == "held"


@in_browser
def test_the_theme_that_was_chosen_stays(browsing):
    page = browsing.tab("/more", color_scheme="light")
    page.get_by_role("button", name="Theme: Dark").click()
    page.goto(browsing.server.url + "/")
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(17, 20, 23)"


@in_browser
def test_a_token_that_is_typed_in_signs_in(browsing):
    token = browsing.server.terminal("token", "create", "typist", "--role", "viewer").out.strip()
    page = browsing.tab("/more")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/in")
    page.get_by_role("textbox", name="Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector(".who:has-text('typist, viewer')")


@in_browser
def test_what_a_run_prints_is_shown_while_it_is_written_and_a_selection_in_it_stays(browsing):
    gate = browsing.server.terminal.pipe("written")
    add(browsing, "writes", command=["sh", "-c", f"echo first; read line < {gate.path}; echo second; sleep 600"])
    with api(browsing) as client:
        run = client.post("/api/jobs/writes/run", json={}).json()["id"]
        page = browsing.tab(f"/runs/{run}")
        page.wait_for_selector("#log:has-text('first')")
        page.evaluate("getSelection().setBaseAndExtent(log.firstChild, 0, log.firstChild, 5)")
        gate.write("go on")
        page.wait_for_selector("#log:has-text('second')")
        assert page.evaluate("getSelection().toString()") == "first"
        assert page.locator("#run").inner_text().count("running") > 0
        client.post(f"/api/runs/{run}/cancel", json={})
    page.wait_for_selector("#run:has-text('cancelled')")
    page.wait_for_selector("#output:not([data-written])", state="attached")
    assert page.locator("#output").inner_text().count("second") == 1
