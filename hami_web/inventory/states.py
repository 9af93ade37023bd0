"""Keep what nodes, GPUs and blocked memory slices were, as intervals beside what they are now."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, TypeVar

from django.db.models import Model, Q

from hami_web.inventory.models import (
    LIVE,
    BlockedInterval,
    BlockedState,
    Gpu,
    GpuState,
    Node,
    NodeState,
    StateInterval,
)
from hami_web.inventory.observed import storable

APPEARED: Final = "appeared"
CHANGE_MAX: Final = 500
_OPEN: Final = Q(ended_at__isnull=True)
_NODE: Final = ("closed", "doubts", "unschedulable", "other_owner")
_GPU: Final = (
    *("node_id", "index", "mode", "healthy", "cordoned", "closed", "memory_slices"),
    "profile_set_id",
)
_TOLD: Final = ("closed", "unschedulable", "other_owner", "mode", "healthy", "cordoned", "reason")
"""Facts whose new value is told; of the others that they changed."""
_State = TypeVar("_State", bound=StateInterval)
_Key = Hashable
_CHUNK: Final = 500


def settle_states(names: Sequence[str] | None, *, at: datetime) -> None:
    """Make the open intervals of these nodes, None for all, equal to the rows of now.

    Inside a transaction. What differs ends at ``at`` and goes on as another interval.
    """
    nodes = Node.objects.filter(LIVE)
    gpus = Gpu.objects.filter(LIVE)
    blocked = BlockedInterval.objects.all()
    node_states = NodeState.objects.filter(_OPEN)
    gpu_states = GpuState.objects.filter(_OPEN)
    blocked_states = BlockedState.objects.filter(_OPEN)
    if names is not None:
        nodes = nodes.filter(name__in=names)
        node_states = node_states.filter(node__name__in=names)
        # A GPU may have come from another node: its interval is found by the GPU.
        gpus = gpus.filter(node__name__in=names)
        ids = list(gpus.values_list("pk", flat=True))
        gpu_states = gpu_states.filter(Q(node__name__in=names) | Q(gpu_id__in=ids))
        gpus = Gpu.objects.filter(LIVE, Q(pk__in=ids) | Q(pk__in=gpu_states.values("gpu_id")))
        touched = Q(gpu_id__in=ids) | Q(gpu_id__in=gpu_states.values("gpu_id"))
        blocked = blocked.filter(touched)
        blocked_states = blocked_states.filter(touched)
    blocked_now = list(blocked)
    blocked_before = list(blocked_states)
    _settle(
        {(row.pk,): _facts(row, _NODE) | {"node_id": row.pk} for row in nodes},
        {(row.node_id,): row for row in node_states},
        NodeState,
        at,
    )
    _settle(
        {(row.pk,): _facts(row, _GPU) | {"gpu_id": row.pk} for row in gpus},
        {(row.gpu_id,): row for row in gpu_states},
        GpuState,
        at,
    )
    _settle(
        {_place(row): _facts(row, ("gpu_id", "start", "size", "reason")) for row in blocked_now},
        {_place(row): row for row in blocked_before},
        BlockedState,
        at,
    )


def _place(row: BlockedInterval | BlockedState) -> tuple[int, int, int]:
    return (row.gpu_id, row.start, row.size)


def _facts(row: Model, names: Iterable[str]) -> dict[str, object]:
    return {name: getattr(row, name) for name in names}


def _settle(
    wanted: Mapping[_Key, Mapping[str, object]],
    known: Mapping[_Key, _State],
    model: type[_State],
    at: datetime,
) -> None:
    """End what differs or is gone, and begin what differs or is new."""
    ended: list[_State] = []
    begun: list[_State] = []
    for key, facts in wanted.items():
        row = known.get(key)
        changed = [] if row is None else [n for n in facts if getattr(row, n) != facts[n]]
        if row is None or changed:
            change = APPEARED if row is None else _words(changed, facts)
            begun.append(model(**facts, began_at=at, change=change))
        if row is not None and changed:
            ended.append(row)
    gone = [row for key, row in known.items() if key not in wanted]
    for row in (*ended, *gone):
        row.ended_at = max(at, row.began_at)
    for row in gone:
        row.is_last = True
    manager = model._default_manager  # noqa: SLF001  # Django's documented manager
    manager.bulk_update([*ended, *gone], ["ended_at", "is_last"], batch_size=_CHUNK)
    manager.bulk_create(begun, batch_size=_CHUNK)


def _words(changed: Sequence[str], facts: Mapping[str, object]) -> str:
    """``cordoned=true, index``: what is other than before."""
    words = [
        f"{name}={_shown(facts[name])}" if name in _TOLD else name.removesuffix("_id")
        for name in changed
    ]
    return storable(", ".join(words), CHANGE_MAX)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
