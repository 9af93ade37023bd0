"""A simulated NVML library under the real pynvml, its node in a directory of state.

:func:`install` makes pynvml of this process use it; :class:`SimulatedNode` creates the node and
does to it what hardware, kernels and other programs do. Nothing happens at import.
"""

from __future__ import annotations

from node_agent.nvml.simulated.installing import install, uninstall
from node_agent.nvml.simulated.lookups import GpuSpec
from node_agent.nvml.simulated.models import gpu_models
from node_agent.nvml.simulated.node import SimulatedNode
from node_agent.nvml.simulated.state import Fault, SimulatorError

__all__ = [
    "Fault",
    "GpuSpec",
    "SimulatedNode",
    "SimulatorError",
    "gpu_models",
    "install",
    "uninstall",
]
