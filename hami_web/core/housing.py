"""GPUs with the instances on them and who owns those: what can be given up, and what not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hami_web.core.placement import Placement
from hami_web.core.tables import ProfileTable


@dataclass(frozen=True, slots=True)
class Tenant:
    """One reservation of a Pod on a GPU. ``owner`` is the Pod's UID."""

    owner: str
    profile: str
    placement: Placement
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Housing:
    """One GPU that takes work, the reservations on it, and memory slices blocked for good."""

    node: str
    gpu_uuid: str
    table: ProfileTable
    tenants: tuple[Tenant, ...] = ()
    blocked: tuple[Placement, ...] = ()

    def state_without(self, owners: Iterable[str] = ()) -> int:
        """State of the GPU once all reservations of these Pods are over."""
        gone = frozenset(owners)
        return self.table.state_of(
            ((t.profile, t.placement) for t in self.tenants if t.owner not in gone), self.blocked
        )
