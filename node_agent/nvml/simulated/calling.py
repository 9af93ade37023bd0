"""What every simulated NVML function works with: its process's session, the node, the handles."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hami_web.core.placement import Placement
from node_agent.nvml.codes import NvmlCode
from node_agent.nvml.simulated import layout
from node_agent.nvml.simulated.handles import Handle, Kind, decode_handle
from node_agent.nvml.simulated.mutations import Refusal
from node_agent.nvml.simulated.state import ComputeInstance, Gpu, GpuInstance, Node
from node_agent.nvml.simulated.store import StateStore

Structure = TypeVar("Structure", bound=ctypes.Structure)


@dataclass(slots=True)
class EventSet:
    """Which events of which GPUs are wanted, and the number of the last one delivered."""

    masks: dict[int, int] = field(default_factory=dict)
    delivered: int = 0


@dataclass(slots=True)
class Session:
    """NVML's state in one process: counted inits, valid for one process and one driver load."""

    number: int = 0
    count: int = 0
    pid: int = -1
    driver_load: int = 0
    event_sets: dict[int, EventSet] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def open(self, node: Node) -> None:
        if not self.is_open(node):
            self.number = self.number % 255 + 1
            self.count, self.pid, self.driver_load = 0, os.getpid(), node.driver_load
            self.event_sets.clear()
        self.count += 1

    def is_open(self, node: Node) -> bool:
        """False in a forked child and after the driver was loaded anew."""
        alive = self.pid == os.getpid() and self.driver_load == node.driver_load
        return alive and self.count > 0


class Call:
    """One call of one function: the node as it is now, and what the handles of the caller mean."""

    def __init__(self, store: StateStore, session: Session, node: Node, *, effect: bool) -> None:
        self.store = store
        self.session = session
        self.node = node
        self.effect = effect

    @contextmanager
    def change(self) -> Iterator[Node]:
        """The state to change; what is found through this call's methods is of that state."""
        if not self.effect:
            raise NoEffect
        with self.store.change() as node:
            before, self.node = self.node, node
            try:
                yield node
            except BaseException:
                self.node = before
                raise

    def require(self, *permissions: str) -> None:
        if self.node.options.permission not in permissions:
            raise Refusal(NvmlCode.NO_PERMISSION)

    def handle(self, kind: Kind, position: int, gi_id: int = 0, ci_id: int = 0) -> int:
        attach = self.node.gpus[position].attach if kind is not Kind.EVENT_SET else 0
        return Handle(kind, self.session.number, position, attach & 255, gi_id, ci_id).encode()

    def gpu_handle(self, gpu: Gpu) -> int:
        return self.handle(Kind.GPU, self.node.gpus.index(gpu))

    def gpu(self, value: int | None) -> Gpu:
        """The GPU of a parent handle. INVALID_ARGUMENT for a MIG handle."""
        return self._gpu_of(self._decode(value, Kind.GPU))

    def device(self, value: int | None) -> tuple[Gpu, GpuInstance | None, ComputeInstance | None]:
        """A parent or a MIG device handle; the instances are None for a parent."""
        handle = self._decode(value, Kind.GPU, Kind.MIG_DEVICE)
        gpu = self._gpu_of(handle)
        if handle.kind is Kind.GPU:
            return gpu, None, None
        return gpu, *self._instances_of(gpu, handle)

    def gpu_instance(self, value: int | None) -> tuple[Gpu, GpuInstance]:
        handle = self._decode(value, Kind.GPU_INSTANCE)
        gpu = self._gpu_of(handle)
        return gpu, self._instance_of(gpu, handle)

    def compute_instance(self, value: int | None) -> tuple[Gpu, GpuInstance, ComputeInstance]:
        handle = self._decode(value, Kind.COMPUTE_INSTANCE)
        gpu = self._gpu_of(handle)
        return gpu, *self._instances_of(gpu, handle)

    def event_set(self, value: int | None) -> EventSet:
        handle = self._decode(value, Kind.EVENT_SET)
        try:
            return self.session.event_sets[handle.position]
        except KeyError:
            raise Refusal(NvmlCode.INVALID_ARGUMENT) from None

    def _decode(self, value: int | None, *kinds: Kind) -> Handle:
        handle = decode_handle(value)
        if handle is None or handle.kind not in kinds or handle.session != self.session.number:
            raise Refusal(NvmlCode.INVALID_ARGUMENT)
        return handle

    def _gpu_of(self, handle: Handle) -> Gpu:
        gpu = self.node.gpus[handle.position]
        if gpu.lost:
            raise Refusal(NvmlCode.GPU_IS_LOST)
        strict = handle.kind is not Kind.GPU or self.node.options.stale_parent_handles
        if strict and handle.attach != gpu.attach & 255:
            raise Refusal(NvmlCode.INVALID_ARGUMENT)
        return gpu

    def _instance_of(self, gpu: Gpu, handle: Handle) -> GpuInstance:
        instance = gpu.instance(handle.gi_id)
        if instance is None:
            raise Refusal(NvmlCode.INVALID_ARGUMENT)
        return instance

    def _instances_of(self, gpu: Gpu, handle: Handle) -> tuple[GpuInstance, ComputeInstance]:
        instance = self._instance_of(gpu, handle)
        for compute in instance.compute_instances:
            if compute.ci_id == handle.ci_id:
                return instance, compute
        raise Refusal(NvmlCode.INVALID_ARGUMENT)


class NoEffect(Exception):
    """A fault makes this call return without doing its work."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """One exported function: its C argument types and what it does."""

    name: str
    arguments: tuple[Any, ...]
    function: Callable[..., int | None]


SYMBOLS: dict[str, Symbol] = {}
Implementation = TypeVar("Implementation", bound=Callable[..., int | None])


def symbol(*names: str, takes: tuple[Any, ...]) -> Callable[[Implementation], Implementation]:
    """Export a function under these names. It gets a :class:`Call` and the C arguments."""

    def register(function: Implementation) -> Implementation:
        for name in names:
            SYMBOLS[name] = Symbol(name, takes, function)
        return function

    return register


def at(kind: type[Structure], address: int | None) -> Structure:
    """The structure in the caller's memory. INVALID_ARGUMENT for a null pointer."""
    if not address:
        raise Refusal(NvmlCode.INVALID_ARGUMENT)
    return kind.from_address(address)


def versioned(kind: type[Structure], address: int | None, version: int) -> Structure:
    """As :func:`at`, and ARGUMENT_VERSION_MISMATCH when the caller's version is another one."""
    structure = at(kind, address)
    if structure.version != layout.struct_version(kind, version):
        raise Refusal(NvmlCode.ARGUMENT_VERSION_MISMATCH)
    return structure


def read_uint(address: int | None) -> int:
    if not address:
        raise Refusal(NvmlCode.INVALID_ARGUMENT)
    return ctypes.c_uint.from_address(address).value


def write_uint(address: int | None, value: int) -> None:
    if not address:
        raise Refusal(NvmlCode.INVALID_ARGUMENT)
    ctypes.c_uint.from_address(address).value = value


def write_pointer(address: int | None, value: int) -> None:
    if not address:
        raise Refusal(NvmlCode.INVALID_ARGUMENT)
    ctypes.c_void_p.from_address(address).value = value


def write_pointers(address: int | None, count: int | None, values: list[int]) -> None:
    """An array of handles and its length, as the ``Get...Instances`` calls fill them."""
    write_uint(count, len(values))
    if values:
        if not address:
            raise Refusal(NvmlCode.INVALID_ARGUMENT)
        array = (ctypes.c_void_p * len(values)).from_address(address)
        for position, value in enumerate(values):
            array[position] = value


def write_placements(address: int | None, count: int | None, placements: list[Placement]) -> None:
    """A null array asks for the count only; a short one is INSUFFICIENT_SIZE."""
    room = read_uint(count)
    write_uint(count, len(placements))
    if not address:
        return
    if room < len(placements):
        raise Refusal(NvmlCode.INSUFFICIENT_SIZE)
    array = (layout.Placement * len(placements)).from_address(address)
    for slot, placement in zip(array, placements, strict=True):
        slot.start, slot.size = placement.start, placement.size


def write_text(address: int | None, length: int, text: str) -> None:
    encoded = text.encode() + b"\0"
    if not address:
        raise Refusal(NvmlCode.INVALID_ARGUMENT)
    if length < len(encoded):
        raise Refusal(NvmlCode.INSUFFICIENT_SIZE)
    ctypes.memmove(address, encoded, len(encoded))
