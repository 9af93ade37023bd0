"""Fifty Pods bound at once to a node of eight GPUs, against the sum of their Allocates.

A node serves one Allocate after another, since the call names no Pod; so the sum is the least that
a burst can take, and what is above it are the ways between: the lock, the Binding, the kubelet's
watch. Real extender and agent processes over gRPC and HTTP; simulated API server, kubelet, NVML.

    python -m tests.benchmarks.burst
"""

from __future__ import annotations

import sys

from tests.benchmarks.report import Report
from tests.scheduling.burst.world import Burst, run_burst

PODS, GPUS = 50, 8
CREATE_S = 0.1
"""A quick driver; without any time in NVML the ways between weigh most."""
BOUND_RATIO = 1.5


def main() -> int:
    """Print the parts and the goals; the exit status is 1 when one is missed."""
    report = Report()
    report.table(f"{PODS} Pods, {GPUS} GPUs   wall s   sum of Allocates s   longest s")
    for name, create_s in (("instant", 0.0), ("driver", CREATE_S)):
        report.progress(f"{PODS} Pods, {create_s:g} s to create an instance")
        found = run_burst(PODS, GPUS, create_s)
        report.table(_line(name, found))
        report.at_most(f"burst_{name}_over_allocates", found.ratio, BOUND_RATIO)
        report.at_least(f"burst_{name}_instances", found.instances, PODS)
    return report.finish()


def _line(name: str, found: Burst) -> str:
    times = found.allocate_s
    return f"{name:20} {found.wall_s:8.2f} {sum(times):20.2f} {max(times):11.2f}"


if __name__ == "__main__":
    sys.exit(main())
