"""A simulated node for tests, demos and the command: create it, look at it, disturb it."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

from hami_web.core.placement import Placement
from node_agent.nvml.simulated import mutations, topology
from node_agent.nvml.simulated.lookups import (
    GpuSpec,
    check_fault,
    check_option,
    check_word,
    find_gpu,
    find_instance,
    find_profile,
    new_gpu,
    refusals_named,
    reorder,
)
from node_agent.nvml.simulated.state import (
    PERSISTENCE_DAEMON,
    PROCESS_KINDS,
    RECOVERY_ACTIONS,
    ComputeInstance,
    Fault,
    Gpu,
    GpuInstance,
    Node,
    Process,
    SimulatorError,
)
from node_agent.nvml.simulated.store import StateStore

_FIRST_PID = 40_000


class SimulatedNode:
    """The node whose state is in ``state_dir``. GPUs are named by index or UUID.

    Methods raise :class:`SimulatorError` with a text that names field, value and allowed. They act
    from outside of NVML, as other programs do: faults never hit them.
    """

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self._store = StateStore(state_dir)

    def create(self, gpus: Sequence[str | GpuSpec], *, seed: str | None = None) -> None:
        """Make the node anew, all there was is forgotten. Equal seeds give equal UUIDs."""
        specs = [each if isinstance(each, GpuSpec) else GpuSpec(each) for each in gpus]
        node_seed = seed if seed is not None else str(self.state_dir.resolve())
        made = [new_gpu(node_seed, position, spec) for position, spec in enumerate(specs)]
        self._store.create(Node(seed=node_seed, boot_id=str(uuid.uuid4()), gpus=made))

    def state(self) -> Node:
        """The newest state; do not change it."""
        return self._store.read()

    def boot_id(self) -> str:
        return self.state().boot_id

    def driver_load(self) -> int:
        return self.state().driver_load

    def gpu_uuids(self) -> tuple[str, ...]:
        """By index."""
        return tuple(each.uuid for each in sorted(self.state().gpus, key=lambda gpu: gpu.index))

    def gpu(self, which: int | str) -> Gpu:
        """The GPU's state now; do not change it."""
        return find_gpu(self.state(), which)

    def create_instance(
        self, which: int | str, profile: str, start: int | None = None, *, compute: bool = True
    ) -> tuple[GpuInstance, ComputeInstance | None]:
        """As another program would, at this start or where the driver likes, with its whole CI."""
        with self._store.change() as node:
            gpu = find_gpu(node, which)
            wanted = find_profile(gpu, profile, start)
            placement = None if start is None else Placement(start, wanted.size)
            with refusals_named(f"create {profile} on {gpu.uuid}"):
                instance = mutations.create_gpu_instance(node, gpu, wanted.profile_id, placement)
                if not compute:
                    return instance, None
                whole = max(
                    topology.compute_profiles(gpu.facts, wanted),
                    key=lambda each: each.multiprocessors,
                )
                return instance, mutations.create_compute_instance(
                    node, gpu, instance, whole.profile_id
                )

    def destroy_instance(self, which: int | str, gi_id: int) -> None:
        """With its compute instances; nothing is destroyed where one of them is in use."""
        with self._store.change() as node:
            gpu = find_gpu(node, which)
            instance = find_instance(gpu, gi_id)
            with refusals_named(f"destroy GPU instance {gi_id} on {gpu.uuid}"):
                for compute in tuple(instance.compute_instances):
                    mutations.destroy_compute_instance(gpu, instance, compute)
                mutations.destroy_gpu_instance(gpu, instance)

    def attach(
        self,
        which: int | str,
        gi_id: int | None = None,
        ci_id: int | None = None,
        *,
        kind: str = "compute",
        pid: int | None = None,
        memory_mib: int = 256,
    ) -> int:
        """A process on a compute instance, on a GPU instance or on the GPU; returns its pid.

        ``leaked`` is a descriptor that no process list shows.
        """
        check_word("kind", kind, PROCESS_KINDS)
        with self._store.change() as node:
            gpu = find_gpu(node, which)
            used = {each.pid for other in node.gpus for each in other.processes}
            number = pid if pid is not None else max(used | {_FIRST_PID}) + 1
            with refusals_named(f"attach to GPU instance {gi_id}, compute instance {ci_id}"):
                mutations.attach_process(gpu, Process(number, kind, gi_id, ci_id, memory_mib))
            return number

    def detach(self, pid: int) -> None:
        """The process ends, everywhere. Raise when there is none."""
        with self._store.change() as node:
            before = sum(len(gpu.processes) for gpu in node.gpus)
            for gpu in node.gpus:
                gpu.processes = [each for each in gpu.processes if each.pid != pid]
            if before == sum(len(gpu.processes) for gpu in node.gpus):
                raise SimulatorError(f"pid: {pid} is attached to no GPU; see the verb processes")

    def set_client(self, which: int | str, name: str = PERSISTENCE_DAEMON) -> None:
        """A client that keeps the GPU open: it stands in the way of mode changes only."""
        with self._store.change() as node:
            gpu = find_gpu(node, which)
            gpu.clients = sorted({*gpu.clients, name})

    def clear_clients(self, which: int | str) -> None:
        with self._store.change() as node:
            find_gpu(node, which).clients.clear()

    def set_mig_mode(self, which: int | str, *, enabled: bool) -> int:
        """Returns NVML's activation status: 0, 19 in use or 16 reset required."""
        with self._store.change() as node:
            gpu = find_gpu(node, which)
            with refusals_named(f"MIG mode of {gpu.uuid}"):
                return int(mutations.set_mig_mode(node, gpu, wanted=enabled))

    def lose_gpu(self, which: int | str) -> None:
        """The GPU falls off the bus until the driver is loaded anew."""
        with self._store.change() as node:
            find_gpu(node, which).lost = True

    def reset(self, which: int | str) -> None:
        """``nvidia-smi --gpu-reset``: refused while something holds the GPU."""
        with self._store.change() as node:
            gpu = find_gpu(node, which)
            if gpu.processes or gpu.clients or gpu.passthrough:
                raise SimulatorError(f"reset: {gpu.uuid} is held by a client or passed through")
            mutations.reset_gpu(gpu)

    def reload_driver(self) -> None:
        """Every instance goes and every NVML session ends."""
        with self._store.change() as node:
            mutations.reload_driver(node)

    def reboot(self, index_order: Sequence[int] | None = None) -> None:
        """A new boot id. ``index_order`` names the old indexes in their new order."""
        with self._store.change() as node:
            mutations.reboot(node)
            if index_order is not None:
                reorder(node, index_order)

    def xid(self, which: int | str, xid: int, gi_id: int | None = None, ci_id: int = 0) -> None:
        """An Xid error, of one compute instance or, without ids, of the whole GPU."""
        with self._store.change() as node:
            instance = None if gi_id is None else (gi_id, ci_id)
            mutations.emit_event(node, find_gpu(node, which), xid, instance)

    def set_recovery_action(self, which: int | str, action: str) -> None:
        """The driver asks for an action, or for ``none`` any more, and reports the change."""
        check_word("action", action, RECOVERY_ACTIONS)
        with self._store.change() as node:
            gpu = find_gpu(node, which)
            gpu.recovery_action = RECOVERY_ACTIONS.index(action)
            kind = mutations.EVENT_RECOVERY_ACTION
            mutations.emit_event(node, gpu, gpu.recovery_action, None, kind)

    def add_fault(self, fault: Fault) -> None:
        """Disturb calls through NVML, of every process on this node."""
        check_fault(fault)
        with self._store.change() as node:
            node.faults.append(fault)

    def fail(self, function: str, code: int, *, times: int = 1, skip: int = 0) -> None:
        """The next calls of the function return this code and do nothing."""
        self.add_fault(Fault(function, code=int(code), times=times, skip=skip))

    def clear_faults(self) -> None:
        with self._store.change() as node:
            node.faults.clear()

    def set_options(self, **changes: str | bool | list[str]) -> None:
        """Change :class:`Options` by name."""
        for name, value in changes.items():
            check_option(name, value)
        with self._store.change() as node:
            for name, value in changes.items():
                setattr(node.options, name, value)

    def close(self) -> None:
        self._store.close()
