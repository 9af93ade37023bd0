"""The agent's own share of an Allocate, against no-op round trips over the same unix socket.

A real agent process serves a kubelet over gRPC, with simulated NVML and a simulated API server.
Time inside NVML and inside requests to the API server is measured in the agent and taken off the
time that the kubelet waited; the rest, with its synced writes of the journal, is the agent's own.

    python -m tests.benchmarks.allocate
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

from node_agent import bootstrap
from node_agent.cluster import Cluster
from node_agent.deviceplugin.server import DevicePluginService
from node_agent.nvml.simulated.library import SimulatedLibrary
from tests.benchmarks.report import Report
from tests.node_agent.lab import open_lab, wait_until

BOUND_ROUND_TRIPS = 20.0
WARM_UP, ROUNDS, NO_OPS = 5, 40, 10
_OUTPUT = "BENCHMARK_OUTPUT"


class Stopwatch:
    """Time that one Allocate spent in others' code, across the threads that work for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.seconds = {"nvml": 0.0, "api": 0.0}

    def around(self, kind: str, function: Any) -> Any:
        def timed(*arguments: Any, **named: Any) -> Any:
            if not threading.current_thread().name.startswith("allocate"):
                return function(*arguments, **named)
            started = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                with self._lock:
                    self.seconds[kind] += time.perf_counter() - started

        return timed


def agent_process() -> int:
    """The agent with stopwatches; one line of seconds, NVML and API, for each Allocate."""
    watch = Stopwatch()
    allocate = DevicePluginService.Allocate

    def written(self: Any, request: Any, context: Any) -> Any:
        watch.seconds = {"nvml": 0.0, "api": 0.0}
        answer = allocate(self, request, context)
        with Path(os.environ[_OUTPUT]).open("a") as stream:
            stream.write(f"{watch.seconds['nvml']} {watch.seconds['api']}\n")
        return answer

    DevicePluginService.Allocate = written  # type: ignore[method-assign]
    SimulatedLibrary._call = watch.around("nvml", SimulatedLibrary._call)  # type: ignore[method-assign]
    Cluster._json = watch.around("api", Cluster._json)  # type: ignore[method-assign]
    return bootstrap.main()


def seconds_of(call: Any) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def measure() -> dict[str, float]:
    """Medians in seconds: a no-op round trip, an Allocate as the kubelet sees it, and its parts."""
    no_op: list[float] = []
    whole: list[float] = []
    with open_lab() as lab:
        output = lab.folder / "times"
        command = [sys.executable, "-m", "tests.benchmarks.allocate", "--agent"]
        quiet = {"HAMI_DISCOVERY_SECONDS": "600", _OUTPUT: str(output)}
        with lab.agent_process(command=command, **quiet):
            for number in range(WARM_UP + ROUNDS):
                name = f"job-{number}"
                lab.reserve(name, [(0, "1g.5gb", number % 7, 1)])
                no_op += [seconds_of(lab.kubelet.options) for _ in range(NO_OPS)]
                device = f"{lab.gpus[0]}-{number % 7}"
                whole.append(seconds_of(lambda device=device: lab.kubelet.allocate(device)))
                lab.delete(name)
                wait_until(lambda: lab.journal() == [], "reclaimed")
            parts = [tuple(map(float, line.split())) for line in output.read_text().splitlines()]
    own = [total - sum(part) for total, part in zip(whole, parts, strict=True)]
    return {
        "no_op": median(no_op[WARM_UP * NO_OPS :]),
        "whole": median(whole[WARM_UP:]),
        "nvml": median(part[0] for part in parts[WARM_UP:]),
        "api": median(part[1] for part in parts[WARM_UP:]),
        "own": median(own[WARM_UP:]),
    }


def main() -> int:
    """Print the parts and the goal; the exit status is 1 when the goal is missed."""
    report = Report()
    report.progress(f"{WARM_UP + ROUNDS} lives of a Pod")
    found = measure()
    for name, seconds in found.items():
        report.table(f"{name:6} {seconds * 1000:7.2f} ms")
    report.at_most("allocate_own_round_trips", found["own"] / found["no_op"], BOUND_ROUND_TRIPS)
    return report.finish()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(agent_process() if "--agent" in sys.argv else main())
