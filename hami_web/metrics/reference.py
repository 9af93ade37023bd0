"""The table of series as a document: ``python -m hami_web.metrics.reference`` prints it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Final

from hami_web.metrics.series import Owner, Series
from hami_web.metrics.table import OPTIONAL, OWNED

_TITLES: Final = {
    Owner.EXTENDER: "Extender",
    Owner.WORKER: "Worker",
    Owner.WEB: "Web",
}


def reference() -> str:
    """Markdown: one table for each role, and one of HAMi's old names."""
    parts = [_section(_TITLES[owner], series) for owner, series in OWNED.items()]
    parts.append(_section("Old names, with `HAMI_LEGACY_METRICS`", OPTIONAL))
    return "\n".join(parts)


def _section(title: str, series: Iterable[Series]) -> str:
    return "\n".join((f"## {title}", "", *_lines(series), ""))


def _lines(series: Iterable[Series]) -> Iterator[str]:
    yield "| series | kind | labels | meaning |"
    yield "|---|---|---|---|"
    for item in series:
        labels = ", ".join(f"`{label}`" for label in item.labels)
        yield f"| `{item.name}` | {item.kind} | {labels} | {item.text} |"


if __name__ == "__main__":
    sys.stdout.write(reference())
