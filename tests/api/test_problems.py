"""How the server says no: one shape, and nothing of a fault but an id."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from http import HTTPStatus
from pathlib import Path
from typing import Literal

import httpx
import pytest
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError

from wakeful import Scheduler
from wakeful.domains.agents.route_models import SAYS_SOMETHING
from wakeful.errors import ChangedSinceRead, InvalidTrigger, JobExists, JobNotFound, StoreFull
from wakeful.routing import problems
from wakeful.routing.problems import PROBLEM_TYPE, TITLES, ApiError, Problem, _invalid, answers
from wakeful.routing.settings import ServerSettings
from wakeful.surfaces.api.app import create_app
from wakeful.surfaces.api.guard import Guard

SECRET = "hunter2"  # noqa: S105 - a secret that is none


def asked(tmp_path, fails):
    """The answer of a route that fails so, through everything that stands before it."""

    async def main():
        async with Scheduler(f"sqlite:///{tmp_path / 'wakeful.db'}") as scheduler:
            settings = ServerSettings()
            app = create_app(scheduler, settings)

            @app.get("/fails")
            async def route(number: int = 1) -> None:
                raise fails

            transport = httpx.ASGITransport(Guard(app, settings))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.get("/fails"), await client.get("/fails?number=many")

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (JobNotFound("There is no job 'a'."), 404, "not_found"),
        (JobExists("There is one."), 409, "exists"),
        (ChangedSinceRead("It changed."), 412, "changed"),
        (InvalidTrigger("Never.", "cron"), 400, "invalid_trigger"),
        (StoreFull("The disk is full."), 503, "store_full"),
        (ApiError(418, "teapot", "No coffee.", headers={"X-Pot": "tea"}, pot="small"), 418, "teapot"),
    ],
)
def test_an_error_of_the_library_knows_its_own_answer(tmp_path, error, status, code):
    answer, _ = asked(tmp_path, error)
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM_TYPE)
    data = Problem.model_validate(answer.json())
    assert (data.status, data.code, data.error, data.detail) == (status, code, str(error), str(error))
    assert answer.json().get("field") == getattr(error, "field", None)
    assert answer.headers.get("x-pot") == ("tea" if status == 418 else None)


def test_a_status_is_called_what_http_calls_it():
    renamed = {413, 414, 422}  # between versions of the interpreter
    wrong = {status: name for status, name in TITLES.items() if name != HTTPStatus(status).phrase}
    assert wrong.keys() <= renamed


def test_a_fault_shows_an_id_and_the_log_has_the_rest(tmp_path, caplog):
    with caplog.at_level(logging.ERROR, "wakeful.api"):
        answer, _ = asked(tmp_path, RuntimeError(SECRET))
    assert (answer.status_code, answer.headers["content-type"]) == (500, PROBLEM_TYPE)
    assert SECRET not in answer.text
    assert "Traceback" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    [record] = [record for record in caplog.records if answer.json()["id"] in record.getMessage()]
    assert SECRET in record.getMessage()
    assert record.exc_info is not None


def test_what_is_wrong_with_a_request_is_reported_part_by_part(tmp_path):
    _, answer = asked(tmp_path, RuntimeError())
    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid"
    assert [error["field"] for error in answer.json()["errors"]] == ["number"]
    assert answer.json()["error"] == "number must be a whole number."


class Wanted(BaseModel):
    text: str = Field("a", min_length=1, max_length=3)
    choice: Literal["a", "b"] = "a"
    number: float = Field(1, gt=0, allow_inf_nan=False)
    items: list[int] = Field([], max_length=1)
    said: str = Field("a", pattern=SAYS_SOMETHING)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"text": ""}, "text must have at least 1 character."),
        ({"text": "long"}, "text must have at most 3 characters."),
        ({"text": "\ud800"}, "text must be a text of valid Unicode characters."),
        ({"choice": "c"}, "choice must be 'a' or 'b'."),
        ({"number": 0}, "number must be more than 0.0."),
        ({"number": float("inf")}, "number must be a finite number."),
        ({"items": [1, 2]}, "items must have at most 1 item."),
        ({"said": "  "}, "said must have a visible character."),
    ],
)
def test_a_wrong_value_is_answered_with_what_it_must_be(given, sentence):
    with pytest.raises(ValidationError) as wrong:
        Wanted.model_validate(given)
    found = [{**one, "loc": ("body", *one["loc"])} for one in wrong.value.errors()]
    answer = asyncio.run(_invalid(None, RequestValidationError(found)))
    assert json.loads(answer.body)["error"] == sentence


def test_every_route_may_answer_what_any_route_may():
    assert set(answers(404)) == {400, 401, 403, 404, 422, 429, 500, 503}
    assert all(one["model"] is Problem for one in answers().values())


@pytest.mark.parametrize(("status", "title"), [(422, "Unprocessable Entity"), (413, "Request Entity Too Large")])
def test_an_answer_has_the_same_title_on_every_version_of_python(tmp_path, monkeypatch, status, title):
    monkeypatch.setattr(HTTPStatus(status), "phrase", "What another version of Python calls it")
    answer, _ = asked(tmp_path, ApiError(status, "refused", "No."))
    assert answer.json()["title"] == title
    assert answers(status)[status]["description"] == title


def test_every_status_that_is_answered_has_a_title():
    sources = Path(problems.__file__).parents[1].rglob("*.py")
    pattern = re.compile(r"(?:ApiError|problem|answers)\(\s*(\d{3}(?:, \d{3})*)|status(?:_code)? = (\d{3})\b")
    found = [match[1] or match[2] for path in sources for match in pattern.finditer(path.read_text())]
    statuses = {int(status) for text in found for status in text.split(", ")}
    assert len(statuses) > 10
    assert statuses <= set(TITLES)


@pytest.mark.parametrize(
    ("method", "path", "body", "sentence"),
    [
        ("GET", "/api/work?status=nope", None, "status must be 'ready', 'claimed', 'done' or 'failed'."),
        ("GET", f"/api/jobs/{'a' * 1001}", None, "ref must have at most 1000 characters."),
        ("POST", "/api/jobs:pause", '{"all": "x"}', "all must be true."),
        ("POST", "/api/jobs", r'{"name": "\ud800"}', "name must be a text of valid Unicode characters."),
        ("POST", "/api/jobs", f'{{"name": {"9" * 5000}}}', "The body has a whole number of more than 4,300 digits."),
        ("POST", "/api/work", '{"agent": "a", "title": ""}', "title must have at least 1 character."),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_request_is_said_without_the_words_of_the_framework(
    tmp_path, method, path, body, sentence
):
    async def main():
        async with Scheduler(f"sqlite:///{tmp_path / 'wakeful.db'}") as scheduler:
            token = await scheduler.create_token("ada", "admin")
            settings = ServerSettings()
            transport = httpx.ASGITransport(Guard(create_app(scheduler, settings), settings))
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
                return await client.request(method, path, content=body)

    answer = asyncio.run(main())
    assert (answer.json()["error"], answer.json()["detail"]) == (sentence, sentence)
