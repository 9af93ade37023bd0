"""One measurement in a process of its own: ``python -m tests.benchmarks.filter.worker``.

Loads a fleet as a server would after its lists, and prints what it measured as JSON.
"""

from __future__ import annotations

import gc
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from hami_web.core.policy import SchedulingPolicy
from hami_web.core.request import parse_pod_request
from hami_web.extender import wire
from hami_web.scheduling.collection import settle, undisturbed
from hami_web.scheduling.state import ClusterState, Held
from tests.benchmarks.filter.timing import cpu_timed, percentile, resident_mib, timed
from tests.benchmarks.fleet import (
    filter_body,
    full_nodes_body,
    node_names,
    node_pages,
    pod_pages,
)


@dataclass(slots=True)
class Loaded:
    """A state with a fleet in it, and what loading cost."""

    names: list[str]
    state: ClusterState = field(default_factory=lambda: ClusterState(SchedulingPolicy()))
    serial: int = 0

    def decide(self, body: bytes) -> Held:
        """All of a decision but HTTP: parse, request, filter, hold."""
        call = wire.decode_filter(body)
        request = parse_pod_request(call.pod.container_specs(), call.pod.annotations)
        answer = self.state.filter(call.pod, request, call.names)
        if not isinstance(answer, Held):
            raise TypeError(f"refused: {next(iter(answer.reasons.items()))}")
        return answer

    def sample(self, width: int, repeats: int, memory: int, count: int) -> dict[str, float]:
        """Decisions, each for a new Pod among the next ``width`` nodes; every second Pod stays."""
        decisions, loads = [], []
        for number in range(repeats + 10):
            self.serial += 1
            uid = f"new-{self.serial}"
            first = number * width % len(self.names)
            body = filter_body(uid, (self.names * 2)[first : first + width], memory, count)
            loads.append(timed(lambda body=body: orjson.loads(body)))  # type: ignore[misc]
            decisions.append(timed(lambda body=body: self.decide(body)))  # type: ignore[misc]
            if number // 10 % 2:
                self.state.release(uid)
        decisions, loads = decisions[10:], loads[10:]
        return {
            "median": percentile(decisions, 0.5),
            "p99": percentile(decisions, 0.99),
            "max": max(decisions),
            "loads": percentile(loads, 0.5),
        }


def main() -> None:
    folder, nodes, repeats, parts = (
        Path(sys.argv[1]),
        int(sys.argv[2]),
        int(sys.argv[3]),
        sys.argv[4].split(","),
    )
    loaded = Loaded(node_names(nodes))
    result: dict[str, object] = {}
    nodes_there = (view for page in node_pages(folder) for view in page)
    result["nodes_cpu"] = cpu_timed(lambda: loaded.state.replace_nodes(nodes_there))
    pods = (view for page in pod_pages(folder) for view in page)
    with undisturbed():  # as the watch of Pods takes a list over
        result["pods_cpu"] = cpu_timed(lambda: loaded.state.replace_pods(pods))
        result["settle_cpu"] = cpu_timed(settle)
    result["first"] = timed(lambda: loaded.decide(filter_body("first", loaded.names)))
    result["rss_mib"] = resident_mib()
    if "all" in parts:
        result["all"] = loaded.sample(nodes, repeats, 4000, 1)
    if "tenth" in parts:
        result["tenth"] = loaded.sample(nodes // 10, repeats, 4000, 1)
    if "many" in parts:
        loaded.sample(nodes, 1, 9000, 4)
        result["many"] = loaded.sample(nodes, repeats, 9000, 4)
    if "change" in parts:
        result["change"] = change(loaded, repeats)
    if "full" in parts:
        result["full"] = full(loaded)
    print(json.dumps(result))


def change(loaded: Loaded, repeats: int) -> float:
    """Median seconds of a hold given up: one change on one node."""
    samples = []
    for number in range(repeats):
        loaded.decide(filter_body(f"change-{number}", loaded.names[:50]))
        samples.append(timed(lambda n=number: loaded.state.release(f"change-{n}")))  # type: ignore[misc]
    return percentile(samples, 0.5)


def full(loaded: Loaded) -> dict[str, float]:
    """A decision on whole Node objects against the standard parser on the same body."""
    body = full_nodes_body("full", loaded.names)

    def answer() -> bytes:
        call = wire.decode_filter(body)
        request = parse_pod_request(call.pod.container_specs(), call.pod.annotations)
        held = loaded.state.filter(call.pod, request, call.names)
        assert isinstance(held, Held)
        return wire.encode_fit(call, [held.node])

    decision = min(cpu_timed(answer) for _ in range(3))
    gc.collect()
    loads = min(cpu_timed(lambda: json.loads(body)) for _ in range(2))
    return {"mb": len(body) / 1e6, "decision": decision, "loads": loads}


if __name__ == "__main__":
    main()
