"""What changed between two instants: steps of reservations, nodes, GPUs, blocked memory slices."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias, TypeVar

from django.db.models import (
    DateTimeField,
    F,
    IntegerField,
    Model,
    Q,
    QuerySet,
    TextField,
    Value,
)
from django.db.models.functions import Cast

from hami_web.inventory.models import BlockedState, GpuState, NodeState
from hami_web.reservations.models import NEVER_BOUND, MigReservation, Phase

M = TypeVar("M", bound=Model)
ENTITIES: Final = ("reservation", "node", "gpu", "blocked")
_COLUMNS: Final = (
    *("the_at", "the_entity", "the_change", "the_namespace", "the_pod", "the_node"),
    *("the_gpu_uuid", "the_profile", "the_start", "the_size", "the_detail"),
)
_Rows: TypeAlias = QuerySet[Any, tuple[Any, ...]]
_STEPS: Final = (
    ("held", "held_at", Q()),
    ("reserved", "reserved_at", ~Q(phase__in=NEVER_BOUND)),
    ("realized", "realized_at", Q()),
    ("started", "started_at", Q()),
    ("terminating", "terminating_at", Q()),
    ("released", "released_at", Q(phase=Phase.RELEASED)),
    ("lapsed", "released_at", Q(phase=Phase.LAPSED)),
)
_TEXTS: Final = ("entity", "change", "namespace", "pod", "node", "gpu_uuid", "profile", "detail")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which changes: from ``start`` on, before ``end``; empty texts mean all.

    ``reservations`` are those that the caller may see.
    """

    start: datetime
    end: datetime
    reservations: QuerySet[MigReservation]
    entity: str = ""
    namespace: str = ""
    node: str = ""
    gpu_uuid: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """One change; the fields that do not belong to its entity are empty."""

    at: datetime
    entity: str
    change: str
    namespace: str
    pod: str
    node: str
    gpu_uuid: str
    profile: str
    start: int | None
    size: int | None
    detail: str


def changes(wanted: Wanted, *, offset: int = 0, limit: int = 500) -> list[Change]:
    """What changed, oldest first; one query."""
    parts: list[_Rows] = []
    if wanted.entity in ("", "reservation"):
        parts += [_step(wanted, *step) for step in _STEPS]
    if not wanted.namespace:
        parts += _of_inventory(wanted)
    first, *others = parts or [_step(wanted, *_STEPS[0]).none()]
    rows = first.union(*others, all=True).order_by(*_COLUMNS)
    return [Change(*row) for row in rows[offset : offset + limit]]


def _step(wanted: Wanted, change: str, column: str, condition: Q) -> _Rows:
    rows = wanted.reservations.filter(condition, **_within(wanted, column)).order_by()
    for name in ("namespace", "node", "gpu_uuid"):
        value = getattr(wanted, name)
        rows = rows.filter(**{name: value}) if value else rows
    return _shaped(
        rows,
        at=F(column),
        entity=Value("reservation"),
        change=Value(change),
        detail=Value(""),
        **{name: F(name) for name in ("namespace", "pod", "node", "gpu_uuid", "profile")},
        start=F("start"),
        size=F("size"),
    )


def _of_inventory(wanted: Wanted) -> list[_Rows]:
    parts: list[_Rows] = []
    if wanted.entity in ("", "node") and not wanted.gpu_uuid:
        nodes = NodeState.objects.filter(**({"node__name": wanted.node} if wanted.node else {}))
        parts += _of_states(wanted, nodes, entity=Value("node"), node=F("node__name"))
    about = {"gpu__uuid": wanted.gpu_uuid} if wanted.gpu_uuid else {}
    if wanted.entity in ("", "gpu"):
        gpus = GpuState.objects.filter(**about, **_named("node__name", wanted.node))
        parts += _of_states(
            wanted, gpus, entity=Value("gpu"), node=F("node__name"), gpu_uuid=F("gpu__uuid")
        )
    if wanted.entity in ("", "blocked"):
        blocked = BlockedState.objects.filter(**about, **_named("gpu__node__name", wanted.node))
        parts += _of_states(
            wanted,
            blocked,
            entity=Value("blocked"),
            node=F("gpu__node__name"),
            gpu_uuid=F("gpu__uuid"),
            start=F("start"),
            size=F("size"),
        )
    return parts


def _named(lookup: str, value: str) -> dict[str, str]:
    return {lookup: value} if value else {}


def _of_states(wanted: Wanted, rows: QuerySet[Any], **columns: Any) -> list[_Rows]:
    """Beginnings with what was other before, and ends of what is gone."""
    begun = rows.filter(**_within(wanted, "began_at")).order_by()
    gone = rows.filter(is_last=True, **_within(wanted, "ended_at")).order_by()
    appeared = Q(change="appeared")
    return [
        _shaped(begun.filter(appeared), at=F("began_at"), change=Value("appeared"), **columns),
        _shaped(
            begun.exclude(appeared),
            at=F("began_at"),
            change=Value("changed"),
            detail=F("change"),
            **columns,
        ),
        _shaped(gone, at=F("ended_at"), change=Value("gone"), **columns),
    ]


def _within(wanted: Wanted, column: str) -> dict[str, datetime]:
    return {f"{column}__gte": wanted.start, f"{column}__lt": wanted.end}


def _shaped(rows: QuerySet[M], **columns: Any) -> _Rows:
    """All parts have the same columns of the same types, which PostgreSQL asks for."""
    texts = {name: Cast(columns.get(name, Value("")), TextField()) for name in _TEXTS}
    numbers = {
        name: Cast(columns.get(name, Value(None)), IntegerField()) for name in ("start", "size")
    }
    shown = {f"the_{name}": value for name, value in (texts | numbers).items()}
    moment = Cast(columns["at"], DateTimeField())
    return rows.annotate(the_at=moment, **shown).values_list(*_COLUMNS)
