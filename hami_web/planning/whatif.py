"""What would ``/filter`` say: where Pods would go, one after another, and what is in the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec import structs

from hami_web.core.housing import Tenant
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.request import PodRequest
from hami_web.core.selection import Choice, Selection
from hami_web.core.whatif import Blockers, Smaller, blockers_on_gpu, ranked, smaller_that_fits
from hami_web.scheduling.explanations import nodes_by_reason
from hami_web.scheduling.index import order_among_equals
from hami_web.scheduling.nodes import exchange
from hami_web.scheduling.pods import PodRecord
from hami_web.scheduling.ranking import Rankings
from hami_web.scheduling.records import Claim, GpuRecord, NodeRecord, Phase, PodIdentity
from hami_web.scheduling.refusal import Refused, housing_of

_GPUS_TRIED: Final = 64
"""GPUs of which every set of reservations is tried for a request of several devices."""


@dataclass(frozen=True, slots=True)
class Question:
    """Equal Pods that ask for ``request``; ``nodes`` are the only ones allowed, None means all."""

    request: PodRequest
    pods: int = 1
    nodes: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A node with a place for each device of one Pod."""

    node: str
    choice: Choice


@dataclass(frozen=True, slots=True)
class InTheWay:
    """The fewest reservations, all on one GPU, without which a Pod would fit.

    ``profile`` and ``placement`` are known for a request of one device. ``exact`` is false where
    not every GPU was tried.
    """

    blockers: Blockers
    claims: tuple[Claim, ...]
    exact: bool


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why no node takes the next Pod.

    ``nodes`` are their names by reason word. ``in_the_way`` is None where no end of reservations
    on one GPU would help; ``smaller`` would fit now. ``fragmented`` says that the free memory
    slices would do if instances could be moved, None where that is not known.
    """

    nodes: Mapping[str, list[str]]
    in_the_way: InTheWay | None
    smaller: Smaller | None
    fragmented: bool | None


@dataclass(frozen=True, slots=True)
class Answer:
    """Where each Pod goes, in turn; every node for the first one; what stops the next one."""

    placed: tuple[Suggestion, ...]
    candidates: tuple[Suggestion, ...]
    obstacle: Obstacle | None


def ask(records: Mapping[str, NodeRecord], question: Question, policy: SchedulingPolicy) -> Answer:
    """Answer for a cluster as it is in ``records``, which are not changed.

    Nodes that are cordoned are left out, as kube-scheduler does. Raises InvalidRequest for a wish
    that the policy does not know.
    """
    tables = {gpu.table: None for record in records.values() for gpu in record.gpus}
    # Devices that mean the same profiles are alike for the extender, and which container gets
    # which of them follows from that.
    request = Rankings(tuple(tables)).canonical(question.request)
    selection = Selection(request, policy.rule_for(request), upsize=policy.upsize)
    left = {name: record for name, record in records.items() if _is_offered(record, question)}
    found = {s.node: s for s in _candidates(left, selection)}
    candidates = tuple(found.values())
    placed: list[Suggestion] = []
    while len(placed) < question.pods and found:
        best = min(found.values(), key=lambda item: _order(selection, item))
        placed.append(best)
        record = _taking(left[best.node], best.choice, len(placed))
        left[best.node] = record
        del found[best.node]
        found |= {s.node: s for s in _candidates({record.name: record}, selection)}
    if len(placed) == question.pods:
        return Answer(tuple(placed), candidates, None)
    own = frozenset(_uid(number + 1) for number in range(len(placed)))
    return Answer(tuple(placed), candidates, _obstacle(left, selection, own))


def _is_offered(record: NodeRecord, question: Question) -> bool:
    if question.nodes is not None and record.name not in question.nodes:
        return False
    return not record.unschedulable


def _candidates(nodes: Mapping[str, NodeRecord], selection: Selection) -> Iterator[Suggestion]:
    open_gpus = {name: record.open_gpus for name, record in nodes.items() if record.open_gpus}
    found = ranked(open_gpus, selection, tie=lambda name: order_among_equals(selection, name))
    return (Suggestion(name, choice) for name, choice in found)


def _order(selection: Selection, item: Suggestion) -> tuple[tuple[int, ...], int, str]:
    return (item.choice.rank, order_among_equals(selection, item.node), item.node)


def _taking(record: NodeRecord, choice: Choice, number: int) -> NodeRecord:
    """The node once one more Pod is on it, by the rule that follows every hold."""
    pod = PodIdentity("", "", _uid(number))
    claims = tuple(Claim.of(pod, Phase.HELD, item) for item in choice.reservations)
    after = exchange(record, None, PodRecord(pod, record.name, claims), record.version + 1)
    if after is None:  # cannot be: a node that takes work has neither doubts nor conflicts
        raise RuntimeError(f"node {record.name} does not take what was planned for it")
    return after


def _uid(number: int) -> str:
    """Of one of the Pods that are asked about."""
    return f"what-if {number}"


def _obstacle(
    nodes: Mapping[str, NodeRecord], selection: Selection, own: frozenset[str]
) -> Obstacle:
    refused = Refused(selection, sorted(nodes), nodes, {}, staying=own)
    by_reason = nodes_by_reason(refused.details)
    if selection.request.devices == 1:
        nearest = refused.nearest
        if nearest is None:
            return Obstacle(by_reason, None, _smaller(nodes, selection), None)
        found = Blockers(
            nearest.node,
            nearest.gpu_uuid,
            tuple(map(_tenant, nearest.claims)),
            nearest.profile,
            nearest.placement,
        )
        one = InTheWay(found, nearest.claims, exact=True)
        return Obstacle(by_reason, one, nearest.smaller, nearest.fragmented)
    several = _in_the_way_of_several(nodes, selection, own)
    return Obstacle(by_reason, several, _smaller(nodes, selection), None)


def _smaller(nodes: Mapping[str, NodeRecord], selection: Selection) -> Smaller | None:
    """The nearest smaller profile that fits once; None where devices ask for different things."""
    demands = {container.demand for container in selection.request.containers}
    if len(demands) != 1:
        return None
    (demand,) = demands
    gpus = (
        housing_of(name, gpu)
        for name in sorted(nodes)
        for gpu in nodes[name].open_gpus
        if selection.refusal(gpu.capability) is None
    )
    return smaller_that_fits(gpus, demand)


def _in_the_way_of_several(
    nodes: Mapping[str, NodeRecord], selection: Selection, own: frozenset[str]
) -> InTheWay | None:
    """Try the GPUs of the nodes where most devices fit already, up to a bound."""
    able = [record for record in nodes.values() if record.open_gpus]
    able.sort(key=lambda record: (-selection.found(record.open_gpus), record.name))
    gpus = [(record, gpu) for record in able for gpu in record.open_gpus if gpu.claims]
    best: tuple[Blockers, GpuRecord] | None = None
    for record, gpu in gpus[:_GPUS_TRIED]:
        found = blockers_on_gpu(
            housing_of(record.name, gpu),
            lambda state, r=record, g=gpu: _fits_with(r, g, state, selection),  # type: ignore[misc]
            may_end=lambda tenant: tenant.owner not in own,
        )
        if found is not None and (best is None or len(found.tenants) < len(best[0].tenants)):
            best = (found, gpu)
            if len(found.tenants) == 1:
                break
    if best is None:
        return None
    blockers, gpu = best
    exact = len(blockers.tenants) == 1 or len(gpus) <= _GPUS_TRIED
    ended = set(blockers.tenants)
    return InTheWay(blockers, tuple(c for c in gpu.claims if _tenant(c) in ended), exact)


def _fits_with(record: NodeRecord, gpu: GpuRecord, state: int, selection: Selection) -> bool:
    """Whether the Pod fits on the node if one of its GPUs were in another state."""
    changed = structs.replace(gpu, state=state)
    gpus = tuple(changed if other is gpu else other for other in record.open_gpus)
    return selection.plan(gpus) is not None


def _tenant(claim: Claim) -> Tenant:
    return Tenant(claim.pod.uid, claim.profile, claim.placement, claim.pod.priority)
