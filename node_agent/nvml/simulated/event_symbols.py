"""Event functions: sets, registration on GPUs, waiting for Xid errors."""

from __future__ import annotations

import time
from ctypes import c_uint, c_ulonglong, c_void_p

from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.simulated import layout
from node_agent.nvml.simulated.calling import Call, EventSet, at, symbol, write_pointer
from node_agent.nvml.simulated.handles import Handle, Kind, decode_handle
from node_agent.nvml.simulated.mutations import Refusal
from node_agent.nvml.simulated.state import Event, Node

# Single and double bit ECC, Xid, MIG configuration change, GPU unavailable, recovery action.
SUPPORTED_EVENTS = 0x1 | 0x2 | 0x8 | 0x100 | 0x4000 | 0x8000
_POLL_S = 0.02
_MAX_SETS = 255


@symbol("nvmlDeviceGetSupportedEventTypes", takes=(c_void_p, c_void_p))
def supported_types(call: Call, device: int | None, result: int | None) -> None:
    call.gpu(device)
    if not result:
        raise Refusal(NvmlCode.INVALID_ARGUMENT)
    c_ulonglong.from_address(result).value = SUPPORTED_EVENTS


@symbol("nvmlEventSetCreate", takes=(c_void_p,))
def create(call: Call, result: int | None) -> None:
    with call.session.lock:
        free = [each for each in range(1, _MAX_SETS) if each not in call.session.event_sets]
        if not free:
            raise Refusal(NvmlCode.INSUFFICIENT_RESOURCES)
        call.session.event_sets[free[0]] = EventSet(delivered=call.node.next_event - 1)
    write_pointer(result, Handle(Kind.EVENT_SET, call.session.number, free[0]).encode())


@symbol("nvmlDeviceRegisterEvents", takes=(c_void_p, c_ulonglong, c_void_p))
def register(call: Call, device: int | None, types: int, handle: int | None) -> None:
    """On a GPU only: events of its instances come through it, with their ids."""
    events = call.event_set(handle)
    gpu, instance, _ = call.device(device)
    if instance is not None or types & ~SUPPORTED_EVENTS:
        raise Refusal(NvmlCode.NOT_SUPPORTED)
    position = call.node.gpus.index(gpu)
    events.masks[position] = events.masks.get(position, 0) | types


@symbol("nvmlEventSetWait_v2", takes=(c_void_p, c_void_p, c_uint))
def wait(call: Call, handle: int | None, result: int | None, timeout_ms: int) -> None:
    """TIMEOUT when nothing came; GPU_IS_LOST as soon as a registered GPU is gone."""
    events = call.event_set(handle)
    info = at(layout.EventData, result)
    deadline = time.monotonic() + timeout_ms / 1000
    while True:
        node = call.store.read()
        event = _next_event(node, events)
        if event is not None:
            events.delivered = event.sequence
            call.node = node
            _fill(call, info, event)
            return
        if any(node.gpus[position].lost for position in events.masks):
            raise Refusal(NvmlCode.GPU_IS_LOST)
        if not call.session.is_open(node):
            raise Refusal(NvmlCode.UNINITIALIZED)
        if time.monotonic() >= deadline:
            raise Refusal(NvmlCode.TIMEOUT)
        time.sleep(min(_POLL_S, max(0.0, deadline - time.monotonic())))


@symbol("nvmlEventSetFree", takes=(c_void_p,))
def free(call: Call, handle: int | None) -> None:
    call.event_set(handle)
    decoded = decode_handle(handle)
    if decoded is not None:
        call.session.event_sets.pop(decoded.position)


def _next_event(node: Node, events: EventSet) -> Event | None:
    """The oldest undelivered one. Without privilege only events of whole GPUs arrive."""
    masks = {node.gpus[position].uuid: mask for position, mask in events.masks.items()}
    for event in node.events:
        wanted = masks.get(event.gpu_uuid, 0) & event.event_type
        visible = event.gi_id is None or node.options.permission == "root"
        if event.sequence > events.delivered and wanted and visible:
            return event
    return None


def _fill(call: Call, info: layout.EventData, event: Event) -> None:
    gpu = call.node.gpu_by_uuid(event.gpu_uuid)
    if gpu is None:
        raise Refusal(NvmlCode.UNKNOWN)
    info.device = call.gpu_handle(gpu)
    info.eventType = event.event_type
    info.eventData = event.value
    info.gpuInstanceId = layout.ANY_INSTANCE if event.gi_id is None else event.gi_id
    info.computeInstanceId = layout.ANY_INSTANCE if event.ci_id is None else event.ci_id
