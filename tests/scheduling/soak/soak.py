"""Thousands of short Pods on a simulated cluster with the product's real programs.

Some Pods are deleted at once, wherever their scheduling is by then; agents and the extender are
killed in the first half. At the end nothing may be left, and the second half may not have grown the
programs.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hami_web.core import annotations as keys
from hami_web.simulator.demo_cluster import DemoCluster, DemoPorts
from hami_web.simulator.demo_dashboard import answers
from hami_web.simulator.demo_plan import CHECK_NODES, NAMESPACE, PodPlan
from hami_web.simulator.demo_pods import read_pod
from hami_web.simulator.demo_processes import choose_port

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SIZES = (4000, 4000, 9000, 19000)
KILLS = ((20, "agent"), (30, "extender"), (40, "agent"), (50, "extender"))
"""What is killed after which share of the Pods, in percent."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Of one program with its children: resident memory in MiB, threads, open files."""

    memory_mib: float
    threads: int
    files: int


@dataclass(slots=True)
class Report:
    """What a soak found."""

    created: int = 0
    deleted_early: int = 0
    finished: int = 0
    kills: int = 0
    seconds: float = 0.0
    left: dict[str, object] = field(default_factory=dict)
    usage: dict[str, tuple[Usage, Usage]] = field(default_factory=dict)

    def grown(self) -> dict[str, tuple[Usage, Usage]]:
        """Programs that grew in the second half; a pool of threads may still have been filling."""
        return {
            name: (before, after)
            for name, (before, after) in self.usage.items()
            if after.memory_mib > before.memory_mib * 1.1 + 8
            or after.threads > before.threads + 8
            or after.files > before.files + 12
        }


class Soak:
    """One run of ``pods`` Pods, at most ``width`` of them at once."""

    def __init__(
        self,
        pods: int,
        *,
        width: int = 12,
        seed: int = 1,
        kills: Sequence[tuple[int, str]] = KILLS,
    ) -> None:
        self._pods = pods
        self._kills = {pods * share // 100: what for share, what in kills}
        self._width = width
        self._random = random.Random(seed)
        self._report = Report()
        self._folder = Path(tempfile.mkdtemp(prefix="soak-"))
        self._cluster = DemoCluster(self._folder, CHECK_NODES)
        self._extender_port = choose_port(0, "")
        self._deleted: set[str] = set()
        self._finished: set[str] = set()

    def run(self) -> Report:
        """Create, finish and delete until all are through; then look at what is left."""
        began = time.monotonic()
        try:
            self._cluster.start(DemoPorts(extender=self._extender_port), lambda _text: None)
            self._go()
            self._wait_for_the_end()
            self._report.finished = len(self._finished)
            self._report.seconds = time.monotonic() - began
            return self._report
        finally:
            self._cluster.stop()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _go(self) -> None:
        halfway: dict[str, Usage] = {}
        while self._report.created < self._pods:
            self._cluster.check()
            alive = self._advance()
            for _ in range(min(self._width - alive, self._pods - self._report.created)):
                self._create()
                what = self._kills.pop(self._report.created, None)
                if what is not None:
                    self._kill(what)
            if not halfway and self._report.created >= self._pods * 6 // 10:
                halfway = self._usages()
            time.sleep(0.02)
        after = self._usages()
        self._report.usage = {name: (halfway[name], after[name]) for name in halfway}

    def _create(self) -> None:
        name = f"pod-{self._report.created}"
        self._report.created += 1
        self._cluster.create(PodPlan(name, self._random.choice(SIZES)))
        if self._random.random() < 0.1:
            time.sleep(self._random.random() * 0.03)
            self._delete(name)
            self._report.deleted_early += 1

    def _delete(self, name: str) -> None:
        self._deleted.add(name)
        self._cluster.delete(name)

    def _advance(self) -> int:
        """Finish what runs, delete what is over; return how many Pods there are."""
        items = self._cluster.api.get(PODS)["items"]
        for item in items:
            pod = read_pod(item)
            if pod.name in self._deleted:
                continue
            if pod.phase == "Running" and pod.is_realized:
                self._cluster.finish(pod)
                self._finished.add(pod.name)
            elif pod.phase in ("Succeeded", "Failed"):
                self._delete(pod.name)
        return len(items)

    def _kill(self, what: str) -> None:
        self._report.kills += 1
        if what == "agent":
            self._cluster.restart_agent(self._random.choice(CHECK_NODES).name)
            return
        # The server and its worker, as a container's end takes both.
        for each in reversed(_family(self._cluster._children._running["extender"].process.pid)):
            os.kill(each, signal.SIGKILL)
        self._cluster._children.kill("extender")
        kubeconfig = self._folder / "kubeconfig"
        self._cluster._start_extender(kubeconfig, self._extender_port, lambda _text: None)

    def _wait_for_the_end(self) -> None:
        deadline = time.monotonic() + 90
        while True:
            if self._advance() == 0:
                self._report.left = self._leftovers()
                if not any(self._report.left.values()) or time.monotonic() > deadline:
                    return
            elif time.monotonic() > deadline:
                self._report.left = {"pods": self._cluster.pod_names()}
                return
            time.sleep(0.1)

    def _leftovers(self) -> dict[str, object]:
        nodes = self._cluster.api.get("/api/v1/nodes")["items"]
        locks = [
            text
            for node in nodes
            if (text := (node["metadata"].get("annotations") or {}).get(keys.NODE_LOCK))
        ]
        metrics = self._metrics()
        return {
            "locks": locks,
            "instances": [i for plan in CHECK_NODES for i in self._cluster.instances(plan.name)],
            "reservations": {
                k: v for k, v in metrics.items() if "hami_mig_reservations" in k and v
            },
            "open binds": metrics["hami_scheduler_unsettled_binds"],
            "waiting": metrics["hami_scheduler_waiting_pods"],
            "queued": {k: v for k, v in metrics.items() if "bind_queue_depth" in k and v},
        }

    def _metrics(self) -> dict[str, float]:
        address = f"http://127.0.0.1:{self._extender_port}"
        assert answers(f"{address}/readyz")
        with urllib.request.urlopen(f"{address}/metrics", timeout=5) as answer:
            text = answer.read().decode()
        return {name: float(value) for name, value in re.findall(r"(?m)^([^#\s]+) (\S+)$", text)}

    def _usages(self) -> dict[str, Usage]:
        children = self._cluster._children._running
        return {name: _usage_of(child.process.pid) for name, child in children.items()}


def _usage_of(pid: int) -> Usage:
    memory = threads = files = 0
    for each in _family(pid):
        status = Path(f"/proc/{each}/status").read_text()
        memory += int(re.findall(r"VmRSS:\s+(\d+)", status)[0])
        threads += int(re.findall(r"Threads:\s+(\d+)", status)[0])
        files += len(list(Path(f"/proc/{each}/fd").iterdir()))
    return Usage(memory / 1024, threads, files)


def _family(pid: int) -> list[int]:
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += _family(int(child))
    return found
