"""``manage.py demo --check``: a fixed story whose every step is observed, in NVML and on the Pods.

NVML is listed afresh by another program each time; what the product says of itself is never proof.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Final

from hami_web.core.reasons import Reason
from hami_web.simulator import demo_expect as expect
from hami_web.simulator.demo_cluster import DemoCluster
from hami_web.simulator.demo_expect import NotYet, StepFailed, until
from hami_web.simulator.demo_observe import SeenInstance
from hami_web.simulator.demo_plan import CHECK_NODES, PodPlan
from hami_web.simulator.demo_pods import SeenPod
from hami_web.simulator.demo_processes import DemoError

A100_NODE: Final = CHECK_NODES[0].name
H100_NODE: Final = CHECK_NODES[1].name
ONE: Final = 4000
"""MiB that the smallest profile of an A100 40 GB covers."""
TWO: Final = 8000
"""MiB that need its next profile, of two memory slices."""
FULL: Final = 7
"""Instances of the smallest profile that an A100 holds (its instance count in NVML)."""
AGAIN_S: Final = 6.0
"""Seconds from the space to the Pod that waited for it. It takes far less than two on a machine
with nothing else to do; here a whole cluster shares it, and the step tells how long it took."""
BACK_OFF_S: Final = 2.2
VISIBLE: Final = "NVIDIA_VISIBLE_DEVICES"


@dataclass(slots=True)
class Check:
    """The story's cluster and what its steps hand on to each other."""

    cluster: DemoCluster
    small: dict[str, SeenInstance] = field(default_factory=dict)
    free_since: float = 0.0
    then: str = ""
    there: frozenset[tuple[str, int, int]] = frozenset()

    def reserve(self) -> str:
        """A Pod is bound together with its reservation."""
        self.cluster.create(PodPlan("small-0", ONE, gpu_type="A100"))
        pod = until(
            "a bound Pod with a reservation", partial(expect.bound, self.cluster, "small-0")
        )
        if pod.node != A100_NODE:
            raise StepFailed(f"small-0 is on {pod.node}, it asked for an A100")
        return f"small-0 is bound to {pod.node} with {pod.places}"

    def realize(self) -> str:
        """The instance exists at exactly that placement, and the Pod carries its identity."""
        pod = until("an instance of small-0", partial(expect.realized, self.cluster, "small-0"))
        return f"NVML has {pod.places}; the container sees {self._seen_by_container(pod)}"

    def fill(self) -> str:
        """Seven of the smallest fill the GPU."""
        names = [f"small-{number}" for number in range(FULL)]
        for name in names[1:]:
            self.cluster.create(PodPlan(name, ONE, gpu_type="A100"))
        pods = [until(f"{n} realized", partial(expect.realized, self.cluster, n)) for n in names]
        present = until(
            f"{FULL} instances", partial(expect.instance_count, self.cluster, A100_NODE, FULL)
        )
        at = {instance.placement: instance for instance in present}
        self.small = {pod.name: at[pod.reservations[0].placement] for pod in pods}
        return f"NVML of {A100_NODE} has {len(present)} disjoint instances"

    def fragment(self) -> str:
        """Every second one ends: memory slices are free, but no two that belong together."""
        odd = [name for name, seen in self.small.items() if seen.placement.start % 2]
        for name in odd:
            self.cluster.delete(name)
        for name in odd:
            until(f"{name} gone", partial(expect.gone, self.cluster, name))
            del self.small[name]
        left = until(
            "instances reclaimed",
            partial(expect.instance_count, self.cluster, A100_NODE, FULL - len(odd)),
        )
        return f"NVML of {A100_NODE} has {', '.join(str(seen.placement) for seen in left)} left"

    def wait(self) -> str:
        """A larger Pod stays Pending, with a reason that says what is the matter."""
        self.cluster.create(PodPlan("larger", TWO, gpu_type="A100"))
        pod = until("a reason for larger", partial(expect.waiting, self.cluster, "larger"))
        if Reason.TOPOLOGY_INFEASIBLE not in pod.message:
            raise StepFailed(f"the reason is {pod.message!r}, without {Reason.TOPOLOGY_INFEASIBLE}")
        # Also past the scheduler's back-off after its second try: nothing but space starts it.
        time.sleep(BACK_OFF_S / 2)
        then = datetime.now(UTC).isoformat()
        time.sleep(BACK_OFF_S / 2)
        pod = expect.waiting(self.cluster, "larger")
        before = len(self.small)
        self.then = then
        self.there = frozenset(
            (name, seen.placement.start, seen.placement.size) for name, seen in self.small.items()
        )
        until("NVML unchanged", partial(expect.instance_count, self.cluster, A100_NODE, before))
        return f"larger is Pending: {pod.message}"

    def free(self) -> str:
        """One Pod in the way ends."""
        name = min(self.small, key=lambda each: self.small[each].placement.start)
        seen = self.small.pop(name)
        self.cluster.delete(name)
        until(f"{name} gone", partial(expect.gone, self.cluster, name))
        self.free_since = time.monotonic()
        return f"{name} is gone, {seen.placement} is free"

    def reschedule(self) -> str:
        """The Pending Pod starts by itself."""
        until(
            "larger bound by itself",
            partial(expect.bound, self.cluster, "larger"),
            patience_s=AGAIN_S - (time.monotonic() - self.free_since),
        )
        after_s = time.monotonic() - self.free_since
        pod = until("larger realized", partial(expect.realized, self.cluster, "larger"))
        return f"larger was bound after {after_s:.1f} s; NVML has {pod.places}"

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
        self.cluster.create(PodPlan("after", ONE, gpu_type="A100"))
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
        usage = self.cluster.history("usage", {"from": past[0]["reserved_at"]})
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
STEPS: Final[tuple[tuple[str, Step], ...]] = (
    ("reserve", Check.reserve),
    ("realize", Check.realize),
    ("fill", Check.fill),
    ("fragment", Check.fragment),
    ("wait", Check.wait),
    ("free", Check.free),
    ("reschedule", Check.reschedule),
    ("two devices", Check.two_devices),
    ("restart", Check.restart),
    ("complete", Check.complete),
    ("delete all", Check.delete_all),
    ("history", Check.history),
)


def run_check(cluster: DemoCluster, tell: Callable[[str], None]) -> bool:
    """Play every step; stop at the first that fails. True when all were observed."""
    check = Check(cluster)
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
