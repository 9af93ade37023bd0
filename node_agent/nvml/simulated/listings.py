"""What the command shows: rows by column, as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from node_agent.nvml.simulated import topology
from node_agent.nvml.simulated.device_symbols import mig_device_profile
from node_agent.nvml.simulated.models import gpu_models
from node_agent.nvml.simulated.node import SimulatedNode
from node_agent.nvml.simulated.state import Gpu

Cell = str | int | bool | None


@dataclass(frozen=True, slots=True)
class Listing:
    """Rows of equal length; ``nothing`` is said in place of an empty table."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    nothing: str

    def as_json(self) -> str:
        return json.dumps(
            [dict(zip(self.columns, row, strict=True)) for row in self.rows], indent=2
        )

    def as_table(self) -> str:
        if not self.rows:
            return self.nothing
        cells = [self.columns, *(tuple(_shown(each) for each in row) for row in self.rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(self.columns))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in cells
        )


def _shown(cell: Cell) -> str:
    if isinstance(cell, bool):
        return "on" if cell else "off"
    return "-" if cell is None else str(cell)


def models(_node: SimulatedNode) -> Listing:
    rows = tuple(
        (
            each.key,
            each.device_name,
            each.total_memory_mib,
            each.memory_slices,
            each.compute_slices,
            sum(profile.estimated for profile in each.profiles),
        )
        for each in gpu_models().values()
    )
    columns = ("model", "name", "memory_mib", "memory_slices", "compute_slices", "estimated")
    return Listing(columns, rows, "no models")


def gpus(node: SimulatedNode) -> Listing:
    """Each GPU and below it its MIG devices, as ``nvidia-smi -L`` orders them."""
    rows: list[tuple[Cell, ...]] = []
    for gpu in _by_index(node):
        rows.append((gpu.index, None, gpu.facts.device_name, gpu.uuid, _mode(gpu), gpu.lost))
        devices = sorted(
            (compute.index, mig_device_profile(gpu, instance, compute), compute.mig_uuid)
            for instance in gpu.instances
            for compute in instance.compute_instances
        )
        rows.extend((gpu.index, at, f"MIG {name}", uuid, None, None) for at, name, uuid in devices)
    columns = ("gpu", "device", "name", "uuid", "mig", "lost")
    return Listing(columns, tuple(rows), "No devices found.")


def _mode(gpu: Gpu) -> str:
    """``*`` marks a mode that waits for a reset, as nvidia-smi does."""
    if not gpu.facts.mig_capable:
        return "N/A"
    word = "Enabled" if gpu.mig_pending else "Disabled"
    return word if gpu.mig_pending == gpu.mig_current else f"{word}*"


def gpu_instances(node: SimulatedNode) -> Listing:
    rows = tuple(
        (gpu.index, _profile_name(gpu, each.profile_id), each.profile_id, each.gi_id, placed)
        for gpu in _by_index(node)
        for each in sorted(gpu.instances, key=lambda instance: instance.start)
        for placed in (str(topology.placement_of(each)),)
    )
    columns = ("gpu", "profile", "profile_id", "gi", "placement")
    return Listing(columns, rows, "No GPU instances found: Not Found")


def compute_instances(node: SimulatedNode) -> Listing:
    rows = tuple(
        (
            gpu.index,
            instance.gi_id,
            mig_device_profile(gpu, instance, compute),
            compute.profile_id,
            compute.ci_id,
            f"{compute.start}:{compute.size}",
            compute.mig_uuid,
        )
        for gpu in _by_index(node)
        for instance in sorted(gpu.instances, key=lambda each: each.start)
        for compute in instance.compute_instances
    )
    columns = ("gpu", "gi", "profile", "profile_id", "ci", "placement", "uuid")
    return Listing(columns, rows, "No compute instances found: Not Found")


def profiles(node: SimulatedNode) -> Listing:
    rows = tuple(
        (
            gpu.index,
            each.name,
            each.profile_id,
            topology.remaining_capacity(gpu, each) if gpu.mig_current else 0,
            each.instance_count,
            each.memory_mib,
            each.multiprocessors,
            " ".join(f"{start}:{each.size}" for start in each.starts),
        )
        for gpu in _by_index(node)
        for each in gpu.facts.profiles
    )
    columns = ("gpu", "profile", "id", "free", "total", "memory_mib", "sm", "placements")
    return Listing(columns, rows, "No GPU instance profiles found: Not Found")


def processes(node: SimulatedNode) -> Listing:
    rows = tuple(
        (gpu.index, each.gi_id, each.ci_id, each.pid, each.kind, each.memory_mib)
        for gpu in _by_index(node)
        for each in gpu.processes
    )
    columns = ("gpu", "gi", "ci", "pid", "kind", "memory_mib")
    return Listing(columns, rows, "No running processes found")


def faults(node: SimulatedNode) -> Listing:
    rows = tuple(
        (
            each.function,
            each.code,
            each.times,
            each.skip,
            each.effect,
            each.kill or None,
            f"{each.latency_s:g}",
            each.gpu_uuid or None,
        )
        for each in node.state().faults
    )
    columns = ("function", "code", "times", "skip", "effect", "kill", "latency_s", "gpu")
    return Listing(columns, rows, "No faults set")


def _by_index(node: SimulatedNode) -> list[Gpu]:
    return sorted(node.state().gpus, key=lambda gpu: gpu.index)


def _profile_name(gpu: Gpu, profile_id: int) -> str | None:
    profile = gpu.facts.profile(profile_id)
    return profile.name if profile else None


LISTINGS: dict[str, tuple[Callable[[SimulatedNode], Listing], str]] = {
    "models": (models, "GPU models that can be created"),
    "list": (gpus, "GPUs and their MIG devices, like nvidia-smi -L"),
    "lgi": (gpu_instances, "GPU instances"),
    "lci": (compute_instances, "compute instances"),
    "lgip": (profiles, "GPU instance profiles with free and legal placements"),
    "processes": (processes, "processes and leaked descriptors"),
    "faults": (faults, "faults that are set"),
}
