"""``/metrics`` of the extender."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from hami_web.metrics import table
from hami_web.metrics.activity import SchedulingCollector
from hami_web.metrics.containers import ContainerCollector
from hami_web.metrics.exposition import CONTENT_TYPE, render
from hami_web.metrics.legacy import under_old_names
from hami_web.metrics.occupancy import OccupancyCollector
from hami_web.metrics.problems import ProblemCollector
from hami_web.metrics.process import ProcessCollector
from hami_web.metrics.series import Collector, collect_all, single
from hami_web.metrics.watches import WatchCollector
from hami_web.scheduling.runtime import Runtime


def metrics_pattern(
    runtime: Runtime, *, legacy: bool = False, trust: Callable[[], bool] | None = None
) -> URLPattern:
    """The address under which a scheduling core is measured.

    ``legacy`` adds HAMi's old names; ``trust`` tells whether the API server trusts our certificate.
    """
    collectors: tuple[Collector, ...] = (
        OccupancyCollector(runtime.state.snapshot),
        ContainerCollector(runtime.state.snapshot, runtime.quotas.quotas),
        SchedulingCollector(runtime),
        WatchCollector(runtime.reflectors),
        ProcessCollector(runtime),
        ProblemCollector(runtime.problems.present),
    )

    def metrics(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
        families = list(collect_all(collectors))
        if trust is not None:
            families.append(single(table.TRUSTED, int(trust())))
        if legacy:
            families.extend(under_old_names(families))
        return HttpResponse(render(families), content_type=CONTENT_TYPE)

    return path("metrics", metrics)
