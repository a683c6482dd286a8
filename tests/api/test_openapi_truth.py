"""The API is as it describes itself: requests made from the description, good ones and bad, against a real server.

Every check there is, in every phase, and at least 50 requests for each operation. A group of operations has a server of
its own: the checks present wrong tokens, and after ten of them an address has to wait.
"""

from __future__ import annotations

import os
import socket

import httpx
import pytest
import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import Failure
from schemathesis.engine import Status, events, from_schema
from schemathesis.openapi.checks import EnsureResourceAvailability, RejectedPositiveData, UseAfterFree

from tests.api.conftest import Server
from tests.cli.terminal import PATIENCE, Terminal

EXAMPLES = int(os.environ.get("WAKEFUL_API_EXAMPLES", "15"))
SEED = int(os.environ.get("WAKEFUL_API_SEED", "0"))  # 0: always the same requests

GROUPS = {
    "jobs": ["list_jobs", "create_job", "get_job", "delete_job", "explain_job", "upcoming", "list_job_runs"],
    "changes": ["put_job", "patch_job"],
    "removals": ["delete_job", "delete_schedule"],  # beside what was made they are sent for that alone
    "orders": ["run_job", "pause_job", "resume_job", "pause_jobs", "resume_jobs", "run_jobs", "preview_jobs"],
    "actions": ["list_actions", "undo_action", "get_hold", "hold_all", "release_all"],
    "slots": ["get_ledger", "get_slot", "simulate"],
    "runs": ["list_runs", "list_approvals", "get_run", "get_run_log", "explain_run", "cancel_run", "retry_run"],
    "verdicts": ["approve_run", "reject_run", "complete_run"],
    "schedules": [
        "list_schedules", "get_schedule", "put_schedule", "patch_schedule", "delete_schedule", "run_schedule",
    ],
    "monitors": ["ping", "get_ping", "ping_what", "get_ping_what", "rotate_key"],
    "workflows": [
        "list_workflows", "get_workflow", "list_workflow_runs", "list_workflow_events", "list_workflow_inputs",
        "list_workflow_fixes",
    ],
    "workflow orders": [
        "run_workflow", "pause_workflow", "resume_workflow", "settle_workflow", "approve_workflow", "reject_workflow",
        "publish_event", "skip_input", "skip_event", "rerun_input", "replay_event", "replay_parked",
        "drain_workflow", "remove_workflow",
    ],
    "server": [
        "livez", "readyz", "healthz", "me", "get_metrics", "get_stats", "get_verdict", "list_nodes", "drain_node",
        "undrain_node",
    ],
    "alerts": ["list_alerts", "get_alert", "ack_alert", "snooze_alert", "snooze_job_alerts"],
    "deliveries": [
        "list_deliveries", "get_delivery", "requeue_delivery", "requeue_deliveries", "list_connectors",
        "test_connector",
    ],
    "agents": [
        "list_agents", "get_agent", "wake_agent", "add_agent_event", "pause_agent", "resume_agent",
        "reset_agent_session", "list_limits", "clear_limit",
    ],
    "work": ["list_work", "add_work", "get_work", "release_work", "retry_work", "move_work", "move_belongings"],
    "hooks": ["call_hook"],  # a made-up address is a wrong one, and after ten of them it has to wait
    "inbound": ["pass_on_message", "list_requests", "get_request", "replay_request"],
}  # fmt: skip

KEY = {"key_reused"}  # a key is used once
CURSOR = {"invalid_cursor"}  # a cursor is what a list has given, and nothing that could be described
TIME = {"invalid_time"}  # the description's times begin in the year 0, ours in the year 1
# Well-formed, and still no job: a zone there is none of, a cron line that never comes, a name with a line break in it,
# a kind that is no command beside a command.
JOB = {"invalid_trigger", "invalid_interval", "invalid_job"}
PINGS = {"too_many_pings", "too_many_failures"}  # made-up keys are wrong ones, and one that is used a lot has to wait
REFUSED = {
    "list_workflow_runs": CURSOR,
    "list_workflow_events": CURSOR,
    "list_workflow_inputs": CURSOR,
    "list_workflow_fixes": CURSOR,
    "complete_run": {"wrong_token", "too_many_failures"},  # a token in the address must be the run's own
    "list_jobs": CURSOR,
    "list_alerts": CURSOR,
    "list_actions": CURSOR,
    "get_ledger": {"invalid_setting"},  # since: neither a duration nor a time
    "simulate": {"invalid_setting"},  # for: no duration of at most 31 days; from: no time
    "get_slot": {"invalid_trigger"},  # a text that is no time
    "snooze_alert": {"invalid_interval", "invalid_setting"},
    "snooze_job_alerts": {"invalid_interval", "invalid_setting"},
    "list_deliveries": CURSOR,
    "list_work": CURSOR,
    "list_requests": CURSOR,
    "pass_on_message": {"invalid_job"} | KEY,  # a text of blanks alone
    "list_approvals": CURSOR,
    "list_runs": CURSOR | TIME,
    "list_job_runs": CURSOR | TIME,
    "create_job": JOB | KEY,
    "put_job": JOB,
    "patch_job": JOB,
    **dict.fromkeys(
        (
            "run_job",
            "run_jobs",
            "pause_jobs",
            "resume_jobs",
            "retry_run",
            "approve_run",
            "run_schedule",
            "wake_agent",
            "add_agent_event",
            "add_work",
            "retry_work",
            "replay_request",
            "run_workflow",
            "approve_workflow",
            "publish_event",
            "rerun_input",
            "replay_event",
            "replay_parked",
        ),
        KEY,
    ),
    "put_schedule": JOB,
    "patch_schedule": JOB,
    **dict.fromkeys(("ping", "get_ping", "ping_what", "get_ping_what"), PINGS),
    "rotate_key": {"invalid_job"},  # of a job that is no monitor
}
"""Which words a request that fits the description may be refused with: for what no description can say."""


def settings(server, examples=EXAMPLES):
    """Everything on; the same requests each time."""
    return SchemathesisConfig.from_dict(
        {
            "seed": SEED,
            "suppress-health-check": ["all"],
            "headers": {"Authorization": f"Bearer {server.token}"},
            "request-timeout": PATIENCE,
            "continue-on-failure": True,
            "generation": {"max-examples": examples, "deterministic": SEED == 0, "database": "none"},
            "phases": {"stateful": {"generation": {"max-examples": max(5, examples // 10)}}},
            "checks": {
                # What is larger than the server takes is refused before anybody looks at it, good or bad.
                "negative_data_rejection": {"expected-statuses": [400, 401, 403, 404, 405, 409, 413, 415, 422, 429]},
                # 412: the condition was understood, and does not hold.
                "positive_data_acceptance": {"expected-statuses": ["2xx", 304, 404, 409, 412, 413]},
            },
        }
    )


def described(server, **how):
    """The description of a running server, as requests are made from it."""
    schema = schemathesis.openapi.from_url(f"{server.url}/api/openapi.json", config=settings(server, **how))

    @schema.hook
    def filter_failure(context, failure: Failure, case, response):
        operation = case.operation.definition.raw["operationId"]
        if isinstance(failure, UseAfterFree):
            return operation != "list_job_runs"  # the history of a job outlives it, and is found under its id
        if isinstance(failure, EnsureResourceAvailability):
            # An answer that is repeated for its Idempotency-Key may be about a job that was removed since: such a job
            # has its history still.
            history = f"{server.url}/api/jobs/{case.path_parameters['ref']}/runs"
            headers = {"Authorization": f"Bearer {server.token}"}
            return httpx.get(history, headers=headers, trust_env=False).status_code != 200
        if not isinstance(failure, RejectedPositiveData):
            return True
        return response.json()["code"] not in REFUSED.get(operation, set())

    return schema


def failures(schema):
    """What was found, and how many requests each operation was sent."""
    found, sent = {}, {}
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            for case_id, node in event.recorder.cases.items():
                label = node.value.operation.label
                sent[label] = sent.get(label, 0) + (case_id in event.recorder.interactions)
            for case_id, checks in event.recorder.checks.items():
                for check in checks:
                    if check.status == Status.FAILURE:
                        info = check.failure_info
                        response = event.recorder.interactions[case_id].response
                        said = response.text[:300] if response is not None else "no answer"
                        found[info.failure.title, event.label] = (
                            f"{info.failure.message}\n{info.code_sample[:1500]}\n{said}"
                        )
        elif isinstance(event, events.NonFatalError | events.FatalError):
            found[str(getattr(event, "value", event)), getattr(event, "label", None)] = "error"
    return found, sent


@pytest.fixture
def fresh(request, tmp_path):
    terminal = Terminal(tmp_path)
    # Jobs that come often are no error here: the minimum is a rule of its own, with tests of its own.
    config = "limits:\n  min_interval: 0\n"
    if request.getfixturevalue("group") in ("agents", "schedules"):  # that of the examples
        config += 'agents:\n  reporter: {runner: {preset: scripted, args: ["true"]}}\n'
    (tmp_path / "wakeful.yaml").write_text(config)
    yield Server(terminal)
    terminal.close()


@pytest.mark.promise("C1")
@pytest.mark.parametrize("group", GROUPS)
def test_requests_made_from_the_description_are_answered_as_it_says(fresh, group):
    schema = described(fresh).include(operation_id=GROUPS[group])
    found, sent = failures(schema)
    assert not found, "\n\n".join(f"{what}: {where}\n{more}" for (what, where), more in found.items())
    assert len(sent) == len(GROUPS[group])
    few = {label for label, count in sent.items() if count < EXAMPLES and "{" in label}
    assert group != "removals" or not few
    assert all(label.startswith("DELETE ") for label in few)


def test_every_operation_is_in_a_group(server):
    description = httpx.get(f"{server.url}/api/openapi.json", trust_env=False).json()
    operations = {one["operationId"] for path in description["paths"].values() for one in path.values()}
    assert operations == {name for group in GROUPS.values() for name in group} | {"read_events"}


def test_a_list_where_a_word_belongs_is_refused(client):
    trigger = {"after": "backup", "on": ["success"]}
    answer = client.post("/api/jobs", json={"name": "odd", "trigger": trigger})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_trigger")


@pytest.mark.parametrize("field", [{"enabled": "yes"}, {"max_runs": "5"}, {"approval": 1}])
def test_what_is_written_as_text_is_no_number_and_no_flag(client, field):
    assert client.post("/api/jobs", json={"name": "odd", "every": "6h", **field}).status_code == 422


def test_five_point_zero_is_five(client):
    answer = client.post("/api/jobs", json={"name": "whole", "every": "6h", "max_runs": 5.0, "payload": 1.0})
    assert answer.json()["trigger"]["max_runs"] == 5
    assert '"payload":1.0' in answer.text


@pytest.mark.parametrize("last", ["0", "1-0"])
def test_events_are_answered_as_described(server, client, last):
    """A stream does not end, so it is not fuzzed: its head, its first bytes, and its refusals are looked at here."""
    described = client.get("/api/openapi.json").json()["paths"]["/api/events"]["get"]["responses"]
    with client.stream("GET", "/api/events", headers={"Last-Event-ID": last}) as answer:
        assert answer.headers["content-type"].partition(";")[0] in described["200"]["content"]
        assert next(answer.iter_lines()) == ": wakeful"
    bad = [{"stream": "nonsense"}, {"stream": "x" * 201}, {"last_event_id": "-1"}, {"last_event_id": "1" * 101}]
    for query in bad:
        answer = client.get("/api/events", params=query)
        assert str(answer.status_code) in described
        assert answer.headers["content-type"] == "application/problem+json"
    with server.client() as anonymous:
        assert anonymous.get("/api/events").status_code == 401


@pytest.mark.parametrize(
    "body", ['{"name": "a", "name": "b", "every": "6h"}', '{"name": "a", "trigger": {"every": "6h", "every": "7h"}}']
)
def test_a_name_that_stands_twice_is_refused(client, body):
    answer = client.post("/api/jobs", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_json")
    assert "twice" in answer.json()["error"]


def test_two_lengths_are_refused_and_hung_up_on(server):
    """A proxy and we must not see two different requests in the same bytes."""
    hidden = b"0\r\n\r\nGET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = f"POST /api/jobs HTTP/1.1\r\nHost: localhost:{server.port}\r\nContent-Type: application/json\r\n"
    head += "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        connection.sendall(head.encode() + hidden)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.count(b"HTTP/1.1 ") == 1
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"two_lengths"' in answer


def test_a_refusal_repeats_little_of_what_was_sent(client):
    answer = client.post("/api/jobs", json={"name": "odd", "every": "6h", "options": {"overlap": "x" * 100_000}})
    assert answer.status_code == 400
    assert len(answer.text) < 1000
