"""Answers from annotations alone, by the functions that the extender and the API use."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final, TypeVar

import msgspec

from hami_web.cluster.client import KubernetesClient
from hami_web.cluster.errors import ClusterError, NotFound
from hami_web.cluster.listing import Listing
from hami_web.cluster.resources import nodes as node_resource
from hami_web.cluster.resources import pods as pod_resource
from hami_web.cluster.transport import Transport
from hami_web.cluster.views import PodView
from hami_web.core.errors import CoreError
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.request import parse_pod_request
from hami_web.kubectl import shapes
from hami_web.kubectl.rest import reservation_order
from hami_web.kubectl.source import CommandFailed, WhatIfQuestion
from hami_web.kubectl.wording import tr
from hami_web.planning.drain import DrainQuestion, free_now, plan
from hami_web.planning.drain_document import document_of as plan_document
from hami_web.planning.layout import BLOCKED, Interval, lay_out
from hami_web.planning.whatif import ask
from hami_web.planning.whatif_document import document_of, question_of
from hami_web.scheduling.explained import Search, explain
from hami_web.scheduling.pods import must_stay
from hami_web.scheduling.records import Claim, GpuRecord, NodeRecord
from hami_web.scheduling.refusal import Refused
from hami_web.scheduling.state import ClusterState

PAGE: Final = 500
CANDIDATES: Final = 20
_Shape = TypeVar("_Shape")


class AnnotationSource:
    """Nodes and Pods, listed once; every answer is of that moment.

    Not known here: choices that are held but not bound, quotas, agents' Leases, history, and the
    cluster's own scheduling policy; the default one counts.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @property
    def note(self) -> str:
        """What to know of these answers."""
        age = time.monotonic() - self._listed_at
        text = tr(
            "from annotations, read {age:.1f} s ago; not known here: holds that are not bound, "
            "quotas, agents' Leases, history, a scheduling policy other than the default"
        )
        return text.format(age=age)

    def nodes(self) -> Sequence[shapes.Node]:
        """Nodes that have to do with GPUs, by name."""
        return [
            shapes.Node(
                name=record.name,
                closed=str(record.closed or ""),
                doubts=[*record.doubts, *(str(error) for _, error in record.refused)],
                unschedulable=record.unschedulable,
            )
            for record in self._records.values()
        ]

    def devices(self) -> Sequence[shapes.Device]:
        """GPUs whose capability can be read, by node and index."""
        return [_device(name, gpu) for name, gpu in self._gpus()]

    def reservations(self, namespace: str | None) -> Sequence[shapes.Reservation]:
        """Reservations on bound Pods."""
        found = [
            _reservation(name, claim)
            for name, gpu in self._gpus()
            for claim in gpu.claims
            if namespace in (None, claim.pod.namespace)
        ]
        return sorted(found, key=reservation_order)

    def cluster_map(self) -> shapes.ClusterMap:
        """All GPUs."""
        return shapes.ClusterMap(nodes=[_mapped(record) for record in self._records.values()])

    def why(self, namespace: str, pod: str) -> Sequence[shapes.Why]:
        """What the extender's own rules say of the Pod now."""
        try:
            view = KubernetesClient(self._transport).get_pod(namespace, pod)
        except NotFound as error:
            raise CommandFailed(
                tr("there is no Pod {pod}").format(pod=f"{namespace}/{pod}")
            ) from error
        except ClusterError as error:
            raise CommandFailed(str(error)) from error
        if view.node_name:
            return [shapes.Why(said_by="annotations", outcome="bound", node=view.node_name)]
        return [self._asked_now(view)]

    def what_if(self, question: WhatIfQuestion) -> shapes.WhatIf:
        """By the extender's rules with its default policy."""
        values = msgspec.to_builtins(question)
        values = {"numa_bind": False, "count": 1, "devices": 1} | values
        try:
            answer = ask(self._records, question_of(values), SchedulingPolicy())
        except CoreError as error:
            raise CommandFailed(str(error)) from error
        document = document_of(answer, candidates=CANDIDATES, sees=_everything)
        return _shaped(document, shapes.WhatIf)

    def drain_plan(self, profile: str, count: int) -> shapes.DrainPlan:
        """The fewest Pods to move."""
        offered = {name for _, gpu in self._gpus() for name in gpu.table.by_name}
        if profile not in offered:
            text = tr("{field}: {value} is not allowed; allowed: {allowed}")
            allowed = ", ".join(sorted(offered))
            raise CommandFailed(text.format(field="profile", value=profile, allowed=allowed))
        answer = plan(self._records, DrainQuestion(profile, count), self._protected)
        head = {
            "profile": profile,
            "count": count,
            "possible": answer is not None,
            "free": free_now(self._records, profile),
            "protected": len(self._protected),
        }
        more = {} if answer is None else plan_document(answer, _everything)
        return _shaped(head | more, shapes.DrainPlan)

    def _asked_now(self, view: PodView) -> shapes.Why:
        try:
            request = parse_pod_request(view.container_specs(), view.annotations)
        except CoreError as error:
            return shapes.Why(
                said_by="annotations", outcome="invalid", code=error.code, message=str(error)
            )
        if not request.containers:
            raise CommandFailed(tr("the Pod asks for no GPU"))
        names = [name for name, record in self._records.items() if not record.unschedulable]
        answer = self._state.filter(view, request, names)
        if not isinstance(answer, Refused):
            return shapes.Why(said_by="annotations", outcome="held", node=answer.node)
        told = explain(answer, Search(known=True, miss=answer.nearest))
        explanation = _shaped(msgspec.to_builtins(told), shapes.Explanation)
        return shapes.Why(said_by="annotations", outcome="refused", explanation=explanation)

    @cached_property
    def _state(self) -> ClusterState:
        state = ClusterState(SchedulingPolicy())
        never = threading.Event()
        try:
            state.replace_nodes(Listing(node_resource(self._transport), PAGE, never))
            state.replace_pods(self._noticing(Listing(pod_resource(self._transport), PAGE, never)))
        except ClusterError as error:
            raise CommandFailed(str(error)) from error
        return state

    def _noticing(self, pods: Iterable[PodView]) -> Iterable[PodView]:
        for pod in pods:
            if must_stay(pod):
                self._staying.add(pod.uid)
            yield pod

    @cached_property
    def _staying(self) -> set[str]:
        return set()

    @cached_property
    def _listed_at(self) -> float:
        _ = self._records
        return time.monotonic()

    @cached_property
    def _records(self) -> dict[str, NodeRecord]:
        found = self._state.snapshot().nodes
        known = {n: r for n, r in found.items() if r.gpus or r.refused or r.doubts}
        return dict(sorted(known.items()))

    @cached_property
    def _protected(self) -> frozenset[str]:
        owners = {claim.pod.uid for _, gpu in self._gpus() for claim in gpu.claims}
        return frozenset(owners & self._staying)

    def _gpus(self) -> Iterable[tuple[str, GpuRecord]]:
        for name, record in self._records.items():
            for gpu in record.gpus:
                yield name, gpu


def _everything(_namespace: str) -> bool:
    """Who may list Pods sees their names."""
    return True


def _shaped(document: object, shape: type[_Shape]) -> _Shape:
    return msgspec.convert(document, shape)


def _device(node: str, record: GpuRecord) -> shapes.Device:
    gpu = record.capability
    return shapes.Device(
        uuid=gpu.uuid,
        node=node,
        index=gpu.index,
        model=gpu.model,
        memory_mib=gpu.memory_mib,
        memory_slices=gpu.grid,
        numa=gpu.numa,
        mode=gpu.mode,
        healthy=gpu.healthy,
        cordoned=record.cordoned,
        closed=str(record.refusal or ""),
        profiles=[profile.name for profile in sorted(gpu.profiles, key=lambda p: p.order)],
        blocked=[
            shapes.Blocked(start=b.placement.start, size=b.placement.size, reason=b.reason)
            for b in record.blocked
        ],
    )


def _reservation(node: str, claim: Claim) -> shapes.Reservation:
    item = claim.reservation
    return shapes.Reservation(
        namespace=claim.pod.namespace,
        pod=claim.pod.name,
        pod_uid=claim.pod.uid,
        node=node,
        container_index=item.container_index,
        device_index=item.device_index,
        gpu_uuid=claim.gpu_uuid,
        profile=claim.profile,
        start=item.placement.start,
        size=item.placement.size,
        mig_uuid=claim.mig_uuid,
        phase=claim.phase.value,
    )


def _mapped(record: NodeRecord) -> shapes.MappedNode:
    return shapes.MappedNode(
        name=record.name,
        closed=str(record.closed or ""),
        unschedulable=record.unschedulable,
        gpus=[_mapped_gpu(gpu) for gpu in record.gpus],
    )


def _mapped_gpu(record: GpuRecord) -> shapes.MappedDevice:
    gpu = record.capability
    claimed = [_interval(claim) for claim in record.claims]
    blocked = [
        Interval(b.placement.start, b.placement.size, BLOCKED, detail=b.reason)
        for b in record.blocked
    ]
    found = lay_out(gpu.grid, claimed, blocked)
    return shapes.MappedDevice(
        uuid=gpu.uuid,
        index=gpu.index,
        model=gpu.model,
        memory_slices=gpu.grid,
        closed=str(record.refusal or ""),
        intervals=_shaped(msgspec.to_builtins(found), list[shapes.Interval]),
    )


def _interval(claim: Claim) -> Interval:
    place, pod = claim.placement, claim.pod
    return Interval(
        place.start,
        place.size,
        claim.phase.value,
        claim.profile,
        pod.namespace,
        pod.name,
        claim.mig_uuid,
    )
