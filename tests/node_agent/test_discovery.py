"""Discovery: NVML's facts, narrowed by the allowlist; each GPU left out has one clear reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hami_web.core.device_config import parse_device_config
from node_agent.discovery import discover, model_name, numa_node
from node_agent.inventory import Discovered
from node_agent.nvml import simulated
from node_agent.nvml.driver import PynvmlDriver
from node_agent.nvml.simulated import GpuSpec, SimulatedNode

ALLOWED = parse_device_config(
    {
        "nvidia": {
            "migProfileAllowlist": [
                {"models": ["A100-SXM4-40GB"], "profiles": ["2g.10gb", "1g.5gb", "1g.5gb+me"]},
                {"models": ["A30"], "profiles": ["1g.6gb", "9g.9gb"]},
                {"models": ["H100-SXM5-80GB"], "profiles": ["9g.9gb"]},
            ]
        }
    }
)

Discover = Callable[..., Discovered]


@pytest.fixture
def reading(tmp_path: Path) -> Iterator[Discover]:
    """Discovers a node made of the given GPUs."""
    node = SimulatedNode(tmp_path / "nvml")

    def made(*specs: str | GpuSpec, then: Callable[[SimulatedNode], object] = bool) -> Discovered:
        node.create(specs, seed="x")
        then(node)
        simulated.install(tmp_path / "nvml")
        with PynvmlDriver() as driver:
            return discover(driver, ALLOWED, tmp_path / "sys")

    yield made
    simulated.uninstall()
    node.close()


def test_a_gpu_offers_the_permitted_profiles_smallest_first(reading: Discover) -> None:
    gpu = reading("a100-sxm4-40gb").capability.gpus[0]
    assert [p.name for p in gpu.profiles] == ["1g.5gb", "1g.5gb+me", "2g.10gb"]
    assert [p.core_percent for p in gpu.profiles] == [15, 15, 29]
    assert (gpu.count, gpu.memory_mib, gpu.model) == (7, 40960, "NVIDIA A100-SXM4-40GB")
    assert (gpu.mode, gpu.core_percent, gpu.healthy) == ("mig", 100, True)


def test_a_limit_is_published_only_where_placements_do_not_say_it(reading: Discover) -> None:
    profiles = reading("a100-sxm4-40gb").capability.gpus[0].by_name
    assert profiles["1g.5gb"].instance_limit is None
    assert profiles["1g.5gb+me"].instance_limit == 1
    assert profiles["1g.5gb+me"].attribute == "+me"


def test_a_profile_the_gpu_does_not_have_is_left_out(reading: Discover) -> None:
    gpu = reading("a30").capability.gpus[0]
    assert [p.name for p in gpu.profiles] == ["1g.6gb"]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("l40s", "cannot do MIG"),
        ("b200-180gb", "not in nvidia.migProfileAllowlist"),
        (GpuSpec("a100-sxm4-40gb", vgpu_guest=True), "its host decides about instances"),
        (GpuSpec("a100-sxm4-40gb", mig=False), "MIG mode is off: enable it on the node"),
        ("h100-sxm5-80gb", "none of the permitted profiles exists on it (9g.9gb)"),
    ],
)
def test_a_gpu_left_out_has_a_reason_and_the_others_stay(
    reading: Discover, spec: str | GpuSpec, reason: str
) -> None:
    found = reading("a100-sxm4-40gb", spec, "a30")
    assert [gpu.index for gpu in found.capability.gpus] == [0, 2]
    (problem,) = found.problems
    assert reason in problem.reason


def test_a_pending_mode_is_told_from_an_absent_one(reading: Discover) -> None:
    off = GpuSpec("a100-sxm4-40gb", mig=False)

    def request(node: SimulatedNode) -> None:
        node.set_client(0)
        node.set_mig_mode(0, enabled=True)

    reason = reading(off, then=request).problems[0].reason
    assert "MIG mode" in reason


def test_a_lost_gpu_is_reported_and_the_others_stay(reading: Discover) -> None:
    found = reading("a100-sxm4-40gb", "a30", then=lambda node: node.lose_gpu(0))
    assert [gpu.model for gpu in found.capability.gpus] == ["NVIDIA A30"]
    assert "lost" in str(found.problems[0])


@pytest.mark.parametrize(
    ("reported", "published"),
    [("NVIDIA A30", "NVIDIA A30"), ("A100-SXM4-40GB", "NVIDIA-A100-SXM4-40GB")],
)
def test_a_model_name_begins_with_its_vendor(reported: str, published: str) -> None:
    assert model_name(reported) == published


@pytest.mark.parametrize(("text", "node"), [("1\n", 1), ("-1\n", 0), ("x", 0), (None, 0)])
def test_the_numa_node_comes_from_sysfs(tmp_path: Path, text: str | None, node: int) -> None:
    folder = tmp_path / "bus/pci/devices/0000:3b:00.0"
    folder.mkdir(parents=True)
    if text is not None:
        (folder / "numa_node").write_text(text)
    assert numa_node(tmp_path, "00000000:3B:00.0") == node
