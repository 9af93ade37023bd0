"""What a Pod's annotations say about one container, and what they become when it is realized."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from hami_web.core import annotations as keys
from hami_web.core.device_list import ListedDevice, decode_devices, encode_devices, is_erased
from hami_web.core.errors import InvalidField
from hami_web.core.reservation import (
    Reservation,
    RuntimeIdentity,
    decode_allocations,
    encode_allocations,
)
from node_agent.errors import ReservationMismatch
from node_agent.ownership import Claim, InstanceSpec, Owner
from node_agent.pods import ObservedPod

_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class ContainerReservation:
    """The devices that one container is to be given, in device order."""

    container_index: int
    claims: tuple[Claim, ...]


def waiting_container(pod: ObservedPod) -> tuple[int, int]:
    """Index of the first container that waits, and for how many devices; (0, 0) when none does.

    HAMi's scheduler may shift the list, so the first non-empty entry counts, not a container's
    name. Raises :class:`ReservationMismatch` for a malformed list.
    """
    listed = enumerate(_listed(pod))
    return next(((index, len(devices)) for index, devices in listed if devices), (0, 0))


def container_claims(pod: ObservedPod, index: int) -> tuple[Claim, ...]:
    """Claims of one container in device order; :class:`ReservationMismatch` for malformed ones."""
    items = (item for item in _reservations(pod) if item.container_index == index)
    return tuple(_claim(pod, item) for item in sorted(items, key=lambda item: item.device_index))


def container_reservation(pod: ObservedPod, index: int, requested: int) -> ContainerReservation:
    """The reservation of one container. Raises :class:`ReservationMismatch` on any disagreement.

    The device list and the reservations must have as many devices as the kubelet asks for, on the
    same GPUs in the same order. An erased list entry (a repeated call) says nothing.
    """
    claims = container_claims(pod, index)
    if len(claims) != requested:
        raise ReservationMismatch(
            f"container {index} of Pod {pod.key} has {len(claims)} MIG reservations, the kubelet "
            f"asks for {requested} devices"
        )
    listed = _listed(pod)
    gpus = [device.gpu_uuid for device in listed[index]] if index < len(listed) else []
    if gpus and gpus != [claim.spec.gpu_uuid for claim in claims]:
        raise ReservationMismatch(
            f"{keys.POD_DEVICES_TO_ALLOCATE} and {keys.POD_MIG_ALLOCATIONS} of Pod {pod.key} name "
            f"different GPUs for container {index}"
        )
    if index >= len(pod.containers):
        raise ReservationMismatch(
            f"Pod {pod.key} has {len(pod.containers)} containers and a reservation for container "
            f"{index}"
        )
    return ContainerReservation(index, claims)


def is_recorded(pod: ObservedPod, realized: Mapping[Owner, RuntimeIdentity]) -> bool:
    """True when the Pod's annotation already carries all these identities, and waits no more."""
    recorded = {Owner(pod.uid, *item.key): item.identity for item in _reservations(pod)}
    waiting, listed = waiting_container(pod)
    indexes = {owner.container_index for owner in realized}
    erased = not (listed and waiting in indexes)
    return erased and all(recorded.get(owner) == identity for owner, identity in realized.items())


def realized_annotations(
    pod: ObservedPod, realized: Mapping[Owner, RuntimeIdentity], erase: int | None
) -> Mapping[str, str]:
    """The annotations after realizing; ``erase`` is the container that no longer waits.

    Raises :class:`ReservationMismatch` when the Pod no longer has a reservation for an owner.
    """
    items = _reservations(pod)
    missing = realized.keys() - {Owner(pod.uid, *item.key) for item in items}
    if missing:
        raise ReservationMismatch(f"Pod {pod.key} no longer reserves for {min(missing)}")
    enriched = (
        replace(item, identity=realized.get(Owner(pod.uid, *item.key), item.identity))
        for item in items
    )
    changed = {keys.POD_MIG_ALLOCATIONS: encode_allocations(enriched)}
    if erase is None:
        return changed
    listed = [devices if i != erase else () for i, devices in enumerate(_listed(pod))]
    changed[keys.POD_DEVICES_TO_ALLOCATE] = encode_devices(listed)
    if is_erased(listed):
        changed[keys.POD_BIND_PHASE] = keys.BIND_PHASE_SUCCESS
    return changed


def node_label(node: str) -> Mapping[str, str]:
    """The label that names the node, where its name fits a label value (63 characters)."""
    return {keys.POD_NODE: node} if _LABEL_VALUE.fullmatch(node) else {}


def same_claims(one: Iterable[Claim], other: Iterable[Claim]) -> bool:
    """True when two readings reserve the same, whatever their identities say."""
    return {(c.owner, c.spec) for c in one} == {(c.owner, c.spec) for c in other}


def _claim(pod: ObservedPod, item: Reservation) -> Claim:
    return Claim(
        Owner(pod.uid, *item.key),
        pod.namespace,
        pod.name,
        InstanceSpec(item.gpu_uuid, item.profile, item.placement),
        item.identity,
    )


def _reservations(pod: ObservedPod) -> tuple[Reservation, ...]:
    try:
        return decode_allocations(pod.annotations.get(keys.POD_MIG_ALLOCATIONS, ""))
    except InvalidField as error:
        raise ReservationMismatch(f"Pod {pod.key}: {error}") from error


def _listed(pod: ObservedPod) -> tuple[tuple[ListedDevice, ...], ...]:
    try:
        return decode_devices(pod.annotations.get(keys.POD_DEVICES_TO_ALLOCATE, ""))
    except InvalidField as error:
        raise ReservationMismatch(f"Pod {pod.key}: {error}") from error
