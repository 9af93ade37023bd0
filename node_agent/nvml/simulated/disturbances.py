"""Verbs that disturb a node: errors of the hardware, and faults of calls."""

from __future__ import annotations

import argparse

from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.simulated.arguments import Result, add_gpu, gpu_name
from node_agent.nvml.simulated.node import SimulatedNode
from node_agent.nvml.simulated.state import RECOVERY_ACTIONS, Fault, SimulatorError


def add_disturbances(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """The verbs of this module."""
    _add_errors(verbs)
    _add_faults(verbs)


def _add_errors(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    xid = verbs.add_parser("xid", help="an Xid error occurs")
    add_gpu(xid)
    xid.add_argument("--xid", type=int, required=True)
    xid.add_argument("--gi", type=int, help="default: the whole GPU")
    xid.add_argument("--ci", type=int, default=0)
    xid.set_defaults(run=_xid)
    recovery = verbs.add_parser("recovery", help="the driver asks for an action on a GPU")
    add_gpu(recovery)
    recovery.add_argument("action", choices=RECOVERY_ACTIONS)
    recovery.set_defaults(run=_recovery)


def _xid(node: SimulatedNode, options: argparse.Namespace) -> Result:
    node.xid(options.gpu, options.xid, options.gi, options.ci)
    return {"xid": options.xid}


def _recovery(node: SimulatedNode, options: argparse.Namespace) -> Result:
    node.set_recovery_action(options.gpu, options.action)
    return {"recovery": options.action}


def _add_faults(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    fault = verbs.add_parser("fault", help="disturb the next calls of an NVML function")
    fault.add_argument("--function", required=True, help="nvmlGpuInstanceDestroy, or * for any")
    fault.add_argument("--code", help="what they return: a name as IN_USE, or a number")
    fault.add_argument("--times", type=int, default=1, help="-1: until cleared")
    fault.add_argument("--skip", type=int, default=0, help="so many calls pass untouched first")
    fault.add_argument("--effect", action="store_true", help="do the work, then return the code")
    fault.add_argument("--kill", choices=("before", "after"), help="the calling process dies")
    fault.add_argument("--latency", type=float, default=0.0, help="seconds")
    fault.add_argument("--gpu", type=gpu_name, help="only on this GPU")
    fault.set_defaults(run=_fault)
    clear = verbs.add_parser("clear-faults", help="remove all faults")
    clear.set_defaults(run=_clear_faults)


def _fault(node: SimulatedNode, options: argparse.Namespace) -> Result:
    node.add_fault(
        Fault(
            options.function,
            code=None if options.code is None else _code(options.code),
            times=options.times,
            skip=options.skip,
            effect=options.effect,
            kill=options.kill or "",
            latency_s=options.latency,
            gpu_uuid="" if options.gpu is None else node.gpu(options.gpu).uuid,
        )
    )
    return {"faults": len(node.state().faults)}


def _clear_faults(node: SimulatedNode, _options: argparse.Namespace) -> Result:
    node.clear_faults()
    return {"faults": 0}


def _code(text: str) -> int:
    if text.lstrip("-").isdigit():
        return int(text)
    try:
        return NvmlCode[text.upper()]
    except KeyError:
        names = ", ".join(each.name for each in NvmlCode)
        raise SimulatorError(f"code: {text!r} is not known; allowed: a number, {names}") from None
