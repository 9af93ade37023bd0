"""Turning MIG mode on for one idle GPU: whether it may be asked for, and what came of it.

The request is made once: what stays pending is kept by the board (up to Ampere) or needs a person,
and is reported, never asked for again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from node_agent.discovery import mode_problem
from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.ports import DriverError, DriverGpu, Guest, MigDriver

logger = logging.getLogger(__name__)

_HOPPER: Final = 9
"""NVML's number of the first architecture that changes the mode without a reset."""


def reason_not_to_ask(gpu: DriverGpu, guest: Guest) -> str:
    """Why MIG mode is not requested for this GPU, or an empty text."""
    if not gpu.mig_capable:
        return "it cannot do MIG"
    if guest is Guest.VGPU:
        return "a vGPU guest: its host decides about MIG mode"
    if gpu.mig_current or gpu.mig_pending:
        return "" if gpu.mig_active else mode_problem(gpu)[1]
    if guest is Guest.PASSTHROUGH and gpu.architecture < _HOPPER:
        return (
            "a GPU of this architecture needs a reset for MIG mode, which a virtual machine cannot "
            f"give it: run nvidia-smi -i {gpu.index} -mig 1 and restart the machine"
        )
    return ""


def enable(driver: MigDriver, gpu: DriverGpu, held_by: Callable[[int], tuple[str, ...]]) -> bool:
    """Ask for MIG mode on a GPU whose mode is off; returns whether it is on now.

    The caller has shown that the GPU is idle and holds its lock. ``held_by`` names who holds the
    device with a minor number.
    """
    present = held_by(gpu.minor)
    if present:
        logger.warning(
            "MIG mode of %s stays off, the GPU is held by %s: stop them, then run "
            "nvidia-smi -i %d -mig 1",
            gpu.uuid,
            ", ".join(present),
            gpu.index,
        )
        return False
    try:
        change = driver.enable_mig_mode(gpu.uuid)
    except DriverError as error:
        logger.warning("MIG mode of %s could not be requested: %s", gpu.uuid, error)
        return False
    if change.activation_status == NvmlCode.SUCCESS and change.current and change.pending:
        logger.info("enabled MIG mode of the idle GPU %s", gpu.uuid)
        return True
    logger.warning(
        "MIG mode of %s is requested and not active (activation status %d, current %s): %s",
        gpu.uuid,
        change.activation_status,
        change.current,
        _advice(change.activation_status, gpu, held_by(gpu.minor)),
    )
    return False


def _advice(status: int, gpu: DriverGpu, present: tuple[str, ...]) -> str:
    if status == NvmlCode.IN_USE:
        who = ", ".join(present) or "a client that is not visible here (nvidia-persistenced, DCGM)"
        return f"held by {who}: stop it, then run nvidia-smi -i {gpu.index} -mig 1"
    return f"run nvidia-smi -i {gpu.index} --gpu-reset while nothing uses it, or reboot the node"
