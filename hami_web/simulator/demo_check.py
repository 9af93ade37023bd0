"""``manage.py demo --check``: a fixed story whose every step is observed, in NVML and on the Pods.

NVML is listed afresh by another program each time; what the product says of itself is never proof.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from hami_web.simulator import demo_expect as expect
from hami_web.simulator import demo_told as told
from hami_web.simulator.demo_cluster import DemoCluster
from hami_web.simulator.demo_expect import NotYet, StepFailed, until
from hami_web.simulator.demo_pace import Pace
from hami_web.simulator.demo_plan import CHECK_CAST, CHECK_NODES, SMALL_MIB, PodPlan
from hami_web.simulator.demo_pods import SeenPod
from hami_web.simulator.demo_processes import DemoError
from hami_web.simulator.demo_story import Story

A100_NODE: Final = CHECK_NODES[0].name
H100_NODE: Final = CHECK_NODES[1].name
LARGER: Final = "finetune"
BACK_OFF_S: Final = 2.2
VISIBLE: Final = "NVIDIA_VISIBLE_DEVICES"


@dataclass(slots=True)
class Check:
    """The story's cluster and what its steps hand on to each other."""

    cluster: DemoCluster
    story: Story
    then: str = ""
    there: frozenset[tuple[str, int, int]] = frozenset()

    def reserve(self) -> str:
        """A Pod is bound together with its reservation."""
        self.cluster.create(PodPlan("first", SMALL_MIB, gpu_type="A100"))
        pod = until("a bound Pod with a reservation", partial(expect.bound, self.cluster, "first"))
        if pod.node != A100_NODE:
            raise StepFailed(f"first is on {pod.node}, it asked for an A100")
        return f"first is bound to {pod.node} with {pod.places}"

    def realize(self) -> str:
        """The instance exists at exactly that placement, and the Pod carries its identity."""
        pod = until("an instance of first", partial(expect.realized, self.cluster, "first"))
        return f"NVML has {pod.places}; the container sees {self._seen_by_container(pod)}"

    def reclaim(self) -> str:
        """A deleted Pod leaves nothing in NVML."""
        self.cluster.delete("first")
        until("first gone", partial(expect.gone, self.cluster, "first"))
        until("it is reclaimed", partial(expect.instance_count, self.cluster, A100_NODE, 0))
        return f"NVML of {A100_NODE} is empty"

    def wait(self) -> str:
        """Also past the scheduler's back-off after its second try: nothing but space starts it."""
        time.sleep(BACK_OFF_S / 2)
        self.then = datetime.now(UTC).isoformat()
        names = [name for name in self.story.running if name != LARGER]
        pods = [expect.realized(self.cluster, name) for name in names]
        self.there = frozenset(
            (pod.name, item.placement.start, item.placement.size)
            for pod in pods
            for item in pod.reservations
        )
        time.sleep(BACK_OFF_S / 2)
        expect.waiting(self.cluster, LARGER)
        return f"{LARGER} still waits, beside {len(pods)} Pods that run"

    def close(self) -> str:
        """The Pods of the story finish, and their instances are reclaimed."""
        said = self.story.close()
        until("only that of after", partial(expect.instance_count, self.cluster, A100_NODE, 1))
        return said

    def two_devices(self) -> str:
        """One container gets two instances of its own."""
        self.cluster.create(PodPlan("pair", 9000, devices=2, gpu_type="H100"))
        pod = until("pair realized", partial(expect.realized, self.cluster, "pair"))
        until("two instances", partial(expect.instance_count, self.cluster, H100_NODE, 2))
        wanted = [(0, 0), (0, 1)]
        if [item.key for item in pod.reservations] != wanted:
            raise StepFailed(f"pair has {[item.key for item in pod.reservations]}, not {wanted}")
        seen = self._seen_by_container(pod)
        return f"NVML of {H100_NODE} has {pod.places}; the container sees {seen}"

    def restart(self) -> str:
        """An agent killed in the middle of its life takes over what it finds."""
        before = self.cluster.instances(A100_NODE)
        self.cluster.restart_agent(A100_NODE)
        self.cluster.create(PodPlan("after", SMALL_MIB, gpu_type="A100"))
        new = until("a Pod after the restart", partial(expect.realized, self.cluster, "after"))
        kept = [seen for seen in self.cluster.instances(A100_NODE) if seen in before]
        if kept != list(before):
            raise StepFailed(f"before the restart {before}, of these only {kept} afterwards")
        return f"{len(kept)} instances untouched with their UUIDs, and one more at {new.places}"

    def complete(self) -> str:
        """A Pod that is done gives its instances back though the Pod object stays."""
        self.cluster.finish(expect.realized(self.cluster, "pair"))
        until("pair reclaimed", partial(expect.instance_count, self.cluster, H100_NODE, 0))
        until("pair Succeeded", partial(expect.phase, self.cluster, "pair", "Succeeded"))
        return f"pair Succeeded; NVML of {H100_NODE} is empty"

    def delete_all(self) -> str:
        """Nothing is left behind."""
        for name in self.cluster.pod_names():
            self.cluster.delete(name)
        for node in (A100_NODE, H100_NODE):
            until(f"{node} empty", partial(expect.instance_count, self.cluster, node, 0))
        return "NVML of every node is empty"

    def history(self) -> str:
        """The past can be asked for when nothing of it is left."""
        past = until(
            "the past as it was", partial(expect.past, self.cluster, self.then, self.there)
        )
        usage = self.cluster.dashboard.rows("usage", {"from": past[0]["reserved_at"]})
        hours = sum(row["gpu_hours"] for row in usage)
        if hours <= 0:
            raise StepFailed(f"the usage is {usage}")
        names = ", ".join(f"{row['pod']} at {row['start']}:{row['size']}" for row in past)
        return f"at {self.then[11:19]} there were {names}; {3600 * hours:.0f} GPU-seconds in all"

    def _seen_by_container(self, pod: SeenPod) -> str:
        """The container's devices, which must be exactly those of the reservations."""
        seen = self.cluster.container_env(pod).get(VISIBLE, "")
        wanted = ",".join(item.identity.mig_uuid for item in pod.reservations if item.identity)
        if seen != wanted:
            raise StepFailed(f"{pod.name}: {VISIBLE} is {seen!r}, not {wanted!r}")
        return seen


Step = Callable[[Check], str]


def chapter(play: Callable[[Story], str]) -> Step:
    """A chapter of the story, which the dashboard must announce with a page that answers."""

    def step(check: Check) -> str:
        said = play(check.story)
        until("the banner", partial(told.announced, check.cluster), pause_s=0.3)
        return said

    return step


STEPS: Final[tuple[tuple[str, Step], ...]] = (
    ("reserve", Check.reserve),
    ("realize", Check.realize),
    ("reclaim", Check.reclaim),
    ("fill", chapter(Story.fill)),
    ("fragment", chapter(Story.fragment)),
    ("explain", chapter(Story.explain)),
    ("wait", Check.wait),
    ("plan", chapter(Story.plan)),
    ("recover", chapter(Story.recover)),
    ("foreign", chapter(Story.foreign)),
    ("clear", chapter(Story.clear)),
    ("restart", Check.restart),
    ("close", Check.close),
    ("two devices", Check.two_devices),
    ("complete", Check.complete),
    ("delete all", Check.delete_all),
    ("history", Check.history),
)


def run_check(cluster: DemoCluster, tell: Callable[[str], None]) -> bool:
    """Play every step; stop at the first that fails. True when all were observed."""
    pace = Pace(cluster.board, 0.0, cluster.check)
    check = Check(cluster, Story(cluster, CHECK_CAST, pace, tell=lambda _line: None, round=1))
    for name, step in STEPS:
        began = time.monotonic()
        try:
            seen = step(check)
            cluster.check()
        except (StepFailed, NotYet, DemoError) as error:
            tell(f"FAILED {name:12} {error}")
            return False
        tell(f"ok     {name:12} {seen} ({time.monotonic() - began:.1f} s)")
    return True
