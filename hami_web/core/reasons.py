"""Reason words of a refused GPU or node, one table for every edge.

HAMi's words where it has them (its scheduler's answers and events use the same), ours beside.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """Why a GPU or a node cannot take a Pod. The value is the stable code."""

    NOT_HEALTHY = "CardNotHealth"
    CORDONED = "CardCordoned"
    TYPE_MISMATCH = "CardTypeMismatch"
    UUID_MISMATCH = "CardUuidMismatch"
    NUMA_MISMATCH = "NumaNotFit"
    INSUFFICIENT_MEMORY = "CardInsufficientMemory"
    INSUFFICIENT_CORES = "CardInsufficientCore"
    TOPOLOGY_INFEASIBLE = "CardMigTopologyInfeasible"
    INSUFFICIENT_DEVICES = "AllocatedCardsInsufficientRequest"
    UNKNOWN_PROFILE = "CardMigProfileUnknown"
    CAPABILITY_INVALID = "CardMigCapabilityInvalid"
    CONFLICT = "CardMigReservationConflict"
    EXCLUSIVE = "ExclusiveDeviceAllocateConflict"
    QUOTA = "ResourceQuotaNotFit"
    NODE_UNREGISTERED = "node unregistered"
    NODE_STALE = "NodeCapabilityStale"
    NODE_DOUBT = "NodeReservationMalformed"
    NODE_OTHER_OWNER = "NodeOtherMigOwner"


def summarize(reasons: list[Reason], gpus: int) -> str:
    """HAMi's text for a refused node: ``<n>/<gpus> <Reason>`` per word, sorted as text."""
    counts: dict[Reason, int] = {}
    for reason in reasons:
        counts[reason] = counts.get(reason, 0) + 1
    return ", ".join(sorted(f"{count}/{gpus} {reason}" for reason, count in counts.items()))
