"""A cluster of two models, through the product's own state: filter, bind, end."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass

from hami_web.cluster.views import NodeCondition, NodeStatus, NodeView, ObjectMeta, PodView
from hami_web.core import annotations as keys
from hami_web.core.capability import NodeCapability
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.registration import encode_registration
from hami_web.core.request import ContainerRequest, Demand, PodRequest
from hami_web.scheduling.state import ClusterState, Held
from tests.benchmarks.report import Report
from tests.boards import board

NODES = {"a100-sxm4-40gb": 8, "a30": 6}
GPUS_PER_NODE = 8
# MiB asked for. Each fits both models, but for the last, which needs a whole A100.
DEMANDS = {4_000: 0.35, 9_000: 0.25, 11_500: 0.15, 19_000: 0.15, 38_000: 0.10}
WARM_UP = 6.0


@dataclass(slots=True)
class Accepted:
    """MiB and whole-GPU requests, offered and accepted."""

    offered: int = 0
    accepted: int = 0
    whole_offered: int = 0
    whole_accepted: int = 0

    @property
    def share(self) -> float:
        return self.accepted / self.offered

    @property
    def whole(self) -> float:
        return self.whole_accepted / max(1, self.whole_offered)


def run_mixed(report: Report, *, quick: bool) -> None:
    """Ours against HAMi on A100 and A30 nodes."""
    report.table("\nA100 and A30 nodes, accepted MiB / whole-GPU requests: hami, ours")
    worst_share = worst_whole = 1.0
    for load in (0.7,) if quick else (0.6, 0.7, 0.8):
        report.progress(f"mixed cluster at {load}")
        requests = 1_500 if quick else 12_000
        theirs = simulate(SchedulingPolicy("hami"), load, requests, "mixed")
        ours = simulate(SchedulingPolicy(), load, requests, "mixed")
        report.table(
            f"{load} {theirs.share:.4f}/{theirs.whole:.4f} {ours.share:.4f}/{ours.whole:.4f}"
        )
        worst_share = min(worst_share, ours.share - theirs.share)
        worst_whole = min(worst_whole, ours.whole - theirs.whole)
    report.at_least("memory-minus-hami-worst[mixed cluster]", worst_share, 0)
    report.at_least("whole-gpus-minus-hami-worst[mixed cluster]", worst_whole, 0)


def simulate(policy: SchedulingPolicy, load: float, requests: int, seed: str) -> Accepted:
    """A Poisson stream of Pods that ask for memory, with exponential durations."""
    state = ClusterState(policy)
    names = _nodes(state)
    total = sum(g.capability.memory_mib for n in state.snapshot().nodes.values() for g in n.gpus)
    rate = load * total / sum(memory * share for memory, share in DEMANDS.items())
    rng = random.Random(f"{seed} {load}")
    counted = Accepted()
    running: list[tuple[float, str]] = []
    now = 0.0
    for number in range(requests + int(WARM_UP * rate)):
        now += rng.expovariate(rate)
        (memory,) = rng.choices(list(DEMANDS), list(DEMANDS.values()))
        duration = rng.expovariate(1.0)
        while running and running[0][0] <= now:
            state.remove_pod(heapq.heappop(running)[1])
        pod = PodView(ObjectMeta(f"pod-{number}", "team", f"uid-{number}"))
        demand = ContainerRequest(0, "main", 1, Demand(memory_mib=memory))
        held = isinstance(state.filter(pod, PodRequest(1, (demand,)), names), Held)
        if held:
            heapq.heappush(running, (now + duration, pod.uid))
        if now >= WARM_UP:
            whole = memory == max(DEMANDS)
            counted.offered += memory
            counted.accepted += memory * held
            counted.whole_offered += whole
            counted.whole_accepted += whole and held
    return counted


def _nodes(state: ClusterState) -> list[str]:
    names = []
    for key, count in NODES.items():
        for number in range(count):
            name = f"{key}-{number:02d}"
            gpus = tuple(board(key, f"GPU-{name}-{i}", i) for i in range(GPUS_PER_NODE))
            text = encode_registration(NodeCapability(gpus))
            meta = ObjectMeta(name=name, annotations={keys.NODE_REGISTER: text})
            ready = NodeStatus(conditions=[NodeCondition("Ready", "True")])
            state.set_node(NodeView(meta, status=ready))
            names.append(name)
    return names
