"""A simulated node, with or without a session of pynvml on it."""

from __future__ import annotations

import pynvml
import pytest

from node_agent.nvml.simulated import SimulatedNode, install, uninstall


@pytest.fixture
def node(tmp_path):
    """An A100 and an H100, not installed."""
    made = SimulatedNode(tmp_path / "nvml")
    made.create(["a100-sxm4-40gb", "h100-sxm5-80gb"], seed="test")
    yield made
    made.close()


@pytest.fixture
def session(node):
    """pynvml on that node, initialised."""
    install(node.state_dir)
    pynvml.nvmlInit()
    yield pynvml
    uninstall()


@pytest.fixture
def device(session):
    """Handle of the A100."""
    return session.nvmlDeviceGetHandleByIndex(0)
