"""What a node publishes, and its record under the Pods that occupy it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from hami_web.cluster.views import NodeView
from hami_web.core import annotations as keys
from hami_web.core.blocked import BlockedInterval, decode_blocked
from hami_web.core.capability import GpuCapability
from hami_web.core.cordon import decode_cordon
from hami_web.core.errors import InvalidField, InvalidRequest, MalformedContract
from hami_web.core.mig_owner import LEGACY_CAPABILITY, Sign, sign_on_node
from hami_web.core.quantity import parse_whole
from hami_web.core.reasons import Reason
from hami_web.core.registration import decode_registration, refuse_node
from hami_web.core.tables import ProfileTable, TableStore
from hami_web.core.wire import INT32_MAX
from hami_web.scheduling.pods import PodRecord
from hami_web.scheduling.problems import doubts_of
from hami_web.scheduling.records import Claim, GpuRecord, NodeRecord, joined, occupy


@dataclass(frozen=True, slots=True, eq=False)
class PublishedNode:
    """A node's own facts, decoded once per change; ``texts`` are what they were decoded from.

    ``other_owner`` is the sign that something else may change the MIG layout.
    """

    name: str
    texts: tuple[object, ...]
    gpus: tuple[tuple[GpuCapability, ProfileTable], ...]
    refused: tuple[tuple[str, InvalidField], ...]
    cordoned: frozenset[str]
    blocked: tuple[BlockedInterval, ...]
    closed: Reason | None
    doubts: tuple[str, ...]
    unschedulable: bool
    other_owner: Sign | None = None
    agent_alive: bool | None = None


def source_of(node: NodeView) -> tuple[object, ...]:
    """Everything that is read from a node, to see whether any of it changed; texts as digests."""
    annotations = node.annotations
    return (
        _digest(annotations.get(keys.NODE_REGISTER, "")),
        _digest(annotations.get(keys.NODE_MIG_BLOCKED, "")),
        annotations.get(keys.NODE_DEVICE_CORDON),
        _sign_on(node),
        node.is_ready,
        node.spec.unschedulable,
        (node.status.allocatable or {}).get(keys.RESOURCE_COUNT)
        if node.status.allocatable is not None
        else "",
    )


def _sign_on(node: NodeView) -> Sign | None:
    told = node.annotations.get(keys.NODE_MIG_OWNER, "")
    return sign_on_node(node.metadata.labels or {}, told)


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()


def read_node(node: NodeView, tables: TableStore) -> PublishedNode:
    """Decode a node's facts. What cannot be read closes the node, and says why."""
    name = node.name
    texts = source_of(node)
    annotations = node.annotations
    gpus: tuple[tuple[GpuCapability, ProfileTable], ...] = ()
    refused: tuple[tuple[str, InvalidField], ...] = ()
    blocked: tuple[BlockedInterval, ...] = ()
    doubts: list[str] = []
    closed = _liveness(node)
    try:
        decoded = decode_registration(annotations.get(keys.NODE_REGISTER) or "[]")
        gpus = tuple((gpu, tables.table_for(gpu)) for gpu in decoded.capability.gpus)
        refused = tuple((uuid, refuse_node(name, error)) for uuid, error in decoded.refused)
    except MalformedContract as error:
        closed = Reason.NODE_UNREGISTERED
        doubts.append(str(refuse_node(name, error)))
    try:
        blocked = decode_blocked(annotations.get(keys.NODE_MIG_BLOCKED, ""))
    except MalformedContract as error:
        closed = closed or Reason.NODE_DOUBT
        doubts.append(str(refuse_node(name, error)))
    if not gpus and not refused:
        closed = Reason.NODE_UNREGISTERED
    cordoned = frozenset(decode_cordon(annotations.get(keys.NODE_DEVICE_CORDON, "")))
    return PublishedNode(
        name,
        texts,
        gpus,
        refused,
        cordoned,
        blocked,
        closed,
        tuple(doubts),
        node.spec.unschedulable,
        _other_owner(node, gpus) if gpus or refused else None,
    )


def build_record(published: PublishedNode, pods: Iterable[PodRecord], version: int) -> NodeRecord:
    """The node's record from nothing but its facts and the Pods on it."""
    pods = list(pods)
    claims: dict[str, list[Claim]] = {}
    clear = True
    for pod in pods:
        if pod.doubt or pod.unexplained:
            clear = False
        for claim in pod.claims:
            uuid = claim.gpu_uuid
            known = claims.get(uuid)
            if known is None:
                claims[uuid] = [claim]
            else:
                known.append(claim)
    gpus = tuple(
        [_gpu(published, gpu, table, claims.pop(gpu.uuid, ())) for gpu, table in published.gpus]
    )
    clear = clear and not claims and all(map(_legal, gpus))
    doubts = [] if clear else [problem.text for problem in doubts_of(gpus, pods)]
    closed = published.closed
    if closed is None and published.agent_alive is False:
        closed = Reason.NODE_STALE
    owner = [] if published.other_owner is None else [str(published.other_owner)]
    if closed is None and owner:
        closed = Reason.NODE_OTHER_OWNER
    if closed is None and doubts:
        closed = Reason.NODE_DOUBT
    return _record(published, gpus, (*owner, *published.doubts, *doubts), closed, version)


def exchange(
    before: NodeRecord,
    left: PodRecord | None,
    came: PodRecord | None,
    version: int,
) -> NodeRecord | None:
    """The node's record after one Pod left or came, from the GPUs it concerns alone.

    None where that is not enough to know: on a node with doubts or conflicts all Pods count.
    """
    if before.doubts or (came is not None and (came.doubt or came.unexplained)):
        return None
    gone = "" if left is None else left.identity.uid
    gpus = list(before.gpus)
    for uuid in _gpus_of(left, came):
        position = _position(gpus, uuid)
        renewed = None if position is None else _renewed(gpus[position], gone, came)
        if position is None or renewed is None:
            return None
        gpus[position] = renewed
    every = tuple(gpus)
    if before.open_gpus is before.gpus:
        opened = every
    else:
        opened = tuple(
            [new for old, new in zip(before.gpus, every, strict=True) if old in before.open_gpus]
        )
    return NodeRecord(
        before.name,
        version,
        every,
        before.refused,
        before.closed,
        before.doubts,
        opened,
        before.unschedulable,
    )


def _gpus_of(left: PodRecord | None, came: PodRecord | None) -> Iterable[str]:
    """UUIDs of the GPUs that a Pod left or came to, each once."""
    if left is None and came is not None and len(came.claims) == 1:
        return (came.claims[0].gpu_uuid,)  # what a decision does
    claims = (*(left.claims if left else ()), *(came.claims if came else ()))
    return dict.fromkeys(claim.gpu_uuid for claim in claims)


def _position(gpus: Sequence[GpuRecord], uuid: str) -> int | None:
    for position, gpu in enumerate(gpus):
        if gpu.capability.uuid == uuid:
            return position
    return None


def _renewed(gpu: GpuRecord, gone: str, came: PodRecord | None) -> GpuRecord | None:
    """A GPU without the claims of one Pod and with those of another; None where that conflicts."""
    if gpu.conflicted:
        return None
    uuid = gpu.capability.uuid
    new = [claim for claim in came.claims if claim.gpu_uuid == uuid] if came else []
    if not gone:
        return joined(gpu, new)
    claims = [claim for claim in gpu.claims if claim.pod.uid != gone]
    claims.extend(new)
    renewed = occupy(gpu.capability, gpu.table, claims, gpu.blocked, cordoned=gpu.cordoned)
    return None if renewed.conflicted or not _legal(renewed) else renewed


def _legal(gpu: GpuRecord) -> bool:
    """Whether every claim lies on the GPU's grid."""
    taken = 0
    for claim in gpu.claims:
        taken |= claim.like.placement.mask
    return not taken >> gpu.table.grid


def _gpu(
    published: PublishedNode, gpu: GpuCapability, table: ProfileTable, claims: Sequence[Claim]
) -> GpuRecord:
    blocked = published.blocked and tuple(b for b in published.blocked if b.gpu_uuid == gpu.uuid)
    return occupy(gpu, table, claims, blocked, cordoned=gpu.uuid in published.cordoned)


def _record(
    published: PublishedNode,
    gpus: tuple[GpuRecord, ...],
    doubts: tuple[str, ...],
    closed: Reason | None,
    version: int,
) -> NodeRecord:
    opened = () if closed else tuple([gpu for gpu in gpus if gpu.refusal is None])
    return NodeRecord(
        published.name,
        version,
        gpus,
        published.refused,
        closed,
        doubts,
        gpus if len(opened) == len(gpus) else opened,
        published.unschedulable,
    )


def _other_owner(
    node: NodeView, gpus: tuple[tuple[GpuCapability, ProfileTable], ...]
) -> Sign | None:
    legacy = any(gpu.extra.get("migtemplate") for gpu, _ in gpus)
    return _sign_on(node) or (LEGACY_CAPABILITY if legacy else None)


def _liveness(node: NodeView) -> Reason | None:
    """A node that is not ready, or whose kubelet offers no GPU, takes no new work."""
    if not node.is_ready:
        return Reason.NODE_STALE
    allocatable = node.status.allocatable
    if allocatable is None:
        return None
    try:
        offered = parse_whole(
            allocatable.get(keys.RESOURCE_COUNT, 0),
            f"node {node.name}: {keys.RESOURCE_COUNT}",
            most=INT32_MAX,
            unit="GPUs",
        )
    except InvalidRequest:
        return Reason.NODE_STALE
    return None if offered else Reason.NODE_STALE
