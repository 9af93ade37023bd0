"""The story that ``manage.py demo`` tells for ever, in six chapters whose every fact is observed.

Pods fill the cluster, some end and leave holes, one waits and is explained, the drain plan names
the one Pod to move, that is moved and the waiting one starts, and somebody cuts a GPU by hand.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeVar

from hami_web.core.reasons import Reason
from hami_web.history.models import AlertState
from hami_web.simulator import demo_expect as expect
from hami_web.simulator import demo_told as told
from hami_web.simulator.client import ApiError
from hami_web.simulator.demo_board import Scene
from hami_web.simulator.demo_cluster import DemoCluster
from hami_web.simulator.demo_expect import StepFailed, until
from hami_web.simulator.demo_pace import Pace, StartAgain
from hami_web.simulator.demo_plan import LARGER_MIB, SMALL_MIB, Cast, PodPlan
from hami_web.simulator.demo_pods import SeenPod

Tell = Callable[[str], None]
Seen = TypeVar("Seen")

_STOP_S: Final = 1.5
"""Seconds that containers take to end, long enough to be seen."""
_MANY_S: Final = 60.0
"""Patience with a node that creates instance after instance."""
_TOLD_S: Final = 90.0
"""Patience with the mirror, which asks the cluster every few seconds."""
_ASK_S: Final = 0.3
"""Between two questions to the dashboard."""


@dataclass(slots=True)
class Story:
    """Plays one round after another.

    Each chapter returns what was observed, and raises StepFailed for what was not.
    """

    cluster: DemoCluster
    cast: Cast
    pace: Pace
    tell: Tell
    running: dict[str, PodPlan] = field(default_factory=dict)
    round: int = 0
    at: str = ""
    """The moment when one Pod waited, as addresses have it."""

    def play_round(self) -> None:
        """One round. A surprise is told and ends the round, never the demo."""
        self.round += 1
        self.at = ""
        try:
            for chapter in (self.fill, self.fragment, self.explain, self.plan, self.recover):
                self.tell(chapter())
            self.tell(self.foreign())
            self.tell(self.clear())
        except StartAgain:
            self.tell("The story starts again.")
        except (StepFailed, ApiError) as surprise:
            self.tell(f"Unexpected: {surprise}")
        try:
            self.tell(self.close())
        except (StepFailed, ApiError) as surprise:
            self.tell(f"Unexpected: {surprise}")

    def fill(self) -> str:
        """Work of all kinds comes, until the A100s are full."""
        self.pace.announce(Scene.FILL, small=str(self.cast.small))
        self.tell("1 of 6: work fills the cluster.")
        for plan in self.cast.everyday:
            self._create(replace(plan, name=self._name(plan.name)))
            self.pace.rest(0.3)
        for name in self._small():
            self._create(PodPlan(name, SMALL_MIB, gpu_type="A100"))
            self.pace.rest(0.3)
        for name in tuple(self.running):
            pod = self._see(f"{name} realized", partial(expect.realized, self.cluster, name))
            self.tell(f"  {name} ({self.running[name].wish}): {self._where(pod)}")
        self.pace.read(3)
        return f"{len(self.running)} Pods run, {self.cast.small} of them fill the A100s"

    def fragment(self) -> str:
        """Every second small one ends: free memory slices, but no two that belong together."""
        self.pace.announce(Scene.FRAGMENT, profile=self.cast.wanted)
        self.tell("2 of 6: Pods end where they lie, and leave holes.")
        leaving = [name for name in self._small() if self._start_of(name) % 2]
        for name in leaving:
            self.cluster.delete(name)
            self.pace.rest(0.3)
        for name in leaving:
            self._see_end(name)
        wanted = self.cast.wanted
        room = self._see_told(f"no room for {wanted}", partial(told.no_room, self.cluster, wanted))
        self.pace.read(7)
        return f"the free memory slices could give {room.packed} {wanted}, and give {room.now}"

    def explain(self) -> str:
        """A larger Pod waits, and its page says why, in a sentence and for each GPU."""
        name = self._name("finetune")
        self.tell(f"3 of 6: {name} asks for {LARGER_MIB} MiB and waits.")
        self._create(PodPlan(name, LARGER_MIB, gpu_type="A100"))
        pod = self._see(f"{name} waits", partial(expect.waiting, self.cluster, name))
        if Reason.TOPOLOGY_INFEASIBLE not in pod.message:
            raise StepFailed(f"the reason is {pod.message!r}, without {Reason.TOPOLOGY_INFEASIBLE}")
        self.pace.announce(Scene.EXPLAIN, pod=name)
        look = partial(told.explained, self.cluster, name, self.cast.a100s)
        said = self._see_told(f"{name} explained", look)
        self.pace.read(9)
        self.at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        return f"{name} is Pending, and its page says: {said}"

    def plan(self) -> str:
        """The drain plan names the only Pod that has to move."""
        wanted = self.cast.wanted
        self.pace.announce(Scene.PLAN, pod=self._name("finetune"), profile=wanted)
        self.tell(f"4 of 6: which Pods would have to move for one {wanted}?")
        moving = self._see_told(f"a plan for {wanted}", partial(told.planned, self.cluster, wanted))
        self.pace.read(9)
        return f"moving {moving} is enough"

    def recover(self) -> str:
        """The Pod of the plan is evicted and made anew; the waiting one starts by itself."""
        wanted, waiting = self.cast.wanted, self._name("finetune")
        moving = self._see_told(f"a plan for {wanted}", partial(told.planned, self.cluster, wanted))
        self.pace.announce(Scene.MOVE, pod=waiting, moving=moving)
        self.tell(f"5 of 6: {moving} is moved, as the plan says.")
        before = self._start_of(moving), self.running[moving]
        self.cluster.evict(moving)
        began = time.monotonic()
        self._see_end(moving)
        self._see(f"{waiting} starts", partial(expect.bound, self.cluster, waiting))
        after_s = time.monotonic() - began
        pod = self._see(f"{waiting} runs", partial(expect.realized, self.cluster, waiting))
        self._create(before[1])
        moved = self._see(f"{moving} runs", partial(expect.realized, self.cluster, moving))
        self.pace.announce(Scene.RECOVER, pod=waiting, moving=moving)
        self.pace.read(7)
        return (
            f"{waiting} started by itself {after_s:.1f} s after the eviction, with {pod.places}; "
            f"{moving} moved from memory slice {before[0]} to {moved.places}"
        )

    def foreign(self) -> str:
        """Somebody makes an instance past everyone: it is shown, left alone, and an alert opens."""
        spot = self.cast.foreign
        gpu = self.cluster.gpu_uuids(spot.node)[spot.gpu_index]
        self.tell(f"6 of 6: somebody cuts GPU {spot.gpu_index} of {spot.node} by hand.")
        place = self.cluster.cut_by_hand(spot)
        names = {"node": spot.node, "gpu": gpu, "place": f"{spot.profile} {place}"}
        self._see_told(f"{place} is shown", partial(told.shown_foreign, self.cluster, gpu))
        self.pace.announce(Scene.FOREIGN, **names)
        self.pace.rest(3)
        self._see_alert(gpu, AlertState.OPEN)
        self.pace.announce(Scene.ALERT, **names)
        self.pace.read(6)
        return f"{spot.profile} at {place} of {spot.node} is foreign, and an alert is open"

    def clear(self) -> str:
        """The foreign instance is destroyed by whoever made it, and its alert is over."""
        spot = self.cast.foreign
        gpu = self.cluster.gpu_uuids(spot.node)[spot.gpu_index]
        self.cluster.mend_by_hand(spot)
        self._see_alert(gpu, AlertState.RESOLVED)
        self.pace.announce(Scene.CLEARED, node=spot.node, gpu=gpu)
        self.pace.read(5)
        return "it is destroyed, and the alert is resolved"

    def close(self) -> str:
        """All Pods finish, their instances are reclaimed, and nothing is left."""
        self.pace.announce(Scene.CLOSE, **({"at": self.at} if self.at else {}))
        self.cluster.mend_by_hand(self.cast.foreign)
        leaving = list(self.running)
        for name in leaving:
            pod = self.cluster.pod(name)
            if pod is not None and pod.node:
                self.cluster.finish(pod)
        self.pace.settle(2)
        for name in leaving:
            self.cluster.delete(name)
        for name in leaving:
            self._see_end(name)
        self.pace.settle(1)
        return "All Pods finished and their instances are reclaimed."

    def _create(self, plan: PodPlan) -> None:
        plan = replace(plan, stop_s=_STOP_S)
        self.cluster.create(plan)
        self.running[plan.name] = plan

    def _see_end(self, name: str) -> None:
        self._see(f"{name} ends", partial(expect.gone, self.cluster, name))
        del self.running[name]

    def _see(self, what: str, look: Callable[[], Seen]) -> Seen:
        return until(what, look, patience_s=_MANY_S)

    def _see_told(self, what: str, look: Callable[[], Seen]) -> Seen:
        return until(what, look, patience_s=_TOLD_S, pause_s=_ASK_S)

    def _see_alert(self, gpu: str, state: AlertState) -> None:
        look = partial(told.foreign_alert, self.cluster, gpu, state)
        self._see_told(f"the alert is {state.value}", look)

    def _start_of(self, name: str) -> int:
        return expect.bound(self.cluster, name).reservations[0].placement.start

    def _where(self, pod: SeenPod) -> str:
        uuids = self.cluster.gpu_uuids(pod.node)
        places = ", ".join(
            f"GPU {uuids.index(item.gpu_uuid)} {item.profile} at {item.placement}"
            for item in pod.reservations
        )
        return f"{pod.node} {places}"

    def _name(self, word: str) -> str:
        return word if self.round == 1 else f"{word}-{self.round}"

    def _small(self) -> list[str]:
        return [f"{self._name('chat')}-{number}" for number in range(self.cast.small)]
