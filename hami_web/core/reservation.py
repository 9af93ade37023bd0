"""Reservations, and the codec of ``hami.io/vgpu-mig-allocations`` that carries them on a Pod."""

from __future__ import annotations

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

    def on(self, gpu_uuid: str, mig_uuid: str) -> Reservation:
        """The same record with other UUIDs; ``mig_uuid`` counts only beside an identity."""
        known = self.identity
        identity = known and RuntimeIdentity(
            mig_uuid, known.gpu_instance_id, known.compute_instance_id
        )
        return Reservation(
            self.container_index,
            self.device_index,
            gpu_uuid,
            self.profile,
            self.placement,
            identity,
            self.extra,
        )


def encode_allocations(reservations: Iterable[Reservation]) -> str:
    """Write a Pod's reservations, ordered by container and device."""
    return wire.encode([_encode(item) for item in sorted(reservations, key=lambda r: r.key)])


def decode_allocations(text: str) -> tuple[Reservation, ...]:
    """Read a Pod's reservations, all of them or none.

    Raises :class:`MalformedContract` naming the field. The empty string means no reservation.
    """
    if not text:
        return ()
    alike = decode_alike(text)
    if alike is None:
        return _decode_all(text)
    like, gpu, mig = alike
    return (like.on(gpu, mig),)


def _decode_all(text: str) -> tuple[Reservation, ...]:
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


_GPU: Final = '"gpuUUID":"'
_MIG: Final = '"migUUID":"'
_SAMPLE: Final = "\u2028"
"""Stands for a UUID. It is not printable, so no text that is compared holds it."""


def decode_alike(text: str) -> tuple[Reservation, str, str] | None:
    """Read a text with one record as a shared record and its own UUIDs, of the GPU and of MIG.

    ``like.on(gpu, mig)`` is the record; the MIG UUID is empty for one without an identity. None
    for any other text, right or wrong: ask :func:`decode_allocations`. A cluster's texts differ
    in little but the UUIDs. Without escapes a quote begins or ends a string, so another UUID in
    the place of one changes nothing else in what a text says.
    """
    before, _, rest = text.partition(_GPU)
    gpu, _, rest = rest.partition('"')
    between, realized, rest = rest.partition(_MIG)
    mig, _, after = rest.partition('"')
    if not gpu or bool(realized) != bool(mig and after) or "\\" in text:
        return None
    like = _decode_like(before, between, after)
    if like is None or not gpu.isprintable() or not mig.isprintable():
        return None
    return (like, gpu, mig)


@lru_cache(maxsize=4096)
def _decode_like(before: str, between: str, after: str) -> Reservation | None:
    """The record of a text with samples for UUIDs; None where it holds more, or what is wrong."""
    if not (before + between + after).isprintable():
        return None
    realized = f'{_MIG}{_SAMPLE}"{after}' if after else ""
    try:
        found = _decode_all(f'{before}{_GPU}{_SAMPLE}"{between}{realized}')
    except MalformedContract:
        return None
    if len(found) != 1 or found[0].gpu_uuid != _SAMPLE or found[0].extra:
        return None
    identity = found[0].identity
    if (identity is None) == bool(after) or (identity and identity.mig_uuid != _SAMPLE):
        return None
    return found[0]


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
