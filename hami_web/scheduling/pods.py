"""What a bound Pod takes, read from its annotations."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Final

from msgspec import Struct

from hami_web.cluster.views import PodView
from hami_web.core import annotations as keys
from hami_web.core.device_list import decode_devices
from hami_web.core.errors import MalformedContract
from hami_web.core.reservation import decode_alike, decode_allocations
from hami_web.scheduling.records import Claim, Phase, PodIdentity

# An enumeration's members are slow to name.
_RESERVED: Final = Phase.RESERVED
_REALIZED: Final = Phase.REALIZED
_TERMINATING: Final = Phase.TERMINATING


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
    return PodIdentity(sys.intern(meta.namespace), meta.name, meta.uid, pod.spec.priority or 0)


def ends_hold(pod: PodView) -> bool:
    """True when the Pod is bound or over: then its annotations say what it takes."""
    return bool(pod.node_name) or pod.is_terminal


def must_stay(pod: PodView) -> bool:
    """Someone said that the Pod is not to be evicted, to us or to others who would."""
    notes = pod.annotations
    kept = notes.get(keys.POD_DO_NOT_EVICT), notes.get(keys.POD_DO_NOT_DISRUPT)
    return "true" in kept or notes.get(keys.POD_SAFE_TO_EVICT) == "false"


def read_pod(pod: PodView) -> PodRecord | None:
    """Read what a Pod occupies; None for one that is unbound, over, or has no GPU.

    A Pod that is being deleted still occupies (design decision 10). Nothing is read from an
    unbound Pod: its annotations are not the scheduler's (design decision 2).
    """
    node = pod.spec.node_name
    annotations = pod.metadata.annotations
    if not node or not annotations or pod.is_terminal:
        return None
    text = annotations.get(keys.POD_MIG_ALLOCATIONS)
    listed = annotations.get(keys.POD_DEVICES_ALLOCATED)
    if text is None and listed is None:
        return None
    identity = identity_of(pod)
    deleting = pod.metadata.deletion_timestamp is not None
    try:
        claims = _claims(identity, text or "", deleting=deleting)
        unexplained = _unexplained(listed, claims) if listed else ()
    except MalformedContract as error:
        return PodRecord(identity, node, (), f"Pod {pod.full_name}: {error}")
    return PodRecord(identity, node, claims, "", unexplained)


def _claims(identity: PodIdentity, text: str, *, deleting: bool) -> tuple[Claim, ...]:
    alike = decode_alike(text)
    if alike is not None:
        like, gpu, mig = alike
        phase = _TERMINATING if deleting else _REALIZED if mig else _RESERVED
        return (Claim(identity, phase, like, gpu, mig),)
    return tuple(
        Claim.of(
            identity,
            _TERMINATING if deleting else _REALIZED if item.identity else _RESERVED,
            item,
        )
        for item in decode_allocations(text)
    )


def _unexplained(listed: str, claims: tuple[Claim, ...]) -> tuple[str, ...]:
    if len(claims) == 1 and _lists_only(listed, claims[0].gpu_uuid):
        return ()
    known = {claim.gpu_uuid for claim in claims}
    devices = decode_devices(listed, keys.POD_DEVICES_ALLOCATED)
    found = {device.gpu_uuid: None for container in devices for device in container}
    return tuple(uuid for uuid in found if uuid not in known)


def _lists_only(listed: str, uuid: str) -> bool:
    """True for the frequent list with one device, which need not be decoded to see whose it is."""
    return listed.startswith(uuid) and _is_rest_of_one(listed[len(uuid) :])


@lru_cache(maxsize=1024)
def _is_rest_of_one(text: str) -> bool:
    """True for ``,vendor,memory,cores:;`` behind a UUID; there are as many as profiles."""
    if not text.startswith(","):
        return False
    try:
        containers = decode_devices(f"?{text}", keys.POD_DEVICES_ALLOCATED)
    except MalformedContract:
        return False
    return sum(map(len, containers)) == 1
