"""Which Pods are changed, refused, or left alone."""

from __future__ import annotations

import pytest

from hami_web.cluster.views import (
    Container,
    ObjectMeta,
    PodSpec,
    PodView,
    Resources,
    SecurityContext,
)
from hami_web.scheduling.admission import Admission, AdmissionCall, PatchOperation, Verdict

SCHEDULER = PatchOperation("add", "/spec/schedulerName", "hami-scheduler")


def container(*, privileged=False, **limits):
    values = {f"nvidia.com/{key.replace('_', '-')}": value for key, value in limits.items()}
    context = SecurityContext(privileged=True) if privileged else None
    return Container("main", Resources(values, values), security_context=context)


def pod(*containers, init=(), scheduler="", node="", annotations=None):
    spec = PodSpec(node, scheduler, None, list(containers), list(init))
    return PodView(ObjectMeta(name="job", namespace="team-a", annotations=annotations), spec)


def review(reviewed, operation="CREATE"):
    return Admission("hami-scheduler").review(AdmissionCall(operation, reviewed, "team-a/job"))


@pytest.mark.parametrize("scheduler", ["", "default-scheduler"])
def test_a_gpu_pod_gets_our_scheduler(scheduler):
    assert review(pod(container(gpu="1"), scheduler=scheduler)) == Verdict(patch=(SCHEDULER,))


@pytest.mark.parametrize("detail", ["gpumem", "gpumem_percentage", "gpucores"])
def test_a_container_that_describes_a_device_gets_one(detail):
    count = PatchOperation("add", "/spec/containers/1/resources/limits/nvidia.com~1gpu", "1")
    verdict = review(pod(container(), container(**{detail: "50"})))
    assert verdict.patch == (count, SCHEDULER)


def test_init_containers_are_counted_by_their_own_positions():
    verdict = review(pod(container(gpu=1), init=[container(gpucores=10)]))
    count = PatchOperation("add", "/spec/initContainers/0/resources/limits/nvidia.com~1gpu", "1")
    assert count in verdict.patch


def test_what_was_changed_is_not_changed_again():
    assert review(pod(container(gpu="1", gpumem="4500"), scheduler="hami-scheduler")) == Verdict()


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


def test_an_update_passes_untouched():
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


def test_a_privileged_container_beside_a_gpu_container_passes():
    verdict = review(pod(container(privileged=True), container(gpu="1")))
    assert verdict.patch == (SCHEDULER,)


def test_a_preset_node_is_refused():
    assert "spec.nodeName: 'n1'" in review(pod(container(gpu="1"), node="n1")).refusal


def test_an_init_container_with_memory_draws_a_warning():
    verdict = review(pod(container(gpu="1"), init=[container(gpu="1", gpumem="4500")]))
    assert [text for text in verdict.warnings if "gpumem" in text and "1.20" in text]
    assert review(pod(container(gpu="1"), init=[container(gpu="1")])).warnings == ()
