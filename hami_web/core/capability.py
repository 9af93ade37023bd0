"""What GPUs can be cut into, as NVML on their node reports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hami_web.core.errors import InvalidCapability
from hami_web.core.placement import Placement


@dataclass(frozen=True, slots=True)
class ProfileCapability:
    """One profile of one GPU.

    ``memory_mib`` in MiB, ``core_percent`` the share of the largest profile's multiprocessors
    rounded up, ``compute_slices`` NVML's slice count, ``placements`` every legal interval.
    ``instance_limit`` is set where fewer instances fit than the placements alone would allow;
    ``attribute`` is the suffix of a special profile (``+me``), which is chosen only by name.
    ``extra`` keeps unknown wire keys.
    """

    name: str
    memory_mib: int
    core_percent: int
    compute_slices: int
    placements: tuple[Placement, ...]
    instance_limit: int | None = None
    attribute: str = ""
    extra: Mapping[str, object] = field(default_factory=dict, hash=False)

    @property
    def memory_slices(self) -> int:
        """Memory slices of one instance, 0 for a profile without placements."""
        return max((placement.size for placement in self.placements), default=0)

    @property
    def order(self) -> tuple[int, int, str]:
        """Smaller profiles first: memory, compute slices, name (design decision 3)."""
        return (self.memory_mib, self.compute_slices, self.name)


@dataclass(frozen=True)
class GpuCapability:
    """One physical GPU. ``memory_mib`` in MiB; ``model`` as NVML names it; ``count`` as offered."""

    uuid: str
    index: int
    count: int
    memory_mib: int
    core_percent: int
    model: str
    numa: int
    mode: str
    profiles: tuple[ProfileCapability, ...]
    healthy: bool
    extra: Mapping[str, object] = field(default_factory=dict, hash=False)

    @cached_property
    def grid(self) -> int:
        """Number of memory slices: the largest end of any placement, never a constant."""
        return max((p.end for profile in self.profiles for p in profile.placements), default=0)

    @cached_property
    def by_name(self) -> Mapping[str, ProfileCapability]:
        """Profiles by name."""
        return {profile.name: profile for profile in self.profiles}

    @cached_property
    def plain_profiles(self) -> tuple[ProfileCapability, ...]:
        """Profiles that a request can be given without naming them, smallest first."""
        return tuple(sorted((p for p in self.profiles if not p.attribute), key=lambda p: p.order))

    def validate(self, where: str) -> None:
        """Raise :class:`InvalidCapability` for a capability that contradicts itself.

        A GPU that fails here takes no new work; the other GPUs of its node go on.
        """
        seen: set[str] = set()
        for profile in self.profiles:
            path = f"{where}.migProfiles[{profile.name}]"
            if profile.name in seen:
                raise InvalidCapability(f"{path}.name", profile.name, "one profile of each name")
            seen.add(profile.name)
            if profile.memory_mib > self.memory_mib:
                raise InvalidCapability(
                    f"{path}.memoryMB", profile.memory_mib, f"at most the GPU's {self.memory_mib}"
                )
            if len(set(profile.placements)) != len(profile.placements):
                raise InvalidCapability(
                    f"{path}.placements",
                    [str(p) for p in profile.placements],
                    "each placement once",
                )
            if len({placement.size for placement in profile.placements}) > 1:
                raise InvalidCapability(
                    f"{path}.placements",
                    [str(p) for p in profile.placements],
                    "placements of one size",
                )


@dataclass(frozen=True, slots=True)
class NodeCapability:
    """All GPUs of a node, sorted by index and UUID."""

    gpus: tuple[GpuCapability, ...]
