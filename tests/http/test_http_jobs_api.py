"""Http jobs over the network: who may write them, where they may lead, and what of them is shown to whom."""

from __future__ import annotations

import pytest

from tests.api.conftest import Server
from tests.cli.terminal import Terminal
from tests.http.targets import target
from tests.waiting import ended

SECRET = {"Authorization": "Bearer very-secret"}


@pytest.fixture(scope="module")
def allowed():
    """A server on 127.0.0.2, which the configuration allows."""
    with target("127.0.0.2") as made:
        yield made


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    terminal = Terminal(folder)
    (folder / "wakeful.yaml").write_text("server: {outbound: {allow: [127.0.0.2]}}\n")
    yield Server(terminal, "--config", "wakeful.yaml")
    terminal.close()


@pytest.fixture(scope="module")
def token_for(server):
    """`token_for("viewer")`: a token of that role."""
    made = {}

    def get(role):
        if role not in made:
            made[role] = server.terminal.ask("token", "create", f"{role}-token", "--role", role).out.strip()
        return made[role]

    return get


@pytest.fixture
def operator(server, token_for):
    with server.client(token_for("operator")) as client:
        yield client


@pytest.fixture
def admin(server):
    with server.client(server.token) as client:
        yield client


def job(url, **payload):
    return {"manual": True, "kind": "http", "payload": {"url": url, **payload}}


def test_an_operator_writes_and_runs_an_http_job(operator, allowed):
    made = operator.put("/api/jobs/check", json=job(f"{allowed.url}/ok"))
    assert made.status_code == 201, made.text
    assert made.json()["payload"]["guarded"] is True
    run = ended(operator, operator.post("/api/jobs/check/run").json()["id"])
    assert (run["outcome"], run["output"]["body"]) == ("success", "all is well\n")
    assert operator.get(f"/api/runs/{run['id']}/log").text == "all is well\n"


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "http://2130706433/", "http://[::1]/", "http://localhost/"])
def test_an_address_that_is_plainly_private_is_refused_when_it_is_written(operator, url):
    answer = operator.put("/api/jobs/private", json=job(url))
    assert (answer.status_code, answer.json()["code"]) == (403, "outbound")
    assert "server.outbound.allow" in answer.json()["error"]
    assert operator.get("/api/jobs/private").status_code == 404


def test_a_redirect_to_a_private_address_is_refused_when_it_is_run(operator, allowed, site):
    operator.put("/api/jobs/sly", json=job(f"{allowed.url}/to?url={site.url}/ok"))
    run = ended(operator, operator.post("/api/jobs/sly/run").json()["id"])
    assert run["outcome"] == "error"
    assert "server.outbound.allow" in run["error"]
    assert site.seen == []


def test_a_caller_over_the_network_cannot_mark_an_address_as_trusted(operator, server, site):
    refused = operator.put("/api/jobs/bold", json=job(f"{site.url}/ok", guarded=False))
    assert refused.status_code == 403
    added = server.terminal.ask("add", "trusted", "--every", "1d", "--url", f"{site.url}/ok")
    assert added.code == 0, added.err
    before = operator.get("/api/jobs/trusted").json()
    assert "guarded" not in before["payload"]
    for change in ({"payload": {"url": f"{site.url}/echo"}}, {"payload": {"url": f"{site.url}/ok"}}):
        assert operator.patch("/api/jobs/trusted", json=change).status_code == 403
    assert operator.post("/api/jobs/trusted/run", json={"payload": {"url": f"{site.url}/echo"}}).status_code == 403
    assert operator.put("/api/jobs/trusted", json=job(f"{site.url}/echo")).status_code == 403
    assert operator.patch("/api/jobs/trusted", json={"timeout": "30s"}).status_code == 200
    run = ended(operator, operator.post("/api/jobs/trusted/run").json()["id"])
    assert run["outcome"] == "success"
    assert [one["path"] for one in site.seen] == ["/ok"]


def test_a_job_of_another_kind_does_not_become_a_trusted_request(operator, admin, site):
    made = admin.put("/api/jobs/sleeper", json={"manual": True, "kind": "report", "payload": {"url": f"{site.url}/ok"}})
    assert made.status_code == 201
    assert operator.patch("/api/jobs/sleeper", json={"kind": "http"}).status_code == 403


def test_secrets_are_shown_to_admins_alone(operator, admin, allowed):
    url = f"http://ann:very-secret@127.0.0.2:{allowed.port}/echo?api_key=very-secret&q=1"
    assert operator.put("/api/jobs/keys", json=job(url, headers=SECRET)).status_code == 201
    shown = operator.get("/api/jobs/keys").json()["payload"]
    assert shown["headers"] == {"Authorization": "***"}
    assert shown["url"] == f"http://ann:***@127.0.0.2:{allowed.port}/echo?api_key=***&q=1"
    assert admin.get("/api/jobs/keys").json()["payload"]["headers"] == SECRET
    run = ended(operator, operator.post("/api/jobs/keys/run").json()["id"])
    assert run["outcome"] == "success"
    assert "very-secret" not in operator.get(f"/api/runs/{run['id']}").text
    assert "very-secret" not in operator.get(f"/api/runs/{run['id']}/log").text
    assert allowed.seen[-1]["headers"]["Authorization"] == SECRET["Authorization"]


def test_what_is_hidden_cannot_be_written_back(operator, allowed):
    operator.put("/api/jobs/hidden", json=job(f"{allowed.url}/ok", headers=SECRET))
    shown = operator.get("/api/jobs/hidden").json()["payload"]
    answer = operator.patch("/api/jobs/hidden", json={"payload": {**shown, "url": "https://elsewhere.example/"}})
    assert answer.status_code == 400
    assert "hides a value" in answer.json()["error"]


def test_agents_write_no_requests_unless_that_is_configured(server, token_for, allowed):
    with server.client(token_for("agent")) as agent:
        answer = agent.put("/api/jobs/mine", json=job(f"{allowed.url}/ok"))
    assert answer.status_code == 403
    assert "server.outbound.agents" in answer.json()["error"]


def test_agents_write_requests_where_that_is_configured(tmp_path, allowed):
    terminal = Terminal(tmp_path)
    (tmp_path / "wakeful.yaml").write_text("server: {outbound: {allow: [127.0.0.0/30], agents: true}}\n")
    try:
        server = Server(terminal, "--config", "wakeful.yaml")
        token = terminal.ask("token", "create", "fox", "--role", "agent").out.strip()
        with server.client(token) as agent:
            assert agent.put("/api/jobs/mine", json=job(f"{allowed.url}/ok")).status_code == 201
            run = ended(agent, agent.post("/api/jobs/mine/run").json()["id"])
        assert run["outcome"] == "success"
    finally:
        terminal.close()


def test_no_secret_reaches_the_servers_log(server, operator, allowed):
    url = f"{allowed.url}/status/500?token=very-secret"
    operator.put("/api/jobs/loud", json=job(url, headers=SECRET))
    ended(operator, operator.post("/api/jobs/loud/run").json()["id"])
    assert "very-secret" not in server.process.until("loud run_")


@pytest.mark.parametrize("role", ["operator", "admin"])
def test_no_caller_can_send_the_environment_of_the_server_anywhere(request, allowed, role):
    client = request.getfixturevalue(role)
    name, spied = f"spy-{role}", {"url": f"{allowed.url}/echo/${{HOME}}", "references": True, "guarded": False}
    assert client.put(f"/api/jobs/{name}", json=job(f"{allowed.url}/echo")).status_code == 201
    for answer in (
        client.put(f"/api/jobs/{name}", json={"manual": True, "kind": "http", "payload": spied}),
        client.patch(f"/api/jobs/{name}", json={"payload": spied}),
        client.post(f"/api/jobs/{name}/run", json={"payload": spied}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_job")
        assert "over the network, write the values" in answer.json()["error"]
