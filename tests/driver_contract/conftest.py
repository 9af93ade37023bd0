"""A simulated node under the real pynvml, taken out again after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from node_agent.nvml.driver import PynvmlDriver
from node_agent.nvml.ports import MigDriver
from node_agent.nvml.simulated import SimulatedNode, install, uninstall

MakeNode = Callable[..., SimulatedNode]


@pytest.fixture
def make_node(tmp_path: Path) -> Iterator[MakeNode]:
    """Create a node of these GPUs and install it."""
    nodes: list[SimulatedNode] = []

    def make(*gpus: object) -> SimulatedNode:
        node = SimulatedNode(tmp_path / "nvml")
        node.create(gpus)  # type: ignore[arg-type]
        install(tmp_path / "nvml")
        nodes.append(node)
        return node

    yield make
    uninstall()
    for node in nodes:
        node.close()


@pytest.fixture
def node(make_node: MakeNode) -> SimulatedNode:
    """An A100 with MIG on."""
    return make_node("a100-sxm4-40gb")


@pytest.fixture
def driver(node: SimulatedNode) -> Iterator[MigDriver]:
    with PynvmlDriver() as opened:
        yield opened


@pytest.fixture
def gpu(node: SimulatedNode) -> str:
    """UUID of the first GPU."""
    return node.gpu_uuids()[0]
