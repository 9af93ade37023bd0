"""How a container gets its instances: by environment, by CDI, or with device nodes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from hami_web.core.reservation import RuntimeIdentity
from node_agent.cdi import CdiFiles
from node_agent.devicenodes import DeviceNode, DeviceNodes
from node_agent.errors import AgentError
from node_agent.locks import Deadline
from node_agent.nodemaking import NodeMaker
from node_agent.nvml.ports import DriverError, LiveInstance, MigDriver
from node_agent.ownership import InstanceRecord, RecordState

logger = logging.getLogger(__name__)

VISIBLE_DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"
_NOTHING: Final = "void"
"""Value that keeps NVIDIA's runtime from injecting anything by itself."""
_REBUILD_SECONDS: Final = 1.0
ENVVAR, CDI, DEVICE_SPECS = "envvar", "cdi", "device-specs"


@dataclass(frozen=True, slots=True)
class HostDevice:
    """A device node: where the host has it, and where the container finds it."""

    host_path: str
    container_path: str


@dataclass(frozen=True, slots=True)
class Grant:
    """What the kubelet is told to give one container."""

    envs: dict[str, str]
    cdi_names: tuple[str, ...] = ()
    devices: tuple[HostDevice, ...] = field(default=())


class Delivery:
    """One way for the whole node; see ``HAMI_DEVICE_LIST_STRATEGY``."""

    def __init__(
        self,
        strategy: str,
        driver: MigDriver,
        nodes: DeviceNodes,
        maker: NodeMaker,
        cdi: CdiFiles,
    ) -> None:
        self._maker = maker
        self._strategy = strategy
        self._driver = driver
        self._nodes = nodes
        self._cdi = cdi

    def deliver(
        self, instances: Sequence[tuple[str, RuntimeIdentity]], deadline: Deadline
    ) -> Grant:
        """What the container with these (GPU UUID, identity) is given, in device order.

        All of it exists when this returns. Raises :class:`AgentError` or :class:`DriverError`.
        """
        uuids = ",".join(identity.mig_uuid for _, identity in instances)
        if self._strategy == ENVVAR:
            return Grant({VISIBLE_DEVICES: uuids})
        found = [(identity, self._of(gpu, identity, deadline)) for gpu, identity in instances]
        if self._strategy == CDI:
            names = tuple(self._cdi.write(identity.mig_uuid, nodes) for identity, nodes in found)
            return Grant({VISIBLE_DEVICES: _NOTHING}, cdi_names=names)
        every = dict.fromkeys(node for _, nodes in found for node in nodes)
        devices = tuple(HostDevice(self._maker.ensure(n, deadline), n.path) for n in every)
        return Grant({VISIBLE_DEVICES: uuids}, devices=devices)

    def withdraw(self, record: InstanceRecord) -> None:
        """Forget an instance that was seen gone. Raises :class:`AgentError`; it is repeated."""
        if record.identity is not None:
            self._cdi.remove(record.identity.mig_uuid)

    def rebuild(
        self,
        records: Callable[[], Sequence[InstanceRecord]],
        live: Iterable[LiveInstance],
        *,
        complete: bool,
    ) -> None:
        """At a start: write every file anew, and remove those whose instance does not exist.

        ``complete`` says that all GPUs could be read; without that nothing is removed. A file that
        is found, and whose instance was made since ``live`` was read, has its record by now. An
        instance that does not exist has no device nodes, so they are not waited for.
        """
        existing = {ci.mig_uuid for item in live for ci in item.compute_instances}
        if self._strategy == CDI:
            for record in records():
                identity = record.identity
                realized = record.state is RecordState.REALIZED
                if realized and identity is not None and identity.mig_uuid in existing:
                    self._rewrite(record, identity)
        if not complete:
            return
        found = self._cdi.own()
        existing |= {r.identity.mig_uuid for r in records() if r.identity is not None}
        try:
            self._cdi.prune(found, existing)
        except OSError as error:
            logger.warning("CDI files of instances that are gone stay: %s", error)

    def _rewrite(self, record: InstanceRecord, identity: RuntimeIdentity) -> None:
        try:
            nodes = self._of(record.spec.gpu_uuid, identity, Deadline(_REBUILD_SECONDS))
            self._cdi.write(identity.mig_uuid, nodes)
        except (AgentError, DriverError) as error:
            logger.warning("the CDI file of Pod %s could not be rebuilt: %s", record.pod, error)

    def _of(
        self, gpu_uuid: str, identity: RuntimeIdentity, deadline: Deadline
    ) -> tuple[DeviceNode, ...]:
        return self._nodes.of_instance(self._driver.gpu(gpu_uuid).minor, identity, deadline)
