"""Pods that ``/filter`` refused, and waking kube-scheduler for those that fit by now.

kube-scheduler tries an unschedulable Pod again within milliseconds after one of its annotations
changed; otherwise it may wait for five minutes, since nothing that it watches tells of freed
memory slices.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from hami_web.cluster.errors import ClusterError, Conflict, NotFound
from hami_web.cluster.ports import ClusterWriter
from hami_web.cluster.views import PodView
from hami_web.core.annotations import POD_RETRY_AT
from hami_web.core.errors import InvalidRequest
from hami_web.core.log_lines import about
from hami_web.core.request import parse_pod_request

logger = logging.getLogger(__name__)

WAITING_MAX: Final = 20_000
"""Pods remembered; beyond, the scheduler's own retries must do."""


@dataclass(slots=True)
class Waiting:
    """One refused Pod, the ``arrival``-th that began to wait.

    ``names`` are the nodes that the scheduler had left for it, None when this process was not
    asked about it. ``not_before_s`` on the clock spaces out the times it is woken. ``reason`` is
    why it was refused last; it outlives the Pod's events. Of Pods of one ``kind``, equal requests
    with equal nodes left, none fits where another does not.
    """

    pod: PodView
    names: tuple[str, ...] | None
    arrival: int
    wakes: int = 0
    reason: str = ""
    kind: Hashable = None
    not_before_s: float = 0.0

    @property
    def order(self) -> tuple[int, str, int]:
        """Highest priority first, then the oldest; creation times have whole seconds."""
        created = self.pod.metadata.creation_timestamp or ""
        return (-(self.pod.spec.priority or 0), created, self.arrival)


@dataclass(slots=True)
class WaitingPods:
    """The refused Pods by UID; safe for threads."""

    _pods: dict[str, Waiting] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _arrivals: int = 0

    def add(self, pod: PodView, names: tuple[str, ...], reason: str = "") -> bool:
        """Remember a refused Pod and the nodes that the scheduler had left for it.

        True where it was not refused for this reason before.
        """
        with self._lock:
            known = self._pods.get(pod.uid)
            is_new = known is None or known.reason != reason
            if known is not None:
                known.pod, known.names, known.reason = pod, names, reason
                known.kind = _kind_of(pod, names)
            else:
                self._begin(pod, names, reason)
            return is_new

    def adopt(self, pod: PodView) -> bool:
        """Remember a waiting Pod that this process was never asked about; True if it is new."""
        with self._lock:
            is_new = pod.uid not in self._pods
            if is_new:
                self._begin(pod, None, "")
            return is_new

    def _begin(self, pod: PodView, names: tuple[str, ...] | None, reason: str) -> None:
        if len(self._pods) < WAITING_MAX:
            self._arrivals += 1
            self._pods[pod.uid] = Waiting(
                pod, names, self._arrivals, reason=reason, kind=_kind_of(pod, names)
            )

    def drop(self, uid: str) -> None:
        """The Pod fits, is bound, or is gone."""
        with self._lock:
            self._pods.pop(uid, None)

    def keep(self, uids: Iterable[str]) -> None:
        """Forget all but these."""
        alive = set(uids)
        with self._lock:
            self._pods = {uid: pod for uid, pod in self._pods.items() if uid in alive}

    def in_order(self) -> list[Waiting]:
        """Who is to be tried first."""
        with self._lock:
            return sorted(self._pods.values(), key=lambda waiting: waiting.order)

    def __len__(self) -> int:
        return len(self._pods)


def _kind_of(pod: PodView, names: tuple[str, ...] | None) -> Hashable:
    try:
        request = parse_pod_request(pod.container_specs(), pod.annotations)
    except InvalidRequest:
        return pod.uid
    return (pod.metadata.namespace, request, hash(names))


@dataclass(frozen=True, slots=True)
class WakeLimits:
    """Bounds of one pass: kinds tried, Pods woken, seconds."""

    tried_at_once: int = 200
    woken_at_once: int = 32
    gather_s: float = 0.05
    again_first_s: float = 1.0
    again_most_s: float = 60.0
    idle_s: float = 30.0


class Waker:
    """A thread that, after a change of occupancy, wakes the waiting Pods that fit now.

    ``fits`` holds the devices of a Pod if they are free, so each next Pod is tried against what the
    earlier ones took: never more are woken than can start. ``give_up`` ends such a hold by UID when
    its Pod could not be woken.
    """

    def __init__(
        self,
        waiting: WaitingPods,
        fits: Callable[[Waiting], bool],
        cluster: ClusterWriter,
        *,
        give_up: Callable[[str], None],
        limits: WakeLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.woken = 0
        self._waiting = waiting
        self._fits = fits
        self._cluster = cluster
        self._give_up = give_up
        self._limits = limits or WakeLimits()
        self._clock = clock
        self._hopeless: set[Hashable] = set()
        """Kinds that did not fit in the turns of this round; a round visits every kind once."""
        self._again = False
        self._changed = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="waker", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the write in progress."""
        self._stopped.set()
        self._changed.set()
        if self._thread.is_alive():
            self._thread.join(5)

    @property
    def is_alive(self) -> bool:
        """False when the thread has died or was never started."""
        return self._thread.is_alive()

    def notice(self) -> None:
        """Occupancy changed; cheap, from any thread."""
        self._again = True
        self._changed.set()

    def _run(self) -> None:
        wait_s = self._limits.idle_s
        while True:
            self._changed.wait(wait_s)
            # Changes come in bunches: one pass for all of them.
            if self._stopped.wait(self._limits.gather_s):
                return
            self._changed.clear()
            try:
                wait_s = self._pass()
            except Exception:
                wait_s = self._limits.idle_s
                logger.exception("waking the waiting Pods")

    def _pass(self) -> float:
        """Try those that may be woken; return the seconds until one more may be.

        However many wait, only so many kinds are tried and Pods woken at once; the round goes on
        with those that were not reached.
        """
        if not self._hopeless:
            self._again = False
        now = self._clock()
        every = self._waiting.in_order()
        tries, left = self._limits.tried_at_once, self._limits.woken_at_once
        for waiting in every:
            if waiting.not_before_s > now or waiting.kind in self._hopeless:
                continue
            if not tries or not left or self._stopped.is_set():
                self._changed.set()
                break
            tries -= 1
            if self._fits(waiting):
                with about(pod=waiting.pod.full_name, pod_uid=waiting.pod.uid):
                    self._wake(waiting)
                left -= 1
            else:
                self._hopeless.add(waiting.kind)
        else:
            self._hopeless.clear()
            if self._again:
                self._changed.set()
        later = [waiting.not_before_s - now for waiting in every if waiting.not_before_s > now]
        return min([self._limits.idle_s, *later])

    def _wake(self, waiting: Waiting) -> None:
        pause = min(self._limits.again_first_s * 2.0**waiting.wakes, self._limits.again_most_s)
        waiting.wakes = min(waiting.wakes + 1, 16)
        waiting.not_before_s = self._clock() + pause
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            self._cluster.annotate_pod(waiting.pod, {POD_RETRY_AT: moment})
        except (NotFound, Conflict):
            self._waiting.drop(waiting.pod.uid)
            self._give_up(waiting.pod.uid)
        except ClusterError as error:
            self._give_up(waiting.pod.uid)
            logger.warning("Pod %s: waking it: %s", waiting.pod.full_name, error)
        else:
            self.woken += 1
            logger.info("Pod %s: fits now; the scheduler is woken", waiting.pod.full_name)
