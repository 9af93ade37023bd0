"""How candidates are ranked: what each policy calls a good place.

A rule says what a GPU pays for taking some devices, and how whole nodes compare. All of it is
computed from the published capability and the occupancy, so equal facts give equal answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from hami_web.core.policy_names import BINPACK, CAP_LOSS, FIRST_FIT, SPREAD
from hami_web.core.tables import Packing, ProfileTable

_WHOLE: Final = 5040
"""A whole GPU in cost units: divisible by every grid from 1 to 10 and by 12."""
_TIE: Final = 1 << 20
"""Weight of a policy's own measure over the tie-breaker behind it."""


class Weighed(Protocol):
    """What a rule reads of a GPU."""

    @property
    def table(self) -> ProfileTable: ...
    @property
    def state(self) -> int: ...


GpuCost = Callable[[ProfileTable, int, Packing], int]
NodeOrder = Callable[[Sequence[Weighed]], int]


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy for nodes and one for the GPUs of a node. Lower is better in both."""

    node: str
    gpu: str

    def pack(self, table: ProfileTable, state: int, wanted: tuple[int, ...]) -> Packing | None:
        """Where on one GPU a multiset of profiles goes."""
        return table.pack(state, wanted, lowest=self.gpu == FIRST_FIT)

    def gpu_cost(self, table: ProfileTable, state: int, packing: Packing) -> int:
        """What a GPU in ``state`` pays for the packing."""
        return _GPU_COSTS[self.gpu](table, state, packing)

    def node_rank(self, gpus: Sequence[Weighed], level: int, cost: int) -> tuple[int, ...]:
        """Rank of a node: profiles not larger than needed, the node's order, then the cost."""
        return (level, _NODE_ORDERS[self.node](gpus), cost)


def _capacity_lost(table: ProfileTable, state: int, packing: Packing) -> int:
    """The share of the GPU's value that is lost, times its memory squared; then fullest first.

    The share ranks places on one model. Between models a GPU with more memory is worth more than
    its size: it serves what the smaller one cannot (measured in ADR 0020).
    """
    loss = table.value(state) - table.value(packing.state)
    worth = loss * table.memory_mib * table.memory_mib // max(1, table.empty_value)
    return worth * _TIE + _free(table, packing.state)


def _fullest_first(table: ProfileTable, state: int, packing: Packing) -> int:
    before, after = _used(table, state), _used(table, packing.state)
    return (before * before - after * after) * _TIE + _loss(table, state, packing)


def _emptiest_first(table: ProfileTable, state: int, packing: Packing) -> int:
    before, after = _used(table, state), _used(table, packing.state)
    return (after * after - before * before) * _TIE + _loss(table, state, packing)


def _any(_table: ProfileTable, _state: int, _packing: Packing) -> int:
    return 0


def _no_order(_gpus: Sequence[Weighed]) -> int:
    return 0


def _most_used(gpus: Sequence[Weighed]) -> int:
    return -_least_used(gpus)


def _least_used(gpus: Sequence[Weighed]) -> int:
    used = sum(_used(gpu.table, gpu.state) for gpu in gpus)
    return used // max(1, len(gpus))


def _used(table: ProfileTable, state: int) -> int:
    return _WHOLE - _free(table, state)


def _free(table: ProfileTable, state: int) -> int:
    return table.free_memory_slices(state) * _WHOLE // max(1, table.grid)


def _loss(table: ProfileTable, state: int, packing: Packing) -> int:
    loss = table.value(state) - table.value(packing.state)
    return loss * _WHOLE // max(1, table.empty_value)


_GPU_COSTS: Final[Mapping[str, GpuCost]] = {
    CAP_LOSS: _capacity_lost,
    BINPACK: _fullest_first,
    SPREAD: _emptiest_first,
    FIRST_FIT: _any,
}
_NODE_ORDERS: Final[Mapping[str, NodeOrder]] = {
    CAP_LOSS: _no_order,
    BINPACK: _most_used,
    SPREAD: _least_used,
    FIRST_FIT: _no_order,
}
