"""A large cluster as it may be: random UUIDs, Pods named by their controllers, two models."""

from __future__ import annotations

import random
from typing import Final

from hami_web.core.placement import Placement
from hami_web.dashboard.cells import Cell, CellState, Fit, GpuRow, cover_grid
from hami_web.dashboard.cluster_map import ClusterMap, NodeBlock

GPUS_PER_NODE: Final = 8
_SUFFIX: Final = "bcdfghjklmnpqrstvwxz2456789"
"""What Kubernetes makes the random ends of names of."""
_WORKLOADS: Final = ("train", "inference", "notebook", "eval", "batch-etl", "finetune-llama")
_STATES: Final = (CellState.REALIZED, CellState.REALIZED, CellState.REALIZED, CellState.BOUND,
                  CellState.TERMINATING)  # fmt: skip
_MODELS: Final = (("NVIDIA A100-SXM4-40GB", 40960, 5), ("NVIDIA H100 80GB HBM3", 81559, 10))
_PROFILES: Final = ((1, 1), (2, 2), (3, 4), (7, 8))
"""Compute and memory slices."""


def large_map(gpus: int, version: int = 1) -> ClusterMap:
    """So many GPUs with some three instances on each, the same for the same number."""
    rng = random.Random(7)
    nodes = []
    for number in range(gpus // GPUS_PER_NODE):
        name = f"gpu-node-{number:03d}"
        given = _Node(rng, name, *_MODELS[number % len(_MODELS)])
        nodes.append(NodeBlock(name, tuple(given.gpu(index) for index in range(GPUS_PER_NODE))))
    return ClusterMap(version, tuple(nodes))


class _Node:
    def __init__(
        self, rng: random.Random, name: str, model: str, memory_mib: int, slice_gb: int
    ) -> None:
        self._rng, self._name, self._model = rng, name, model
        self._memory_mib, self._slice_gb = memory_mib, slice_gb
        self._pod = ""

    def gpu(self, index: int) -> GpuRow:
        cells, at = [], 0
        while at < 7:
            compute, size = self._rng.choice(((1, 1), (1, 1), (2, 2), (3, 4)))
            if at + size <= 8 and self._rng.random() < 0.8:
                cells.append(self._cell(at, compute, size))
            at += size
        free = 8 - sum(cell.placement.size for cell in cells)
        fits = tuple(
            Fit(self._profile(compute, size), self._rng.randint(0, free // size))
            for compute, size in _PROFILES
        )
        return GpuRow(
            self._name, f"GPU-{self._uuid()}", index, self._model, self._memory_mib, 8,
            cover_grid(cells, 8), fits,
        )  # fmt: skip

    def _cell(self, start: int, compute: int, size: int) -> Cell:
        # One instance in ten is the further one of a Pod that asked for several.
        if not self._pod or self._rng.random() < 0.9:
            self._pod = (
                f"team-{self._rng.randrange(50)}/{self._rng.choice(_WORKLOADS)}-"
                f"{self._random(10)}-{self._random(5)}"
            )
        state = self._rng.choice(_STATES)
        detail = "" if state is CellState.BOUND else f"MIG-{self._uuid()}"
        memory_mib = self._memory_mib * size // 8 - 256
        profile = self._profile(compute, size)
        return Cell(Placement(start, size), state, profile, self._pod, detail, memory_mib)

    def _profile(self, compute: int, size: int) -> str:
        return f"{compute}g.{size * self._slice_gb}gb"

    def _random(self, length: int) -> str:
        return "".join(self._rng.choices(_SUFFIX, k=length))

    def _uuid(self) -> str:
        text = f"{self._rng.getrandbits(128):032x}"
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
