"""``/metrics`` of a large cluster, against prometheus_client's text of as many constant series."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from hami_web.core.policy import SchedulingPolicy
from hami_web.metrics.containers import ContainerCollector
from hami_web.metrics.exposition import render
from hami_web.metrics.occupancy import OccupancyCollector
from hami_web.metrics.series import collect_all
from hami_web.scheduling.state import ClusterState
from tests.benchmarks.fleet import node_pages, pod_pages, write_fleet

NODES, PODS = 75, 2_000
"""Of eight A100s each: some 14,000 series."""
TIMES = 7


class Constant(Collector):
    """Families that are there already."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def measure() -> tuple[int, float, float]:
    """Number of series; processor seconds of our text, and of the constant one."""
    state = ClusterState(SchedulingPolicy())
    with tempfile.TemporaryDirectory() as name:
        write_fleet(Path(name), NODES, PODS)
        state.replace_nodes([node for page in node_pages(Path(name)) for node in page])
        state.replace_pods([pod for page in pod_pages(Path(name)) for pod in page])
    collectors = (OccupancyCollector(state.snapshot), ContainerCollector(state.snapshot, list))
    text = render(collect_all(collectors)).decode()
    families = list(text_string_to_metric_families(text))
    registry = CollectorRegistry()
    registry.register(Constant(families))
    ours = cost(lambda: render(collect_all(collectors)))
    theirs = cost(lambda: generate_latest(registry))
    return sum(len(family.samples) for family in families), ours, theirs


def cost(call: Callable[[], object]) -> float:
    """The least processor time of some calls, in seconds."""
    found = []
    for _ in range(TIMES):
        began = time.process_time()
        call()
        found.append(time.process_time() - began)
    return min(found)
