"""What a bound Pod takes, read from its annotations."""

from __future__ import annotations

from msgspec import Struct

from hami_web.cluster.views import PodView
from hami_web.core import annotations as keys
from hami_web.core.device_list import decode_devices
from hami_web.core.errors import MalformedContract
from hami_web.core.reservation import Reservation, decode_allocations
from hami_web.scheduling.records import Claim, Phase, PodIdentity


class PodRecord(Struct, frozen=True, gc=False):
    """A Pod's claims on a node.

    ``doubt`` is set when its annotation cannot be read: then it is unknown what it takes.
    ``unexplained`` are GPUs of its device list without a reservation, which is right only for
    GPUs that are not in MIG mode.
    """

    identity: PodIdentity
    node: str
    claims: tuple[Claim, ...]
    doubt: str = ""
    unexplained: tuple[str, ...] = ()


def identity_of(pod: PodView) -> PodIdentity:
    """Name a Pod."""
    meta = pod.metadata
    return PodIdentity(meta.namespace, meta.name, meta.uid, pod.spec.priority or 0)


def read_pod(pod: PodView) -> PodRecord | None:
    """Read what a Pod occupies; None for one that is unbound, over, or has no GPU.

    A Pod that is being deleted still occupies (design decision 10). Nothing is read from an
    unbound Pod: its annotations are not the scheduler's (design decision 2).
    """
    if not pod.node_name or pod.is_terminal:
        return None
    annotations = pod.annotations
    text = annotations.get(keys.POD_MIG_ALLOCATIONS)
    listed = annotations.get(keys.POD_DEVICES_ALLOCATED)
    if text is None and listed is None:
        return None
    identity = identity_of(pod)
    try:
        reservations = decode_allocations(text or "")
        unexplained = _unexplained(listed or "", reservations)
    except MalformedContract as error:
        return PodRecord(identity, pod.node_name, (), f"Pod {pod.full_name}: {error}")
    claims = tuple(
        Claim(identity, item, _phase(item, deleting=pod.is_deleting)) for item in reservations
    )
    return PodRecord(identity, pod.node_name, claims, "", unexplained)


def _unexplained(listed: str, reservations: tuple[Reservation, ...]) -> tuple[str, ...]:
    if not listed:
        return ()
    if len(reservations) == 1 and _lists_only(listed, reservations[0].gpu_uuid):
        return ()
    known = {item.gpu_uuid for item in reservations}
    devices = decode_devices(listed, keys.POD_DEVICES_ALLOCATED)
    found = {device.gpu_uuid: None for container in devices for device in container}
    return tuple(uuid for uuid in found if uuid not in known)


def _lists_only(listed: str, uuid: str) -> bool:
    """True for the frequent list with one device, which need not be decoded to see whose it is."""
    return listed.startswith(uuid) and listed.count(",") == 3 and listed.endswith(":;")


def _phase(reservation: Reservation, *, deleting: bool) -> Phase:
    if deleting:
        return Phase.TERMINATING
    return Phase.RESERVED if reservation.identity is None else Phase.REALIZED
