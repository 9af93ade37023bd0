"""Samples, with labels, that processes expose, rules record and DCGM's exporter has by default."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress

from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.parser import text_string_to_metric_families

from hami_web.metrics import table
from hami_web.metrics.series import Kind
from node_agent.metrics import AgentMetrics

SCRAPED = frozenset({"instance", "job", "le"})
"""Labels that Prometheus and histograms bring."""
DCGM_LABELS = frozenset({"UUID", "GPU_I_ID", "GPU_I_PROFILE", "gpu", "modelName", "Hostname"})
DCGM = frozenset(
    {
        *("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"),
        *("DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"),
        *("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_XID_ERRORS"),
    }
)
"""Of what the exporter's two lists of counters have on; its list without profiling lacks PROF."""


def _of_the_agent() -> dict[str, set[str]]:
    """Names of the node agent's samples; of each labelled family one child is made."""
    metrics = AgentMetrics()
    metrics.watch_instances(lambda: [("realized", 1)], lambda: 0.0)
    for family in vars(metrics).values():
        if isinstance(family, MetricWrapperBase):
            with suppress(ValueError):  # it has no labels
                family.labels("x")
    names: dict[str, set[str]] = {"hami_agent_nvml_errors_total": {"call", "code"}}
    for found in text_string_to_metric_families(metrics.text().decode()):
        for sample in found.samples:
            names.setdefault(sample.name, set()).update(sample.labels)
    return names


def known(recorded: Iterable[str]) -> dict[str, set[str]]:
    """Labels by name of sample; those of recorded series are looked at where they are recorded."""
    names: dict[str, set[str]] = {name: set() for name in recorded}
    names |= _of_the_agent() | {name: set(DCGM_LABELS) for name in DCGM}
    for owned in table.OWNED.values():
        for series in owned:
            endings = ("_bucket", "_count", "_sum") if series.kind is Kind.HISTOGRAM else ("",)
            names |= {series.name + ending: set(series.labels) for ending in endings}
    return names


def used(expr: str) -> set[str]:
    """Names of samples in an expression."""
    return set(re.findall(r"\b(?:hami[_:][\w:]+|DCGM_\w+)", expr))


def wanted_labels(expr: str) -> set[str]:
    """Labels that an expression groups by, joins on, or selects by."""
    grouped = re.findall(r"\b(?:by|on|group_left|group_right)\s*\(([^)]*)\)", expr)
    matched = re.findall(r"[{,](\w+)(?:=~|!~|!=|=)\"", expr)
    return {label.strip() for text in grouped for label in text.split(",")} - {""} | set(matched)


def unknown(expr: str, names: dict[str, set[str]]) -> set[str]:
    """Samples and labels of an expression that nobody exposes."""
    found = used(expr)
    labels = set().union(*(names.get(name, set()) for name in found)) | SCRAPED
    return found - names.keys() | wanted_labels(expr) - labels
