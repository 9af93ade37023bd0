"""Pure decisions: what may be adopted, what may be destroyed, what belongs to somebody else.

Doubt preserves: every function here answers "keep" for whatever it cannot prove.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hami_web.core import annotations as keys
from hami_web.core import mig_owner
from hami_web.core.errors import InvalidField
from hami_web.core.mig_owner import Sign
from hami_web.core.reservation import RuntimeIdentity, decode_allocations
from node_agent.nvml.ports import LiveInstance
from node_agent.ownership import Claim, InstanceRecord, InstanceSpec, Owner, RecordState
from node_agent.pods import ObservedNode, ObservedPod

_GPU_UUID: Final = re.compile(r"GPU-[0-9A-Za-z-]+")


class Verdict(StrEnum):
    """What start-up makes of one reservation."""

    ADOPT = "adopt"
    AWAIT = "await"
    PRESERVE = "preserve"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class AdoptionDecision:
    """The verdict on one claim, the instance it is about, and why."""

    claim: Claim
    verdict: Verdict
    live: LiveInstance | None
    reason: str


@dataclass(frozen=True, slots=True)
class NodeClaims:
    """Claims of the Pods that are not over, and what could not be read.

    ``doubted`` holds the GPUs that an unreadable annotation may be about; ``all_doubted`` says that
    it may be about any. ``doubts`` are the texts, for people.
    """

    claims: tuple[Claim, ...]
    doubted: frozenset[str]
    all_doubted: bool
    doubts: tuple[str, ...]

    def in_doubt(self, gpu_uuid: str) -> bool:
        return self.all_doubted or gpu_uuid in self.doubted


def pod_claims(pod: ObservedPod) -> tuple[Claim, ...]:
    """All reservations of one Pod. Raises :class:`InvalidField` for a malformed annotation."""
    text = pod.annotations.get(keys.POD_MIG_ALLOCATIONS, "")
    return tuple(
        Claim(
            Owner(pod.uid, item.container_index, item.device_index),
            pod.namespace,
            pod.name,
            InstanceSpec(item.gpu_uuid, item.profile, item.placement),
            item.identity,
        )
        for item in decode_allocations(text)
    )


def node_claims(pods: Iterable[ObservedPod]) -> NodeClaims:
    """Claims of all Pods that are not over; a malformed annotation puts its GPUs in doubt."""
    claims: list[Claim] = []
    doubted: set[str] = set()
    doubts: list[str] = []
    all_doubted = False
    for pod in pods:
        if pod.over:
            continue
        try:
            claims.extend(pod_claims(pod))
        except InvalidField as error:
            named = _named_gpus(pod)
            doubted |= named
            all_doubted = all_doubted or not named
            doubts.append(f"Pod {pod.key}: {error}")
    return NodeClaims(tuple(claims), frozenset(doubted), all_doubted, tuple(doubts))


def reclaimable(
    records: Iterable[InstanceRecord], pods: Sequence[ObservedPod], claims: NodeClaims
) -> tuple[InstanceRecord, ...]:
    """Records whose owner is over or not among the node's Pods, on GPUs without doubt.

    ``pods`` must be a complete list taken after ``records`` were read; a Pod that is missing from
    it is asked for by name before anything is destroyed. An instance whose identity a Pod that is
    not over carries too is kept: an identity is used again, so it may be that Pod's by now.
    """
    keeps = {pod.uid for pod in pods if not pod.over}
    carried = {(c.spec.gpu_uuid, c.identity) for c in claims.claims if c.identity is not None}
    return tuple(
        record
        for record in records
        if record.owner.pod_uid not in keeps
        and not claims.in_doubt(record.spec.gpu_uuid)
        and (record.spec.gpu_uuid, record.identity) not in carried
    )


def foreign_instances(
    live: Iterable[LiveInstance], records: Collection[InstanceRecord]
) -> tuple[LiveInstance, ...]:
    """Live instances that no record of ours explains by GPU, profile and placement."""
    ours = {(r.spec.gpu_uuid, r.profile_id, r.spec.placement) for r in records}
    return tuple(
        item for item in live if (item.gpu_uuid, item.profile_id, item.placement) not in ours
    )


def missing_records(
    live: Iterable[LiveInstance], records: Iterable[InstanceRecord]
) -> tuple[InstanceRecord, ...]:
    """Realized records whose instance no longer exists: somebody else destroyed it."""
    present = {(item.gpu_uuid, item.profile_id, item.placement) for item in live}
    return tuple(
        r
        for r in records
        if r.state is RecordState.REALIZED
        and (r.spec.gpu_uuid, r.profile_id, r.spec.placement) not in present
    )


def adoption_decisions(
    claims: Sequence[Claim],
    records: Mapping[Owner, InstanceRecord],
    live: Collection[LiveInstance],
    profile_ids: Mapping[tuple[str, str], int],
) -> tuple[AdoptionDecision, ...]:
    """One verdict for each claim; one bad claim changes no other's, unless the two overlap.

    ``profile_ids`` maps (GPU UUID, profile name) to NVML's number of the profile.
    """
    decisions = [_decide(claim, records, live, profile_ids) for claim in claims]
    return tuple(_settle(decision, decisions) for decision in decisions)


def idle_gpus(
    gpus: Iterable[str],
    claims: NodeClaims,
    records: Iterable[InstanceRecord],
    busy: Collection[str],
) -> tuple[str, ...]:
    """GPUs that nobody can be using: no claim, no doubt, no record, no process (``busy``)."""
    used = {claim.spec.gpu_uuid for claim in claims.claims}
    used |= {record.spec.gpu_uuid for record in records} | set(busy)
    return tuple(gpu for gpu in gpus if gpu not in used and not claims.in_doubt(gpu))


def whole_gpus(
    pods: Iterable[ObservedPod], claims: NodeClaims, resource: str
) -> tuple[frozenset[str], str]:
    """GPUs that Pods which are not over use without a MIG reservation on them; a doubt, or "".

    A Pod that asks for the resource and names no GPU may use any.
    """
    reserved = {(claim.owner.pod_uid, claim.spec.gpu_uuid) for claim in claims.claims}
    named: set[str] = set()
    for pod in pods:
        if pod.over:
            continue
        own = _named_gpus(pod)
        named |= {uuid for uuid in own if (pod.uid, uuid) not in reserved}
        if not own and any(limits.get(resource, "0") != "0" for limits in pod.limits):
            return frozenset(named), f"Pod {pod.key} asks for {resource} and names no GPU"
    return frozenset(named), ""


def layout_owner(node: ObservedNode, pods: Iterable[ObservedPod]) -> Sign | None:
    """Sign that something else may change the MIG layout of this node's GPUs."""
    return mig_owner.sign_on_node(node.labels) or program_sign(pods)


def program_sign(pods: Iterable[ObservedPod]) -> Sign | None:
    """The first Pod that is not over and whose program may change the MIG layout."""
    for pod in sorted(pods, key=lambda pod: pod.key):
        sign = None if pod.over else mig_owner.sign_of_program(pod.key, pod.labels)
        if sign is not None:
            return sign
    return None


def other_owner(node: ObservedNode, pods: Iterable[ObservedPod]) -> str:
    """Sign that something else changes or offers this node's GPUs, or an empty text."""
    found = mig_owner.other_owner(node.labels, node.resources)
    for pod in sorted(pods, key=lambda pod: pod.key):
        program = "" if found or pod.over else mig_owner.operand(pod.labels)
        if program:
            found = f"Pod {pod.key} ({program})"
    return found


def identity_of(live: LiveInstance) -> RuntimeIdentity | None:
    """The identity of a whole instance; None while it has no compute instance, or several."""
    if len(live.compute_instances) != 1:
        return None
    compute = live.compute_instances[0]
    return RuntimeIdentity(compute.mig_uuid, live.gpu_instance_id, compute.compute_instance_id)


def _decide(
    claim: Claim,
    records: Mapping[Owner, InstanceRecord],
    live: Collection[LiveInstance],
    profile_ids: Mapping[tuple[str, str], int],
) -> AdoptionDecision:
    spec = claim.spec
    there = [
        item
        for item in live
        if item.gpu_uuid == spec.gpu_uuid and item.placement.overlaps(spec.placement)
    ]
    profile_id = profile_ids.get((spec.gpu_uuid, spec.profile))
    exact = next(
        (i for i in there if i.placement == spec.placement and i.profile_id == profile_id), None
    )
    if profile_id is None:
        return _verdict(claim, Verdict.PRESERVE, None, "NVML does not know the GPU or profile")
    if exact is None:
        return _without_instance(claim, there)
    found = identity_of(exact)
    if claim.identity is not None and found == claim.identity:
        return _verdict(claim, Verdict.ADOPT, exact, "annotation and NVML agree")
    if not _is_ours(spec, records.get(claim.owner), found):
        text = "an instance of unknown owner is there"
        reason = text if claim.identity is None else "NVML shows another identity"
        return _verdict(claim, Verdict.PRESERVE, exact, reason)
    if found is None:
        return _verdict(claim, Verdict.AWAIT, exact, "creation was interrupted")
    return _verdict(claim, Verdict.ADOPT, exact, "created, and its annotation was lost")


def _is_ours(
    spec: InstanceSpec, record: InstanceRecord | None, found: RuntimeIdentity | None
) -> bool:
    """True when the owner's record is about just this instance, as far as both have come."""
    if record is None or record.spec != spec or record.state is RecordState.RECLAIMING:
        return False
    return found is None or record.identity in (None, found)


def _without_instance(claim: Claim, there: Sequence[LiveInstance]) -> AdoptionDecision:
    if there:
        return _verdict(claim, Verdict.PRESERVE, there[0], "another instance overlaps")
    if claim.identity is not None:
        return _verdict(claim, Verdict.STALE, None, "the instance no longer exists")
    return _verdict(claim, Verdict.AWAIT, None, "not realized yet")


def _settle(decision: AdoptionDecision, decisions: Sequence[AdoptionDecision]) -> AdoptionDecision:
    """Two claims on one instance prove nothing about whose it is: neither is adopted."""
    if decision.verdict is not Verdict.ADOPT:
        return decision
    rivals = [d for d in decisions if d.verdict is Verdict.ADOPT and d.live == decision.live]
    if len(rivals) < 2:
        return decision
    others = ", ".join(d.claim.pod for d in rivals if d is not decision)
    return _verdict(decision.claim, Verdict.PRESERVE, decision.live, f"also claimed by {others}")


def _verdict(
    claim: Claim, verdict: Verdict, live: LiveInstance | None, reason: str
) -> AdoptionDecision:
    return AdoptionDecision(claim, verdict, live, reason)


def _named_gpus(pod: ObservedPod) -> set[str]:
    """GPUs that the unreadable Pod's annotations speak of in any form."""
    texts = (
        pod.annotations.get(key, "")
        for key in (
            keys.POD_MIG_ALLOCATIONS,
            keys.POD_DEVICES_ALLOCATED,
            keys.POD_DEVICES_TO_ALLOCATE,
        )
    )
    return {uuid for text in texts for uuid in _GPU_UUID.findall(text)}
