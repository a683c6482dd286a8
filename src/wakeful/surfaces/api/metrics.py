"""`/metrics`: the scheduler in figures, for Prometheus and whatever reads its format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, cast

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from wakeful.kernel.model.measures import Histogram, Measure
from wakeful.routing.auth import anyone, at_least
from wakeful.routing.problems import answers
from wakeful.routing.wiring import Settings

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from wakeful.scheduler.measuring import Measuring

router = APIRouter(tags=["stats"])
VIEWER = at_least("viewer")


async def reader(request: Request, settings: Settings) -> None:
    """Let through viewers, and everybody where `server.metrics.open` is set."""
    if not settings.metrics.open:
        await VIEWER(await anyone(request))


@router.get(
    "/metrics",
    operation_id="get_metrics",
    response_class=Response,
    responses={
        **answers(),
        200: {
            "description": "Figures in the format of Prometheus, or as OpenMetrics",
            "content": {
                kind: {"schema": {"type": "string"}} for kind in ("text/plain", "application/openmetrics-text")
            },
        },
    },
    summary="Figures for monitoring systems",
)
async def get_metrics(request: Request, _: Annotated[None, Depends(reader)]) -> Response:
    """Needs the token of a viewer, unless `server.metrics.open` is set."""
    # The library is loaded with the first scrape: most servers are never asked.
    from prometheus_client.exposition import choose_encoder

    measuring = cast("Measuring", request.app.state.measuring)
    encode, content_type = choose_encoder(request.headers.get("accept", ""))
    return Response(encode(_Registry(await measuring.measures())), headers={"content-type": content_type})


class _Registry:
    """What the library's encoders read: metrics, and nothing that lives on."""

    def __init__(self, measures: Iterable[Measure]) -> None:
        self._measures = measures

    def collect(self) -> Iterator[Metric]:
        for measure in self._measures:
            yield _metric(measure)


def _metric(measure: Measure) -> Metric:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

    if any(isinstance(value, Histogram) for value in measure.values.values()):
        histograms = HistogramMetricFamily(measure.name, measure.help, labels=measure.labels)
        for labels, value in measure.values.items():
            if isinstance(value, Histogram):
                histograms.add_metric(labels, value.cumulative(), value.sum)
        return histograms
    family = CounterMetricFamily if measure.counter else GaugeMetricFamily
    found: CounterMetricFamily | GaugeMetricFamily = family(measure.name, measure.help, labels=measure.labels)
    for labels, value in measure.values.items():
        found.add_metric(labels, cast("float", value))
    return found
