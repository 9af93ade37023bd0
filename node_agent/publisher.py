"""Discovers and publishes: the offer to the kubelet, and the node's two annotations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from hami_web.core import annotations as keys
from hami_web.core.blocked import ALTERED, FOREIGN, BlockedInterval, encode_blocked, reclaiming
from hami_web.core.capability import NodeCapability
from hami_web.core.registration import encode_registration
from hami_web.core.trouble import Trouble
from node_agent.cluster import Cluster
from node_agent.condition import STOPPED, NodeCondition, Verdict, verdict_on
from node_agent.drift import Drift
from node_agent.errors import ClusterError
from node_agent.guard import PODS_FRESH_SECONDS
from node_agent.instances import InstanceManager
from node_agent.inventory import Discovered, GpuProblem, Inventory
from node_agent.metrics import AgentMetrics
from node_agent.nvml.ports import DriverError, DriverUnavailable, LiveInstance, MigDriver
from node_agent.ownership import InstanceRecord, RecordState
from node_agent.planning import foreign_instances, layout_owner, other_owner, program_sign
from node_agent.podevents import PodEvents, PodReference, Reason
from node_agent.pods import ObservedNode, ObservedPod
from node_agent.recovery import CODES
from node_agent.survey import Reading, Survey
from node_agent.unexplained import Unexplained

logger = logging.getLogger(__name__)

_DRIFT = "destroyed by another program"


@dataclass(frozen=True, slots=True)
class Sight:
    """What one NVML session lets see. ``ailment`` says what is wrong with a GPU, or "".

    ``unexplained`` are instances of Pods whose annotations do not tell of them.
    """

    driver: MigDriver
    instances: InstanceManager
    drift: Drift
    ailment: Callable[[str], str]
    unexplained: Unexplained


class Publisher:
    """One pass at a time: read the hardware, tell the kubelet, then the scheduler."""

    def __init__(
        self,
        cluster: Cluster,
        inventory: Inventory,
        survey: Survey,
        condition: NodeCondition,
        metrics: AgentMetrics,
        events: PodEvents,
    ) -> None:
        self._cluster = cluster
        self._inventory = inventory
        self._survey = survey
        self._condition = condition
        self._metrics = metrics
        self._events = events
        self._asked: frozenset[GpuProblem] = frozenset()
        self._trouble = Trouble(
            logger, "the node's annotations could not be written: %s; again soon"
        )

    def publish(self, sight: Sight) -> bool:
        """Returns False when the annotations could not be written and the pass must be repeated.

        Raises :class:`DriverUnavailable` when NVML is gone; then nothing is offered any more.
        """
        try:
            reading = self._survey.read(sight.driver, sight.ailment)
        except DriverError as error:
            self.withdraw(f"NVML cannot be used: {error}", "NoDriver")
            if isinstance(error, DriverUnavailable):
                raise
            return False
        reading = self._without_drift(reading, sight.drift)
        self._tell_of_recovery(reading.discovered, sight.instances)
        # Records after the listing: an instance made in between has its record, and is not foreign.
        records, unexplained = sight.instances.records(), sight.unexplained
        blocked = blocked_intervals(reading.live, records, unexplained.found)
        self._metrics.show_blocked(blocked)
        self._offer(reading.discovered)
        registration = encode_registration(reading.discovered.capability)
        wanted: dict[str, str | None] = {
            keys.NODE_REGISTER: registration,
            keys.NODE_MIG_BLOCKED: encode_blocked(blocked),
            keys.NODE_MIG_VERIFIED: "true" if unexplained.is_strict else None,
        }
        pods = self._pods()
        if pods is not None:
            program = program_sign(pods)
            wanted[keys.NODE_MIG_OWNER] = None if program is None else program.text
        node = self._write(wanted)
        if node is None or pods is None:
            self._condition.show(verdict_on(reading.discovered))
            return False
        return self._condition.show(self._verdict(reading.discovered, node, pods))

    def _pods(self) -> tuple[ObservedPod, ...] | None:
        """The node's Pods, or None: then what was said of other owners stays."""
        try:
            return self._cluster.latest_pods.within(PODS_FRESH_SECONDS).pods
        except ClusterError as error:
            logger.warning("other owners cannot be looked for: %s", error)
            return None

    def _without_drift(self, reading: Reading, drift: Drift) -> Reading:
        """Close GPUs on which another program destroyed instances, and tell their Pods."""
        taken = drift.taken_away(reading.live, reading.read)
        if not taken:
            return reading
        for record in taken:
            pod = PodReference(record.namespace, record.pod_name, record.owner.pod_uid)
            self._events.tell(pod, Reason.INSTANCE_LOST, f"{record.spec}: {_DRIFT}")
        gpus = {record.spec.gpu_uuid for record in taken}
        return reading.closed(gpus, f"an instance was {_DRIFT}; its Pod must be recreated", "Drift")

    def _tell_of_recovery(self, discovered: Discovered, instances: InstanceManager) -> None:
        """Say once, on the Pods of a GPU, what the driver asks to be done about it."""
        asked = frozenset(p for p in discovered.problems if p.code in CODES)
        new = {problem.subject: problem.reason for problem in asked - self._asked}
        self._asked = asked
        for record in instances.records():
            if record.spec.gpu_uuid in new:
                pod = PodReference(record.namespace, record.pod_name, record.owner.pod_uid)
                note = f"{record.spec}: {new[record.spec.gpu_uuid]}"
                self._events.tell(pod, Reason.GPU_ERROR, note)

    @staticmethod
    def _verdict(
        discovered: Discovered, node: ObservedNode, pods: tuple[ObservedPod, ...]
    ) -> Verdict:
        """The node's condition; another owner of the layout is named where nothing worse is."""
        verdict = verdict_on(discovered)
        other = other_owner(node, pods)
        if not other:
            return verdict
        sign = layout_owner(node, pods)
        told = f"another owner of the MIG layout shows: {other}" if sign is None else str(sign)
        message = f"{verdict.message}; {told}"
        if verdict.status != "True":
            return Verdict(verdict.status, verdict.reason, message)
        return Verdict("True" if sign is None else "False", "OtherOwner", message)

    def shortcoming(self, *, written: bool) -> str:
        """What keeps the node from taking work after a pass, or an empty text."""
        discovered = self._inventory.discovered
        if discovered is not None and not any(g.healthy for g in discovered.capability.gpus):
            first = str(discovered.problems[0]) if discovered.problems else "the node has no GPU"
            return f"no device is offered: {first}"
        return "" if written else "the node's annotations could not be written"

    def withdraw(self, reason: str, code: str) -> None:
        """Offer nothing, to the kubelet and to the scheduler, and say why."""
        nothing = Discovered(NodeCapability(()), (GpuProblem("node", reason, code),))
        self._offer(nothing)
        self._write({keys.NODE_REGISTER: encode_registration(NodeCapability(()))})
        self._condition.show(verdict_on(nothing))

    def stopped(self) -> None:
        """Say that nobody looks after the node now; its Pods go on."""
        self._condition.show(STOPPED)

    def _offer(self, discovered: Discovered) -> None:
        if not self._inventory.publish(discovered):
            return
        gpus = discovered.capability.gpus
        self._metrics.show_gpus(sum(gpu.healthy for gpu in gpus), discovered.problems)
        for problem in discovered.problems:
            logger.warning("not offered: %s", problem)
        for gpu in gpus:
            if gpu.healthy:
                names = ", ".join(profile.name for profile in gpu.profiles)
                logger.info("offered: %s %s with %s", gpu.uuid, gpu.model, names)

    def _write(self, wanted: Mapping[str, str | None]) -> ObservedNode | None:
        """Write what differs from what the node carries; HAMi's rule is to write on change only.

        Returns the node, None when it could not be read or written.
        """
        try:
            node = self._cluster.node()
            present = node.annotations
            changed = {key: text for key, text in wanted.items() if present.get(key) != text}
            if changed.get(keys.NODE_MIG_BLOCKED) == "[]" and keys.NODE_MIG_BLOCKED not in present:
                del changed[keys.NODE_MIG_BLOCKED]
            if changed:
                self._cluster.patch_node(changed)
                self._metrics.publications.labels("written").inc()
        except ClusterError as error:
            self._metrics.publications.labels("failed").inc()
            self._trouble.tell(error)
            return None
        self._trouble.over()
        return node


def blocked_intervals(
    live: Iterable[LiveInstance],
    records: tuple[InstanceRecord, ...],
    unexplained: tuple[InstanceRecord, ...],
) -> list[BlockedInterval]:
    """Memory slices that no reservation explains.

    Foreign instances, refused destroys, and instances whose Pods' annotations were altered.
    """
    instances = tuple(live)
    foreign = [
        BlockedInterval(item.gpu_uuid, item.placement, FOREIGN)
        for item in foreign_instances(instances, records)
    ]
    present = {(item.gpu_uuid, item.placement) for item in instances}
    refused = [
        BlockedInterval(r.spec.gpu_uuid, r.spec.placement, reclaiming(r.reason))
        for r in records
        if r.state is RecordState.RECLAIMING and (r.spec.gpu_uuid, r.spec.placement) in present
    ]
    altered = [
        BlockedInterval(r.spec.gpu_uuid, r.spec.placement, ALTERED)
        for r in unexplained
        if (r.spec.gpu_uuid, r.spec.placement) in present
    ]
    return sorted(foreign + refused + altered)
