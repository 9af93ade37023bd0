"""Injected faults: which one hits a call, counted in the shared state."""

from __future__ import annotations

from node_agent.nvml.simulated.handles import decode_handle
from node_agent.nvml.simulated.state import Fault, Node
from node_agent.nvml.simulated.store import StateStore

ANY_FUNCTION = "*"


def take_fault(store: StateStore, node: Node, function: str, gpu_uuid: str) -> Fault | None:
    """The fault that hits this call, counted down for every process; None in the usual case."""
    if not any(_concerns(each, function, gpu_uuid) for each in node.faults):
        return None
    with store.change() as newest:
        for fault in newest.faults:
            if _concerns(fault, function, gpu_uuid):
                if fault.skip:
                    fault.skip -= 1
                    continue
                if fault.times > 0:
                    fault.times -= 1
                newest.faults = [each for each in newest.faults if each.times]
                return fault
    return None


def gpu_of_call(node: Node, arguments: tuple[object, ...]) -> str:
    """UUID of the GPU that the first argument names, by handle or UUID; ``""`` if it names none."""
    first = arguments[0] if arguments else None
    if isinstance(first, bytes):
        uuid = first.decode(errors="replace")
        return uuid if node.gpu_by_uuid(uuid) else ""
    handle = decode_handle(first) if isinstance(first, int) else None
    if handle is None or handle.position >= len(node.gpus):
        return ""
    return node.gpus[handle.position].uuid


def _concerns(fault: Fault, function: str, gpu_uuid: str) -> bool:
    named = fault.function in (ANY_FUNCTION, function)
    return named and fault.gpu_uuid in ("", gpu_uuid) and fault.times != 0
