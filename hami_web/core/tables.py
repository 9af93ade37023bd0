"""What one GPU model can still hold, tabulated from the placements that NVML reports.

A GPU's *state* is one integer. Its low bits, one per memory slice, are the taken memory slices;
as many bits above mark where an instance starts, so that the state tells the instances apart; the
bits above those count what placements alone cannot say: instances of a profile with a limit, and
media engines. Every answer is derived from the published capability and kept per state, so that
after the first time a question costs one look-up. There are few states: 417 for an A100.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from hami_web.core.capability import GpuCapability, ProfileCapability
from hami_web.core.placement import Placement
from hami_web.core.request import Demand
from hami_web.core.shapes import Shape, masks_by_end, most_disjoint, shapes_of, take

_STATES_MAX: Final = 1 << 16
"""Kept answers per kind; a capability with an absurd grid must not eat the memory."""

_NOW: Final = 20
"""Weight of the room now against what the end of one instance would add; 5 does as well."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A legal free placement, the state it leads to, and the value lost by it."""

    placement: Placement
    state: int
    loss: int


@dataclass(frozen=True, slots=True)
class Packing:
    """A multiset of profiles on one GPU: shape index and placement of each, and the state after."""

    placed: tuple[tuple[int, Placement], ...]
    state: int


_UNKNOWN: Final = Packing((), -1)


class ProfileTable:
    """Answers for all GPUs whose published profiles are equal.

    Safe for threads: answers are only ever added, and equal questions have equal answers.
    """

    def __init__(self, gpu: GpuCapability) -> None:
        ordered = sorted(gpu.profiles, key=lambda profile: profile.order)
        self.memory_mib = gpu.memory_mib
        self._sample = gpu
        self.grid = max((p.end for profile in ordered for p in profile.placements), default=0)
        self.slice_mask = (1 << self.grid) - 1
        self.shapes = tuple(shapes_of(ordered, self.grid))
        self.by_name = {shape.profile.name: shape for shape in self.shapes}
        plain = tuple(shape for shape in self.shapes if not shape.profile.attribute)
        self._valued = tuple(
            (masks_by_end(shape), shape.memory_slices) for shape in plain or self.shapes
        )
        self._layout_mask = (1 << (2 * self.grid)) - 1
        self._limited = any(shape.sets or shape.tokens for shape in self.shapes)
        self._rooms: dict[int, int] = {}
        self._values: dict[int, int] = {}
        self._fits: dict[tuple[int, int], tuple[Fit, ...]] = {}
        self._best: dict[tuple[int, int], Fit | None] = {}
        self._packings: dict[tuple[int, tuple[int, ...], bool], Packing | None] = {}
        self._counts: dict[tuple[int, int], int] = {}
        self._satisfying: dict[Demand, tuple[Shape, ...]] = {}
        self.empty_value = self.value(0)

    def state_of(
        self, instances: Iterable[tuple[str, Placement]], blocked: Iterable[Placement] = ()
    ) -> int:
        """State of instances, by profile name, and of memory slices blocked by anything else.

        A profile that the GPU does not publish takes its memory slices only.
        """
        every = list(instances)
        state = 0
        for placement in (*(placement for _, placement in every), *blocked):
            state |= self._bits(placement)
        return self.counting(state, (name for name, _ in every))

    def layout(self, taken: int, starts: int) -> int:
        """State of taken memory slices, and of those where an instance starts."""
        return (taken & self.slice_mask) | (starts & self.slice_mask) << self.grid

    def counting(self, state: int, names: Iterable[str]) -> int:
        """The state with what instances of profiles, by name, take beside their memory slices."""
        for name in names if self._limited else ():
            shape = self.by_name.get(name)
            state = state if shape is None else take(shape, state)
        return state

    def satisfying(self, demand: Demand) -> tuple[Shape, ...]:
        """Profiles that satisfy a demand, smallest first."""
        known = self._satisfying.get(demand)
        if known is None:
            found = demand.candidates(self._sample)
            known = tuple(self.by_name[profile.name] for profile in found)
            _remember(self._satisfying, demand, known)
        return known

    def taking(self, state: int, shape: Shape, placement: Placement) -> int:
        """State after one more instance."""
        return take(shape, state | self._bits(placement))

    def _bits(self, placement: Placement) -> int:
        return self.layout(placement.mask, placement.mask & -placement.mask)

    def free_memory_slices(self, state: int) -> int:
        """Memory slices that nothing has taken, in any position."""
        return self.grid - (state & self.slice_mask).bit_count()

    def room(self, taken: int) -> int:
        """Memory slices that the plain profiles could still get, summed over the profiles.

        For each profile the most instances of it that fit together around the mask of taken
        memory slices, times their size (design decision 4).
        """
        known = self._rooms.get(taken)
        if known is None:
            known = sum(size * most_disjoint(masks, taken) for masks, size in self._valued)
            _remember(self._rooms, taken, known)
        return known

    def value(self, state: int) -> int:
        """What the GPU is worth in this state, in twentieths of a memory slice.

        Its room now, and a twentieth of what the end of each single instance would add: of two
        equal places the better one is where less stands in the way of more room (ADR 0020).
        """
        layout = state & self._layout_mask
        known = self._values.get(layout)
        if known is None:
            taken = state & self.slice_mask
            room = self.room(taken)
            gains = (self.room(taken & ~mask) - room for mask in self._instances(layout))
            known = _NOW * room + sum(gains)
            _remember(self._values, layout, known)
        return known

    def _instances(self, layout: int) -> Iterable[int]:
        """Mask of each instance: from its start to the next start or free memory slice."""
        mask = 0
        for index in range(self.grid):
            if layout >> (self.grid + index) & 1 and mask:
                yield mask
                mask = 0
            if layout >> index & 1:
                mask |= 1 << index
            elif mask:
                yield mask
                mask = 0
        if mask:
            yield mask

    def fits(self, state: int, shape: Shape) -> tuple[Fit, ...]:
        """Legal free placements of a profile, least loss first, then lowest start."""
        key = (state, shape.index)
        known = self._fits.get(key)
        if known is None:
            known = self._list_fits(state, shape)
            _remember(self._fits, key, known)
        return known

    def best(self, state: int, shape: Shape) -> Fit | None:
        """The placement that loses least, or None when none is legal and free."""
        fits = self.fits(state, shape)
        return fits[0] if fits else None

    def most(self, state: int, shape: Shape) -> int:
        """How many more instances of one profile fit, alone, around what is taken."""
        key = (state, shape.index)
        known = self._counts.get(key)
        if known is None:
            known = 0
            if not state & shape.needs_clear:
                known = most_disjoint(masks_by_end(shape), state & self.slice_mask)
                if shape.tokens:
                    known = min(known, (shape.tokens & ~state).bit_count())
                if shape.sets & shape.needs_clear:
                    known = min(known, 1)
            _remember(self._counts, key, known)
        return known

    def pack(self, state: int, wanted: tuple[int, ...], *, lowest: bool = False) -> Packing | None:
        """Place a multiset of profiles so that the most value is left, or None.

        ``wanted`` has a count per shape. The answer does not depend on an order of asking. With
        ``lowest`` the first free starts are taken that let the others fit.
        """
        if not any(wanted):
            return Packing((), state)
        key = (state, wanted, lowest)
        known = self._packings.get(key, _UNKNOWN)
        if known is not _UNKNOWN:
            return known
        found = self._first(state, wanted) if lowest else self._search(state, wanted)
        _remember(self._packings, key, found)
        return found

    def _search(self, state: int, wanted: tuple[int, ...]) -> Packing | None:
        needed = sum(n * s.memory_slices for n, s in zip(wanted, self.shapes, strict=True))
        if needed > self.free_memory_slices(state):
            return None
        chosen = min(
            (shape for shape in self.shapes if wanted[shape.index]),
            key=lambda shape: (len(self.fits(state, shape)), -shape.memory_slices, shape.index),
        )
        rest = (*wanted[: chosen.index], wanted[chosen.index] - 1, *wanted[chosen.index + 1 :])
        best: Packing | None = None
        for fit in self.fits(state, chosen):
            further = self.pack(fit.state, rest)
            if further is None:
                continue
            if best is None or self.value(further.state) > self.value(best.state):
                best = Packing(((chosen.index, fit.placement), *further.placed), further.state)
        return best

    def _first(self, state: int, wanted: tuple[int, ...]) -> Packing | None:
        chosen = max(
            (shape for shape in self.shapes if wanted[shape.index]),
            key=lambda shape: (shape.memory_slices, -shape.index),
        )
        rest = (*wanted[: chosen.index], wanted[chosen.index] - 1, *wanted[chosen.index + 1 :])
        for fit in sorted(self.fits(state, chosen), key=lambda fit: fit.placement):
            further = self.pack(fit.state, rest, lowest=True)
            if further is not None:
                return Packing(((chosen.index, fit.placement), *further.placed), further.state)
        return None

    def _list_fits(self, state: int, shape: Shape) -> tuple[Fit, ...]:
        if state & shape.needs_clear or (shape.tokens and not shape.tokens & ~state):
            return ()
        before = self.value(state)
        fits = []
        for placement, mask in zip(shape.placements, shape.masks, strict=True):
            if not state & mask:
                after = self.taking(state, shape, placement)
                fits.append(Fit(placement, after, before - self.value(after)))
        return tuple(sorted(fits, key=lambda fit: (fit.loss, fit.placement)))


class TableStore:
    """One table per distinct capability, shared by all GPUs that publish it."""

    def __init__(self) -> None:
        self._tables: dict[tuple[object, ...], ProfileTable] = {}
        # By the identity of a shared tuple of profiles, which the entry keeps alive.
        self._by_identity: dict[
            tuple[int, int], tuple[tuple[ProfileCapability, ...], ProfileTable]
        ] = {}

    def table_for(self, gpu: GpuCapability) -> ProfileTable:
        """The table of a GPU; its order of profiles does not matter."""
        identity = (id(gpu.profiles), gpu.memory_mib)
        shared = self._by_identity.get(identity)
        if shared is not None:
            return shared[1]
        key = (gpu.memory_mib, *sorted(map(_signature, gpu.profiles)))
        table = self._tables.get(key)
        if table is None:
            table = self._tables[key] = ProfileTable(gpu)
        _remember(self._by_identity, identity, (gpu.profiles, table))
        return table

    def __len__(self) -> int:
        return len(self._tables)

    def __iter__(self) -> Iterator[ProfileTable]:
        return iter(self._tables.values())


def _signature(profile: ProfileCapability) -> tuple[object, ...]:
    return (
        *profile.order,
        profile.core_percent,
        -1 if profile.instance_limit is None else profile.instance_limit,
        profile.attribute,
        tuple(sorted(profile.placements)),
    )


Key = TypeVar("Key")
Value = TypeVar("Value")


def _remember(kept: dict[Key, Value], key: Key, value: Value) -> None:
    if len(kept) >= _STATES_MAX:
        kept.clear()
    kept[key] = value
