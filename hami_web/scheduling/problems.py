"""What is wrong with reservations on Pods, and with which Pod."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct

from hami_web.core import annotations as keys
from hami_web.scheduling.pods import PodRecord
from hami_web.scheduling.records import ClusterSnapshot, GpuRecord, NodeRecord, Phase, PodIdentity


class ProblemCode(StrEnum):
    """The value is the stable code."""

    MALFORMED = "malformed"
    """The annotation cannot be read; the node takes no new work."""
    MISPLACED = "misplaced"
    """It names a GPU or memory slices that the node does not have; the node takes no new work."""
    UNEXPLAINED = "unexplained"
    """A MIG GPU is listed without a reservation; the node takes no new work."""
    OVERLAPPING = "overlapping"
    """It overlaps another Pod's; the GPU takes no new work."""
    ALTERED = "altered"
    """It was changed or removed on the bound Pod; what was reserved stays taken."""
    UNTRUSTED = "untrusted"
    """It is not what the scheduler signed; it counts for nothing where an agent of ours serves."""


class ReservationProblem(Struct, frozen=True):
    """One problem of one Pod; ``gpu_uuid`` is empty where it concerns no GPU alone."""

    pod: PodIdentity
    node: str
    code: ProblemCode
    text: str
    gpu_uuid: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Equal for what is the same problem."""
        return (self.pod.uid, self.code, self.gpu_uuid)


def doubts_of(gpus: Sequence[GpuRecord], pods: Iterable[PodRecord]) -> list[ReservationProblem]:
    """Pods whose claims cannot be placed on the node's GPUs: what they take is unknown."""
    grids = {gpu.capability.uuid: gpu.table.grid for gpu in gpus}
    found: list[ReservationProblem] = []
    for pod in pods:
        if pod.doubt or pod.unexplained:
            found.extend(_unreadable(gpus, pod))
        for claim in pod.claims:
            uuid = claim.gpu_uuid
            if claim.placement.end > grids.get(uuid, 0):
                where = f"{uuid} has no placement {claim.placement}"
                text = f"Pod {pod.identity.full_name}: {where}"
                code = ProblemCode.MISPLACED
                found.append(ReservationProblem(pod.identity, pod.node, code, text, uuid))
    return found


def overlaps_of(node: NodeRecord) -> list[ReservationProblem]:
    """Pods whose reservations overlap, each once for a GPU, with the names of the others."""
    found: dict[tuple[str, str, str], ReservationProblem] = {}
    for gpu in node.gpus:
        if not gpu.conflicted:
            continue
        uuid = gpu.capability.uuid
        claims = [claim for claim in gpu.claims if claim.phase is Phase.CONFLICTED]
        for claim in claims:
            others = sorted(
                {
                    other.pod.full_name
                    for other in claims
                    if other is not claim and other.placement.overlaps(claim.placement)
                }
            )
            text = (
                f"Pod {claim.pod.full_name}: {claim.profile} at {claim.placement} of {uuid} "
                f"overlaps what is reserved for {', '.join(others)}"
            )
            code = ProblemCode.OVERLAPPING
            problem = ReservationProblem(claim.pod, node.name, code, text, uuid)
            found.setdefault(problem.key, problem)
    return list(found.values())


def troubled(snapshot: ClusterSnapshot) -> list[NodeRecord]:
    """Nodes with doubts, or with reservations that overlap."""
    return [
        node
        for node in snapshot.nodes.values()
        if node.doubts or any(gpu.conflicted for gpu in node.gpus)
    ]


def _unreadable(gpus: Sequence[GpuRecord], pod: PodRecord) -> Iterable[ReservationProblem]:
    if pod.doubt:
        yield ReservationProblem(pod.identity, pod.node, ProblemCode.MALFORMED, pod.doubt)
    for uuid in pod.unexplained:
        if any(g.capability.uuid == uuid and g.capability.mode == keys.MODE_MIG for g in gpus):
            text = f"Pod {pod.identity.full_name}: GPU {uuid} is listed without a reservation"
            yield ReservationProblem(pod.identity, pod.node, ProblemCode.UNEXPLAINED, text, uuid)
