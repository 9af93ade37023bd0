"""What is done to a GPU that is idle beyond doubt, under its lock.

The caller has shown that nobody owns what is on it; a process on the GPU still stops it.
"""

from __future__ import annotations

from collections.abc import Callable

from node_agent.locks import Deadline, GpuLocks
from node_agent.migmode import enable
from node_agent.nvml.ports import DriverGpu, MigDriver
from node_agent.teardown import destroy_live


class IdleGpus:
    """Changes idle GPUs. Raises :class:`AgentError` or :class:`DriverError`."""

    def __init__(self, driver: MigDriver, locks: GpuLocks) -> None:
        self._driver = driver
        self._locks = locks

    def clean(self, gpu_uuid: str, deadline: Deadline) -> int:
        """Destroy every instance of a GPU; returns how many there were."""
        with self._locks.hold(gpu_uuid, deadline):
            if self._driver.processes(gpu_uuid):
                return 0
            instances = self._driver.instances(gpu_uuid)
            for live in instances:
                destroy_live(self._driver, live)
            return len(instances)

    def enable_mode(
        self, gpu: DriverGpu, held_by: Callable[[int], tuple[str, ...]], deadline: Deadline
    ) -> bool:
        """Turn MIG mode on; returns whether it is on now."""
        with self._locks.hold(gpu.uuid, deadline):
            if self._driver.processes(gpu.uuid):
                return False
            return enable(self._driver, gpu, held_by)
