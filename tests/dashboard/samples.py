"""Cluster maps for tests: every state, several models, long names."""

from __future__ import annotations

from hami_web.core.placement import Placement
from hami_web.dashboard.cells import Cell, CellState, Fit, GpuRow, cover_grid
from hami_web.dashboard.cluster_map import ClusterMap, NodeBlock, WaitingPod


def cell(start: int, size: int, state: CellState, profile: str = "", pod: str = "", **more) -> Cell:
    return Cell(Placement(start, size), state, profile, pod, **more)


def row(node: str, index: int, cells=(), **more) -> GpuRow:
    known = {
        "model": "NVIDIA A100-SXM4-40GB",
        "memory_mib": 40960,
        "grid": 8,
        "fits": (Fit("1g.5gb", 3), Fit("2g.10gb", 1), Fit("3g.20gb", 0), Fit("7g.40gb", 0)),
    }
    known.update(more)
    return GpuRow(
        node=node,
        uuid=f"GPU-{node}-{index}-5f0c",
        index=index,
        cells=cover_grid(cells, known["grid"]),
        **known,
    )


def busy_node() -> NodeBlock:
    first = row(
        "gpu-a100-01",
        0,
        [
            cell(0, 1, CellState.REALIZED, "1g.5gb", "team-a/inference-0", memory_mib=4864,
                 detail="MIG-7b2d0a52-55b3-5a3f-8d9c-0a8b2f3c1d4e"),
            cell(1, 1, CellState.REALIZED, "1g.5gb", "team-a/inference-1", memory_mib=4864),
            cell(2, 2, CellState.BOUND, "2g.10gb", "team-b/notebook-lin", memory_mib=9856),
            cell(4, 4, CellState.REALIZED, "3g.20gb", "research/finetune-llama-7b-x2k4q",
                 memory_mib=19968),
        ],
    )  # fmt: skip
    second = row(
        "gpu-a100-01",
        1,
        [
            cell(0, 1, CellState.HELD, "1g.5gb", "team-a/inference-2", memory_mib=4864),
            cell(1, 1, CellState.TERMINATING, "1g.5gb", "team-a/batch-old", memory_mib=4864),
            cell(2, 2, CellState.BLOCKED, detail="a GPU instance that no reservation explains"),
            cell(4, 2, CellState.REALIZED, "2g.10gb", "team-c/etl-nightly-8812", memory_mib=9856),
        ],
    )
    return NodeBlock("gpu-a100-01", (first, second))


def troubled_node() -> NodeBlock:
    h100 = {"model": "NVIDIA H100 80GB HBM3", "memory_mib": 81559}
    first = row(
        "gpu-h100-01",
        0,
        [
            cell(0, 2, CellState.BOUND, "2g.20gb", "ml/eval-1"),
            cell(1, 1, CellState.BOUND, "1g.10gb", "ml/eval-2"),
        ],
        notes=("conflict",),
        fits=(),
        **h100,
    )
    second = row("gpu-h100-01", 1, fits=(Fit("1g.10gb", 7), Fit("7g.80gb", 1)), **h100)
    return NodeBlock("gpu-h100-01", (first, second), notes=("stale",))


def small_node() -> NodeBlock:
    a30 = {"model": "NVIDIA A30", "memory_mib": 24576, "grid": 4}
    gpu = row(
        "gpu-a30-01",
        0,
        [cell(0, 2, CellState.REALIZED, "2g.12gb", "web/ocr-77", memory_mib=11968)],
        fits=(Fit("1g.6gb", 2), Fit("2g.12gb", 1), Fit("4g.24gb", 0)),
        **a30,
    )
    return NodeBlock("gpu-a30-01", (gpu,))


def cluster_map(version: int = 7) -> ClusterMap:
    """Every state once, a conflict, a node that is not ready, and a Pod that waits."""
    reason = "0/3 nodes are available: 3 2/2 CardMigTopologyInfeasible."
    return ClusterMap(
        version, (busy_node(), troubled_node(), small_node()), (WaitingPod("ml/train-9", reason),)
    )
