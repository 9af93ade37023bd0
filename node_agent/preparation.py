"""Prepares idle GPUs at the start: old instances are removed, MIG mode is turned on.

Only what is idle beyond doubt is touched: two complete lists of Pods agree, nothing is unreadable,
no Pod speaks of the GPU, no record and no process is on it, and no other owner shows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final

from hami_web.core import annotations as keys
from node_agent.adoption import AdoptionReport
from node_agent.cluster import Cluster
from node_agent.discovery import is_excluded
from node_agent.errors import AgentError
from node_agent.idle import IdleGpus
from node_agent.instances import InstanceManager
from node_agent.locks import Deadline
from node_agent.metrics import AgentMetrics
from node_agent.migmode import reason_not_to_ask
from node_agent.nvml.ports import DriverError, DriverGpu, MigDriver
from node_agent.planning import idle_gpus, other_owner, whole_gpus
from node_agent.pods import PodList
from node_agent.survey import Survey

logger = logging.getLogger(__name__)

_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Rules:
    """What may be prepared: ``resource`` is the kubelet's, ``survey`` knows policy and exclusions.

    ``held_by`` names who has the device node with a minor number open; ``idle`` does the work.
    """

    resource: str
    survey: Survey
    idle: IdleGpus
    held_by: Callable[[int], tuple[str, ...]]


class Preparation:
    """One pass after the first adoption."""

    def __init__(
        self,
        cluster: Cluster,
        driver: MigDriver,
        instances: InstanceManager,
        metrics: AgentMetrics,
        rules: Rules,
    ) -> None:
        self._cluster = cluster
        self._driver = driver
        self._instances = instances
        self._metrics = metrics
        self._rules = rules

    def run(self, report: AdoptionReport, doubt: str) -> bool:
        """Prepare what is idle; returns True when MIG mode was turned on somewhere.

        ``doubt`` is a reason, found earlier, to touch nothing. Raises :class:`ClusterError` when
        the second list of Pods cannot be had.
        """
        hardware = report.hardware
        occupied = {item.gpu_uuid for item in hardware.live}
        to_clean = [gpu for gpu in self._ours(hardware.gpus) if gpu.uuid in occupied]
        to_enable = self._to_enable(self._ours(hardware.others))
        if not to_clean and not to_enable:
            return False
        whole, unnamed = whole_gpus(report.pods.pods, report.claims, self._rules.resource)
        doubt = doubt or other_owner(report.node, report.pods.pods) or unnamed
        doubt = doubt or self._disagreement(report.pods, occupied)
        if doubt:
            self._metrics.skipped.labels("idle-preparation").inc()
            logger.warning("GPUs are left as they are: %s", doubt)
            return False
        used = self._busy([*to_clean, *to_enable]) | whole
        uuids = [gpu.uuid for gpu in to_clean]
        idle = set(idle_gpus(uuids, report.claims, self._instances.records(), used))
        for gpu in to_clean:
            if gpu.uuid in idle:
                self._clean(gpu)
        # With the mode off no reservation can have an instance: after a reboot it must come back.
        ready = [gpu for gpu in to_enable if gpu.uuid not in used]
        ready = [gpu for gpu in ready if not report.claims.in_doubt(gpu.uuid)]
        enabled = [gpu.uuid for gpu in ready if self._enable(gpu)]
        return bool(enabled)

    def _ours(self, gpus: Iterable[DriverGpu]) -> list[DriverGpu]:
        """GPUs that the policy lists and nobody excluded; others are none of our business."""
        allowlist = self._rules.survey.policy.allowlist()
        return [
            gpu
            for gpu in gpus
            if allowlist is not None
            and allowlist.profiles_for(gpu.name) is not None
            and not is_excluded(gpu, self._rules.survey.excluded)
        ]

    def _to_enable(self, gpus: Iterable[DriverGpu]) -> list[DriverGpu]:
        wanted: list[DriverGpu] = []
        for gpu in gpus:
            try:
                reason = reason_not_to_ask(gpu, self._driver.guest(gpu.uuid))
            except DriverError as error:
                reason = str(error)
            if reason:
                logger.warning("MIG mode of %s is left as it is: %s", gpu.uuid, reason)
            elif not gpu.mig_active:
                wanted.append(gpu)
        return wanted

    def _clean(self, gpu: DriverGpu) -> None:
        try:
            removed = self._rules.idle.clean(gpu.uuid, Deadline(_SECONDS))
        except (AgentError, DriverError) as error:
            logger.warning("GPU %s could not be cleaned: %s", gpu.uuid, error)
        else:
            logger.info("removed %d instances of the idle GPU %s", removed, gpu.uuid)

    def _enable(self, gpu: DriverGpu) -> bool:
        try:
            return self._rules.idle.enable_mode(gpu, self._rules.held_by, Deadline(_SECONDS))
        except (AgentError, DriverError) as error:
            logger.warning("MIG mode of %s could not be enabled: %s", gpu.uuid, error)
            return False

    def _disagreement(self, first: PodList, occupied: Collection[str]) -> str:
        """Why a second list of Pods does not confirm the first, or an empty text."""
        second = self._cluster.pods()
        if not first.pods and occupied:
            return "the list of the node's Pods is empty while instances exist"
        if _outline(first) != _outline(second):
            return "two lists of the node's Pods do not agree"
        return ""

    def _busy(self, gpus: Iterable[DriverGpu]) -> frozenset[str]:
        busy: set[str] = set()
        for gpu in gpus:
            try:
                if self._driver.processes(gpu.uuid):
                    busy.add(gpu.uuid)
            except DriverError as error:
                logger.warning("the processes of GPU %s are unknown: %s", gpu.uuid, error)
                busy.add(gpu.uuid)
        return frozenset(busy)


def _outline(pods: PodList) -> frozenset[tuple[str, bool, str]]:
    """What of a list decides about GPUs: who is there, is it over, what does it reserve."""
    return frozenset(
        (pod.uid, pod.over, pod.annotations.get(keys.POD_MIG_ALLOCATIONS, "")) for pod in pods.pods
    )
