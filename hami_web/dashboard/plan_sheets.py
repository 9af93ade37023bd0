"""Answers of what-if and drain plans as rows of a file; names that may not be seen are empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Final

from hami_web.core.placement import Placement
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.downloads import Sheet
from hami_web.planning.commands import commands_of
from hami_web.planning.drain import DrainAnswer, Move
from hami_web.planning.whatif import Answer, Obstacle

ANSWER: Final = (
    *("row", "number", "node", "gpu_index", "gpu_uuid", "profile", "start", "size"),
    *("pod", "reason"),
)
"""``row``: a ``place`` for Pod ``number``, what is ``in_the_way``, a ``smaller`` profile that fits,
or the ``refusal`` of a node."""
PLAN: Final = (
    *("row", "pod", "priority", "node", "gpu_index", "gpu_uuid", "profile", "start", "size"),
    *("to_node", "to_gpu_uuid", "to_start", "to_size", "command"),
)
"""``row``: a placement that is ``free`` afterwards, a reservation to ``move``, or a ``command``."""
Sees = Callable[[str], bool]
_Row = tuple[object, ...]


def answer_sheet(answer: Answer | None, shown: ClusterMap, sees: Sees) -> Sheet:
    """Where Pods would go and what stops the next one; no rows where nothing was asked."""
    rows: list[_Row] = []
    if answer is not None:
        for number, suggestion in enumerate(answer.placed, 1):
            rows += [
                ("place", number, suggestion.node, *_spot(shown, item.gpu_uuid), item.profile,
                 *_of(item.placement), "", "")
                for item in suggestion.choice.reservations
            ]  # fmt: skip
        if answer.obstacle is not None:
            rows += _hindrances(answer.obstacle, shown, sees)
    return Sheet("what-if", ANSWER, rows)


def _hindrances(obstacle: Obstacle, shown: ClusterMap, sees: Sees) -> Iterator[_Row]:
    way, smaller = obstacle.in_the_way, obstacle.smaller
    for claim in way.claims if way else ():
        seen = sees(claim.pod.namespace)
        where = (_node(shown, claim.gpu_uuid), *_spot(shown, claim.gpu_uuid))
        yield (
            *("in_the_way", None, *where, claim.profile if seen else "", *_of(claim.placement)),
            *(claim.pod.full_name if seen else "", ""),
        )
    if smaller:
        where = (smaller.node, *_spot(shown, smaller.gpu_uuid))
        yield ("smaller", None, *where, smaller.profile, *_of(smaller.placement), "", "")
    for reason, nodes in sorted(obstacle.nodes.items()):
        for node in nodes:
            yield ("refusal", None, node, None, "", "", None, None, "", reason)


def plan_sheet(answer: DrainAnswer | None, profile: str, shown: ClusterMap, sees: Sees) -> Sheet:
    """What moves, what is free afterwards, and the commands; no rows without a plan."""
    rows: list[_Row] = []
    if answer is not None:
        for move in answer.moves:
            rows += _moves(move, shown, sees)
        rows += [
            ("free", "", None, node, *_spot(shown, uuid), profile, *_of(placement), *_HOME, "")
            for node, uuid, placement in answer.placements
        ]
        commands = commands_of(answer, sees) if answer.moves else ()
        rows += [(*_COMMAND, command) for command in commands]
    return Sheet("drain-plan", PLAN, rows)


_HOME: Final = ("", "", None, None)
_COMMAND: Final = ("command", "", None, "", None, "", "", None, None, *_HOME)


def _moves(move: Move, shown: ClusterMap, sees: Sees) -> Iterator[_Row]:
    for claim, home in zip_longest(move.claims, move.homes):
        seen = sees(claim.pod.namespace)
        who = (claim.pod.full_name, claim.pod.priority) if seen else ("", None)
        held = (claim.profile, *_of(claim.placement)) if seen else ("", None, None)
        to = (home[0], home[1], *_of(home[2])) if home else _HOME
        yield ("move", *who, move.node, *_spot(shown, claim.gpu_uuid), *held, *to, "")


def _of(placement: Placement) -> tuple[int, int]:
    return placement.start, placement.size


def _spot(shown: ClusterMap, uuid: str) -> tuple[int | None, str]:
    """Index and UUID of a GPU."""
    row = shown.rows.get(uuid)
    return (row.index if row else None), uuid


def _node(shown: ClusterMap, uuid: str) -> str:
    row = shown.rows.get(uuid)
    return row.node if row else ""
