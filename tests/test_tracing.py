"""Traces: one span per run, which commands, requests and agents continue; nothing is loaded unless it is asked for."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.cli.terminal import PATIENCE, Terminal
from tests.house.source import SRC
from tests.loopback import LoopbackServer
from tests.service.real_time import Watch, real
from wakeful import Every, Scheduler
from wakeful.tracing import is_wanted, trace_runs

PARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-0[13]")


class Traced:
    """A scheduler whose spans are kept in memory."""

    def __init__(self, path):
        self.spans = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.spans))
        self.scheduler = Scheduler(f"sqlite:///{path}")
        trace_runs(self.scheduler, provider)

    async def run(self, name):
        """Run a job to its end; its output, and the spans there are."""
        run = await self.scheduler.run_job(name)
        ended = await self.scheduler.wait_for_run(run)
        return ended, [span for span in self.spans.get_finished_spans() if span.attributes["wakeful.run"] == ended.id]


@pytest.mark.promise("X11")
@real
async def test_every_run_is_a_span_with_attempt_slot_lateness_and_outcome(tmp_path):
    traced = Traced(tmp_path / "wakeful.db")
    scheduler = traced.scheduler

    @scheduler.job(Every("1h"))
    async def broken(run):
        message = "no"
        raise RuntimeError(message)

    async with scheduler:
        await scheduler.start()
        ended, [span] = await traced.run("broken")
    assert span.name == "run broken"
    assert span.attributes["wakeful.attempt"] == 1
    assert span.attributes["wakeful.outcome"] == ended.outcome == "error"
    assert span.attributes["wakeful.lateness_ms"] >= 0
    assert span.attributes["wakeful.kind"] == "broken"
    assert span.attributes["error.type"] == "RuntimeError"
    assert not span.status.is_ok


@real
async def test_a_scheduled_run_names_its_slot(tmp_path):
    traced = Traced(tmp_path / "wakeful.db")

    @traced.scheduler.job(Every("1s"))
    async def tick(run):
        return run.slot.isoformat()

    async with traced.scheduler:
        await traced.scheduler.start()
        await Watch(traced.scheduler).until(lambda events: any(one.type == "finished" for one in events))
    span = traced.spans.get_finished_spans()[0]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", span.attributes["wakeful.slot"])


@real
async def test_a_command_is_given_the_span_to_continue(tmp_path):
    traced = Traced(tmp_path / "wakeful.db")
    async with traced.scheduler as scheduler:
        await scheduler.add_job("env", Every("1h"), kind="command", payload={"argv": ["printenv", "TRACEPARENT"]})
        await scheduler.start()
        ended, [span] = await traced.run("env")
    assert_continues(ended.output["output"].strip(), span)


@real
async def test_plain_functions_and_coroutines_see_their_span_as_the_current_one(tmp_path):
    traced = Traced(tmp_path / "wakeful.db")

    @traced.scheduler.job(Every("1h"))
    def plain(run):
        return trace.get_current_span().get_span_context().span_id

    @traced.scheduler.job(Every("1h"))
    async def coroutine(run):
        return trace.get_current_span().get_span_context().span_id

    async with traced.scheduler:
        await traced.scheduler.start()
        for name in ("plain", "coroutine"):
            ended, [span] = await traced.run(name)
            assert ended.output == span.context.span_id
    assert trace.get_current_span().get_span_context().span_id == 0


def assert_continues(parent, span):
    trace_id, span_id = PARENT.fullmatch(parent).groups()
    assert (int(trace_id, 16), int(span_id, 16)) == (span.context.trace_id, span.context.span_id)


class Collector(BaseHTTPRequestHandler):
    """Takes traces, and requests of jobs."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server_of.spans += [
            span
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        self.answer()

    def do_GET(self):
        self.server_of.parents.append(self.headers["traceparent"])
        self.answer()

    def answer(self):
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Say nothing."""


class CollectingServer(LoopbackServer):
    def __init__(self):
        self.spans, self.parents = [], []
        super().__init__(Collector, "server_of")


FILE = """
store: wakeful.db
server:
  {traces}
agents:
  helper:
    runner: {{start: [sh, -c, 'printenv TRACEPARENT'], cwd: .}}
jobs:
  ask: {{every: 1h, url: "{url}/job"}}
"""


@pytest.mark.promise("X11")
def test_a_server_sends_its_spans_and_requests_and_agents_continue_them(tmp_path):
    terminal = Terminal(tmp_path)
    with CollectingServer() as collector:
        traces = f"traces: {{endpoint: {collector.url}}}"
        (tmp_path / "wakeful.yaml").write_text(FILE.format(traces=traces, url=collector.url))
        try:
            server = terminal.start("serve", "--port", "0")
            server.until("listening on")
            assert terminal("run", "ask").code == 0
            asked = terminal("agent", "ask", "helper", "hello", "--wait")
            server.signal(signal.SIGTERM)
            assert server.ended().code == 0
        finally:
            terminal.close()
    spans = {span.span_id.hex(): span for span in collector.spans}
    [parent] = [one for one in collector.parents if one]
    assert spans[PARENT.fullmatch(parent)[2]].name == "run ask"
    told = PARENT.search(asked.out)
    assert told is not None, asked
    assert spans[told[2]].name == "run helper.asked"


def test_the_variables_of_open_telemetry_switch_traces_on_and_off():
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    assert is_wanted(endpoint)
    assert not is_wanted({})
    assert not is_wanted({**endpoint, "OTEL_SDK_DISABLED": "true"})
    assert not is_wanted({**endpoint, "OTEL_TRACES_EXPORTER": "none"})


PROGRAM = """
import asyncio, sys, tempfile
sys.path.insert(0, {src!r})
import wakeful.surfaces.cli.serve
from wakeful import Every, Scheduler

async def main(folder):
    scheduler = Scheduler(f"sqlite:///{{folder}}/wakeful.db")
    async with scheduler:
        await scheduler.add_job("env", Every("1h"), kind="command", payload={{"argv": ["printenv"]}})
        await scheduler.start()
        ended = await scheduler.wait_for_run(await scheduler.run_job("env"))
        assert "TRACEPARENT" not in ended.output["output"]

with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(folder))
print([name for name in sys.modules if name.partition(".")[0] in ("opentelemetry", "prometheus_client")])
import wakeful.surfaces.api.app  # FastAPI loads the API of OpenTelemetry where that is installed
print([name for name in sys.modules if name.startswith(("opentelemetry.sdk", "opentelemetry.exporter", "prometheus"))])
print("wakeful.tracing" in sys.modules)
"""


@pytest.mark.promise("X11")
def test_nothing_of_traces_and_metrics_is_loaded_where_nobody_asks_for_them():
    command = [sys.executable, "-c", PROGRAM.format(src=str(SRC))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.split("\n")[:3] == ["[]", "[]", "False"]


WITHOUT_THE_EXTRA = """
import sys
sys.modules["opentelemetry.sdk"] = None
"""


@pytest.mark.parametrize("configured", [False, True])
def test_a_server_without_the_extra_says_what_to_install(tmp_path, configured):
    terminal = Terminal(tmp_path)
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_THE_EXTRA)
    if configured:
        (tmp_path / "wakeful.yaml").write_text("server: {traces: {endpoint: 'http://127.0.0.1:1'}}")
    variables = {"PYTHONPATH": str(tmp_path), "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
    try:
        server = terminal.start("serve", "--port", "0", **variables)
        assert "install wakeful[otel]" in server.until("Traces need the extra")
        if not configured:
            server.until("listening on")
            server.signal(signal.SIGTERM)
        assert server.ended().code == (2 if configured else 0)
    finally:
        terminal.close()
