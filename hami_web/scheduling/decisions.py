"""What a filter ends in, for the edge that answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hami_web.core.reasons import Reason
from hami_web.scheduling.refusal import NodeRefusal

_BEYOND_EVICTION: Final = frozenset(
    {
        Reason.NOT_HEALTHY,
        Reason.CORDONED,
        Reason.TYPE_MISMATCH,
        Reason.UUID_MISMATCH,
        Reason.UNKNOWN_PROFILE,
        Reason.CAPABILITY_INVALID,
        Reason.NODE_UNREGISTERED,
        Reason.NODE_STALE,
        Reason.NODE_DOUBT,
        Reason.NODE_OTHER_OWNER,
    }
)
"""Reasons that stay when every Pod is evicted from the node."""


class NotReady(Exception):
    """The cluster is not known well enough to decide; answered with 503, never with a guess."""


@dataclass(frozen=True, slots=True)
class Fits:
    """The nodes that may take the Pod: one with a hold, or all for a Pod without GPUs."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RefusedEverywhere:
    """Why each node cannot take the Pod; ``unresolvable`` where no eviction would help.

    ``failed`` names every node: kube-scheduler up to 1.20 reads nothing else, and newer ones let
    ``unresolvable`` win.
    """

    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)


def refused_everywhere(details: Mapping[str, NodeRefusal]) -> RefusedEverywhere:
    """Sort the refusals of all nodes by whether an eviction could help."""
    failed: dict[str, str] = {}
    unresolvable: dict[str, str] = {}
    for name, refusal in details.items():
        failed[name] = refusal.text
        if not _eviction_could_help(refusal):
            unresolvable[name] = refusal.text
    return RefusedEverywhere(failed, unresolvable)


def _eviction_could_help(refusal: NodeRefusal) -> bool:
    if refusal.reason is not None:
        return refusal.reason not in _BEYOND_EVICTION
    return refusal.found > 0 or any(r not in _BEYOND_EVICTION for r in refusal.gpus.values())
