"""What the driver asks people to do about a GPU, as a reason to give it no new work.

Every action closes the GPU: new work on it would be lost, or stand in the way of what is to be
done. Pods that run are left alone; the agent resets and reboots nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from node_agent.inventory import GpuProblem
from node_agent.nvml.ports import DriverError, DriverUnavailable, MigDriver, RecoveryAction

logger = logging.getLogger(__name__)

_RESET: Final = (
    "the driver asks for a reset: drain the node, stop the agent, then run "
    "nvidia-smi -i {index} --gpu-reset"
)
_REBOOT: Final = "the driver asks for a reboot: drain the node and reboot it"
_WORDS: Final[Mapping[RecoveryAction, tuple[str, str]]] = {
    RecoveryAction.GPU_RESET: ("ResetNeeded", _RESET),
    RecoveryAction.NODE_REBOOT: ("RebootNeeded", _REBOOT),
    RecoveryAction.SYSTEM_REBOOT: ("RebootNeeded", _REBOOT),
    RecoveryAction.DRAIN_P2P: (
        "DrainNeeded",
        "the driver asks for the end of traffic between this GPU and others: end the processes "
        "that use it together with another GPU; it returns by itself after that",
    ),
    RecoveryAction.DRAIN_AND_RESET: (
        "DrainAndResetNeeded",
        "the driver asks for a reset once nothing runs on it: let its Pods end, then stop the "
        "agent and run nvidia-smi -i {index} --gpu-reset",
    ),
    RecoveryAction.RECOVER_IMEX_DOMAIN: (
        "ImexRecoveryNeeded",
        "the driver asks for the recovery of its IMEX domain (the nodes that share memory over "
        "NVLink): see the log of nvidia-imex on these nodes",
    ),
    RecoveryAction.BUS_RESET: (
        "ResetNeeded",
        "the driver asks for a reset of the GPU's bus: drain the node and reboot it",
    ),
    RecoveryAction.OTHER: (
        "RecoveryNeeded",
        "the driver asks for an action that this agent does not know: see nvidia-smi -q -i {index}",
    ),
}

CODES: Final = frozenset(code for code, _ in _WORDS.values())
"""Codes of the problems of this module."""


def recovery_problem(driver: MigDriver, uuid: str, index: int) -> GpuProblem | None:
    """Why the driver wants the GPU left alone; None for nothing, and where it cannot tell.

    Raises :class:`DriverUnavailable` when the session is over. No other error closes a GPU that
    can be read otherwise.
    """
    try:
        action = driver.recovery_action(uuid)
    except DriverUnavailable:
        raise
    except DriverError as error:
        logger.info("what the driver asks for on %s is unknown: %s", uuid, error)
        return None
    if action is None or action is RecoveryAction.NONE:
        return None
    code, text = _WORDS[action]
    return GpuProblem(uuid, text.format(index=index), code)
