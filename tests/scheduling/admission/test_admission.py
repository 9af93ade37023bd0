"""Which Pods are changed, refused, or left alone."""

from __future__ import annotations

import json

import msgspec
import pytest

from hami_web.cluster.views import (
    Container,
    EnvironmentVariable,
    ObjectMeta,
    PodSpec,
    PodView,
    Resources,
    SecurityContext,
)
from hami_web.core.policy import SchedulingPolicy
from hami_web.scheduling.admission import Admission, AdmissionOptions
from hami_web.scheduling.admission_policy import AdmissionPolicy
from hami_web.scheduling.verdict import AdmissionCall, PatchOperation, Verdict
from hami_web.simulator.patches import json_patch
from tests.builders import a100_40gb

SCHEDULER = PatchOperation("add", "/spec/schedulerName", "hami-scheduler")


def container(*, privileged=False, env=None, name="main", **limits):
    values = {f"nvidia.com/{key.replace('_', '-')}": value for key, value in limits.items()}
    context = SecurityContext(privileged=True) if privileged else None
    variables = env and [EnvironmentVariable(key, value) for key, value in env.items()]
    return Container(name, Resources(values, values), security_context=context, env=variables)


def pod(*containers, init=(), scheduler="", node="", annotations=None):
    spec = PodSpec(node, scheduler, None, list(containers), list(init))
    return PodView(ObjectMeta(name="job", namespace="team-a", annotations=annotations), spec)


def review(reviewed, operation="CREATE", models=(), **policy):
    options = AdmissionOptions(
        policy=AdmissionPolicy(**policy), scheduling=SchedulingPolicy(), trusted=frozenset({"ours"})
    )
    admission = Admission(options, lambda: models)
    return admission.review(AdmissionCall(operation, reviewed, "team-a/job"))


def changed(reviewed, verdict):
    """The Pod as the API server stores it after a verdict."""
    document = json.loads(msgspec.json.encode(reviewed))
    operations = [
        {"op": o.op, "path": o.path} | ({} if o.op == "remove" else {"value": o.value})
        for o in verdict.patch
    ]
    return msgspec.convert(json_patch(document, operations), PodView)


@pytest.mark.parametrize("scheduler", ["", "default-scheduler"])
def test_a_gpu_pod_gets_our_scheduler(scheduler):
    verdict = review(pod(container(gpu="1"), scheduler=scheduler))
    assert verdict.patch == (SCHEDULER,)
    assert verdict.warnings == (
        "spec.schedulerName set to hami-scheduler, which reserves GPU memory",
    )


@pytest.mark.parametrize("detail", ["gpumem", "gpumem_percentage", "gpucores"])
def test_a_container_that_describes_a_device_gets_one(detail):
    count = PatchOperation("add", "/spec/containers/1/resources/limits/nvidia.com~1gpu", "1")
    verdict = review(pod(container(), container(**{detail: "50"})))
    assert verdict.patch[1:] == (count, SCHEDULER)
    assert "container main: nvidia.com/gpu set to 1" in verdict.warnings


def test_init_containers_are_counted_by_their_own_positions():
    verdict = review(pod(container(gpu=1), init=[container(gpucores=10)]))
    count = PatchOperation("add", "/spec/initContainers/0/resources/limits/nvidia.com~1gpu", "1")
    assert count in verdict.patch


def test_what_was_changed_is_not_changed_again():
    first = pod(
        container(gpumem="4500", env={"NVIDIA_VISIBLE_DEVICES": "all", "A": "b"}),
        container(name="plain", env={"NVIDIA_VISIBLE_DEVICES": "all"}),
        init=[container(name="prepare")],
        annotations={"hami.io/vgpu-node": "n1", "nvidia.com/vgpu-mode": "mig"},
        node="n1",
    )
    verdict = review(first)
    assert verdict.refusal is None
    assert review(changed(first, verdict)) == Verdict()


@pytest.mark.parametrize(
    "untouched",
    [
        pod(container()),
        pod(container(gpu="1"), scheduler="another-scheduler"),
        pod(container(gpu="1"), annotations={"nvidia.com/vgpu-mode": "hami-core"}),
        pod(container(gpu="0")),
        pod(container(privileged=True), node="n1"),
        PodView(ObjectMeta()),
    ],
)
def test_pods_that_do_not_concern_us_pass_untouched(untouched):
    assert review(untouched) == Verdict()


def test_an_update_without_its_old_pod_passes_untouched():
    assert review(pod(container(gpu="1")), operation="UPDATE") == Verdict()


@pytest.mark.parametrize("value", ["1.5", "-1", "4500x", "1e30", ""])
@pytest.mark.parametrize("detail", ["gpumem", "gpumem_percentage", "gpucores"])
def test_a_malformed_quantity_is_refused_with_field_value_and_what_is_allowed(detail, value):
    text = review(pod(container(gpu="1", **{detail: value}))).refusal
    assert f"container main: nvidia.com/{detail.replace('_', '-')}: {value!r}" in text
    assert "allowed: a whole number" in text


def test_details_beside_no_device_are_refused():
    assert "nvidia.com/gpu" in review(pod(container(gpu="0", gpumem="4500"))).refusal


def test_a_privileged_gpu_container_is_refused():
    assert "privileged" in review(pod(container(gpu="1", privileged=True))).refusal


def test_a_privileged_container_beside_a_gpu_container_is_refused():
    text = review(pod(container(name="side", privileged=True), container(gpu="1"))).refusal
    assert "container side: securityContext.privileged" in text


def test_a_preset_node_is_refused():
    assert "spec.nodeName: 'n1'" in review(pod(container(gpu="1"), node="n1")).refusal


def test_an_init_container_with_memory_draws_a_warning():
    verdict = review(pod(container(gpu="1"), init=[container(gpu="1", gpumem="4500")]))
    assert [text for text in verdict.warnings if "gpumem" in text and "1.20" in text]
    warnings = review(pod(container(gpu="1"), init=[container(gpu="1")])).warnings
    assert not [text for text in warnings if "1.20" in text]


@pytest.mark.parametrize("mode", ["Mig", "MIG", "mig,shared", "hamicore"])
def test_an_unknown_mode_is_refused_with_the_known_ones(mode):
    annotations = {"nvidia.com/vgpu-mode": mode}
    text = review(pod(container(gpu="1"), annotations=annotations)).refusal
    assert "nvidia.com/vgpu-mode" in text
    assert "allowed: mig, hami-core, mps" in text


@pytest.mark.parametrize("mode", ["mig", " mig ", "hami-core,mig", ""])
def test_a_mode_that_permits_mig_is_ours(mode):
    verdict = review(pod(container(gpu="1"), annotations={"nvidia.com/vgpu-mode": mode}))
    assert verdict.patch == (SCHEDULER,)


@pytest.mark.parametrize("policy", ["binpak", "BINPACK", "topology"])
@pytest.mark.parametrize("key", ["hami.io/node-scheduler-policy", "hami.io/gpu-scheduler-policy"])
def test_an_unknown_policy_is_refused_with_the_known_ones(key, policy):
    text = review(pod(container(gpu="1"), annotations={key: policy})).refusal
    assert f"{key}: {policy!r} is not allowed; allowed: " in text
    assert "binpack" in text


def test_malformed_weights_are_refused():
    annotations = {"hami.io/device-scoring-weights": "slot=1"}
    assert (
        "device-scoring-weights" in review(pod(container(gpu="1"), annotations=annotations)).refusal
    )


def test_a_resource_of_a_fixed_geometry_is_refused_with_what_to_ask_for():
    values = {"nvidia.com/mig-2g.10gb": "1"}
    reviewed = pod(Container("main", Resources(values, values)))
    text = review(reviewed).refusal
    assert "nvidia.com/mig-2g.10gb is not allowed" in text
    assert "nvidia.com/mig-profile: 2g.10gb" in text
    assert review(reviewed, legacy_profiles="allow") == Verdict()
    assert review(reviewed, legacy_profiles="warn").refusal is None
    assert review(reviewed, legacy_profiles="warn").warnings


def test_memory_that_no_gpu_of_the_cluster_has_is_refused_with_the_nearest_sizes():
    reviewed = pod(container(gpu="1", gpumem="50000"))
    text = review(reviewed, models=(a100_40gb(),)).refusal
    assert "container main: 50000 MiB is not allowed" in text
    assert "7g.40gb with 40320 MiB on NVIDIA A100-SXM4-40GB" in text
    warned = review(reviewed, models=(a100_40gb(),), unknown_sizes="warn")
    assert (warned.refusal, warned.patch) == (None, (SCHEDULER,))
    assert review(reviewed).refusal is None


def test_a_size_that_one_model_of_several_has_passes():
    models = (a100_40gb(), a100_40gb(model="NVIDIA H100 NVL", profiles=a100_40gb().profiles[:1]))
    reviewed = pod(container(gpu="1", gpumem="40000"))
    assert review(reviewed, models=models).refusal is None
    picky = pod(container(gpu="1", gpumem="40000"), annotations={"nvidia.com/use-gputype": "H100"})
    assert "1g.5gb with 4864 MiB on NVIDIA H100 NVL" in review(picky, models=models).refusal


def test_a_profile_that_no_gpu_has_is_refused():
    reviewed = pod(container(gpu="1"), annotations={"nvidia.com/mig-profile": "5g.20gb"})
    assert "profile 5g.20gb" in review(reviewed, models=(a100_40gb(),)).refusal


def test_several_devices_in_one_container_follow_the_policy():
    reviewed = pod(container(gpu="2"))
    warned = review(reviewed)
    assert warned.patch == (SCHEDULER,)
    assert any("a CUDA process uses only one" in text for text in warned.warnings)
    assert "a CUDA process" in review(reviewed, several_devices="refuse").refusal
    allowed = review(reviewed, several_devices="allow")
    assert not any("CUDA" in text for text in allowed.warnings)


def test_a_container_without_a_gpu_in_a_gpu_pod_sees_none():
    reviewed = pod(container(gpu="1"), container(name="side"), init=[container(env={"A": "b"})])
    stored = changed(reviewed, review(reviewed))
    void = EnvironmentVariable("NVIDIA_VISIBLE_DEVICES", "void")
    assert stored.spec.containers[0].env is None
    assert stored.spec.containers[1].env == [void]
    assert stored.spec.init_containers[0].env == [EnvironmentVariable("A", "b"), void]


@pytest.mark.parametrize("value", ["all", "0", "GPU-1", None])
def test_a_users_own_choice_of_devices_is_overridden_and_said(value):
    env = {"A": "b", "NVIDIA_VISIBLE_DEVICES": value}
    reviewed = pod(container(gpu="1", env=env), container(name="side", env=env))
    verdict = review(reviewed)
    stored = changed(reviewed, verdict)
    assert [item.name for item in stored.spec.containers[0].env] == ["A"]
    assert stored.spec.containers[1].env[1].value == "void"
    assert sum("NVIDIA_VISIBLE_DEVICES" in text for text in verdict.warnings) == 2


def test_a_mirror_pod_of_a_static_pod_is_left_alone():
    annotations = {"kubernetes.io/config.mirror": "x", "hami.io/vgpu-node": "n1"}
    assert review(pod(container(gpu="1"), node="n1", annotations=annotations)) == Verdict()
