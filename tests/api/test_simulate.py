"""`GET /api/simulate`: what the jobs of a running server will do."""

from __future__ import annotations

import pytest


@pytest.mark.promise("X4")
def test_operators_simulate_and_viewers_may_not(server, client, token_for):
    body = {"name": "hourly", "cron": "0 * * * *", "tz": "UTC", "command": ["true"]}
    assert client.post("/api/jobs", json=body).status_code == 201
    with server.client(token_for("operator")) as operator:
        answer = operator.get("/api/simulate", params={"for": "1d", "seed": 3})
        assert answer.status_code == 200
        found = answer.json()
        assert list(found) == ["from", "to", "seed", "runs", "jobs", "lanes", "notes", "cost", "truncated"]
        assert (found["seed"], found["truncated"]) == (3, False)
        assert len([run for run in found["runs"] if run["job"] == "hourly"]) == 24
        assert operator.get("/api/simulate", params={"for": "400d"}).status_code == 400
        assert operator.get("/api/simulate", params={"for": "soon"}).status_code == 400
    with server.client(token_for("viewer")) as viewer:
        assert viewer.get("/api/simulate").status_code == 403
    assert client.get("/api/jobs/hourly").json()["last_run_at"] is None  # it was only simulated
