"""The state of one simulated node, as values, and its JSON form."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from node_agent.nvml.simulated.models import GpuModel, gpu_models

STATE_VERSION = 1
ID_MAPS = ("identity", "swapped")
PERMISSIONS = ("root", "user", "container")
DRIVER_STATES = ("loaded", "not_loaded", "library_missing", "mismatch")
UUID_MODES = ("deterministic", "random", "legacy")
PROCESS_KINDS = ("compute", "graphics", "mps", "leaked")
KILL_POINTS = ("", "before", "after")
PERSISTENCE_DAEMON = "persistence-daemon"
MEMORY_FIGURES = ("published", "variant")
RECOVERY_ACTIONS = (
    "none",
    "gpu-reset",
    "node-reboot",
    "drain-p2p",
    "drain-and-reset",
    "recover-imex-domain",
    "bus-reset",
    "system-reboot",
)
"""By NVML's number (nvml.h, ``nvmlDeviceGpuRecoveryAction_t``)."""
RECOVERY_FIELDS = ("known", "unsupported", "unknown")
""""unknown" is a library from before the field."""


class SimulatorError(Exception):
    """The simulator was asked for something that it cannot do; the text says field and allowed."""


@dataclass(slots=True)
class ComputeInstance:
    """``index`` is the position in which MIG device handles are enumerated."""

    ci_id: int
    profile_id: int
    start: int
    size: int
    mig_uuid: str
    index: int


@dataclass(slots=True)
class GpuInstance:
    """``start`` and ``size`` in memory slices."""

    gi_id: int
    profile_id: int
    start: int
    size: int
    compute_instances: list[ComputeInstance] = field(default_factory=list)


@dataclass(slots=True)
class Process:
    """What holds a GPU. A ``leaked`` one is a descriptor without a visible process."""

    pid: int
    kind: str
    gi_id: int | None
    ci_id: int | None
    memory_mib: int


@dataclass(slots=True)
class Gpu:
    """One GPU. ``attach`` counts resets and driver loads; ``clients`` block mode changes only."""

    uuid: str
    model: str
    index: int
    minor: int
    pci_bus_id: str
    id_map: str
    memory: str = "published"
    mig_current: bool = False
    mig_pending: bool = False
    lost: bool = False
    passthrough: bool = False
    vgpu_guest: bool = False
    recovery_action: int = 0
    attach: int = 0
    instances: list[GpuInstance] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    clients: list[str] = field(default_factory=list)

    @property
    def facts(self) -> GpuModel:
        return gpu_models(self.memory)[self.model]

    def instance(self, gi_id: int) -> GpuInstance | None:
        return next((each for each in self.instances if each.gi_id == gi_id), None)


@dataclass(slots=True)
class Event:
    """One NVML event; ids are None where it is not attributed to an instance."""

    sequence: int
    gpu_uuid: str
    event_type: int
    value: int
    gi_id: int | None
    ci_id: int | None


@dataclass(slots=True)
class Fault:
    """One injected fault on calls of ``function`` (``*``: any), on one GPU or on all.

    The first ``skip`` matching calls pass untouched, the next ``times`` are hit (-1: all). ``code``
    is what the call returns, None leaves its own. With ``effect`` the call does its work before it
    returns the code. ``kill`` ends the calling process, ``latency_s`` delays the call.
    """

    function: str
    code: int | None = None
    times: int = 1
    skip: int = 0
    effect: bool = False
    kill: str = ""
    latency_s: float = 0.0
    gpu_uuid: str = ""


@dataclass(slots=True)
class Options:
    """Switches of the node; see the allowed words at the top of this module."""

    permission: str = "root"
    driver: str = "loaded"
    uuids: str = "deterministic"
    recovery_field: str = "known"
    profile_info_needs_mig: bool = False
    stale_parent_handles: bool = False
    ampere_auto_reset: bool = True
    hidden_symbols: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Node:
    """Everything. ``generation`` grows with each change, ``driver_load`` with each load."""

    seed: str
    boot_id: str
    generation: int = 0
    driver_load: int = 1
    driver_version: str = "580.95.05"
    gpus: list[Gpu] = field(default_factory=list)
    options: Options = field(default_factory=Options)
    faults: list[Fault] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    next_event: int = 1
    random_draws: int = 0

    def gpu_by_uuid(self, uuid: str) -> Gpu | None:
        return next((each for each in self.gpus if each.uuid == uuid), None)


def encode_node(node: Node) -> bytes:
    return json.dumps({"version": STATE_VERSION, **asdict(node)}, indent=1).encode()


def decode_node(text: bytes) -> Node:
    """Raise :class:`SimulatorError` for anything that :func:`encode_node` did not write."""
    try:
        row: dict[str, Any] = json.loads(text)
        version = row.pop("version")
        if version != STATE_VERSION:
            raise SimulatorError(f"state version: {version} is not known; allowed: {STATE_VERSION}")
        row["gpus"] = [_decode_gpu(each) for each in row["gpus"]]
        row["options"] = Options(**row["options"])
        row["faults"] = [Fault(**each) for each in row["faults"]]
        row["events"] = [Event(**each) for each in row["events"]]
        return Node(**row)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SimulatorError(f"the simulator's state is damaged: {error}") from error


def _decode_gpu(row: dict[str, Any]) -> Gpu:
    row["instances"] = [_decode_instance(each) for each in row["instances"]]
    row["processes"] = [Process(**each) for each in row["processes"]]
    return Gpu(**row)


def _decode_instance(row: dict[str, Any]) -> GpuInstance:
    row["compute_instances"] = [ComputeInstance(**each) for each in row["compute_instances"]]
    return GpuInstance(**row)
