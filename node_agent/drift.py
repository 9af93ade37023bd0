"""Instances of ours that another program destroyed: found, told, and never fought about."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable

from node_agent.errors import AgentError
from node_agent.instances import InstanceManager
from node_agent.locks import Deadline, GpuLocks
from node_agent.nvml.ports import DriverError, LiveInstance, MigDriver
from node_agent.ownership import InstanceRecord
from node_agent.planning import missing_records

logger = logging.getLogger(__name__)

_LOCK_SECONDS = 2.0


class Drift:
    """Compares records with the hardware; what it says was seen under the GPU's lock."""

    def __init__(self, driver: MigDriver, instances: InstanceManager, locks: GpuLocks) -> None:
        self._driver = driver
        self._instances = instances
        self._locks = locks

    def taken_away(
        self, live: Iterable[LiveInstance], read: Collection[str]
    ) -> tuple[InstanceRecord, ...]:
        """Realized records on the GPUs that were ``read`` whose instance does not exist.

        A listing from before may be overtaken by a call in progress, so each suspicion is looked
        at again while nothing of ours changes the GPU.
        """
        suspects = missing_records(live, self._instances.records())
        gpus = sorted({record.spec.gpu_uuid for record in suspects} & set(read))
        return tuple(record for gpu in gpus for record in self._confirmed(gpu))

    def _confirmed(self, gpu: str) -> tuple[InstanceRecord, ...]:
        try:
            with self._locks.hold(gpu, Deadline(_LOCK_SECONDS)):
                live = self._driver.instances(gpu)
                own = [r for r in self._instances.records() if r.spec.gpu_uuid == gpu]
                return missing_records(live, own)
        except (AgentError, DriverError) as error:
            logger.info("GPU %s is compared with the records later: %s", gpu, error)
            return ()
