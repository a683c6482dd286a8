"""Traces of runs for OpenTelemetry: one span per run, which commands, requests and agents can continue.

Needs the extra `otel`. Nothing of it is loaded before traces are asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from wakeful import trace_context
from wakeful.errors import InvalidSetting
from wakeful.kernel.loop.handlers import Active, Threads, drive
from wakeful.kernel.rules.outcome import FAILURES, Result
from wakeful.threads import room
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

    from wakeful.kernel.kinds import Handler
    from wakeful.scheduler import Scheduler

MISSING = "Traces need the extra otel: install wakeful[otel]."
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""Variables of OpenTelemetry that say where traces go; one of them is enough to switch them on."""


def is_wanted(environ: Mapping[str, str]) -> bool:
    """Whether the environment asks for traces."""
    disabled = environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none"
    return not disabled and any(environ.get(name) for name in ENDPOINTS)


def trace_runs(scheduler: Scheduler, provider: TracerProvider) -> None:
    """Make a span for every run of this scheduler, with the tracers of `provider`."""
    tracer = provider.get_tracer("wakeful")
    scheduler.server_side.drive_with(RunTracing(tracer).drive)


def export_traces(scheduler: Scheduler, endpoint: str | None = None) -> None:
    """Send a span for every run to a collector, over OTLP; without an endpoint, where the environment says."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise InvalidSetting(MISSING) from error
    named = {"service.name": os.environ.get("OTEL_SERVICE_NAME", "wakeful")}
    provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces") if endpoint else OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace_runs(scheduler, provider)
    scheduler.host.add_service(_Flush(provider.shutdown))


class _Flush:
    """Sends what is left when the engine stops."""

    def __init__(self, shutdown: Callable[[], None]) -> None:
        self._shutdown = shutdown

    def begin(self) -> None:
        """Spans are sent as they end."""

    async def end(self) -> None:
        await room("traces").call(self._shutdown)


class RunTracing:
    """Runs handlers, each within a span of its own."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    async def drive(self, active: Active, handler: Handler, threads: Threads, *, awaits: bool) -> Result:
        """What `drive` does, in a span."""
        from opentelemetry.context import attach
        from opentelemetry.trace import set_span_in_context

        span = self._begin(active)
        attach(set_span_in_context(span))  # of this run's task alone
        trace_context.enter(_traceparent(span))
        try:
            result = await drive(active, handler, threads, awaits=awaits)
        except BaseException as error:
            span.record_exception(error)
            span.end()
            raise
        _end(span, result)
        return result

    def _begin(self, active: Active) -> Span:
        run, job = active.claimed.run, active.claimed.job
        began = run.started_at if run.started_at is not None else run.due_at
        about: dict[str, Any] = {
            "wakeful.job": job.name,
            "wakeful.run": active.run.id,
            "wakeful.kind": run.kind,
            "wakeful.reason": run.reason,
            "wakeful.attempt": run.attempt,
            "wakeful.lateness_ms": max(0, began - run.due_at),
            "wakeful.node": active.run.node or "",
        }
        if run.slot is not None:
            about["wakeful.slot"] = iso(run.slot)
        return self._tracer.start_span(f"run {job.name}", attributes=about, start_time=began * 1_000_000)


def _traceparent(span: Span) -> str:
    at = span.get_span_context()
    return f"00-{at.trace_id:032x}-{at.span_id:016x}-{int(at.trace_flags):02x}"


def _end(span: Span, result: Result) -> None:
    from opentelemetry.trace import Status, StatusCode

    span.set_attribute("wakeful.outcome", result.outcome)
    if result.outcome in FAILURES:
        span.set_status(Status(StatusCode.ERROR, result.error))
        if result.error_type is not None:
            span.set_attribute("error.type", result.error_type)
    span.end()
