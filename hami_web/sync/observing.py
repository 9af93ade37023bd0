"""From the scheduler's records to what the mirror stores."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

from hami_web.cluster.views import NodeView, PodView, PodWithProgress
from hami_web.core import annotations as keys
from hami_web.core.annotations import RESOURCE_COUNT
from hami_web.core.errors import MalformedContract
from hami_web.core.mig_owner import other_owner
from hami_web.core.reasons import Reason
from hami_web.core.reservation import Reservation
from hami_web.core.signature import InvalidSignature, KeyFile, KeyRing
from hami_web.history.refusals import ObservedRefusal
from hami_web.inventory.observed import ObservedGpu, ObservedNode, checked_key, storable
from hami_web.reservations.models import OWNER_MAX
from hami_web.reservations.observed import ObservedPod
from hami_web.scheduling.pods import must_stay, read_pod
from hami_web.scheduling.records import GpuRecord, NodeRecord


def sign_of_other_owner(node: NodeView) -> str:
    """The sign that something else than this product cuts the node's GPUs, or an empty text."""
    told = node.annotations.get(keys.NODE_MIG_OWNER, "")
    return other_owner(node.metadata.labels or {}, node.status.allocatable or {}, told)


def observe_node(record: NodeRecord, owner: str = "") -> ObservedNode | None:
    """What the mirror stores of a node; None for one that has nothing to do with GPUs.

    ``owner`` is the sign that something else cuts its GPUs.
    """
    if not (record.gpus or record.refused or record.doubts):
        return None
    doubts = [*record.doubts, *(str(error) for _, error in record.refused)]
    gpus: list[ObservedGpu] = []
    for gpu in record.gpus:
        try:
            checked_key(gpu.capability.uuid, f"node {record.name}: GPU's UUID")
        except MalformedContract as error:
            doubts.append(str(error))
        else:
            gpus.append(_observe_gpu(gpu))
    unreadable = not record.gpus and record.closed is Reason.NODE_UNREGISTERED
    return ObservedNode(
        name=record.name,
        gpus=None if unreadable else tuple(gpus),
        closed=str(record.closed or ""),
        doubts=tuple(doubts),
        unschedulable=record.unschedulable,
        refused=tuple(uuid for uuid, _ in record.refused),
        other_owner=owner,
    )


def _observe_gpu(record: GpuRecord) -> ObservedGpu:
    return ObservedGpu(
        record.capability,
        closed=str(record.refusal or ""),
        cordoned=record.cordoned,
        blocked=record.blocked,
    )


def observe_pod(pod: PodView, keys_of: KeyFile | None = None) -> ObservedPod | None:
    """A Pod's reservations; None for one that is unbound, over, or carries none.

    With keys their signature is checked.
    """
    record = read_pod(pod)
    if record is None or not (record.claims or record.doubt):
        return None
    reservations = tuple(claim.reservation for claim in record.claims)
    doubt = record.doubt
    try:
        for item in reservations:
            _check(item)
    except MalformedContract as error:
        reservations, doubt = (), str(error)
    meta = pod.metadata
    progress = pod if isinstance(pod, PodWithProgress) else None
    return ObservedPod(
        uid=meta.uid,
        namespace=meta.namespace,
        name=meta.name,
        node=record.node,
        reservations=reservations,
        deleting=pod.is_deleting,
        priority=pod.spec.priority or 0,
        do_not_evict=must_stay(pod),
        reserved_at=_moment(pod.annotations.get(keys.POD_BIND_TIME)),
        doubt=doubt,
        owner="" if progress is None else storable(progress.metadata.owner, OWNER_MAX),
        started_at={} if progress is None else _started_at(progress),
        unsigned="" if doubt or keys_of is None else _unsigned(pod, reservations, keys_of.ring()),
    )


def _started_at(pod: PodWithProgress) -> dict[int, datetime]:
    found: dict[int, datetime] = {}
    for index, text in pod.started_at().items():
        # Kubernetes writes RFC 3339; anything else is no time.
        with contextlib.suppress(ValueError):
            found[index] = datetime.fromisoformat(text).astimezone(UTC)
    return found


def _unsigned(pod: PodView, reservations: tuple[Reservation, ...], ring: KeyRing) -> str:
    """Why these are not what the scheduler signed, or an empty text."""
    signature = pod.annotations.get(keys.POD_MIG_SIGNATURE)
    try:
        ring.verify(signature, pod.uid, pod.node_name, reservations)
    except InvalidSignature as error:
        return str(error)
    return ""


def _check(item: Reservation) -> None:
    checked_key(item.gpu_uuid, f"{keys.POD_MIG_ALLOCATIONS}.gpuUUID")
    checked_key(item.profile, f"{keys.POD_MIG_ALLOCATIONS}.profile")
    if item.identity is not None:
        checked_key(item.identity.mig_uuid, f"{keys.POD_MIG_ALLOCATIONS}.migUUID")


def observe_refusal(pod: PodView) -> ObservedRefusal | None:
    """What kube-scheduler says of a Pod that asks for GPUs and has no node."""
    message = pod.scheduling_message
    if pod.node_name or pod.is_terminal or pod.is_deleting or not message:
        return None
    if all(spec.quantity(RESOURCE_COUNT) is None for spec in pod.container_specs()):
        return None
    meta = pod.metadata
    return ObservedRefusal(meta.uid, meta.namespace, meta.name, message)


def _moment(text: str | None) -> datetime | None:
    """Unix seconds as the annotation has them; None for what is no time of this century."""
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > 10:
        return None
    return datetime.fromtimestamp(int(text), UTC) if int(text) else None
