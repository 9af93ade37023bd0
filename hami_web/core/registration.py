"""Codec of ``hami.io/node-nvidia-register``: a node's capability on the wire.

Byte-compatible with what HAMi v2.10's device plugin writes: zero values are omitted as Go's
``omitempty`` omits them, the five keys of a profile are always present. Unknown keys are kept.
"""

from __future__ import annotations

import marshal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, cast

from hami_web.core import wire
from hami_web.core.annotations import NODE_REGISTER
from hami_web.core.capability import GpuCapability, NodeCapability, ProfileCapability
from hami_web.core.errors import InvalidCapability, InvalidField, MalformedContract
from hami_web.core.placement import Placement

_GPU_KEYS = frozenset(
    {
        "id",
        "index",
        "count",
        "devmem",
        "devcore",
        "type",
        "numa",
        "mode",
        "migProfiles",
        "health",
    }
)
_PROFILE_KEYS = frozenset(
    {"name", "memoryMB", "core", "sliceCount", "placements", "instanceLimit", "attribute"}
)
_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})

# All GPUs of a model publish the same profiles, in many thousand copies. They are decoded and
# checked once, and shared; a list that is refused is never kept.
_SHARED_MAX: Final = 1024
_shared_profiles: dict[bytes, tuple[ProfileCapability, ...]] = {}


@dataclass(frozen=True, slots=True)
class DecodedRegistration:
    """The usable GPUs, and for each GPU left out the UUID and the reason."""

    capability: NodeCapability
    refused: tuple[tuple[str, InvalidField], ...]


def encode_registration(capability: NodeCapability) -> str:
    """Write a capability, GPUs by index, so that equal capability is equal text."""
    gpus = sorted(capability.gpus, key=lambda gpu: (gpu.index, gpu.uuid))
    return wire.encode([_encode_gpu(gpu) for gpu in gpus])


def decode_registration(text: str) -> DecodedRegistration:
    """Read a node's annotation.

    Raises :class:`MalformedContract` when the text is no array of objects with ids: then nothing
    of the node is known. A single GPU whose entry is wrong is refused alone.
    """
    gpus: list[GpuCapability] = []
    refused: list[tuple[str, InvalidField]] = []
    seen: set[str] = set()
    for position, item in enumerate(wire.decode_array(text, NODE_REGISTER)):
        where = f"{NODE_REGISTER}[{position}]"
        entry = wire.as_object(item, where)
        uuid = wire.as_text(entry.get("id"), f"{where}.id")
        if uuid in seen:
            raise MalformedContract(f"{where}.id", uuid, "each GPU once")
        seen.add(uuid)
        try:
            gpu = _decode_gpu(entry, uuid, where)
        except InvalidField as error:
            refused.append((uuid, error))
        else:
            gpus.append(gpu)
    gpus.sort(key=lambda gpu: (gpu.index, gpu.uuid))
    return DecodedRegistration(NodeCapability(tuple(gpus)), tuple(refused))


def _encode_gpu(gpu: GpuCapability) -> dict[str, object]:
    fields: dict[str, object] = {
        "id": gpu.uuid,
        "index": gpu.index,
        "count": gpu.count,
        "devmem": gpu.memory_mib,
        "devcore": gpu.core_percent,
        "type": gpu.model,
        "numa": gpu.numa,
        "mode": gpu.mode,
        "migProfiles": [_encode_profile(profile) for profile in gpu.profiles],
        "health": gpu.healthy,
    }
    return {key: value for key, value in fields.items() if value} | dict(gpu.extra)


def _encode_profile(profile: ProfileCapability) -> dict[str, object]:
    fields: dict[str, object] = {
        "name": profile.name,
        "memoryMB": profile.memory_mib,
        "core": profile.core_percent,
        "sliceCount": profile.compute_slices,
        "placements": [{"start": p.start, "size": p.size} for p in profile.placements],
    }
    # Keys of ours, which HAMi's reader ignores; left out wherever the placements say it all.
    if profile.instance_limit is not None:
        fields["instanceLimit"] = profile.instance_limit
    if profile.attribute:
        fields["attribute"] = profile.attribute
    return fields | dict(profile.extra)


def _decode_gpu(entry: Mapping[str, object], uuid: str, where: str) -> GpuCapability:
    def integer(key: str, most: int = wire.INT32_MAX) -> int:
        return wire.as_integer(entry.get(key, 0), f"{where}.{key}", most=most)

    mode = entry.get("mode", "")
    if not isinstance(mode, str):
        raise MalformedContract(f"{where}.mode", mode, "a string")
    written = _items(entry, "migProfiles", where)
    key = marshal.dumps(cast(Any, (entry.get("devmem"), written)), 2)
    known = _shared_profiles.get(key)
    gpu = GpuCapability(
        uuid=sys.intern(uuid),
        index=integer("index", wire.UINT32_MAX),
        count=integer("count"),
        memory_mib=integer("devmem"),
        core_percent=integer("devcore"),
        model=wire.as_text(entry.get("type"), f"{where}.type"),
        numa=integer("numa"),
        mode=mode,
        profiles=_decode_profiles(written, where) if known is None else known,
        healthy=wire.as_bool(entry.get("health", False), f"{where}.health"),
        extra=_unknown(entry, _GPU_KEYS),
    )
    if known is None:
        gpu.validate(f"{NODE_REGISTER}[{uuid}]")
        if len(_shared_profiles) >= _SHARED_MAX:
            _shared_profiles.clear()
        _shared_profiles[key] = gpu.profiles
    return gpu


def _decode_profiles(written: list[object], where: str) -> tuple[ProfileCapability, ...]:
    return tuple(
        _decode_profile(profile, f"{where}.migProfiles[{position}]")
        for position, profile in enumerate(written)
    )


def _unknown(entry: Mapping[str, object], known: frozenset[str]) -> Mapping[str, object]:
    if entry.keys() <= known:
        return _NOTHING
    return {key: value for key, value in entry.items() if key not in known}


def _decode_profile(value: object, where: str) -> ProfileCapability:
    entry = wire.as_object(value, where)
    name = wire.as_text(entry.get("name"), f"{where}.name")
    placements = _items(entry, "placements", where)
    limit = entry.get("instanceLimit")
    attribute = entry.get("attribute", _attribute_of(name))
    if not isinstance(attribute, str):
        raise MalformedContract(f"{where}.attribute", attribute, "a string")
    return ProfileCapability(
        name=name,
        memory_mib=wire.as_integer(
            entry.get("memoryMB"), f"{where}.memoryMB", least=1, most=wire.INT32_MAX
        ),
        core_percent=wire.as_integer(entry.get("core"), f"{where}.core", most=100),
        compute_slices=wire.as_integer(entry.get("sliceCount"), f"{where}.sliceCount", least=1),
        placements=tuple(
            _decode_placement(item, f"{where}.placements[{position}]")
            for position, item in enumerate(placements)
        ),
        instance_limit=None
        if limit is None
        else wire.as_integer(limit, f"{where}.instanceLimit", least=1),
        attribute=attribute,
        extra=_unknown(entry, _PROFILE_KEYS),
    )


def _decode_placement(value: object, where: str) -> Placement:
    entry = wire.as_object(value, where)
    # No GPU has more than a few dozen memory slices; the bound keeps a mask small.
    return Placement(
        wire.as_integer(entry.get("start"), f"{where}.start", most=MEMORY_SLICES_MAX),
        wire.as_integer(entry.get("size"), f"{where}.size", least=1, most=MEMORY_SLICES_MAX),
    )


def _items(entry: Mapping[str, object], key: str, where: str) -> list[object]:
    """An array; Go writes ``null`` for an empty one."""
    value = entry.get(key)
    return [] if value is None else wire.as_array(value, f"{where}.{key}")


def _attribute_of(name: str) -> str:
    """Suffix of a name written by a publisher without our ``attribute`` key (``1g.5gb+me``)."""
    for position, character in enumerate(name):
        if character in "+-":
            return name[position:]
    return ""


MEMORY_SLICES_MAX = 1024
"""Bound on placements read from a node: the largest grid seen is 12 memory slices."""


def refuse_node(node: str, error: InvalidField) -> InvalidCapability:
    """Name the node in an error that concerns its annotation."""
    return InvalidCapability(f"node {node}: {error.field}", error.value, error.allowed)
