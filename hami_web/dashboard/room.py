"""How much room there is and how much of it is lost, for the cluster, each node and each GPU."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hami_web.core.fragmentation import Fragmentation, Room, fragmentation
from hami_web.core.tables import ProfileTable
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.scheduling.records import GpuRecord, NodeRecord

LEVELS: Final = 5
"""Steps of the heat: one fifth of the packed room each."""


@dataclass(frozen=True, slots=True)
class Heat:
    """Share of the packed room that is lost: 0 … 1, None where nothing takes new work."""

    value: float | None

    @property
    def words(self) -> str:
        """Percent without a fraction, or a dash."""
        return "\N{EN DASH}" if self.value is None else f"{self.value * 100:.0f} %"

    @property
    def level(self) -> str:
        """Class name of the step: ``none``, or 0 (nothing lost) to 4."""
        if self.value is None:
            return "none"
        return str(min(int(self.value * LEVELS), LEVELS - 1))


@dataclass(frozen=True, slots=True)
class RoomLine:
    """One profile of one model: instances that fit now, and with the same slices packed."""

    model: str
    room: Room

    @property
    def profile(self) -> str:
        return self.room.profile

    @property
    def lost(self) -> int:
        """Instances that fragmentation costs."""
        return self.room.packed - self.room.now

    @property
    def share_now(self) -> str:
        """Part of the packed room that there is now, for a bar's width in percent."""
        return f"{self.room.now * 100 / self.room.packed:.4g}" if self.room.packed else "0"


@dataclass(frozen=True, slots=True)
class GpuHeat:
    """One GPU of the heat picture."""

    record: GpuRecord
    heat: Heat

    @property
    def uuid(self) -> str:
        return self.record.capability.uuid

    @property
    def index(self) -> int:
        return self.record.capability.index

    @property
    def free(self) -> int:
        """Free memory slices."""
        return self.record.free_memory_slices

    @property
    def grid(self) -> int:
        return self.record.capability.grid


@dataclass(frozen=True, slots=True)
class NodeHeat:
    """One node of the heat picture."""

    name: str
    heat: Heat
    gpus: tuple[GpuHeat, ...]


def cluster_heat(shown: ClusterMap) -> Heat:
    """The number of the whole cluster, over GPUs that take new work."""
    return _heat(_measured(_open(shown.records.values())))


def node_heats(shown: ClusterMap) -> list[NodeHeat]:
    """Every node by name with its GPUs by index."""
    found = []
    for name in sorted(shown.records):
        record = shown.records[name]
        taking = frozenset(gpu.capability.uuid for gpu in record.open_gpus)
        gpus = tuple(
            GpuHeat(gpu, gpu_heat(gpu) if gpu.capability.uuid in taking else Heat(None))
            for gpu in sorted(record.gpus, key=lambda gpu: gpu.capability.index)
        )
        found.append(NodeHeat(name, node_heat(record), gpus))
    return found


def model_heats(shown: ClusterMap) -> list[tuple[str, Heat, int]]:
    """Model, its number, and how many GPUs of it take new work."""
    models: dict[str, list[GpuRecord]] = {}
    for gpu in _open(shown.records.values()):
        models.setdefault(gpu.capability.model, []).append(gpu)
    return [
        (model, _heat(_measured(models[model])), len(models[model])) for model in sorted(models)
    ]


def room_lines(shown: ClusterMap) -> list[RoomLine]:
    """Every plain profile of every model, largest first, over GPUs that take new work."""
    models: dict[str, list[GpuRecord]] = {}
    for gpu in _open(shown.records.values()):
        models.setdefault(gpu.capability.model, []).append(gpu)
    return [
        RoomLine(model, room)
        for model in sorted(models)
        for room in reversed(_measured(models[model]).rooms)
    ]


def node_heat(record: NodeRecord) -> Heat:
    """The number of one node, over its GPUs that take new work."""
    return _heat(_measured(_open([record])))


def gpu_heat(gpu: GpuRecord) -> Heat:
    """The number of one GPU; none where it takes no new work."""
    return _heat(_measured([gpu] if gpu.refusal is None else []))


def _open(nodes: Iterable[NodeRecord]) -> Iterable[GpuRecord]:
    for node in nodes:
        if not node.unschedulable:
            yield from node.open_gpus


def _measured(gpus: Iterable[GpuRecord]) -> Fragmentation:
    pairs: list[tuple[ProfileTable, int]] = [(gpu.table, gpu.state) for gpu in gpus]
    return fragmentation(pairs)


def _heat(measured: Fragmentation) -> Heat:
    return Heat(measured.value if measured.rooms else None)
