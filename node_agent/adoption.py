"""What a starting agent makes of the instances it finds, before it serves anything."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from hami_web.core import annotations as keys
from node_agent.cluster import Cluster
from node_agent.errors import AgentError
from node_agent.instances import InstanceManager
from node_agent.locks import Deadline
from node_agent.metrics import AgentMetrics
from node_agent.nvml.ports import DriverError, LiveInstance, MigDriver
from node_agent.planning import (
    AdoptionDecision,
    NodeClaims,
    Verdict,
    adoption_decisions,
    idle_gpus,
    node_claims,
    other_owner,
)
from node_agent.pods import ObservedNode, PodList

logger = logging.getLogger(__name__)

_CLEAN_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class HardwareReading:
    """Instances and profiles of all GPUs that could be read; ``unread`` could not be."""

    live: tuple[LiveInstance, ...]
    profile_ids: dict[tuple[str, str], int]
    gpus: tuple[str, ...]
    unread: frozenset[str]


@dataclass(frozen=True, slots=True)
class AdoptionReport:
    """All verdicts, and how many instances of idle GPUs were removed."""

    decisions: tuple[AdoptionDecision, ...]
    cleaned: int


def read_hardware(driver: MigDriver) -> HardwareReading:
    """Read every GPU with active MIG mode. Raises :class:`DriverError` if they cannot be listed."""
    live: list[LiveInstance] = []
    profile_ids: dict[tuple[str, str], int] = {}
    gpus: list[str] = []
    unread: set[str] = set()
    for gpu in driver.gpus():
        if not gpu.mig_active:
            continue
        try:
            live.extend(driver.instances(gpu.uuid))
            for profile in driver.profiles(gpu.uuid):
                profile_ids[gpu.uuid, profile.name] = profile.profile_id
        except DriverError as error:
            logger.warning("GPU %s cannot be read and is preserved: %s", gpu.uuid, error)
            unread.add(gpu.uuid)
        else:
            gpus.append(gpu.uuid)
    return HardwareReading(tuple(live), profile_ids, tuple(gpus), frozenset(unread))


class Adoption:
    """The start of an agent: a verdict on each reservation, then the idle GPUs."""

    def __init__(
        self,
        cluster: Cluster,
        driver: MigDriver,
        instances: InstanceManager,
        metrics: AgentMetrics,
    ) -> None:
        self._cluster = cluster
        self._driver = driver
        self._instances = instances
        self._metrics = metrics

    def run(self, *, clean_idle: bool, doubt: str) -> AdoptionReport:
        """Adopt what is proven. Raises :class:`ClusterError` or :class:`DriverError` to try again.

        ``doubt`` is a reason, found earlier, not to remove anything.
        """
        node = self._cluster.node()
        first = self._cluster.pods()
        claims = node_claims(first.pods)
        hardware = read_hardware(self._driver)
        records = {record.owner: record for record in self._instances.records()}
        decisions = adoption_decisions(claims.claims, records, hardware.live, hardware.profile_ids)
        for decision in decisions:
            self._apply(decision)
        for text in claims.doubts:
            logger.warning("in doubt, its GPUs are preserved: %s", text)
        cleaned = 0
        if clean_idle:
            cleaned = self._clean(node, first, claims, hardware, doubt)
        return AdoptionReport(decisions, cleaned)

    def _apply(self, decision: AdoptionDecision) -> None:
        verdict = decision.verdict
        if verdict is Verdict.ADOPT and decision.live is not None:
            try:
                self._instances.adopt(decision.claim, decision.live)
            except AgentError as error:
                logger.warning("cannot adopt %s: %s", decision.claim.spec, error)
                verdict = Verdict.PRESERVE
        self._metrics.adoptions.labels(verdict.value).inc()
        level = logging.INFO if verdict in (Verdict.ADOPT, Verdict.AWAIT) else logging.WARNING
        logger.log(
            level,
            "%s: %s of Pod %s (%s)",
            verdict.value,
            decision.claim.spec,
            decision.claim.pod,
            decision.reason,
        )

    def _clean(
        self,
        node: ObservedNode,
        first: PodList,
        claims: NodeClaims,
        hardware: HardwareReading,
        doubt: str,
    ) -> int:
        """Remove instances of GPUs that are idle beyond doubt; any doubt leaves all of them."""
        if not hardware.live:
            return 0
        doubt = doubt or other_owner(node) or self._disagreement(first)
        if doubt:
            self._metrics.skipped.labels("idle-cleaning").inc()
            logger.warning("instances on idle GPUs are preserved: %s", doubt)
            return 0
        busy = self._busy(hardware.gpus)
        occupied = {item.gpu_uuid for item in hardware.live}
        idle = idle_gpus(hardware.gpus, claims, self._instances.records(), busy)
        return sum(self._clean_gpu(gpu) for gpu in idle if gpu in occupied)

    def _clean_gpu(self, gpu: str) -> int:
        try:
            removed = self._instances.clean_idle(gpu, Deadline(_CLEAN_SECONDS))
        except (AgentError, DriverError) as error:
            logger.warning("GPU %s could not be cleaned: %s", gpu, error)
            return 0
        logger.info("removed %d instances of the idle GPU %s", removed, gpu)
        return removed

    def _disagreement(self, first: PodList) -> str:
        """Why a second list of Pods does not confirm the first, or an empty text."""
        second = self._cluster.pods()
        if not first.pods:
            return "the list of the node's Pods is empty while instances exist"
        if _outline(first) != _outline(second):
            return "two lists of the node's Pods do not agree"
        return ""

    def _busy(self, gpus: Collection[str]) -> set[str]:
        busy: set[str] = set()
        for gpu in gpus:
            try:
                if self._driver.processes(gpu):
                    busy.add(gpu)
            except DriverError as error:
                logger.warning("the processes of GPU %s are unknown: %s", gpu, error)
                busy.add(gpu)
        return busy


def _outline(pods: PodList) -> frozenset[tuple[str, bool, str]]:
    """What of a list decides about GPUs: who is there, is it over, what does it reserve."""
    return frozenset(
        (pod.uid, pod.over, pod.annotations.get(keys.POD_MIG_ALLOCATIONS, "")) for pod in pods.pods
    )
