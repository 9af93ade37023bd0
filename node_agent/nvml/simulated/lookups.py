"""What the node's verbs name, found or refused with a text that says field, value and allowed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields

from node_agent.nvml.codes import NvmlCode, code_text
from node_agent.nvml.simulated import topology
from node_agent.nvml.simulated.faults import ANY_FUNCTION
from node_agent.nvml.simulated.library import exported_symbols
from node_agent.nvml.simulated.models import ProfileModel, gpu_models
from node_agent.nvml.simulated.mutations import Refusal
from node_agent.nvml.simulated.state import (
    DRIVER_STATES,
    ID_MAPS,
    KILL_POINTS,
    MEMORY_FIGURES,
    PERMISSIONS,
    RECOVERY_FIELDS,
    UUID_MODES,
    Fault,
    Gpu,
    GpuInstance,
    Node,
    Options,
    SimulatorError,
)

MAX_CODE = 999
_OPTION_WORDS = {
    "permission": PERMISSIONS,
    "driver": DRIVER_STATES,
    "uuids": UUID_MODES,
    "recovery_field": RECOVERY_FIELDS,
}


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """One GPU to create. ``id_map`` is ``identity`` or ``swapped``.

    ``memory`` is ``published``, or ``variant`` for the figures of another driver version.
    """

    model: str
    id_map: str = "identity"
    memory: str = "published"
    mig: bool = True
    passthrough: bool = False
    vgpu_guest: bool = False


def new_gpu(seed: str, position: int, spec: GpuSpec) -> Gpu:
    check_word("gpu model", spec.model, tuple(gpu_models()))
    check_word("id_map", spec.id_map, ID_MAPS)
    check_word("memory", spec.memory, MEMORY_FIGURES)
    mig = spec.mig and gpu_models()[spec.model].mig_capable
    return Gpu(
        uuid=topology.seeded_gpu_uuid(seed, position, spec.model),
        model=spec.model,
        index=position,
        minor=position,
        pci_bus_id=f"00000000:{0x10 + position:02X}:00.0",
        id_map=spec.id_map,
        memory=spec.memory,
        mig_current=mig,
        mig_pending=mig,
        passthrough=spec.passthrough,
        vgpu_guest=spec.vgpu_guest,
    )


def check_word(field: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        words = ", ".join(each or "(empty)" for each in allowed)
        raise SimulatorError(f"{field}: {value!r} is not allowed; allowed: {words}")


def find_gpu(node: Node, which: int | str) -> Gpu:
    for gpu in node.gpus:
        if which in (gpu.index, gpu.uuid):
            return gpu
    allowed = ", ".join(f"{each.index} ({each.uuid})" for each in node.gpus) or "none"
    raise SimulatorError(f"gpu: {which!r} is not on this node; allowed: {allowed}")


def find_instance(gpu: Gpu, gi_id: int) -> GpuInstance:
    instance = gpu.instance(gi_id)
    if instance is None:
        allowed = ", ".join(str(each.gi_id) for each in gpu.instances) or "none exists"
        raise SimulatorError(f"gi: {gi_id} does not exist on {gpu.uuid}; allowed: {allowed}")
    return instance


def reorder(node: Node, index_order: Sequence[int]) -> None:
    if sorted(index_order) != sorted(each.index for each in node.gpus):
        raise SimulatorError(f"index_order: {list(index_order)} is no order of all GPU indexes")
    for gpu in node.gpus:
        gpu.index = gpu.minor = list(index_order).index(gpu.index)


@contextmanager
def refusals_named(attempt: str) -> Iterator[None]:
    """Turn a refusal into a :class:`SimulatorError` that says what was attempted."""
    try:
        yield
    except Refusal as refusal:
        name = NvmlCode(refusal.code).name
        raise SimulatorError(f"{attempt}: {code_text(refusal.code)} ({name})") from refusal


def find_profile(gpu: Gpu, name: str, start: int | None) -> ProfileModel:
    """The profile of this name; the start, if one is wanted, must be legal for it."""
    profile = gpu.facts.profile_by_name(name)
    if profile is None:
        allowed = ", ".join(each.name for each in gpu.facts.profiles) or "none"
        raise SimulatorError(f"profile: {name!r} is not known to {gpu.model}; allowed: {allowed}")
    if start is not None and start not in profile.starts:
        starts = ", ".join(map(str, profile.starts))
        raise SimulatorError(f"start: {start} is not legal for {name}; allowed: {starts}")
    return profile


def check_option(name: str, value: object) -> None:
    """Raise for an option that is not there or a value that it does not take."""
    known = {each.name: getattr(Options(), each.name) for each in fields(Options)}
    check_word("option", name, tuple(sorted(known)))
    if name in _OPTION_WORDS:
        check_word(name, str(value), _OPTION_WORDS[name])
    elif name == "hidden_symbols" and isinstance(value, list):
        for each in value:
            check_word(name, str(each), exported_symbols())
    elif type(value) is not type(known[name]):
        raise SimulatorError(f"{name}: {value!r} is not allowed; allowed: {type(known[name])}")


def check_fault(fault: Fault) -> None:
    """Raise for a fault that could never hit, or that asks for the impossible."""
    check_word("kill", fault.kill, KILL_POINTS)
    check_word("function", fault.function, (ANY_FUNCTION, *exported_symbols()))
    if fault.times < -1 or fault.times == 0:
        raise SimulatorError(f"times: {fault.times} is not allowed; allowed: 1 or more, or -1")
    if fault.skip < 0:
        raise SimulatorError(f"skip: {fault.skip} is not allowed; allowed: 0 or more")
    if fault.latency_s < 0:
        raise SimulatorError(f"latency_s: {fault.latency_s} is not allowed; allowed: 0 or more")
    if fault.code is not None and not 0 <= fault.code <= MAX_CODE:
        raise SimulatorError(f"code: {fault.code} is not allowed; allowed: 0 to {MAX_CODE}")
