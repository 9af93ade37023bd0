"""What the node's GPUs can be cut into: NVML's facts, narrowed by the cluster's allowlist."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from hami_web.core.allowlist import ProfileAllowlist
from hami_web.core.annotations import MODE_MIG
from hami_web.core.capability import GpuCapability, NodeCapability, ProfileCapability
from hami_web.core.occupancy import Occupancy, headroom
from node_agent.inventory import Discovered, GpuProblem
from node_agent.nvml.ports import (
    DriverError,
    DriverGpu,
    DriverNoPermission,
    DriverProfile,
    Guest,
    MigDriver,
)

_VENDOR_PREFIX: Final = "NVIDIA"
_PCI_DOMAIN_DIGITS: Final = 4
_NO_RIGHT: Final = "the agent lacks the right to configure MIG (run it privileged)"
LOST: Final = "lost: NVML cannot reach it, the node needs attention"


class _NotOffered(Exception):
    """A GPU is left out; the text is the reason, for people."""

    def __init__(self, code: str, reason: str) -> None:
        self.code = code
        super().__init__(reason)


def discover(
    driver: MigDriver,
    allowlist: ProfileAllowlist,
    sysfs: Path,
    excluded: frozenset[str] = frozenset(),
) -> Discovered:
    """Read all GPUs. One that cannot be offered is left out with one reason.

    ``excluded`` holds UUIDs and indexes. Raises :class:`DriverError` only when the GPUs cannot
    even be listed.
    """
    found: list[GpuCapability] = []
    problems: list[GpuProblem] = []
    for gpu in driver.gpus():
        if is_excluded(gpu, excluded):
            problems.append(GpuProblem(gpu.uuid, "excluded by HAMI_EXCLUDED_GPUS", "Excluded"))
            continue
        try:
            found.append(_capability(driver, gpu, allowlist, sysfs))
        except _NotOffered as reason:
            problems.append(GpuProblem(gpu.uuid, str(reason), reason.code))
        except DriverNoPermission as error:
            problems.append(GpuProblem(gpu.uuid, f"{_NO_RIGHT}: {error}", "NoPermission"))
        except DriverError as error:
            problems.append(GpuProblem(gpu.uuid, f"NVML cannot read it: {error}", "Unreadable"))
    problems.extend(
        GpuProblem(f"GPU index {index}", LOST, "Lost") for index in driver.lost_indexes()
    )
    found.sort(key=lambda gpu: (gpu.index, gpu.uuid))
    return Discovered(NodeCapability(tuple(found)), tuple(problems))


def is_excluded(gpu: DriverGpu, excluded: frozenset[str]) -> bool:
    """True for a GPU that an administrator keeps from the agent, by UUID or by index."""
    return gpu.uuid in excluded or str(gpu.index) in excluded


def model_name(reported: str) -> str:
    """NVML's name with the vendor in front, as schedulers select by it."""
    return reported if reported.startswith(_VENDOR_PREFIX) else f"{_VENDOR_PREFIX}-{reported}"


def numa_node(sysfs: Path, pci_bus_id: str) -> int:
    """NUMA node of a PCI device; 0 where the kernel knows none."""
    domain, _, rest = pci_bus_id.lower().partition(":")
    path = sysfs / "bus/pci/devices" / f"{domain[-_PCI_DOMAIN_DIGITS:]}:{rest}" / "numa_node"
    try:
        return max(0, int(path.read_text(encoding="ascii")))
    except (OSError, ValueError):
        return 0


def _capability(
    driver: MigDriver, gpu: DriverGpu, allowlist: ProfileAllowlist, sysfs: Path
) -> GpuCapability:
    if not gpu.mig_capable:
        raise _NotOffered("NotMigCapable", f"{gpu.name} cannot do MIG")
    if allowlist.profiles_for(gpu.name) is None:
        raise _NotOffered("NotListed", f"model {gpu.name!r} is not in nvidia.migProfileAllowlist")
    if driver.guest(gpu.uuid) is Guest.VGPU:
        raise _NotOffered("VgpuGuest", "a vGPU guest: its host decides about instances")
    if not gpu.mig_active:
        raise _NotOffered(*mode_problem(gpu))
    existing = driver.profiles(gpu.uuid)
    usable = {profile.name: profile for profile in existing if profile.placements}
    chosen, missing = allowlist.select(gpu.name, usable)
    if not chosen:
        raise _NotOffered(
            "NoProfile",
            f"none of the permitted profiles exists on it ({', '.join(missing)}); "
            f"it has: {', '.join(usable) or 'none'}",
        )
    profiles = sorted((_profile(item, existing) for item in chosen), key=lambda p: p.order)
    return GpuCapability(
        uuid=gpu.uuid,
        index=gpu.index,
        count=max(profile.instance_count for profile in chosen),
        memory_mib=gpu.memory_mib,
        core_percent=100,
        model=model_name(gpu.name),
        numa=numa_node(sysfs, gpu.pci_bus_id),
        mode=MODE_MIG,
        profiles=tuple(profiles),
        healthy=True,
    )


def mode_problem(gpu: DriverGpu) -> tuple[str, str]:
    """Code and text of what a person must do about a mode that is not simply on."""
    if gpu.mig_pending and not gpu.mig_current:
        return (
            "MigModePending",
            "MIG mode is requested but not active: stop what holds the GPU and reset it "
            f"(nvidia-smi -i {gpu.index} --gpu-reset), or reboot the node",
        )
    if gpu.mig_current and not gpu.mig_pending:
        return (
            "MigModeEnding",
            f"MIG mode ends at the next reset: enable it again (nvidia-smi -i {gpu.index} -mig 1)",
        )
    return (
        "MigModeOff",
        f"MIG mode is off: enable it on the node (nvidia-smi -i {gpu.index} -mig 1)",
    )


def _profile(profile: DriverProfile, all_profiles: Sequence[DriverProfile]) -> ProfileCapability:
    plain = [p.multiprocessors for p in all_profiles if not p.attribute]
    whole = max(plain, default=profile.multiprocessors)
    capability = ProfileCapability(
        name=profile.name,
        memory_mib=profile.memory_mib,
        core_percent=min(100, math.ceil(100 * profile.multiprocessors / whole)),
        compute_slices=profile.compute_slices,
        placements=tuple(sorted(profile.placements)),
        attribute=profile.attribute,
    )
    if profile.instance_count >= headroom(capability, Occupancy()):
        return capability
    return ProfileCapability(
        name=capability.name,
        memory_mib=capability.memory_mib,
        core_percent=capability.core_percent,
        compute_slices=capability.compute_slices,
        placements=capability.placements,
        instance_limit=profile.instance_count,
        attribute=capability.attribute,
    )
