"""``/metrics``."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from hami_web.metrics.activity import SchedulingCollector
from hami_web.metrics.containers import ContainerCollector
from hami_web.metrics.legacy import LegacyCollector
from hami_web.metrics.occupancy import OccupancyCollector
from hami_web.metrics.process import ProcessCollector
from hami_web.scheduling.runtime import Runtime


def metrics_pattern(
    runtime: Runtime, *, legacy: bool = False, trust: Callable[[], bool] | None = None
) -> URLPattern:
    """The address under which a scheduling core is measured.

    ``legacy`` adds HAMi's old names; ``trust`` tells whether the API server trusts our certificate.
    """
    registry = CollectorRegistry()
    occupancy = OccupancyCollector(runtime.state.snapshot)
    containers = ContainerCollector(runtime.state.snapshot, runtime.quotas.quotas)
    for collector in (occupancy, containers, SchedulingCollector(runtime)):
        registry.register(collector)
    registry.register(ProcessCollector(runtime))
    if trust is not None:
        gauge = Gauge(
            "hami_webhook_certificate_trusted",
            "1 while the API server's CA bundle fits the serving certificate.",
            registry=registry,
        )
        gauge.set_function(lambda: int(trust()))
    if legacy:
        registry.register(LegacyCollector(occupancy, containers))

    def metrics(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
        return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_PLAIN_0_0_4)

    return path("metrics", metrics)
