"""Why a Pod fits nowhere: the answer for kube-scheduler, and the details behind it.

Everything is worked out from the immutable records of the moment of the decision, when it is
asked for and outside the state's lock; what was found for a node is kept until that node changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hami_web.core.blocked import BlockedInterval
from hami_web.core.housing import Housing, Tenant
from hami_web.core.oracle import CapacityOracle
from hami_web.core.placement import Placement
from hami_web.core.quota import NamespaceQuota
from hami_web.core.reasons import Reason, summarize
from hami_web.core.request import Demand
from hami_web.core.selection import Selection
from hami_web.core.tables import ProfileTable
from hami_web.core.whatif import Blockers, Smaller, blockers_of_one, smaller_that_fits
from hami_web.scheduling.records import Claim, GpuRecord, NodeRecord


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """Why one node cannot take a Pod.

    ``reason`` is set when no GPU of it takes any work. ``gpus`` gives a reason for each GPU on
    which not one device fits; ``found`` is how many of the ``wanted`` devices fit together on
    the others.
    """

    node: str
    text: str
    reason: Reason | None
    gpus: Mapping[str, Reason]
    found: int = 0
    wanted: int = 0


@dataclass(frozen=True, slots=True)
class NearestMiss:
    """What comes closest for a Pod that asks for one device.

    ``claims`` are the fewest reservations that would have to end, all on one GPU, so that
    ``profile`` fits at ``placement``. ``smaller`` would fit now. ``fragmented`` means that the
    free memory slices would do if instances could be moved; otherwise there is no capacity.
    """

    node: str
    gpu_uuid: str
    profile: str
    placement: Placement | None
    claims: tuple[Claim, ...]
    blocked: tuple[BlockedInterval, ...]
    smaller: Smaller | None
    fragmented: bool

    def __str__(self) -> str:
        taken = ", ".join(
            f"{claim.pod.full_name} ({claim.profile} at {claim.placement})" for claim in self.claims
        )
        parts = [
            f"{self.profile} would fit at {self.placement} of {self.gpu_uuid} on {self.node}"
            f" without {taken}"
        ]
        if self.smaller is not None:
            parts.append(f"{self.smaller.profile} fits now on {self.smaller.node}")
        verdict = "the free memory slices are scattered" if self.fragmented else "no capacity"
        return "; ".join([verdict, *parts])


@dataclass(frozen=True)
class Refused:
    """No named node takes the Pod, or its namespace's ``quota`` does not allow what it asks.

    ``staying`` are UIDs of Pods that are never named as what would have to end.
    """

    selection: Selection
    names: Sequence[str]
    nodes: Mapping[str, NodeRecord]
    known: MutableMapping[str, tuple[NodeRecord, NodeRefusal]]
    quota: NamespaceQuota | None = None
    staying: frozenset[str] = frozenset()

    @cached_property
    def details(self) -> Mapping[str, NodeRefusal]:
        """Per node: the text, and the reason of each GPU."""
        return {name: self._detail(name) for name in self.names}

    @cached_property
    def reasons(self) -> Mapping[str, str]:
        """Per node the text for kube-scheduler, which shows it to users."""
        return {name: refusal.text for name, refusal in self.details.items()}

    @cached_property
    def most_devices(self) -> int:
        """The most of the Pod's devices that one of the nodes could hold."""
        return max((refusal.found for refusal in self.details.values()), default=0)

    @cached_property
    def nearest(self) -> NearestMiss | None:
        """What comes closest, or None where no end of reservations would help."""
        demands = {container.demand for container in self.selection.request.containers}
        if self.quota is not None or self.selection.request.devices != 1 or len(demands) != 1:
            return None
        (demand,) = demands
        able = {
            table for table in {gpu.table for _, gpu in self._open()} if table.satisfying(demand)
        }
        if not able:
            return None
        housings = (
            housing_of(record.name, gpu) for record, gpu in self._open() if gpu.table in able
        )
        found = blockers_of_one(
            housings, demand, may_end=lambda tenant: tenant.owner not in self.staying, enough=1
        )
        if found is None:
            return None
        everywhere = (housing_of(record.name, gpu) for record, gpu in self._open())
        return self._miss(found, smaller_that_fits(everywhere, demand), demand)

    def _detail(self, name: str) -> NodeRefusal:
        record = self.nodes.get(name)
        if record is None:
            return NodeRefusal(name, str(Reason.NODE_UNREGISTERED), Reason.NODE_UNREGISTERED, {})
        if self.quota is not None:
            uuids = [gpu.capability.uuid for gpu in record.gpus]
            text = summarize([Reason.QUOTA] * len(uuids), record.gpu_count)
            return NodeRefusal(name, text, Reason.QUOTA, dict.fromkeys(uuids, Reason.QUOTA))
        known = self.known.get(name)
        if known is not None and known[0] is record:
            return known[1]
        refusal = refuse(record, self.selection)
        self.known[name] = (record, refusal)
        return refusal

    def _open(self) -> Iterator[tuple[NodeRecord, GpuRecord]]:
        for name in sorted(self.names):
            record = self.nodes.get(name)
            if record is not None:
                for gpu in record.open_gpus:
                    if self.selection.refusal(gpu.capability) is None:
                        yield record, gpu

    def _miss(self, found: Blockers, smaller: Smaller | None, demand: Demand) -> NearestMiss:
        (gpu,) = (
            gpu for gpu in self.nodes[found.node].open_gpus if gpu.capability.uuid == found.gpu_uuid
        )
        ended = {(tenant.owner, tenant.placement) for tenant in found.tenants}
        claims = tuple(c for c in gpu.claims if (c.pod.uid, c.placement) in ended)
        return NearestMiss(
            found.node,
            found.gpu_uuid,
            found.profile,
            found.placement,
            claims,
            gpu.blocked,
            smaller,
            self._would_fit_rearranged(demand, gpu.table),
        )

    def _would_fit_rearranged(self, demand: Demand, table: ProfileTable) -> bool:
        """True when the model's GPUs would hold everything and one device more, rearranged.

        GPUs with blocked slices, or with a profile that is no longer published, stay as they are.
        """
        counts = [0] * len(table.shapes)
        gpus = 0
        for _, gpu in self._open():
            shapes = [table.by_name.get(claim.profile) for claim in gpu.claims]
            if gpu.table is not table or gpu.blocked or None in shapes:
                continue
            gpus += 1
            for shape in shapes:
                if shape is not None:
                    counts[shape.index] += 1
        counts[table.satisfying(demand)[0].index] += 1
        return CapacityOracle(table).within(counts, gpus)


def refuse(record: NodeRecord, selection: Selection) -> NodeRefusal:
    """Explain a node on which the request has no plan."""
    if record.closed is not None:
        return NodeRefusal(record.name, _closed_text(record, record.closed), record.closed, {})
    reasons: dict[str, Reason] = {uuid: Reason.CAPABILITY_INVALID for uuid, _ in record.refused}
    for gpu in record.gpus:
        reason = gpu.refusal or selection.explain(gpu)
        if reason is not None:
            reasons[gpu.capability.uuid] = reason
    total = record.gpu_count
    text = summarize(list(reasons.values()), total)
    wanted = selection.request.devices
    found = 0
    if len(reasons) < total:
        found = selection.found(record.open_gpus)
        short = f"{found}/{total} {Reason.INSUFFICIENT_DEVICES}"
        text = ", ".join(sorted([*filter(None, [text]), short]))
    return NodeRefusal(record.name, text, None, reasons, found, wanted)


def _closed_text(record: NodeRecord, closed: Reason) -> str:
    """The code; of another owner also its sign and how to take it away, which only people can."""
    told = closed is Reason.NODE_OTHER_OWNER and record.doubts
    return f"{closed}: {record.doubts[0]}" if told else str(closed)


def housing_of(node: str, gpu: GpuRecord) -> Housing:
    """A GPU with its claims, for what-if and drain."""
    return Housing(
        node,
        gpu.capability.uuid,
        gpu.table,
        tuple(
            Tenant(claim.pod.uid, claim.profile, claim.placement, claim.pod.priority)
            for claim in gpu.claims
        ),
        tuple(interval.placement for interval in gpu.blocked),
    )
