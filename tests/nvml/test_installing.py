"""Putting the simulated library into pynvml and taking it out."""

from __future__ import annotations

import subprocess
import sys

import pynvml
import pytest

from node_agent.nvml.simulated import SimulatedNode, install, uninstall


def test_importing_leaves_pynvml_alone():
    code = (
        "import pynvml, node_agent.nvml.simulated, node_agent.nvml.driver;"
        "print(pynvml.nvmlLib, pynvml._nvmlGetFunctionPointer_cache)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout.split() == ["None", "{}"]


def test_uninstalling_leaves_pynvml_as_it_was(node):
    install(node.state_dir)
    pynvml.nvmlInit()
    uninstall()
    uninstall()
    assert pynvml.nvmlLib is None
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        pynvml.nvmlDeviceGetCount()


def test_another_node_replaces_the_first(node, tmp_path):
    other = SimulatedNode(tmp_path / "other")
    other.create(["a30"])
    install(node.state_dir)
    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetCount() == 2
    install(other.state_dir)
    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetCount() == 1
    uninstall()
    other.close()
