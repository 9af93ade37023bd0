"""Rows of answers as aligned columns, JSON or YAML."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec
import yaml

from hami_web.kubectl import shapes
from hami_web.kubectl.wording import DRIFTS, STATES, noted, tr

_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True)
class Column(Generic[_Row]):
    """A heading and its cell; ``wide`` ones are shown by ``-o wide`` only."""

    title: str
    cell: Callable[[_Row], object]
    wide: bool = False


def _state(row: shapes.Node) -> str:
    return row.closed or (tr(noted("cordoned")) if row.unschedulable else tr(noted("ready")))


NODES: Final[tuple[Column[shapes.Node], ...]] = (
    Column(noted("NAME"), lambda row: row.name),
    Column(noted("STATE"), _state),
    Column(noted("DOUBTS"), lambda row: "; ".join(row.doubts), wide=True),
)
DEVICES: Final[tuple[Column[shapes.Device], ...]] = (
    Column(noted("NODE"), lambda row: row.node),
    Column(noted("GPU"), lambda row: row.index),
    Column(noted("MODEL"), lambda row: row.model),
    Column(noted("UUID"), lambda row: row.uuid),
    Column(noted("MEMORY MiB"), lambda row: row.memory_mib),
    Column(noted("STATE"), lambda row: row.closed or tr(noted("ready"))),
    Column(noted("NUMA"), lambda row: row.numa, wide=True),
    Column(noted("PROFILES"), lambda row: ",".join(row.profiles), wide=True),
)
RESERVATIONS: Final[tuple[Column[shapes.Reservation], ...]] = (
    Column(noted("NAMESPACE"), lambda row: row.namespace),
    Column(noted("POD"), lambda row: row.pod),
    Column(noted("NODE"), lambda row: row.node),
    Column(noted("PROFILE"), lambda row: row.profile),
    Column(noted("PLACEMENT"), lambda row: f"{row.start}:{row.size}"),
    Column(noted("PHASE"), lambda row: tr(STATES.get(row.phase, row.phase))),
    Column(noted("GPU UUID"), lambda row: row.gpu_uuid, wide=True),
    Column(noted("MIG UUID"), lambda row: row.mig_uuid, wide=True),
)
DRIFT: Final[tuple[Column[shapes.Drift], ...]] = (
    Column(noted("KIND"), lambda row: row.kind),
    Column(noted("NODE"), lambda row: row.node),
    Column(noted("GPU UUID"), lambda row: row.gpu_uuid),
    Column(noted("PLACEMENT"), lambda row: "" if row.start is None else f"{row.start}:{row.size}"),
    Column(noted("POD"), lambda row: row.pod),
    Column(noted("MEANING"), lambda row: tr(DRIFTS[row.kind])),
    Column(noted("DETAIL"), lambda row: row.detail, wide=True),
)


def table(columns: Sequence[Column[Any]], rows: Sequence[object], *, wide: bool) -> Iterator[str]:
    """A heading and a line for each row."""
    shown = [column for column in columns if wide or not column.wide]
    cells = [[tr(column.title) for column in shown]]
    cells += [[_text(column.cell(row)) for column in shown] for row in rows]
    widths = [max(map(columns_of, texts)) for texts in zip(*cells, strict=True)]
    for line in cells:
        padded = [
            text + " " * (width - columns_of(text))
            for text, width in zip(line, widths, strict=True)
        ]
        yield "   ".join(padded).rstrip()


def columns_of(text: str) -> int:
    """Columns that a terminal gives a text: two for a Chinese character."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def as_json(value: object) -> str:
    """Indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def as_yaml(value: object) -> str:
    """YAML in the order of the fields."""
    text = yaml.safe_dump(msgspec.to_builtins(value), sort_keys=False, allow_unicode=True)
    return str(text).rstrip("\n")


def _text(value: object) -> str:
    """One line without control characters: texts come from annotations."""
    return "".join(letter if letter.isprintable() else " " for letter in str(value))
