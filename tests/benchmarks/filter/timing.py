"""Samples of durations."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence


def percentile(samples: Sequence[float], share: float) -> float:
    """The sample at a share of the sorted samples, in seconds."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def timed(call: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def cpu_timed(call: Callable[[], object]) -> float:
    """Processor seconds of one call: what it costs, whoever else uses the machine."""
    began = time.process_time()
    call()
    return time.process_time() - began


def resident_mib() -> float:
    """Resident memory of this process in MiB."""
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))
