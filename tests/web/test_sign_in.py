"""Signing in: a link once, a token, a cookie that only this server's pages use, and an end on the server."""

from __future__ import annotations

import re

import pytest

from tests.web.conftest import link

pytestmark = pytest.mark.promise("X28")


def test_serve_prints_a_link_that_signs_in(server):
    server.process.until("dashboard: ")
    printed = re.search(r"dashboard: (http://\S+/in/\S+)", server.process.log)
    assert printed is not None
    assert len(printed[1].rpartition("/")[2]) >= 12


def test_a_link_opens_the_first_page_and_leaves_the_address(server, visitor):
    person = visitor()
    answer = person.client.get(link(server))
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("wakeful=")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert "Secure" not in cookie
    assert person.get("/").status_code == 200


def test_a_link_works_once(server, visitor):
    address = link(server)
    assert visitor().client.get(address).status_code == 303
    second = visitor().client.get(address)
    assert second.status_code == 403
    assert "wakeful link" in second.text
    assert 'name="token"' in second.text


def test_without_a_cookie_pages_lead_to_signing_in_and_programs_get_401(server, visitor):
    person = visitor()
    for path in ("/", "/jobs", "/runs", "/agents", "/events"):
        answer = person.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/in"), path
    assert person.get("/jobs", Accept="application/json").status_code == 401
    assert person.get("/in").status_code == 200


def test_a_token_that_is_typed_in_signs_in_until_it_is_revoked(server, visitor):
    token = server.terminal.ask("token", "create", "ada", "--role", "operator").out.strip()
    person = visitor()
    answer = person.client.post("/in", data={"token": token})
    assert answer.status_code == 303
    assert "ada, operator" in person.get("/").text
    server.terminal.ask("token", "revoke", "ada", "-y")
    assert person.get("/").status_code == 303


@pytest.mark.parametrize("token", ["", "wk_nonsense", "x" * 5000])
def test_a_wrong_token_gets_a_page_that_says_so(visitor, token):
    answer = visitor().client.post("/in", data={"token": token})
    assert answer.status_code == 403
    assert "not valid" in answer.text


def test_the_token_of_an_agent_opens_no_page(server, visitor):
    token = server.terminal.ask("token", "create", "fox", "--role", "agent").out.strip()
    assert visitor().client.post("/in", data={"token": token}).status_code == 403
    answer = visitor().get("/", Authorization=f"Bearer {token}")
    assert answer.status_code == 403


def test_signing_out_ends_the_session_on_the_server(visitor):
    person = visitor("viewer")
    cookie = person.client.cookies["wakeful"]
    assert person.client.post("/out", data={}).status_code == 303
    again = visitor()
    again.client.cookies["wakeful"] = cookie
    assert again.get("/").status_code == 303


def test_a_cookie_from_another_site_changes_nothing(visitor):
    person = visitor("admin")
    answer = person.client.post("/api/jobs", json={"name": "x"}, headers={"Origin": "http://evil.example"})
    assert answer.status_code == 403
    assert person.client.post("/out", data={}, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403


def test_no_secret_of_a_link_is_in_the_log(server, visitor):
    code = link(server).rpartition("/")[2]
    visitor().client.get(f"/in/{code}")
    assert code not in server.process.log


def test_a_session_has_the_rights_of_its_link(server, visitor):
    viewer, operator = visitor("viewer"), visitor("operator")
    body = {"name": "by-page", "every": "6h", "kind": "http", "payload": {"url": "https://example.org/hook"}}
    assert viewer.client.post("/api/jobs", json=body).status_code == 403
    command = {"name": "by-page", "every": "6h", "command": ["true"]}
    assert operator.client.post("/api/jobs", json=command).status_code == 403
    assert operator.client.post("/api/jobs", json=body).status_code == 201
