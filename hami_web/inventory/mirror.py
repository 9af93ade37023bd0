"""Make the rows of nodes and GPUs equal to what was seen; idempotent, in any order of calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from hami_web.core.reasons import Reason
from hami_web.inventory.models import KEY_MAX, LIVE, BlockedInterval, Gpu, Node, ProfileSet
from hami_web.inventory.observed import (
    Difference,
    DifferenceKind,
    ObservedGpu,
    ObservedNode,
    storable,
)
from hami_web.inventory.profile_sets import profile_sets
from hami_web.inventory.states import settle_states
from hami_web.inventory.writing import writing

REASON_MAX = 500


def mirror_nodes(
    observed: Sequence[ObservedNode], *, seen_at: datetime, now: datetime, complete: bool = False
) -> list[Difference]:
    """Write what was seen at ``seen_at``; with ``complete`` everything else is gone.

    Rows that follow from a later observation (up to ``now``) are left alone. Returns what changed.
    """
    with writing():
        pass_ = _Pass(seen_at, now)
        names = [node.name for node in observed]
        rows = Node.objects.all() if complete else Node.objects.filter(name__in=names)
        known = {row.name: row for row in rows}
        current = [pass_.node(node, known.get(node.name)) for node in observed]
        accepted = [(node, row) for node, row in zip(observed, current, strict=True) if row]
        if complete:
            listed = set(names)
            pass_.nodes_gone([row for name, row in known.items() if name not in listed])
            homeless = Gpu.objects.filter(LIVE, node__gone_at__isnull=False)
            pass_.gpus_gone(list(homeless))
        _mirror_gpus(pass_, accepted)
        if complete or pass_.differences:
            settle_states(None if complete else names, at=seen_at)
        return pass_.differences


def forget_nodes(names: Iterable[str], *, seen_at: datetime, now: datetime) -> list[Difference]:
    """Close the rows of nodes that were deleted, and of their GPUs."""
    with writing():
        pass_ = _Pass(seen_at, now)
        ended = list(names)
        pass_.nodes_gone(list(Node.objects.filter(LIVE, name__in=ended)))
        if pass_.differences:
            settle_states(ended, at=seen_at)
        return pass_.differences


@dataclass(slots=True)
class _Pass:
    seen_at: datetime
    now: datetime
    differences: list[Difference] = field(default_factory=list)

    def is_newer(self, row: Node | Gpu) -> bool:
        """A later observation made this row. A time in the future is no observation."""
        return self.seen_at < row.changed_at <= self.now

    def note(self, kind: DifferenceKind, entity: str, key: str, detail: str = "") -> None:
        self.differences.append(Difference(kind, entity, key, detail))

    def node(self, seen: ObservedNode, row: Node | None) -> Node | None:
        """The row of a node, made equal; None when a later observation owns it."""
        facts = {
            "closed": storable(seen.closed, KEY_MAX),
            "doubts": [storable(text, REASON_MAX) for text in seen.doubts],
            "unschedulable": seen.unschedulable,
            "other_owner": storable(seen.other_owner, KEY_MAX * 2),
            "gone_at": None,
        }
        if row is None:
            self.note(DifferenceKind.MISSING, "node", seen.name)
            return Node.objects.create(name=seen.name, changed_at=self.seen_at, **facts)
        if self.is_newer(row):
            return None
        self.update(row, facts, "node", seen.name)
        return row

    def update(self, row: Node | Gpu, facts: Mapping[str, object], entity: str, key: str) -> None:
        changed = [name for name, value in facts.items() if getattr(row, name) != value]
        if not changed:
            return
        came_back = "gone_at" in changed
        kind = DifferenceKind.MISSING if came_back else DifferenceKind.CHANGED
        self.note(kind, entity, key, ", ".join(sorted(changed)))
        for name in changed:
            setattr(row, name, facts[name])
        row.changed_at = self.seen_at
        row.save(update_fields=[*changed, "changed_at"])

    def nodes_gone(self, rows: Sequence[Node]) -> None:
        gone = [row for row in rows if row.gone_at is None and not self.is_newer(row)]
        for row in gone:
            self.note(DifferenceKind.VANISHED, "node", row.name)
        ids = [row.pk for row in gone]
        Node.objects.filter(pk__in=ids).update(gone_at=self.seen_at, changed_at=self.seen_at)
        self.gpus_gone(list(Gpu.objects.filter(LIVE, node_id__in=ids)))

    def gpus_gone(self, rows: Sequence[Gpu]) -> None:
        gone = [row for row in rows if not self.is_newer(row)]
        for row in gone:
            self.note(DifferenceKind.VANISHED, "gpu", row.uuid)
        ids = [row.pk for row in gone]
        Gpu.objects.filter(pk__in=ids).update(gone_at=self.seen_at, changed_at=self.seen_at)
        BlockedInterval.objects.filter(gpu_id__in=ids).delete()


def _mirror_gpus(pass_: _Pass, nodes: Sequence[tuple[ObservedNode, Node]]) -> None:
    readable = [(seen, row) for seen, row in nodes if seen.gpus is not None]
    listed = [(gpu, row) for seen, row in readable for gpu in seen.gpus or ()]
    uuids = [gpu.capability.uuid for gpu, _ in listed]
    known = {row.uuid: row for row in Gpu.objects.filter(uuid__in=uuids)}
    sets, mended = profile_sets(gpu.capability.profiles for gpu, _ in listed)
    for digest in mended:
        pass_.note(DifferenceKind.CHANGED, "profiles", digest)
    current: list[tuple[ObservedGpu, Gpu]] = []
    for gpu, node in listed:
        row = _gpu(pass_, gpu, node, sets[gpu.capability.profiles], known.get(gpu.capability.uuid))
        if row is not None:
            current.append((gpu, row))
            known[row.uuid] = row
    _close_absent(pass_, readable, set(uuids))
    _mirror_blocked(pass_, current)


def _gpu(
    pass_: _Pass, seen: ObservedGpu, node: Node, profile_set: ProfileSet, row: Gpu | None
) -> Gpu | None:
    gpu = seen.capability
    facts: dict[str, object] = {
        "node_id": node.pk,
        "index": gpu.index,
        "offered": gpu.count,
        "model": storable(gpu.model, KEY_MAX),
        "memory_mib": gpu.memory_mib,
        "core_percent": gpu.core_percent,
        "numa": gpu.numa,
        "mode": storable(gpu.mode, KEY_MAX),
        "healthy": gpu.healthy,
        "cordoned": seen.cordoned,
        "closed": storable(seen.closed, KEY_MAX),
        "memory_slices": gpu.grid,
        "profile_set_id": profile_set.pk,
        "gone_at": None,
    }
    if row is None:
        pass_.note(DifferenceKind.MISSING, "gpu", gpu.uuid)
        return Gpu.objects.create(uuid=gpu.uuid, changed_at=pass_.seen_at, **facts)
    if pass_.is_newer(row):
        return None
    pass_.update(row, facts, "gpu", gpu.uuid)
    return row


def _close_absent(
    pass_: _Pass, nodes: Sequence[tuple[ObservedNode, Node]], listed: set[str]
) -> None:
    """GPUs that their node does not publish (any more); those it publishes unreadably stay."""
    refused = {uuid for seen, _ in nodes for uuid in seen.refused}
    rows = Gpu.objects.filter(LIVE, node_id__in=[row.pk for _, row in nodes])
    absent = [row for row in rows if row.uuid not in listed]
    pass_.gpus_gone([row for row in absent if row.uuid not in refused])
    for row in absent:
        if row.uuid in refused and not pass_.is_newer(row):
            facts = {"closed": str(Reason.CAPABILITY_INVALID)}
            pass_.update(row, facts, "gpu", row.uuid)


def _mirror_blocked(pass_: _Pass, gpus: Sequence[tuple[ObservedGpu, Gpu]]) -> None:
    ids = [row.pk for _, row in gpus]
    known: dict[tuple[int, int, int], BlockedInterval] = {
        (row.gpu_id, row.start, row.size): row
        for row in BlockedInterval.objects.filter(gpu_id__in=ids)
    }
    wanted: dict[tuple[int, int, int], tuple[str, str]] = {}
    for seen, row in gpus:
        for item in seen.blocked:
            key = (row.pk, item.placement.start, item.placement.size)
            wanted.setdefault(key, (storable(item.reason, REASON_MAX), row.uuid))
    uuids = {row.pk: row.uuid for _, row in gpus}
    for key in known.keys() - wanted.keys():
        _note_blocked(pass_, DifferenceKind.VANISHED, uuids[key[0]], key)
        known[key].delete()
    for key, (reason, uuid) in wanted.items():
        row_known = known.get(key)
        if row_known is None:
            _note_blocked(pass_, DifferenceKind.MISSING, uuid, key)
            BlockedInterval.objects.create(
                gpu_id=key[0], start=key[1], size=key[2], reason=reason, since=pass_.seen_at
            )
        elif row_known.reason != reason:
            _note_blocked(pass_, DifferenceKind.CHANGED, uuid, key)
            row_known.reason = reason
            row_known.save(update_fields=["reason"])


def _note_blocked(pass_: _Pass, kind: DifferenceKind, uuid: str, key: tuple[int, int, int]) -> None:
    pass_.note(kind, "blocked", f"{uuid} {key[1]}:{key[2]}")
