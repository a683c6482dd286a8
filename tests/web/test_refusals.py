"""What a person sees instead of a page, and what nobody gets around: roles, wrong addresses, cookies that are over."""

from __future__ import annotations

import html
import re

import httpx
import pytest

from tests.web.conftest import PAGE, link

pytestmark = pytest.mark.promise("X28")
NAMES = ("a/b", "deep/er/edit", "x/slots/2026-11-15T13:30Z", "50% off?", "q#frag", "a&b=c")


@pytest.fixture(scope="module", autouse=True)
def _jobs(server):
    for name in ("hello", *NAMES):
        server.terminal.ask("add", name, "--every", "1h", "--", "echo", "hi")


@pytest.mark.parametrize(
    "region", ["/ui/simulate/simulation?for=1h", "/ui/edit/preview?_name=hello", "/ui/new/preview?when=every day"]
)
def test_a_region_is_shown_to_those_alone_who_may_see_its_page(visitor, region):
    assert visitor("viewer").get(region).status_code == 403
    assert visitor("operator").get(region).status_code == 200


@pytest.mark.parametrize("region", ["/ui/job/job", "/ui/slot/slot?_name=hello", "/ui/run/run", "/ui/agent/agent"])
def test_a_region_without_what_its_address_names_is_not_there(visitor, region):
    assert visitor("viewer").get(region).status_code == 404


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/nothing", 404),
        ("/runs/", 404),
        ("/agents/a/b", 404),
        ("/jobs/hello/slots/yesterday", 400),
        ("/jobs/hello/slots/2026-11-15T13:30", 400),
        ("/jobs/hello/slots/0001-01-01T00:00Z", 400),
        ("/deliveries?cursor=zzz", 404),
    ],
)
def test_what_cannot_be_shown_is_said_on_a_page_and_to_programs_as_a_problem(visitor, path, status):
    person = visitor("viewer")
    answer = person.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
    assert len(re.findall(r"<h1>.+?</h1>", answer.text, re.DOTALL)) == 1
    assert re.search(r"<title>[●○◆■◷▲?] ", answer.text)
    plain = person.get(path, Accept="application/json")
    assert (plain.status_code, plain.headers["content-type"]) == (status, "application/problem+json")
    assert visitor().get(path).headers["location"] == "/in"


def test_near_names_are_offered_for_what_is_not_there(fleet):
    with httpx.Client(base_url=fleet.url, headers=PAGE, trust_env=False) as person:
        person.get(link(fleet, "viewer"))
        for path, near in (
            ("/jobs/helo", "/jobs/hello"),
            ("/agents/reportr", "/agents/reporter"),
            ("/workflows/invoice", "/workflows/invoices"),
        ):
            answer = person.get(path)
            assert answer.status_code == 404
            assert f'href="{near}"' in answer.text, path


@pytest.mark.parametrize("name", NAMES)
def test_every_job_has_a_page_whatever_its_name(visitor, name):
    person = visitor("admin")
    shown = person.client.get("/jobs", params={"q": name}).text
    address = re.search(rf'data-name="{re.escape(html.escape(name))}".*?<a href="(/jobs/[^"]+)"', shown, re.DOTALL)
    assert address is not None
    answer = person.get(address[1])
    assert f"<h1>{html.escape(name)} " in answer.text
    for region in re.findall(r'data-region="(/ui/job/[^"]+)"', answer.text):
        assert person.get(html.unescape(region)).status_code == 200
    form = re.search(r'href="(/jobs/[^"]+/edit)"', answer.text)
    assert f"Edit {html.escape(name)}" in person.get(form[1]).text


def test_only_admins_see_buttons_that_change_a_command(server, visitor):
    admin, operator = visitor("admin"), visitor("operator")
    body = {"name": "by-web", "every": "1h", "kind": "http", "payload": {"url": "https://example.org/hook"}}
    assert admin.client.post("/api/jobs", json=body).status_code == 201
    for name, person, seen in (("hello", admin, True), ("hello", operator, False), ("by-web", operator, True)):
        text = person.get(f"/jobs/{name}").text
        assert ("Delete this job" in text, f"/jobs/{name}/edit" in text) == (seen, seen)
        assert "Run now" in text
        assert person.get(f"/jobs/{name}/edit").status_code == (200 if seen else 403)
    assert operator.client.delete("/api/jobs/hello").status_code == 403


def test_looking_where_a_link_leads_does_not_use_it_up(server, visitor):
    address = link(server)
    person = visitor()
    assert person.client.head(address).status_code == 200
    assert "set-cookie" not in person.client.head(address).headers
    assert person.client.get(address).status_code == 303


def test_a_cookie_that_is_over_is_forgotten_and_keeps_nobody_with_a_link_or_token_out(server, visitor):
    token = server.terminal.ask("token", "create", "late", "--role", "viewer").out.strip()
    old = visitor("viewer").client.cookies["wakeful"]
    person = visitor()
    person.client.cookies["wakeful"] = old
    assert person.client.post("/out", data={}).status_code == 303
    for _ in range(15):  # tabs that were left open
        person.client.cookies.clear()
        person.client.cookies["wakeful"] = old
        answer = person.get("/jobs")
        assert (answer.status_code, answer.headers["location"]) == (303, "/in")
        assert "Max-Age=0" in answer.headers["set-cookie"]
    assert visitor().client.post("/in", data={"token": "wk_nonsense"}).status_code == 429
    assert visitor().client.post("/in", data={"token": token}).status_code == 303
    assert visitor().client.get(link(server)).status_code == 303
    again = visitor()
    again.client.cookies["wakeful"] = old
    answer = again.client.post("/out", data={})
    assert (answer.status_code, answer.headers["location"]) == (303, "/in")
