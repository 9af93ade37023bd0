"""One look at the node's hardware: what is offered, what is unhealthy, and what exists on it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path

from hami_web.core.capability import GpuCapability, NodeCapability
from node_agent.discovery import LOST, discover
from node_agent.inventory import Discovered, GpuProblem
from node_agent.nvml.ports import DriverError, DriverUnavailable, LiveInstance, MigDriver
from node_agent.policy import DevicePolicy
from node_agent.recovery import recovery_problem


@dataclass(frozen=True, slots=True)
class Reading:
    """What is offered, and the instances that exist on the GPUs that were read."""

    discovered: Discovered
    live: tuple[LiveInstance, ...] = ()
    read: frozenset[str] = frozenset()

    def closed(self, gpu_uuids: Collection[str], reason: str, code: str) -> Reading:
        """The same, with some GPUs closed for new work for a reason."""
        gpus = tuple(
            replace(gpu, healthy=gpu.healthy and gpu.uuid not in gpu_uuids)
            for gpu in self.discovered.capability.gpus
        )
        more = tuple(GpuProblem(uuid, reason, code) for uuid in sorted(gpu_uuids))
        return replace(
            self,
            discovered=Discovered(NodeCapability(gpus), (*self.discovered.problems, *more)),
        )


class Survey:
    """Reads the hardware. A GPU that was offered and is lost stays known, as unhealthy."""

    def __init__(self, policy: DevicePolicy, sysfs: Path, excluded: frozenset[str]) -> None:
        self.policy = policy
        self.excluded = excluded
        self._sysfs = sysfs
        self._known: dict[str, GpuCapability] = {}

    def read(self, driver: MigDriver, ailment: Callable[[str], str]) -> Reading:
        """Read everything anew; ``ailment`` says what is wrong with a GPU, or an empty text.

        Raises :class:`DriverError` when the GPUs cannot be listed.
        """
        allowlist = self.policy.allowlist()
        if allowlist is None:
            problem = GpuProblem("node", self.policy.problem, "NoPolicy")
            return Reading(Discovered(NodeCapability(()), (problem,)))
        found = discover(driver, allowlist, self._sysfs, self.excluded)
        gpus: list[GpuCapability] = []
        problems = list(found.problems)
        live: list[LiveInstance] = []
        read: set[str] = set()
        for gpu in found.capability.gpus:
            wrong = _ill(gpu, ailment) or recovery_problem(driver, gpu.uuid, gpu.index)
            try:
                live.extend(driver.instances(gpu.uuid))
                read.add(gpu.uuid)
            except DriverUnavailable:
                raise
            except DriverError as error:
                text = f"its instances cannot be read: {error}"
                wrong = GpuProblem(gpu.uuid, text, "Unreadable")
            gpus.append(replace(gpu, healthy=wrong is None))
            if wrong is not None:
                problems.append(wrong)
        absent = self._absent(gpus, problems)
        problems = [
            p for p in problems if p.subject not in {f"GPU index {g.index}" for g in absent}
        ]
        told = {problem.subject for problem in problems}
        problems += [GpuProblem(g.uuid, LOST, "Lost") for g in absent if g.uuid not in told]
        gpus = sorted([*gpus, *absent], key=lambda gpu: (gpu.index, gpu.uuid))
        self._known = {gpu.uuid: gpu for gpu in gpus}
        discovered = Discovered(NodeCapability(tuple(gpus)), tuple(problems))
        return Reading(discovered, tuple(live), frozenset(read))

    def _absent(self, gpus: list[GpuCapability], problems: list[GpuProblem]) -> list[GpuCapability]:
        """GPUs that were offered before and do not answer now; others were left out on purpose."""
        settled = {gpu.uuid for gpu in gpus}
        settled |= {p.subject for p in problems if p.code != "Unreadable"}
        return [
            replace(gpu, healthy=False) for gpu in self._known.values() if gpu.uuid not in settled
        ]


def _ill(gpu: GpuCapability, ailment: Callable[[str], str]) -> GpuProblem | None:
    wrong = ailment(gpu.uuid)
    return GpuProblem(gpu.uuid, wrong, "Unhealthy") if wrong else None
