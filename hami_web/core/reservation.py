"""Reservations, and the codec of ``hami.io/vgpu-mig-allocations`` that carries them on a Pod."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from hami_web.core import wire
from hami_web.core.annotations import POD_MIG_ALLOCATIONS
from hami_web.core.errors import MalformedContract
from hami_web.core.placement import Placement
from hami_web.core.registration import MEMORY_SLICES_MAX

_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})


def _nothing() -> Mapping[str, object]:
    return _NOTHING


_RUNTIME_KEYS = ("migUUID", "gpuInstanceID", "computeInstanceID")
_KNOWN_KEYS = frozenset(
    {"containerIndex", "deviceIndex", "gpuUUID", "profile", "placement", *_RUNTIME_KEYS}
)


@dataclass(frozen=True, slots=True)
class RuntimeIdentity:
    """What a reservation became on the hardware: all three, or there is no identity."""

    mig_uuid: str
    gpu_instance_id: int
    compute_instance_id: int


@dataclass(frozen=True, slots=True)
class Reservation:
    """The scheduler's choice for one device of one container.

    ``container_index`` counts init containers first, then app containers, from 0;
    ``device_index`` counts the devices of that container. ``extra`` keeps unknown wire keys.
    """

    container_index: int
    device_index: int
    gpu_uuid: str
    profile: str
    placement: Placement
    identity: RuntimeIdentity | None = None
    extra: Mapping[str, object] = field(default_factory=_nothing, hash=False)

    @property
    def key(self) -> tuple[int, int]:
        """Which device of the Pod this is."""
        return (self.container_index, self.device_index)


def encode_allocations(reservations: Iterable[Reservation]) -> str:
    """Write a Pod's reservations, ordered by container and device."""
    return wire.encode([_encode(item) for item in sorted(reservations, key=lambda r: r.key)])


def decode_allocations(text: str) -> tuple[Reservation, ...]:
    """Read a Pod's reservations, all of them or none.

    Raises :class:`MalformedContract` naming the field. The empty string means no reservation.
    """
    if not text:
        return ()
    quick = _decode_one(text)
    if quick is not None:
        return quick
    reservations: list[Reservation] = []
    seen: set[tuple[int, int]] = set()
    for position, item in enumerate(wire.decode_array(text, POD_MIG_ALLOCATIONS)):
        where = f"{POD_MIG_ALLOCATIONS}[{position}]"
        reservation = _decode(wire.as_object(item, where), where)
        if reservation.key in seen:
            raise MalformedContract(
                f"{where}.containerIndex,deviceIndex", reservation.key, "each device once"
            )
        seen.add(reservation.key)
        reservations.append(reservation)
    return tuple(reservations)


# One record as both schedulers and agents write it: by far the most frequent text. Anything else,
# and any value out of bounds, takes the long way, which finds the same or says what is wrong.
_NUMBER: Final = r"(0|[1-9]\d{0,4})"
_ONE: Final = re.compile(
    rf'\[\{{"containerIndex":{_NUMBER},"deviceIndex":{_NUMBER},"gpuUUID":"([\w-]+)",'
    rf'"profile":"([\w.+-]+)","placement":\{{"start":{_NUMBER},"size":([1-9]\d{{0,2}})\}}'
    rf'(?:,"migUUID":"([\w-]+)","gpuInstanceID":{_NUMBER},"computeInstanceID":{_NUMBER})?\}}\]',
    re.ASCII,
)


def _decode_one(text: str) -> tuple[Reservation] | None:
    match = _ONE.fullmatch(text)
    if match is None:
        return None
    container, device, gpu, profile, start, size, mig, instance, compute = match.groups()
    if int(start) > MEMORY_SLICES_MAX:
        return None
    identity = RuntimeIdentity(mig, int(instance), int(compute)) if mig else None
    return (
        Reservation(
            int(container),
            int(device),
            sys.intern(gpu),
            sys.intern(profile),
            shared_placement(int(start), int(size)),
            identity,
            _NOTHING,
        ),
    )


@lru_cache(maxsize=4096)
def shared_placement(start: int, size: int) -> Placement:
    """One object per placement: a cluster has few, in many thousand reservations."""
    return Placement(start, size)


def _encode(item: Reservation) -> dict[str, object]:
    fields: dict[str, object] = {
        "containerIndex": item.container_index,
        "deviceIndex": item.device_index,
        "gpuUUID": item.gpu_uuid,
        "profile": item.profile,
        "placement": {"start": item.placement.start, "size": item.placement.size},
    }
    if item.identity is not None:
        fields["migUUID"] = item.identity.mig_uuid
        fields["gpuInstanceID"] = item.identity.gpu_instance_id
        fields["computeInstanceID"] = item.identity.compute_instance_id
    return fields | dict(item.extra)


def _decode(entry: Mapping[str, object], where: str) -> Reservation:
    placement = wire.as_object(entry.get("placement"), f"{where}.placement")
    return Reservation(
        container_index=wire.as_integer(entry.get("containerIndex"), f"{where}.containerIndex"),
        device_index=wire.as_integer(entry.get("deviceIndex"), f"{where}.deviceIndex"),
        gpu_uuid=wire.as_text(entry.get("gpuUUID"), f"{where}.gpuUUID"),
        profile=wire.as_text(entry.get("profile"), f"{where}.profile"),
        placement=Placement(
            wire.as_integer(
                placement.get("start"), f"{where}.placement.start", most=MEMORY_SLICES_MAX
            ),
            wire.as_integer(
                placement.get("size"), f"{where}.placement.size", least=1, most=MEMORY_SLICES_MAX
            ),
        ),
        identity=_decode_identity(entry, where),
        extra=_NOTHING
        if entry.keys() <= _KNOWN_KEYS
        else {key: value for key, value in entry.items() if key not in _KNOWN_KEYS},
    )


def _decode_identity(entry: Mapping[str, object], where: str) -> RuntimeIdentity | None:
    present = [key for key in _RUNTIME_KEYS if entry.get(key) is not None]
    if not present:
        return None
    if len(present) != len(_RUNTIME_KEYS):
        raise MalformedContract(
            f"{where} runtime identity", present, f"all of {', '.join(_RUNTIME_KEYS)} or none"
        )
    return RuntimeIdentity(
        mig_uuid=wire.as_text(entry["migUUID"], f"{where}.migUUID"),
        gpu_instance_id=wire.as_integer(entry["gpuInstanceID"], f"{where}.gpuInstanceID"),
        compute_instance_id=wire.as_integer(
            entry["computeInstanceID"], f"{where}.computeInstanceID"
        ),
    )
