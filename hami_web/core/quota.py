"""Namespace quotas for GPU memory and cores, as HAMi reads them from ResourceQuota objects.

Kubernetes itself knows no ``limits.`` quota for extended resources, so the scheduler keeps it. Both
sides of the comparison are what the profiles have: HAMi asks with the requested figures and books
the profiles', and so lets a namespace go over its quota.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from hami_web.core.quantity import parse_whole
from hami_web.core.wire import INT32_MAX

QUOTA_MEMORY: Final = "limits.nvidia.com/gpumem"
QUOTA_CORES: Final = "limits.nvidia.com/gpucores"


@dataclass(frozen=True, slots=True)
class Usage:
    """What instances add up to: memory in MiB, cores in percent of a GPU."""

    memory_mib: int = 0
    core_percent: int = 0

    def plus(self, other: Usage) -> Usage:
        """Both together."""
        return Usage(self.memory_mib + other.memory_mib, self.core_percent + other.core_percent)

    def minus(self, other: Usage) -> Usage:
        """This without the other."""
        return Usage(self.memory_mib - other.memory_mib, self.core_percent - other.core_percent)


@dataclass(frozen=True, slots=True)
class NamespaceQuota:
    """One ResourceQuota; None where it does not limit."""

    namespace: str
    name: str
    memory_mib: int | None = None
    core_percent: int | None = None

    def admits(self, usage: Usage) -> bool:
        """True when a namespace that uses so much keeps to it."""
        return (self.memory_mib is None or usage.memory_mib <= self.memory_mib) and (
            self.core_percent is None or usage.core_percent <= self.core_percent
        )


def parse_quota(namespace: str, name: str, hard: Mapping[str, str | int]) -> NamespaceQuota | None:
    """Read ``spec.hard``; None where it limits neither GPU memory nor cores.

    Raises :class:`InvalidRequest` naming the quota for a value that is no whole number.
    """
    if QUOTA_MEMORY not in hard and QUOTA_CORES not in hard:
        return None

    def limit(key: str, unit: str) -> int | None:
        value = hard.get(key)
        if value is None:
            return None
        where = f"ResourceQuota {namespace}/{name}: {key}"
        return parse_whole(value, where, most=INT32_MAX, unit=unit)

    return NamespaceQuota(
        namespace, name, limit(QUOTA_MEMORY, "MiB"), limit(QUOTA_CORES, "percent")
    )


def total(parts: Iterable[Usage]) -> Usage:
    """The sum of some usages."""
    result = Usage()
    for part in parts:
        result = result.plus(part)
    return result
