"""The story that ``manage.py demo`` tells for ever: Pods come, fill, fragment, wait and start."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from hami_web.simulator import demo_expect as expect
from hami_web.simulator.client import ApiError
from hami_web.simulator.demo_cluster import DemoCluster
from hami_web.simulator.demo_expect import StepFailed, until
from hami_web.simulator.demo_plan import PodPlan
from hami_web.simulator.demo_pods import SeenPod

Tell = Callable[[str], None]

_SMALL_MIB: Final = 4000
_MEDIUM_MIB: Final = 8000
_FULL: Final = 7
_STOP_S: Final = 1.5
"""Seconds that containers take to end, long enough to be seen."""
_STAYING: Final = 3
"""Pods of the other nodes that are left running from one round to the next."""


@dataclass(slots=True)
class Story:
    """Plays one round after another; ``pause_s`` is the breath between two events."""

    cluster: DemoCluster
    tell: Tell
    pause_s: float
    random: random.Random = field(default_factory=lambda: random.Random(2))  # noqa: S311
    running: dict[str, PodPlan] = field(default_factory=dict)
    round: int = 0

    def play_round(self) -> None:
        """One round. A surprise is told and ends the day, never the demo."""
        self.round += 1
        for part in (self._day, self._evening):
            try:
                part()
            except (StepFailed, ApiError) as surprise:
                self.tell(f"Unexpected: {surprise}")

    def _day(self) -> None:
        self._everyday()
        self._fill()
        holes = self._fragment()
        self._wait_and_start(holes)
        self._two_devices()

    def _everyday(self) -> None:
        self.tell("Work arrives on the H100, A30 and RTX PRO 6000 nodes.")
        wishes = [("H100", 9000), ("A30", 5500), ("RTX PRO", 24000), ("H100", 38000)]
        wishes += [("A30", 11000), ("RTX PRO", 47000), ("A30", 5500), ("H100", 19000)]
        self.random.shuffle(wishes)
        for number, (gpu_type, memory_mib) in enumerate(wishes):
            word = self.random.choice(("train", "notebook", "etl", "render", "serve"))
            self._run(PodPlan(self._name(f"{word}-{number}"), memory_mib, gpu_type=gpu_type))

    def _fill(self) -> None:
        self.tell(f"Small inference Pods fill the A100s: {_FULL} fit on each.")
        began = time.monotonic()
        names = [self._small(number) for number in range(2 * _FULL)]
        for name in names:
            self._create(PodPlan(name, _SMALL_MIB, gpu_type="A100"))
            self._rest(0.5)
        for name in names:
            pod = until(f"{name} realized", partial(expect.realized, self.cluster, name))
            self.tell(f"  {name} ({_SMALL_MIB} MiB): {self._where(pod)}")
        self.tell(f"  All of them run after {time.monotonic() - began:.0f} s.")
        self._rest(3)

    def _fragment(self) -> list[str]:
        self.tell(
            "Every second one is deleted. Memory slices are free, but no two that belong together."
        )
        starts = {name: self._start_of(name) for name in map(self._small, range(2 * _FULL))}
        leaving = [name for name, start in starts.items() if start % 2]
        for name in leaving:
            self.cluster.delete(name)
            self._rest(0.4)
        for name in leaving:
            self._see_end(name)
        return [name for name, start in starts.items() if start % 2 == 0]

    def _wait_and_start(self, left: list[str]) -> None:
        name = self._name("finetune")
        self.tell(f"{name} asks for {_MEDIUM_MIB} MiB: two memory slices that belong together.")
        self._create(PodPlan(name, _MEDIUM_MIB, gpu_type="A100"))
        pod = until(f"{name} waits", partial(expect.waiting, self.cluster, name))
        self.tell(f"  {name} is Pending. The scheduler says: {pod.message}")
        self._rest(5)
        leaving = min(left, key=self._start_of)
        self.tell(f"{leaving} ends and frees the memory slice beside a hole.")
        self.cluster.delete(leaving)
        self._see_end(leaving)
        freed_at = time.monotonic()
        until(f"{name} starts", partial(expect.bound, self.cluster, name))
        after_s = time.monotonic() - freed_at
        pod = until(f"{name} realized", partial(expect.realized, self.cluster, name))
        self.tell(f"  {name} starts by itself after {after_s:.1f} s: {self._where(pod)}")
        self._rest(4)

    def _two_devices(self) -> None:
        self.tell("One container asks for two devices and gets two instances of its own.")
        self._run(PodPlan(self._name("pair"), 9000, devices=2, gpu_type="H100"))

    def _evening(self) -> None:
        self.tell("Pods finish and their instances are reclaimed; a few stay for the next round.")
        staying = [name for name, plan in self.running.items() if plan.gpu_type != "A100"]
        self.random.shuffle(staying)
        leaving = [name for name in self.running if name not in staying[:_STAYING]]
        for name in leaving:
            pod = self.cluster.pod(name)
            if pod is not None and pod.node:
                self.cluster.finish(pod)
            self._rest(0.3)
        self._rest(3)
        for name in leaving:
            self.cluster.delete(name)
            self._see_end(name)
        self._rest(2)

    def _run(self, plan: PodPlan) -> None:
        """Create a Pod and tell where it went, or why it waits."""
        began = time.monotonic()
        self._create(plan)
        pod = until(plan.name, partial(expect.decided, self.cluster, plan.name))
        if not pod.node:
            self.tell(f"  {plan.name} ({plan.wish}) waits: {pod.message}")
            return
        after_s = time.monotonic() - began
        self.tell(f"  {plan.name} ({plan.wish}): {self._where(pod)}, after {after_s:.1f} s")
        self._rest(1)

    def _create(self, plan: PodPlan) -> None:
        plan = replace(plan, stop_s=_STOP_S)
        self.cluster.create(plan)
        self.running[plan.name] = plan

    def _see_end(self, name: str) -> None:
        until(f"{name} ends", partial(expect.gone, self.cluster, name))
        del self.running[name]

    def _start_of(self, name: str) -> int:
        pod = self.cluster.pod(name)
        if pod is None or not pod.reservations:
            raise StepFailed(f"{name} has no reservation")
        return pod.reservations[0].placement.start

    def _where(self, pod: SeenPod) -> str:
        uuids = self.cluster.gpu_uuids(pod.node)
        places = ", ".join(
            f"GPU {uuids.index(item.gpu_uuid)} {item.profile} at {item.placement}"
            for item in pod.reservations
        )
        return f"{pod.node} {places}"

    def _name(self, word: str) -> str:
        return f"{word}-r{self.round}"

    def _small(self, number: int) -> str:
        return self._name(f"infer-{number}")

    def _rest(self, breaths: float) -> None:
        """Breathe; raises DemoError when a program of the demo has ended."""
        time.sleep(self.pause_s * breaths)
        self.cluster.check()
