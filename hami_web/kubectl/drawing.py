"""The slice map as text: states differ by their characters, colour only helps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from hami_web.core.blocked import FOREIGN
from hami_web.kubectl import shapes
from hami_web.kubectl.wording import STATES, reason, tr

FILLS: Final = {
    "free": ".",
    "held": "?",
    "reserved": "-",
    "realized": "=",
    "terminating": "~",
    "blocked": "#",
    "foreign": "%",
    "conflicted": "!",
    "unavailable": "x",
}
_COLOURS: Final = {
    "free": "2",
    "held": "35",
    "reserved": "34",
    "realized": "32",
    "terminating": "33",
    "blocked": "37",
    "foreign": "36",
    "conflicted": "31",
    "unavailable": "2",
}
CELL: Final = 4
"""Columns of one memory slice where there is room."""


def draw(found: shapes.ClusterMap, *, width: int, colour: bool) -> Iterator[str]:
    """Lines of at most ``width`` columns as far as names allow, a legend at the end."""
    heads = [_head(node, gpu) for node in found.nodes for gpu in node.gpus]
    room = max(map(len, heads), default=0) + 2
    for node in found.nodes:
        if node.closed or node.unschedulable:
            why = reason(node.closed) if node.closed else tr("the node is cordoned")
            yield f"{node.name}: {why}"
        for gpu in node.gpus:
            head = _head(node, gpu)
            beside = room + gpu.memory_slices * CELL <= width
            cell = CELL if beside else _cell(gpu.memory_slices, width)
            bar = _bar(gpu, cell, colour=colour)
            if beside:
                yield f"{head:<{room}}{bar}".rstrip()
            else:
                yield head
                yield f"  {bar}"
            if gpu.closed:
                yield f"  {reason(gpu.closed)}"
    yield ""
    yield from legend(width, colour=colour)


def legend(width: int, *, colour: bool) -> Iterator[str]:
    """What each character means, broken into lines."""
    line = ""
    shown = 0
    for state, fill in FILLS.items():
        word = f"{fill * 3} {tr(STATES[state])}"
        if line and shown + len(word) + 2 > width:
            yield line
            line, shown = "", 0
        gap = "  " if line else ""
        line += gap + _painted(fill * 3, state, colour=colour) + word[3:]
        shown += len(gap) + len(word)
    yield line


def state_of(item: shapes.Interval) -> str:
    """The state that is drawn: of what is blocked, foreign instances are told apart."""
    return "foreign" if item.state == "blocked" and item.detail.startswith(FOREIGN) else item.state


def _head(node: shapes.MappedNode, gpu: shapes.MappedDevice) -> str:
    return f"{node.name}  GPU {gpu.index}  {gpu.model}"


def _cell(slices: int, width: int) -> int:
    return max(1, min(CELL, (width - 2) // max(slices, 1)))


def _bar(gpu: shapes.MappedDevice, cell: int, *, colour: bool) -> str:
    parts = (
        _painted(_box(state, profile, size * cell), state, colour=colour)
        for state, profile, size in _runs(gpu.intervals)
    )
    return "".join(parts)


def _runs(items: Sequence[shapes.Interval]) -> Iterable[tuple[str, str, int]]:
    """State, profile and size one after another; overlapping intervals are one conflict."""
    runs: list[tuple[str, str, int]] = []
    end = 0
    for item in sorted(items, key=lambda i: (i.start, i.size)):
        over = end - item.start
        if over <= 0:
            runs.append((state_of(item), item.profile, item.size))
            end = item.start + item.size
            continue
        grown = max(0, item.start + item.size - end)
        _, _, size = runs[-1]
        runs[-1] = ("conflicted", "", size + grown)
        end += grown
    return runs


def _box(state: str, profile: str, width: int) -> str:
    fill = FILLS[state] if state in FILLS else FILLS["unavailable"]
    if state == "free" or width < 3:
        return fill * width
    label = profile.split(".", 1)[0]
    inside = width - 2
    text = label if 0 < len(label) <= inside - 2 else ""
    return f"[{text:{fill}^{inside}}]"


def _painted(text: str, state: str, *, colour: bool) -> str:
    code = _COLOURS.get(state)
    return f"\x1b[{code}m{text}\x1b[0m" if colour and code else text
