"""The ownership guard: NVML is not asked to change anything while something else may do so too.

Two programs that make and destroy instances on one card destroy each other's. The look is taken
under the card's lock, right before the call, at readings of the node and of its Pods that are as
fresh as a Pod's Allocate or a reclaim pass has just made them; older ones are read anew. What
cannot be read is no permission.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

from hami_web.core.mig_owner import Sign
from hami_web.core.placement import Placement
from node_agent.cluster import Cluster
from node_agent.errors import ClusterError, OtherOwner, OwnerUnknown
from node_agent.nvml.ports import (
    DriverEvents,
    DriverGpu,
    DriverProcess,
    DriverProfile,
    Guest,
    LiveComputeInstance,
    LiveInstance,
    MigDriver,
    MigModeChange,
    RecoveryAction,
)
from node_agent.planning import layout_owner

logger = logging.getLogger(__name__)

NODE_FRESH_SECONDS: Final = 2.0
"""MIG Manager takes longer than this from a label on the node to its first change of a GPU."""
PODS_FRESH_SECONDS: Final = 30.0
"""A watch tells of Pods that come in between; see :class:`~node_agent.podwatch.PodWatch`."""


class Guard:
    """Whether something else may change the MIG layout of this node's GPUs. Thread-safe."""

    def __init__(self, cluster: Cluster, changed: Callable[[Sign | None], None]) -> None:
        """``changed`` is called with the sign when one came, and with None when it went."""
        self._cluster = cluster
        self._changed = changed
        self._mutex = threading.Lock()
        self._sign: Sign | None = None

    def check(self) -> None:
        """Raises :class:`OtherOwner` where a sign stands, :class:`OwnerUnknown` in doubt."""
        try:
            sign = self.look()
        except ClusterError as error:
            raise OwnerUnknown(
                "whether something else may change the MIG layout cannot be seen, so nothing is "
                f"made or destroyed: {error}"
            ) from error
        if sign is not None:
            raise OtherOwner(str(sign))

    def look(self) -> Sign | None:
        """The sign that stands now. Raises :class:`ClusterError` where that cannot be read."""
        node = self._cluster.latest_node.within(NODE_FRESH_SECONDS)
        pods = self._cluster.latest_pods.within(PODS_FRESH_SECONDS)
        sign = layout_owner(node, pods.pods)
        with self._mutex:
            before, self._sign = self._sign, sign
        if sign != before:
            logger.warning("%s", sign or "nothing else may change the MIG layout any more")
            self._changed(sign)
        return sign


class GuardedDriver:
    """A driver that asks the guard before each call that changes hardware.

    Those calls raise :class:`OtherOwner` and :class:`OwnerUnknown` besides what the driver raises.
    """

    def __init__(self, driver: MigDriver, guard: Guard) -> None:
        self._driver = driver
        self._guard = guard

    def create_gpu_instance(self, uuid: str, profile_id: int, placement: Placement) -> LiveInstance:
        """Create, if nothing else may."""
        self._guard.check()
        return self._driver.create_gpu_instance(uuid, profile_id, placement)

    def create_compute_instance(self, uuid: str, gpu_instance_id: int) -> LiveComputeInstance:
        """Create, if nothing else may."""
        self._guard.check()
        return self._driver.create_compute_instance(uuid, gpu_instance_id)

    def destroy_compute_instance(
        self, uuid: str, gpu_instance_id: int, compute_instance_id: int
    ) -> None:
        """Destroy, if nothing else may."""
        self._guard.check()
        self._driver.destroy_compute_instance(uuid, gpu_instance_id, compute_instance_id)

    def destroy_gpu_instance(self, uuid: str, gpu_instance_id: int) -> None:
        """Destroy, if nothing else may."""
        self._guard.check()
        self._driver.destroy_gpu_instance(uuid, gpu_instance_id)

    def enable_mig_mode(self, uuid: str) -> MigModeChange:
        """Ask for MIG mode, if nothing else may."""
        self._guard.check()
        return self._driver.enable_mig_mode(uuid)

    def gpus(self) -> tuple[DriverGpu, ...]:
        return self._driver.gpus()

    def lost_indexes(self) -> tuple[int, ...]:
        return self._driver.lost_indexes()

    def gpu(self, uuid: str) -> DriverGpu:
        return self._driver.gpu(uuid)

    def profiles(self, uuid: str) -> tuple[DriverProfile, ...]:
        return self._driver.profiles(uuid)

    def instances(self, uuid: str) -> tuple[LiveInstance, ...]:
        return self._driver.instances(uuid)

    def processes(self, uuid: str) -> tuple[DriverProcess, ...]:
        return self._driver.processes(uuid)

    def guest(self, uuid: str) -> Guest:
        return self._driver.guest(uuid)

    def recovery_action(self, uuid: str) -> RecoveryAction | None:
        return self._driver.recovery_action(uuid)

    def events(self, uuids: Sequence[str]) -> DriverEvents:
        return self._driver.events(uuids)

    def remaining_capacity(self, uuid: str, profile_id: int) -> int:
        return self._driver.remaining_capacity(uuid, profile_id)

    def close(self) -> None:
        self._driver.close()
