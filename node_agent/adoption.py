"""What a starting agent makes of the instances it finds, before it serves anything."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from node_agent.cluster import Cluster
from node_agent.errors import AgentError
from node_agent.instances import InstanceManager
from node_agent.metrics import AgentMetrics
from node_agent.nvml.ports import DriverError, DriverGpu, LiveInstance, MigDriver
from node_agent.ownership import located
from node_agent.planning import (
    AdoptionDecision,
    NodeClaims,
    Verdict,
    adoption_decisions,
    node_claims,
)
from node_agent.podevents import PodEvents, PodReference, Reason
from node_agent.pods import ObservedNode, PodList

logger = logging.getLogger(__name__)


_TOLD: Final = {
    Verdict.STALE: Reason.INSTANCE_LOST,
    Verdict.PRESERVE: Reason.INSTANCE_IN_DOUBT,
}


@dataclass(frozen=True, slots=True)
class HardwareReading:
    """Instances and profiles of all GPUs with MIG mode on that could be read.

    ``others`` are GPUs whose mode is not on. ``complete`` is False when some GPU could not be read.
    """

    live: tuple[LiveInstance, ...]
    profile_ids: dict[tuple[str, str], int]
    gpus: tuple[DriverGpu, ...]
    others: tuple[DriverGpu, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class AdoptionReport:
    """All verdicts, and the readings that they were made from."""

    decisions: tuple[AdoptionDecision, ...]
    node: ObservedNode
    pods: PodList
    claims: NodeClaims
    hardware: HardwareReading


def read_hardware(driver: MigDriver) -> HardwareReading:
    """Read every GPU with active MIG mode. Raises :class:`DriverError` if they cannot be listed."""
    live: list[LiveInstance] = []
    profile_ids: dict[tuple[str, str], int] = {}
    gpus: list[DriverGpu] = []
    others: list[DriverGpu] = []
    complete = True
    for gpu in driver.gpus():
        if not gpu.mig_active:
            others.append(gpu)
            continue
        try:
            live.extend(driver.instances(gpu.uuid))
            for profile in driver.profiles(gpu.uuid):
                profile_ids[gpu.uuid, profile.name] = profile.profile_id
        except DriverError as error:
            logger.warning("GPU %s cannot be read and is preserved: %s", gpu.uuid, error)
            complete = False
        else:
            gpus.append(gpu)
    complete = complete and not driver.lost_indexes()
    return HardwareReading(tuple(live), profile_ids, tuple(gpus), tuple(others), complete)


class Adoption:
    """A verdict on each reservation: at the start, and again once a GPU can be read."""

    def __init__(
        self,
        cluster: Cluster,
        driver: MigDriver,
        instances: InstanceManager,
        metrics: AgentMetrics,
        events: PodEvents,
    ) -> None:
        self._cluster = cluster
        self._driver = driver
        self._instances = instances
        self._metrics = metrics
        self._events = events
        self._first = True
        self.complete = False
        """False while some GPU could not be read: what is on it may have to be adopted yet."""

    def run(self, *, anew: bool = False) -> AdoptionReport:
        """Adopt what is proven. Raises :class:`ClusterError` or :class:`DriverError` to try again.

        After the first pass only what has no record yet and is proven now changes anything, unless
        all is to be judged ``anew``.
        """
        self._first = self._first or anew
        node = self._cluster.node()
        pods = self._cluster.pods()
        claims = node_claims(pods.pods)
        hardware = read_hardware(self._driver)
        records = {record.owner: record for record in self._instances.records()}
        decisions = adoption_decisions(claims.claims, records, hardware.live, hardware.profile_ids)
        for decision in decisions:
            new = decision.claim.owner not in records and decision.verdict is Verdict.ADOPT
            if self._first or new:
                self._apply(decision)
        if self._first:
            for text in claims.doubts:
                logger.warning("in doubt, its GPUs are preserved: %s", text)
        self._first = False
        self.complete = hardware.complete
        return AdoptionReport(decisions, node, pods, claims, hardware)

    def _apply(self, decision: AdoptionDecision) -> None:
        verdict = decision.verdict
        if verdict is Verdict.ADOPT and decision.live is not None:
            try:
                self._instances.adopt(decision.claim, decision.live)
            except AgentError as error:
                logger.warning("cannot adopt %s: %s", decision.claim.spec, error)
                verdict = Verdict.PRESERVE
        self._metrics.adoptions.labels(verdict.value).inc()
        if verdict in _TOLD:
            claim = decision.claim
            pod = PodReference(claim.namespace, claim.pod_name, claim.owner.pod_uid)
            self._events.tell(pod, _TOLD[verdict], f"{claim.spec}: {decision.reason}")
        level = logging.INFO if verdict in (Verdict.ADOPT, Verdict.AWAIT) else logging.WARNING
        logger.log(
            level,
            "%s: %s of Pod %s (%s)",
            verdict.value,
            decision.claim.spec,
            decision.claim.pod,
            decision.reason,
            extra=located(decision.claim),
        )
