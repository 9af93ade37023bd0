"""A simulated node under the real pynvml, taken out again after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from node_agent.nvml.driver import PynvmlDriver
from node_agent.nvml.ports import MigDriver
from node_agent.nvml.simulated import SimulatedNode, install, uninstall

MakeNode = Callable[..., SimulatedNode]
VARIANTS: dict[str, dict[str, bool | list[str]]] = {
    "plain": {},
    "stale-handles": {"stale_parent_handles": True},
    "old-driver": {
        "hidden_symbols": [
            "nvmlDeviceGetGpuInstanceProfileInfoV",
            "nvmlGpuInstanceGetComputeInstanceProfileInfoV",
        ]
    },
}
"""Drivers on which the whole contract of the modules below holds."""
VARIED = frozenset({"test_instances", "test_mode", "test_processes", "test_events"})


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "variant" in metafunc.fixturenames:
        module = metafunc.module.__name__.rpartition(".")[2]
        names = list(VARIANTS) if module in VARIED else ["plain"]
        metafunc.parametrize("variant", names, indirect=True, ids=names)


@pytest.fixture
def variant(request: pytest.FixtureRequest) -> str:
    """The driver that the test runs on."""
    return str(getattr(request, "param", "plain"))


@pytest.fixture
def make_node(tmp_path: Path, variant: str) -> Iterator[MakeNode]:
    """Create a node of these GPUs and install it."""
    nodes: list[SimulatedNode] = []

    def make(*gpus: object) -> SimulatedNode:
        node = SimulatedNode(tmp_path / "nvml")
        node.create(gpus)  # type: ignore[arg-type]
        node.set_options(**VARIANTS[variant])
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
