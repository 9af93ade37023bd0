"""How much room there is, how much the same free memory slices could give, and the share lost.

Memory slices are *perfectly packed* when those of one profile's instances lie together at legal
placements. Over GPUs of one model that is as many instances as the free slices hold, but never
more than the empty GPUs would. On one GPU fragmentation is loss within the GPU; over a node or a
cluster it also counts what is lost between GPUs, as when every GPU has one instance and none
takes a whole-GPU profile.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hami_web.core.tables import ProfileTable


@dataclass(frozen=True, slots=True)
class Room:
    """Further instances of one profile: now, and with the same free slices perfectly packed."""

    profile: str
    memory_mib: int
    now: int
    packed: int


@dataclass(frozen=True, slots=True)
class Fragmentation:
    """Room for each profile of each model, smallest profile first, and the share of it lost."""

    rooms: tuple[Room, ...]

    @property
    def value(self) -> float:
        """Share of the packed room, in MiB over all profiles, that there is not now: 0 … 1.

        0 on an empty and on a full scope.
        """
        packed = sum(room.packed * room.memory_mib for room in self.rooms)
        now = sum(room.now * room.memory_mib for room in self.rooms)
        return (packed - now) / packed if packed else 0.0


def fragmentation(gpus: Iterable[tuple[ProfileTable, int]]) -> Fragmentation:
    """Measure GPUs given by table and state; those that take no work should be left out.

    Only profiles that a request gets without naming them count: the others would count the same
    memory slices twice.
    """
    states: dict[ProfileTable, list[int]] = {}
    for table, state in gpus:
        states.setdefault(table, []).append(state)
    rooms = [room for table, found in states.items() for room in _rooms(table, found)]
    rooms.sort(key=lambda room: (room.memory_mib, room.profile))
    return Fragmentation(tuple(rooms))


def _rooms(table: ProfileTable, states: list[int]) -> Iterable[Room]:
    free = sum(table.free_memory_slices(state) for state in states)
    for shape in table.shapes:
        if shape.profile.attribute or not shape.placements:
            continue
        packed = min(len(states) * table.most(0, shape), free // shape.memory_slices)
        now = sum(table.most(state, shape) for state in states)
        yield Room(shape.profile.name, shape.profile.memory_mib, now, packed)
