"""Destroys exactly the instances whose Pods are over, and finishes what was interrupted.

Only a complete list of the node's Pods, taken after the records were read, with nothing in doubt,
lets anything be destroyed; and each Pod is asked for by name once more right before. GPUs are
worked on side by side, since a destroy can take seconds: no GPU waits for another one's.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from hami_web.core import annotations as keys
from hami_web.core.log_lines import about
from hami_web.core.reservation import RuntimeIdentity
from hami_web.core.tracing import span
from hami_web.core.trouble import Trouble
from node_agent import nodelock
from node_agent.cluster import Cluster
from node_agent.errors import AgentError, ClusterConflict, ClusterError, NoPodToServe
from node_agent.instances import InstanceManager
from node_agent.locks import Deadline
from node_agent.metrics import AgentMetrics
from node_agent.nvml.ports import DriverError
from node_agent.ownership import InstanceRecord, InstanceSpec, Owner, RecordState, located
from node_agent.planning import NodeClaims, node_claims, pod_claims, reclaimable
from node_agent.podevents import PodEvents, PodReference, Reason
from node_agent.pods import ContainerState, ObservedNode, ObservedPod
from node_agent.reservations import node_label, realized_annotations
from node_agent.steps import SLOW_SECONDS

logger = logging.getLogger(__name__)

_RELEASE_SECONDS: Final = 15.0
_BACKOFF_FIRST_SECONDS: Final = 0.25
_BACKOFF_MOST_SECONDS: Final = 30.0
_GPUS_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class _Retry:
    """When a refused destroy is tried again, on the monotonic clock."""

    at: float
    wait: float


@dataclass(frozen=True, slots=True)
class Hooks:
    """Who else takes part.

    ``changed`` is called when instances changed, ``listed`` with the records and then the Pods of
    each pass; ``serving`` gives the UID of the Pod in Allocate.
    """

    changed: Callable[[], None]
    listed: Callable[[Sequence[InstanceRecord], Sequence[ObservedPod]], None]
    serving: Callable[[], str]


class Reclaimer:
    """One pass at a time, which begins the destroys; :meth:`wake` asks for one soon."""

    def __init__(
        self,
        cluster: Cluster,
        instances: InstanceManager,
        metrics: AgentMetrics,
        *,
        hooks: Hooks,
        events: PodEvents,
    ) -> None:
        self._events = events
        self._cluster = cluster
        self._instances = instances
        self._metrics = metrics
        self._hooks = hooks
        self._wake = threading.Event()
        self._workers = ThreadPoolExecutor(_GPUS_AT_ONCE, thread_name_prefix="reclaim")
        self._mutex = threading.Lock()
        self._retries: dict[Owner, _Retry] = {}
        self._busy: set[str] = set()
        self._missed: set[str] = set()

    def wake(self) -> None:
        """Ask for a pass now; safe from any thread."""
        self._wake.set()

    def run(self, stop: threading.Event, interval: float) -> None:
        """Pass after pass, at least every ``interval`` seconds, until told to stop.

        Returns when the destroys in progress have ended.
        """
        trouble = Trouble(logger, "nothing is reclaimed, the Pods cannot be listed: %s")
        with self._workers:
            while True:
                # Cleared before the check, so that a stop in between is not waited out.
                self._wake.clear()
                if stop.is_set():
                    return
                try:
                    self.reconcile()
                    trouble.over()
                except ClusterError as error:
                    self._metrics.skipped.labels("cluster").inc()
                    trouble.tell(error)
                except Exception:
                    self._metrics.skipped.labels("error").inc()
                    logger.exception("a reclaim pass failed")
                self._wake.wait(self._pause(interval))

    def reconcile(self) -> None:
        """One pass. Raises :class:`ClusterError` when the Pods cannot be read completely."""
        records = self._instances.records()
        node = self._cluster.node()
        pods = self._cluster.pods().pods
        self._hooks.listed(records, pods)
        claims = node_claims(pods)
        for doubt in claims.doubts:
            self._metrics.skipped.labels("malformed").inc()
            logger.warning("in doubt, its GPUs are preserved: %s", doubt)
        due = reclaimable(records, pods, claims)
        owners = {record.owner for record in due}
        with self._mutex:
            self._retries = {o: retry for o, retry in self._retries.items() if o in owners}
        self._reclaim_all(due)
        self._finish(records, pods, claims)
        self._unlock(node)

    def clear(self, owner: Owner, spec: InstanceSpec, deadline: Deadline) -> None:
        """Reclaim what other owners left on these memory slices, if their Pods are over."""
        left = [
            record
            for record in self._instances.records()
            if record.owner != owner
            and record.spec.gpu_uuid == spec.gpu_uuid
            and record.spec.placement.overlaps(spec.placement)
        ]
        if not left:
            return
        pods = self._cluster.pods().pods
        for record in reclaimable(left, pods, node_claims(pods)):
            if self._owner_is_over(record):
                self._instances.release(record, deadline)

    def _reclaim_all(self, records: Sequence[InstanceRecord]) -> None:
        """Begin with each GPU that nobody works on; those of one GPU go in order."""
        now = time.monotonic()
        by_gpu: dict[str, list[InstanceRecord]] = {}
        with self._mutex:
            for record in records:
                retry = self._retries.get(record.owner)
                if retry is None or now >= retry.at:
                    by_gpu.setdefault(record.spec.gpu_uuid, []).append(record)
            self._missed |= by_gpu.keys() & self._busy
            free = by_gpu.keys() - self._busy
            self._busy |= free
        for gpu in sorted(free):
            self._workers.submit(self._reclaim_on, gpu, by_gpu[gpu])

    def _reclaim_on(self, gpu_uuid: str, records: Sequence[InstanceRecord]) -> None:
        try:
            for record in records:
                with about(pod=record.pod, pod_uid=record.owner.pod_uid):
                    self._reclaim(record)
        except Exception:
            self._metrics.skipped.labels("error").inc()
            logger.exception("reclaiming on GPU %s failed", gpu_uuid)
        finally:
            with self._mutex:
                self._busy.discard(gpu_uuid)
                missed = gpu_uuid in self._missed
                self._missed.discard(gpu_uuid)
            if missed:
                self.wake()

    def _reclaim(self, record: InstanceRecord) -> None:
        try:
            if not self._owner_is_over(record):
                return
            started = time.monotonic()
            with span("reclaim"):
                self._instances.release(record, Deadline(_RELEASE_SECONDS))
        except (AgentError, DriverError) as error:
            self._refused(record, error)
        else:
            self._metrics.reclaims.labels("success").inc()
            took = time.monotonic() - started
            if took > SLOW_SECONDS:
                note = f"destroying {record.spec} took {took:.1f} s"
                self._events.tell(_pod_of(record), Reason.RECLAIM_SLOW, note)
        self._hooks.changed()

    def _refused(self, record: InstanceRecord, error: Exception) -> None:
        """Say so, and try again after a pause that grows."""
        with self._mutex:
            known = self._retries.get(record.owner)
            wait = _BACKOFF_FIRST_SECONDS if known is None else known.wait * 2
            wait = min(wait, _BACKOFF_MOST_SECONDS)
            self._retries[record.owner] = _Retry(time.monotonic() + wait, wait)
        self._metrics.reclaims.labels("refused").inc()
        fields = located(record)
        logger.warning("%s of %s stays: %s", record.spec, record.pod, error, extra=fields)
        self._events.tell(_pod_of(record), Reason.RECLAIM_BLOCKED, f"{record.spec} stays: {error}")
        # The loop, which may be waiting for long, must know of the retry.
        self.wake()

    def _owner_is_over(self, record: InstanceRecord) -> bool:
        """Ask for the Pod by name: a list alone may be of the wrong node or a stale cache."""
        pod = self._cluster.pod(record.namespace, record.pod_name)
        return pod is None or pod.uid != record.owner.pod_uid or pod.over

    def _finish(
        self, records: Sequence[InstanceRecord], pods: Sequence[ObservedPod], claims: NodeClaims
    ) -> None:
        """Write identities whose annotation patch was lost, from the records of realized ones."""
        realized = {
            record.owner: record.identity
            for record in records
            if record.state is RecordState.REALIZED and record.identity is not None
        }
        lost = {
            claim.owner.pod_uid
            for claim in claims.claims
            if claim.owner in realized and claim.identity != realized[claim.owner]
        }
        for pod in pods:
            if pod.uid not in lost or pod.over or pod.uid == self._hooks.serving():
                continue
            mine = {
                claim.owner: identity
                for claim in pod_claims(pod)
                if (identity := realized.get(claim.owner)) is not None
            }
            with about(pod=pod.key, pod_uid=pod.uid):
                self._record(pod, mine)

    def _record(self, pod: ObservedPod, realized: dict[Owner, RuntimeIdentity]) -> None:
        started = [
            index
            for index, name in enumerate(pod.containers)
            if pod.states.get(name) is ContainerState.RUNNING
            and any(owner.container_index == index for owner in realized)
        ]
        try:
            changed = realized_annotations(pod, realized, started[0] if started else None)
            node = pod.annotations.get(keys.POD_NODE, "")
            self._cluster.patch_pod(pod, changed, node_label(node))
        except (ClusterError, AgentError) as error:
            logger.warning("the identity of Pod %s is still missing: %s", pod.key, error)
        else:
            logger.info("added the lost identity of Pod %s", pod.key)

    def _unlock(self, node: ObservedNode) -> None:
        """Give the node lock back for a Pod that needs it no longer, whatever stopped it."""
        try:
            lock = nodelock.holder(node)
        except NoPodToServe as error:
            logger.warning("%s", error)
            return
        if lock is None or not lock.pod_name:
            return
        pod = self._cluster.pod(lock.namespace, lock.pod_name)
        if pod is not None and (pod.uid == self._hooks.serving() or not _needs_no_lock(pod, node)):
            return
        try:
            self._cluster.patch_node({keys.NODE_LOCK: None}, node.resource_version)
        except ClusterConflict:
            self.wake()
        else:
            logger.info("released the node lock of %s/%s", lock.namespace, lock.pod_name)

    def _pause(self, interval: float) -> float:
        with self._mutex:
            due = min((retry.at for retry in self._retries.values()), default=None)
        if due is None:
            return interval
        return min(interval, max(_BACKOFF_FIRST_SECONDS, due - time.monotonic()))


def _pod_of(record: InstanceRecord) -> PodReference:
    return PodReference(record.namespace, record.pod_name, record.owner.pod_uid)


def _needs_no_lock(pod: ObservedPod, node: ObservedNode) -> bool:
    """True for a Pod that is over, and for one whose every container was served here."""
    served = pod.annotations.get(keys.POD_BIND_PHASE) == keys.BIND_PHASE_SUCCESS
    return pod.over or (served and pod.node == node.name)
