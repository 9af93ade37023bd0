"""Who may write a reservation, and what becomes of one in a manifest."""

from __future__ import annotations

import pytest

from hami_web.cluster.views import ObjectMeta, PodSpec, PodView
from hami_web.core import annotations as keys
from hami_web.scheduling.admission import Admission, AdmissionOptions
from hami_web.scheduling.verdict import AdmissionCall, PatchOperation, Verdict

AGENT = "system:serviceaccount:hami-system:hami-node-agent"
USERS_OWN = {
    "nvidia.com/vgpu-mode": "mig",
    "hami.io/gpu-scheduler-policy": "spread",
    "team/owner": "a",
}


def admission():
    return Admission(AdmissionOptions(trusted=frozenset({AGENT})))


def pod(annotations=None, *, labels=None, node="", scheduler=""):
    meta = ObjectMeta("job", "team-a", "u1", annotations=annotations, labels=labels)
    return PodView(meta, PodSpec(node, scheduler))


def create(reviewed):
    return admission().review(AdmissionCall("CREATE", reviewed, "team-a/job"))


def update(old, new, user="eve"):
    return admission().review(AdmissionCall("UPDATE", new, "team-a/job", old, user))


@pytest.mark.parametrize("scheduler", ["", "default-scheduler", "hami-scheduler", "volcano"])
@pytest.mark.parametrize("key", keys.OWNED_ON_PODS)
def test_a_reservation_in_a_new_pod_is_taken_off_for_every_scheduler(key, scheduler):
    verdict = create(pod({key: "forged", **USERS_OWN}, scheduler=scheduler))
    path = f"/metadata/annotations/{key.replace('/', '~1')}"
    assert verdict.patch == (PatchOperation("remove", path),)
    assert key in verdict.warnings[0]


def test_a_dumped_manifest_of_a_running_pod_is_scheduled_anew():
    reserved = dict.fromkeys(keys.OWNED_ON_PODS, "old") | {keys.POD_NODE: "n1"}
    verdict = create(pod(reserved, labels={keys.POD_NODE: "n1", "app": "x"}, node="n1"))
    assert verdict.refusal is None
    removed = [operation.path for operation in verdict.patch]
    assert "/metadata/labels/hami.io~1vgpu-node" in removed
    assert "/spec/nodeName" in removed
    assert len(removed) == len(keys.OWNED_ON_PODS) + 2


def test_a_node_name_that_no_old_reservation_explains_stays():
    verdict = create(pod({keys.POD_TIME: "1", keys.POD_NODE: "n2"}, node="n1"))
    assert "/spec/nodeName" not in [operation.path for operation in verdict.patch]


@pytest.mark.parametrize("key", keys.OWNED_ON_PODS)
@pytest.mark.parametrize(("before", "after"), [(None, "x"), ("x", None), ("x", "y")])
def test_only_trusted_writers_change_a_reservation(key, before, after):
    def with_value(value):
        return pod(USERS_OWN | ({} if value is None else {key: value}))

    refusal = update(with_value(before), with_value(after)).refusal
    assert f"metadata.annotations[{key}]: a change by 'eve' is not allowed; allowed: {AGENT}" in (
        refusal
    )
    assert update(with_value(before), with_value(after), AGENT) == Verdict()


def test_the_label_of_the_node_is_owned_too():
    old, new = pod(labels={"app": "x"}), pod(labels={"app": "x", keys.POD_NODE: "n1"})
    assert "metadata.labels[hami.io/vgpu-node]" in update(old, new).refusal
    assert update(old, new, AGENT) == Verdict()


def test_an_update_of_anything_else_passes():
    reserved = {keys.POD_MIG_ALLOCATIONS: "[]"}
    old = pod(reserved | {"team/owner": "a"}, labels={keys.POD_NODE: "n1"}, node="n1")
    new = pod(
        reserved | {"team/owner": "b", "hami.io/gpu-scheduler-policy": "x"},
        labels={keys.POD_NODE: "n1", "new": "label"},
        node="n1",
    )
    assert update(old, new) == Verdict()
