"""Other owners, mixed models and a changing policy: nothing is fought about, nothing is lost."""

from __future__ import annotations

import grpc
import pytest

from hami_web.core import annotations as keys
from hami_web.core.capability import GpuCapability
from hami_web.core.registration import decode_registration
from node_agent.nvml.simulated import GpuSpec
from tests.node_agent.lab import NODE, POLICY, Lab, open_lab, wait_until
from tests.node_agent.test_told import condition

QUICK = {"HAMI_DISCOVERY_SECONDS": "0.1"}


def gpus(lab: Lab) -> tuple[GpuCapability, ...]:
    text = lab.node_annotation(keys.NODE_REGISTER) or "[]"
    return decode_registration(text).capability.gpus


def healthy(lab: Lab) -> list[bool]:
    return [gpu.healthy for gpu in gpus(lab)]


def run(lab: Lab, name: str = "job", gpu: int = 0, start: int = 2) -> None:
    lab.reserve(name, [(gpu, "2g.10gb", start, 2)])
    lab.kubelet.allocate(lab.ids(gpu=gpu)[0])
    lab.set_status(name, "Running", "running")


def test_an_instance_that_another_program_destroys_closes_its_gpu_and_is_told(
    two_gpus: Lab,
) -> None:
    lab = two_gpus
    with lab.agent(**QUICK) as agent:
        run(lab)
        wait_until(lambda: healthy(lab) == [True, True], "published")
        lab.hardware.destroy_instance(0, lab.hardware.gpu(0).instances[0].gi_id)
        wait_until(lambda: healthy(lab) == [False, True], "closed for new work")
        wait_until(lambda: lab.events("job", "MigInstanceLost"), "told")
        said = "destroyed by another program"
        wait_until(lambda: said in condition(lab)["message"], "the condition says it")
        assert lab.placements(0) == [], "the agent does not fight"
        assert agent.metrics.problems.labels("Drift")._value.get() == 1
        lab.delete("job")
        wait_until(lambda: healthy(lab) == [True, True], "open again")
        assert lab.journal() == []


def test_instances_that_come_and_go_by_ourselves_are_no_drift(lab: Lab) -> None:
    with lab.agent(HAMI_DISCOVERY_SECONDS="0.05", HAMI_RECLAIM_SECONDS="0.05") as agent:
        for number in range(12):
            name = f"job-{number}"
            lab.reserve(name, [(0, "1g.5gb", number % 7, 1)])
            lab.kubelet.allocate(f"{lab.gpus[0]}-{number % 7}")
            lab.delete(name)
            wait_until(lambda: lab.placements() == [], "reclaimed")
            assert lab.events(name, "MigInstanceLost") == []
        assert agent.metrics.problems.labels("Drift")._value.get() == 0


def test_a_mig_manager_that_appears_is_named_and_the_agent_stands_back(lab: Lab) -> None:
    with lab.agent(**QUICK):
        run(lab)
        labels = {"nvidia.com/mig.config": "all-1g.5gb"}
        lab.client.patch(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": labels}})
        wait_until(lambda: condition(lab).get("reason") == "OtherOwner", "named")
        assert "MIG Manager" in condition(lab)["message"]
        lab.hardware.create_instance(0, "1g.5gb", 6)
        wait_until(lambda: lab.node_annotation(keys.NODE_MIG_BLOCKED) not in (None, "[]"), "shown")
        assert lab.placements() == [(2, 2), (6, 1)]
        lab.client.patch(
            f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {"nvidia.com/mig.config": None}}}
        )
        wait_until(lambda: condition(lab).get("reason") == "AllGpusOffered", "gone again")


def test_another_plugin_on_the_node_is_named_and_nothing_is_cleaned(lab: Lab) -> None:
    lab.hardware.create_instance(0, "1g.5gb", 6)
    created = lab.create_pod("nvidia-plugin")
    lab.client.patch(
        "/api/v1/namespaces/default/pods/nvidia-plugin",
        {"metadata": {"labels": {"app": "nvidia-device-plugin-daemonset"}}},
    )
    assert created
    lab.bind("nvidia-plugin", {})
    with lab.agent(**QUICK):
        wait_until(lambda: condition(lab).get("reason") == "OtherOwner", "named")
        assert "default/nvidia-plugin (NVIDIA's device plugin)" in condition(lab)["message"]
        assert lab.placements() == [(6, 1)]
        lab.delete("nvidia-plugin")
        wait_until(lambda: condition(lab).get("reason") == "AllGpusOffered", "gone again")


def test_a_profile_that_leaves_the_policy_is_no_longer_offered_and_its_instances_stay(
    lab: Lab,
) -> None:
    with lab.agent(**QUICK):
        run(lab)
        (lab.folder / "policy.yaml").write_text(POLICY.replace('"2g.10gb", ', ""))
        wait_until(lambda: "2g.10gb" not in gpus(lab)[0].by_name, "no longer offered")
        assert lab.placements() == [(2, 2)]
    with lab.agent(**QUICK):
        assert lab.placements() == [(2, 2)]
        assert len(lab.journal()) == 1
        lab.delete("job")
        wait_until(lambda: lab.placements() == [], "reclaimed")


def test_a_model_that_leaves_the_policy_keeps_its_instances_until_their_pods_end(
    lab: Lab,
) -> None:
    with lab.agent(**QUICK) as agent:
        run(lab)
        (lab.folder / "policy.yaml").write_text(POLICY.replace("A100-SXM4-40GB", "A100-PCIE-40GB"))
        wait_until(lambda: "is not in nvidia.migProfileAllowlist" in agent.problem(), "said")
        assert lab.placements() == [(2, 2)]
        lab.delete("job")
        wait_until(lambda: lab.placements() == [], "reclaimed")


def test_each_gpu_of_a_mixed_node_is_judged_by_itself() -> None:
    with (
        open_lab(
            "a100-sxm4-40gb",
            "l40s",
            GpuSpec("a30", mig=False, vgpu_guest=True),
            "a30",
            "b200-180gb",
        ) as lab,
        lab.agent(),
    ):
        assert [(g.index, g.model) for g in gpus(lab)] == [
            (0, "NVIDIA A100-SXM4-40GB"),
            (3, "NVIDIA A30"),
        ]
        for said in ("cannot do MIG", "vGPU guest", "not in nvidia.migProfileAllowlist"):
            assert said in condition(lab)["message"]
        lab.reserve("job", [(3, "1g.6gb", 1, 1)])
        lab.kubelet.allocate(lab.ids(gpu=3)[0])
        assert lab.placements(3) == [(1, 1)]


def test_a_reservation_on_a_gpu_that_is_not_there_is_refused_and_told(lab: Lab) -> None:
    with lab.agent():
        annotations = lab.reserve("job", [(0, "2g.10gb", 2, 2)])
        assert annotations
        lab.annotate(
            "job",
            {
                key: text.replace(lab.gpus[0], "GPU-another")
                for key, text in lab.annotations("job").items()
            },
        )
        with pytest.raises(grpc.RpcError) as refused:
            lab.kubelet.allocate(lab.ids()[0])
        assert "GPU-another is not on this node" in str(refused.value.details())
        wait_until(lambda: lab.events("job", "MigAllocationFailed"), "told")
