"""Nothing a request says is passed over, on any route; and `GET /` says where things are."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from wakeful.domains import domains
from wakeful.kernel.domain import load_routers
from wakeful.routing.strict import Strict
from wakeful.surfaces.api.app import ROUTES

CRON = {"type": "cron", "expression": "0 9 * * 1-5"}


def operations(client):
    """Every operation there is: its method and an address."""
    for path, described in client.get("/api/openapi.json").json()["paths"].items():
        for method in described:
            yield method.upper(), path.replace("{", "").replace("}", "")


def test_every_route_refuses_a_query_parameter_it_does_not_have(client):
    found = list(operations(client))
    assert len(found) > 30
    for method, path in found:
        # Completing asks the callback token first; others send to pings and hooks what they always send.
        if path != "/api/runs/run_id/complete" and not path.startswith(("/ping/", "/hooks/")):
            answer = client.request(method, path, params={"surprise": "1"})
            assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "surprise"), (method, path)


def test_every_route_refuses_a_field_it_does_not_have(client):
    for method, path in operations(client):
        if method != "GET" and not path.startswith(("/ping/", "/hooks/")):  # takes any text
            answer = client.request(method, path, json={"surprise": 1})
            assert answer.status_code == 422, (method, path)
            assert answer.json()["error"].startswith("Unknown field 'surprise'; "), (method, path)


@pytest.mark.parametrize(
    ("method", "path", "body", "sentence"),
    [
        ("GET", "/api/jobs?statuss=idle", None, "Unknown parameter 'statuss'; did you mean 'status'?"),
        ("POST", "/api/jobs", {"name": "a", "enabld": True}, "Unknown field 'enabld'; did you mean 'enabled'?"),
        ("POST", "/api/jobs:pause", {"filter": {"knd": "x"}}, "Unknown field 'knd' in filter; did you mean 'kind'?"),
        ("POST", "/api/jobs/a/resume", {"note": "x"}, "Unknown field 'note'; this takes no body."),
        ("POST", "/api/jobs/a/resume", [1], "This takes no body."),
        (
            "PUT",
            "/api/schedule/a",
            {"prompt": "x", "schedule": {**CRON, "expresion": "y"}},
            "Unknown field 'expresion' in schedule; did you mean 'expression'?",
        ),
        (
            "PUT",
            "/api/schedule/a",
            {"prompt": "x", "schedule": CRON, "sessionConfig": {"persistSesion": True}},
            "Unknown field 'persistSesion' in sessionConfig; did you mean 'persistSession'?",
        ),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_known_one(client, method, path, body, sentence):
    answer = client.request(method, path, json=body) if body is not None else client.request(method, path)
    assert (answer.status_code, answer.json()["code"], answer.json()["error"]) == (422, "invalid", sentence)


def test_all_unknown_names_of_a_request_are_listed_at_once(client):
    answer = client.post("/api/jobs", json={"name": "a", "every": "6h", "enabld": True, "onwer": "me"})
    assert [one["field"] for one in answer.json()["errors"]] == ["enabld", "onwer"]
    assert client.get("/api/jobs/a").status_code == 404


def test_an_empty_body_is_taken_where_no_body_is_needed(client):
    assert client.post("/api/jobs/nothing/resume", json={}).status_code == 404


def test_a_caller_without_a_token_learns_nothing_about_parameters(server):
    with server.client() as anonymous:
        assert anonymous.get("/api/jobs", params={"surprise": "1"}).status_code == 401


def models(kind):
    """A model and the models of its fields."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield kind
        for field in kind.model_fields.values():
            yield from models(field.annotation)
    for part in getattr(kind, "__args__", ()):
        yield from models(part)


def test_every_request_body_is_a_strict_model():
    routers = [
        *(module.router for module in ROUTES),
        *(router for domain in domains() for router in load_routers(domain)),
    ]
    fields = [getattr(route, "body_field", None) for router in routers for route in router.routes]
    found = [model for field in fields if field is not None for model in models(field.field_info.annotation)]
    assert len(found) > 5
    assert [model for model in found if not issubclass(model, Strict)] == []


def test_the_front_says_where_things_are_and_nothing_else(server):
    with server.client() as anonymous:
        found = anonymous.get("/").json()
        assert {
            "docs",
            "health",
            "jobs",
            "approvals",
            "events",
            "ledger",
            "deliveries",
            "agents",
            "work",
            "workflows",
        } <= found.keys()
        for name, path in found.items():
            if path.startswith("/") and name != "events":
                assert anonymous.get(path).status_code in (200, 401), name
        page = anonymous.get("/", headers={"Accept": "text/html"})
        assert (page.status_code, page.headers["location"]) == (303, "/in")
        assert anonymous.get("/", headers={"Host": "elsewhere.example"}).status_code == 403
        assert server.token not in anonymous.get("/").text


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ('{"every": "6h"}', "name is required."),
        ('{"name": "a", "every": "6h", "command": "ls"}', "command must be a list."),
        ('{"name": "a", "every": "6h", "enabled": "yes"}', "enabled must be true or false."),
        ("[]", "The body must be an object."),
        ('{"name": "a",', "The body is not JSON: expecting property name enclosed in double quotes at character 14."),
    ],
    ids=["missing", "no list", "no flag", "no object", "no JSON"],
)
def test_a_wrong_field_is_refused_in_plain_words(client, body, sentence):
    answer = client.post("/api/jobs", content=body, headers={"Content-Type": "application/json"})
    assert answer.json()["error"] == sentence


def test_a_wrong_address_or_method_is_answered_with_what_there_is(client):
    assert client.get("/api/job").json()["error"] == "There is nothing at this address: / lists what there is."
    answer = client.delete("/api/jobs").json()["error"]
    assert answer == "DELETE is not possible at this address: use GET, HEAD, POST."
