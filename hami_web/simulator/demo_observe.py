"""What really exists on a simulated node, listed afresh by a program of its own."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hami_web.core.placement import Placement
from hami_web.simulator.demo_processes import DemoError

_LISTING_S = 20.0


@dataclass(frozen=True, slots=True, order=True)
class SeenInstance:
    """A GPU instance of a node; ``mig_uuids`` are those of its compute instances."""

    gpu_index: int
    placement: Placement
    profile: str
    gpu_instance_id: int
    mig_uuids: tuple[str, ...]

    def __str__(self) -> str:
        return f"GPU {self.gpu_index} {self.profile} at {self.placement}"


class _GpuInstance(msgspec.Struct):
    gpu: int
    profile: str
    gi: int
    placement: str


class _ComputeInstance(msgspec.Struct):
    gpu: int
    gi: int
    uuid: str


class _Created(msgspec.Struct):
    gpus: list[str]


class _Cut(msgspec.Struct):
    gi: int
    placement: str


def create_node(state_dir: Path, gpus: tuple[str, ...], id_map: str) -> tuple[str, ...]:
    """Make the state of a simulated node; returns the UUIDs of its GPUs by index."""
    models = [word for model in gpus for word in ("--gpu", model)]
    text = _run(state_dir, "create-node", *models, "--id-map", id_map, "--seed", state_dir.name)
    return tuple(msgspec.json.decode(text, type=_Created).gpus)


def slow_down_creation(state_dir: Path, seconds: float) -> None:
    """Let every creation of a GPU instance take so long."""
    function = "nvmlDeviceCreateGpuInstanceWithPlacement"
    how = ("--times", "-1", "--latency", f"{seconds:g}")
    _run(state_dir, "fault", "--function", function, *how)


def create_instance(state_dir: Path, gpu_index: int, profile: str) -> tuple[int, str]:
    """Make a GPU instance as another program would; returns its id and placement."""
    text = _run(state_dir, "create", "--gpu", str(gpu_index), "--profile", profile)
    made = msgspec.json.decode(text, type=_Cut)
    return made.gi, made.placement


def destroy_instance(state_dir: Path, gpu_index: int, instance_id: int) -> None:
    """Destroy a GPU instance as another program would."""
    _run(state_dir, "destroy", "--gpu", str(gpu_index), "--gi", str(instance_id))


def list_instances(state_dir: Path) -> tuple[SeenInstance, ...]:
    """All GPU instances of the node, in order of GPU and placement."""
    instances = msgspec.json.decode(_run(state_dir, "lgi"), type=list[_GpuInstance])
    computes = msgspec.json.decode(_run(state_dir, "lci"), type=list[_ComputeInstance])
    return tuple(
        sorted(
            SeenInstance(
                each.gpu,
                _placement(each.placement),
                each.profile,
                each.gi,
                tuple(c.uuid for c in computes if (c.gpu, c.gi) == (each.gpu, each.gi)),
            )
            for each in instances
        )
    )


def _placement(text: str) -> Placement:
    start, _, size = text.partition(":")
    return Placement(int(start), int(size))


def _run(state_dir: Path, *arguments: str) -> bytes:
    command = [sys.executable, "-m", "node_agent.nvml.simulated", "--state", str(state_dir)]
    done = subprocess.run(
        [*command, "--json", *arguments], capture_output=True, timeout=_LISTING_S, check=False
    )
    if done.returncode:
        text = done.stderr.decode(errors="replace").strip()
        raise DemoError(f"simulated node {state_dir.name}: {' '.join(arguments)}: {text}")
    return done.stdout
