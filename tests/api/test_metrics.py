"""`/metrics`: what it says, to whom, what a scrape costs; the dashboard and alert rules ask for nothing else."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_families
from prometheus_client.parser import text_string_to_metric_families as families

from tests.api.conftest import Server
from tests.api.promql import Parser
from tests.cli.terminal import Terminal
from tests.service.cost import Steps
from tests.service.real_time import real
from tests.store.postgres_server import postgres_url
from tests.waiting import eventually
from wakeful import Every, Scheduler
from wakeful.kernel.model.measures import RunCost
from wakeful.kernel.views import census

ROOT = Path(__file__).parents[2]
#: Every metric of the contract with its labels.
PROMISED = {
    "wakeful_runs": {"outcome", "kind"},
    "wakeful_run_duration_seconds": set(),
    "wakeful_start_lateness_seconds": set(),
    "wakeful_jobs": {"status"},
    "wakeful_due_jobs": set(),
    "wakeful_running_runs": set(),
    "wakeful_lane_used": {"lane"},
    "wakeful_lane_size": {"lane"},
    "wakeful_outbox_pending": {"connector"},
    "wakeful_outbox_oldest_seconds": {"connector"},
    "wakeful_alerts_open": {"kind"},
    "wakeful_node_up": {"node"},
    "wakeful_last_turn_timestamp_seconds": set(),
    "wakeful_store_bytes": set(),
    "wakeful_cost": {"agent"},
    "wakeful_slots_unaccounted": set(),
}
FILE = """
store: {store}
server:
  metrics: {metrics}
connectors:
  file: {{type: file, path: sent.txt}}
jobs:
  bell: {{every: 1s, command: [echo, ding], lanes: {{slow: 3}}}}
  broken: {{every: 1s, command: ["false"]}}
  sleeper: {{every: 1h, command: [sleep, "60"]}}
"""


class Scraped(dict):
    """The samples of an answer by name, each a list of (labels, value)."""

    def __init__(self, text, parse=families):
        super().__init__()
        self.families = {}
        for family in parse(text):
            self.families[family.name] = family
            for sample in family.samples:
                self.setdefault(sample.name, []).append((sample.labels, sample.value))

    def value(self, name, **labels):
        return sum(value for found, value in self.get(name, ()) if labels.items() <= found.items())


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def server(request, tmp_path_factory):
    terminal = Terminal(tmp_path_factory.mktemp("metrics"))
    store = "wakeful.db" if request.param == "sqlite" else postgres_url()
    (terminal.folder / "wakeful.yaml").write_text(FILE.format(store=store, metrics="{}"))
    running = Server(terminal)
    running.token = terminal.ask("token", "create", "prometheus", "--role", "viewer", "--json").json["token"]
    yield running
    terminal.close()


@pytest.fixture
def client(server):
    with server.client(server.token) as client:
        yield client


def scraped(client):
    answer = client.get("/metrics")
    assert answer.status_code == 200, answer.text
    return Scraped(answer.text)


@pytest.mark.promise("X11")
def test_metrics_say_what_the_scheduler_did_and_how_it_is(server, client):
    ended = "wakeful_runs_total"
    eventually(lambda: scraped(client).value(ended, outcome="success", kind="command") > 1, bool)
    eventually(lambda: scraped(client).value(ended, outcome="error", kind="command") > 0, bool)
    operator = server.terminal.ask("token", "create", "operator", "--role", "operator", "--json").json["token"]
    with server.client(operator) as other:
        assert other.post("/api/jobs/sleeper/run").status_code == 202
    eventually(lambda: scraped(client).value("wakeful_running_runs") >= 1, bool)
    found = scraped(client)
    assert found.families.keys() >= PROMISED.keys()
    assert found.value("wakeful_jobs") == 3
    assert found.value("wakeful_lane_size", lane="slow") == 3
    assert found.value("wakeful_node_up", node="here") == 1
    assert found["wakeful_outbox_pending"] == [({"connector": "file"}, 0)]
    assert found.value("wakeful_store_bytes") > 10_000
    assert found.value("wakeful_slots_unaccounted") == 0
    runs = found.value(ended)
    assert found.value("wakeful_run_duration_seconds_count") == runs
    assert found.value("wakeful_start_lateness_seconds_bucket", le="+Inf") >= runs


@pytest.mark.promise("X11")
def test_metrics_have_the_labels_that_are_promised_and_no_names_of_jobs(client):
    eventually(lambda: scraped(client).value("wakeful_runs_total") > 1, bool)
    found = scraped(client)
    for name, labels in PROMISED.items():
        own = {label for sample in found.families[name].samples for label in sample.labels} - {"le"}
        assert own <= labels, name
    values = {value for samples in found.values() for labels, _ in samples for value in labels.values()}
    assert not values & {"bell", "broken", "sleeper"}
    assert set(found.families) == set(PROMISED)


def test_a_scrape_is_answered_as_open_metrics_where_that_is_accepted(client):
    kind = "application/openmetrics-text"
    answer = client.get("/metrics", headers={"Accept": f"{kind}; version=1.0.0"})
    assert answer.headers["content-type"].startswith(kind)
    assert Scraped(answer.text, open_families).families.keys() >= PROMISED.keys()
    assert client.get("/metrics").headers["content-type"].startswith("text/plain; version=")


def test_metrics_need_the_token_of_a_viewer(server, client):
    with server.client() as nobody:
        assert nobody.get("/metrics").status_code == 401


def test_open_metrics_need_no_token_and_name_as_many_jobs_as_was_asked_for(tmp_path):
    terminal = Terminal(tmp_path)
    text = FILE.format(store="wakeful.db", metrics="{open: true, per_job: 1}")
    (tmp_path / "wakeful.yaml").write_text(text)
    try:
        with Server(terminal).client() as client:
            eventually(lambda: scraped(client).value("wakeful_job_runs_total") > 0, bool)
            eventually(lambda: len({labels["kind"] for labels, _ in scraped(client)["wakeful_runs_total"]}) == 1, bool)
            found = scraped(client)
            names = {labels["job"] for labels, _ in found["wakeful_job_runs_total"]}
            assert len(names) == 1
            assert names < {"bell", "broken"}
    finally:
        terminal.close()


@real
async def test_functions_of_a_program_are_counted_as_python_whatever_they_are_called(tmp_path):
    async with Scheduler(f"sqlite:///{tmp_path / 'wakeful.db'}") as scheduler:
        measuring = scheduler.server_side.measuring()

        @scheduler.job(Every("1h"))
        def nightly_secret_report(run):
            return 1

        await scheduler.start()
        run = await scheduler.run_job("nightly_secret_report")
        await scheduler.wait_for_run(run)
        [runs] = [one for one in await measuring.measures() if one.name == "wakeful_runs_total"]
        assert dict(runs.values) == {("success", "python"): 1}


@real
async def test_costs_of_agents_are_summed_up_as_they_are_committed(tmp_path):
    async with Scheduler(f"sqlite:///{tmp_path / 'wakeful.db'}") as scheduler:
        measuring = scheduler.server_side.measuring()

        def spend(tx, context):
            tx.events.count(RunCost("reporter", 0.25))
            tx.events.emit("job", {"type": "held", "by": "test"})

        await scheduler.transact(spend)
        await scheduler.transact(spend)
        with pytest.raises(ZeroDivisionError):
            await scheduler.transact(lambda tx, context: (spend(tx, context), 1 / 0))
        [cost] = [one for one in await measuring.measures() if one.name == "wakeful_cost_total"]
        assert dict(cost.values) == {("reporter",): 0.5}


def fill(path, jobs):
    """Copies of one job, as many as asked for, without telling anybody."""
    with closing(sqlite3.connect(path)) as database, database:
        for table, key in (("jobs", "id"), ("job_state", "job_id")):
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            chosen = [
                f"{key} + n" if name == key else "name || '-' || n" if name == "name" else name for name in columns
            ]
            numbers = f"WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT {jobs - 1})"  # noqa: S608 - our own number
            copies = f"SELECT {', '.join(chosen)} FROM {table}, c"  # noqa: S608 - our own names
            database.execute(f"{numbers} INSERT INTO {table} ({', '.join(columns)}) {copies}")


@pytest.mark.promise("X11")
@real
async def test_a_scrape_of_100_000_jobs_costs_what_one_of_a_few_thousand_does(tmp_path, monkeypatch):
    steps, taken = Steps(monkeypatch), {}
    for jobs in (4_000, 100_000):
        path = tmp_path / f"{jobs}.db"
        async with Scheduler(f"sqlite:///{path}") as scheduler:
            await scheduler.add_job("job", Every("365d"), kind="command", payload={"argv": ["true"]})
        fill(path, jobs)
        async with Scheduler(f"sqlite:///{path}") as scheduler:
            measuring = scheduler.server_side.measuring()
            await measuring.measures()
            if measuring._census._round is not None:
                await measuring._census._round
            steps.since_last()
            found = {one.name: one for one in await measuring.measures()}
            taken[jobs] = steps.since_last()
            assert found["wakeful_jobs"].values["idle",] == jobs
            await measuring.end()
    assert taken[100_000] <= taken[4_000] * 1.05
    assert taken[100_000] < census.STEP * 60


@pytest.mark.promise("X11")
@real
async def test_many_jobs_are_counted_again_once_the_last_count_is_old(tmp_path, monkeypatch):
    monkeypatch.setattr(census, "STEP", 2)
    monkeypatch.setattr(census, "ROUND_MS", 0)
    async with Scheduler(f"sqlite:///{tmp_path / 'wakeful.db'}") as scheduler:
        for number in range(5):
            await scheduler.add_job(f"job-{number}", Every("1h"), kind="command", payload={"argv": ["true"]})
        measuring = scheduler.server_side.measuring()
        counts = await measuring._census.counts()
        assert counts == {"idle": 5}
        await scheduler.pause_job("job-3")
        await measuring._census.counts()
        await measuring._census._round
        assert await measuring._census.counts() == {"idle": 4, "paused": 1}
        await measuring.end()


# -- what is shown of them --------------------------------------------------------------------------------------------


def expressions():
    dashboard = json.loads((ROOT / "examples/grafana/dashboard.json").read_text(encoding="utf-8"))
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield pytest.param(target["expr"], id=f"{panel['title']}-{target['refId']}")
    rules = yaml.safe_load((ROOT / "examples/grafana/alerts.yaml").read_text(encoding="utf-8"))
    for rule in rules["groups"][0]["rules"]:
        yield pytest.param(rule["expr"], id=rule["alert"])


@pytest.mark.promise("X11")
@pytest.mark.parametrize("expression", list(expressions()))
def test_every_expression_of_the_dashboard_and_the_alert_rules_asks_for_what_there_is(expression):
    used = Parser(expression).parse()
    assert used
    for metric, labels in used:
        name = metric.removesuffix("_total").removesuffix("_bucket")
        assert labels <= PROMISED[name] | ({"le"} if metric.endswith("_bucket") else set()), expression


@pytest.mark.parametrize(
    "wrong", ["sum(wakeful_jobs", "rate(wakeful_runs_total[5m]) >", 'wakeful_jobs{status="}', "5 %"]
)
def test_what_is_no_expression_is_refused_by_the_parser_of_these_tests(wrong):
    with pytest.raises(AssertionError):
        Parser(wrong).parse()


def test_the_dashboard_can_be_loaded():
    dashboard = json.loads((ROOT / "examples/grafana/dashboard.json").read_text(encoding="utf-8"))
    panels = dashboard["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all({"title", "type", "gridPos", "targets", "datasource"} <= panel.keys() for panel in panels)
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)
    [variable] = dashboard["templating"]["list"]
    assert {panel["datasource"]["uid"] for panel in panels} == {f"${{{variable['name']}}}"}


def test_every_alert_rule_says_what_is_wrong():
    rules = yaml.safe_load((ROOT / "examples/grafana/alerts.yaml").read_text(encoding="utf-8"))["groups"][0]["rules"]
    assert all({"alert", "expr", "for", "labels", "annotations"} == rule.keys() for rule in rules)
    assert all(rule["annotations"]["summary"].endswith(".") for rule in rules)
