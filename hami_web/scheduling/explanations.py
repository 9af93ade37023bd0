"""Decisions in words: what events say, as HAMi words it where it has words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hami_web.core.reservation import Reservation
from hami_web.scheduling.refusal import NodeRefusal

_NODES_NAMED: Final = 8
"""Nodes named for one reason; the others are counted."""


def nodes_by_reason(details: Mapping[str, NodeRefusal]) -> dict[str, list[str]]:
    """Names of the refused nodes, sorted, for each reason word; a node may be under several."""
    found: dict[str, list[str]] = {}
    for name in sorted(details):
        for word in reason_words(details[name]):
            found.setdefault(word, []).append(name)
    return found


def refusal_note(nodes: int, by_reason: Mapping[str, list[str]]) -> str:
    """``no available node, 3 nodes do not meet: 2 nodes CardMigTopologyInfeasible(n1,n2), …``."""
    parts = [
        f"{len(names)} nodes {word}({_named(names)})"
        for word, names in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    head = f"no available node, {nodes} nodes do not meet"
    return f"{head}: {', '.join(parts)}" if parts else head


def reason_words(refusal: NodeRefusal) -> tuple[str, ...]:
    """The distinct reasons of one node, sorted."""
    if refusal.reason is not None:
        return (str(refusal.reason),)
    words = {str(reason) for reason in refusal.gpus.values()}
    return tuple(sorted(words)) or (refusal.text,)


def fit_note(node: str, reservations: tuple[Reservation, ...]) -> str:
    """``find fit node(n1), holds 1g.5gb at 6+1 of GPU-…``."""
    devices = ", ".join(
        f"{item.profile} at {item.placement.start}+{item.placement.size} of {item.gpu_uuid}"
        for item in reservations
    )
    return f"find fit node({node}), holds {devices}"


def bound_note(node: str, pod: str) -> str:
    """HAMi's text of a bound Pod."""
    return f"Successfully binding node [{node}] to {pod}"


def _named(names: list[str]) -> str:
    shown = ",".join(names[:_NODES_NAMED])
    return f"{shown},…" if len(names) > _NODES_NAMED else shown
