"""Whatever Pods are created and changed to, the webhook answers, and its answers make sense."""

from __future__ import annotations

import base64
import copy
import json

from hypothesis import given
from hypothesis import strategies as st

from hami_web.core import annotations as keys
from hami_web.extender.views import ExtenderViews
from hami_web.scheduling.admission import Admission, AdmissionOptions
from hami_web.simulator.patches import json_patch
from tests.builders import a100_40gb
from tests.extender.test_fuzz import ODD, Core, spots

AGENT = "system:serviceaccount:hami-system:hami-node-agent"
ADMISSION = Admission(AdmissionOptions(trusted=frozenset({AGENT})), lambda: (a100_40gb(),))
WEBHOOK = next(
    pattern.callback
    for pattern in ExtenderViews(Core(), ADMISSION).patterns()
    if str(pattern.pattern) == "webhook"
)

OWNED = st.sampled_from(keys.OWNED_ON_PODS)
OTHERS = st.sampled_from(
    [keys.POD_MODE, keys.POD_PROFILE, keys.POD_NUMA_BIND, keys.POD_GPU_POLICY, "team/owner"]
)
TEXTS = st.sampled_from(["", "n1", "mig", "hami-core", "[{", "true", "1g.5gb", "binpack", "\x00"])
AMOUNTS = st.sampled_from(["0", "1", "2", "4500", "99999", "-1", "1.5", "1k", "", 1, 7])
RESOURCES = st.dictionaries(
    st.sampled_from(
        [
            keys.RESOURCE_COUNT,
            keys.RESOURCE_MEMORY,
            keys.RESOURCE_MEMORY_PERCENTAGE,
            keys.RESOURCE_CORES,
            "nvidia.com/mig-1g.5gb",
            "cpu",
        ]
    ),
    AMOUNTS,
    max_size=3,
)
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["main", "side"])},
        optional={
            "resources": st.fixed_dictionaries(
                {}, optional={"limits": st.none() | RESOURCES, "requests": RESOURCES}
            ),
            "env": st.lists(
                st.fixed_dictionaries(
                    {"name": st.sampled_from([keys.VISIBLE_DEVICES, "PATH"])},
                    optional={"value": st.sampled_from(["all", "void", ""])},
                ),
                max_size=2,
            ),
            "securityContext": st.none() | st.fixed_dictionaries({"privileged": st.booleans()}),
            "restartPolicy": st.just("Always"),
        },
    ),
    max_size=3,
)
PODS = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "name": st.just("job"),
                "generateName": st.just("web-"),
                "uid": st.just("u1"),
                "annotations": st.none() | st.dictionaries(OWNED | OTHERS, TEXTS, max_size=4),
                "labels": st.none()
                | st.dictionaries(st.sampled_from([keys.POD_NODE, "app"]), TEXTS, max_size=2),
            },
        ),
        "spec": st.fixed_dictionaries(
            {"containers": CONTAINERS},
            optional={
                "initContainers": st.none() | CONTAINERS,
                "nodeName": st.sampled_from(["", "n1"]),
                "schedulerName": st.sampled_from(["", "default-scheduler", "hami-scheduler", "x"]),
                "priority": st.integers(-5, 5),
            },
        ),
    }
)
USERS = st.sampled_from(["", "eve", AGENT, "system:node:n1"])


def review(operation, pod, old=None, user="eve"):
    """The answer to one review; fails for anything but a well-formed one."""
    from django.test import RequestFactory  # noqa: PLC0415  # settings first

    document = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "r1",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "operation": operation,
            "namespace": "team-a",
            "userInfo": {"username": user},
            "object": pod,
            "oldObject": old,
        },
    }
    request = RequestFactory().post(
        "/webhook", data=json.dumps(document).encode(), content_type="application/json"
    )
    response = WEBHOOK(request)
    if response.status_code == 400:
        return None
    assert response.status_code == 200, response.content
    answer = json.loads(response.content)["response"]
    assert answer["uid"] == "r1"
    assert answer["allowed"] or answer["status"]["message"]
    assert answer["allowed"] or "patch" not in answer
    assert sum(len(text.encode()) for text in answer.get("warnings", [])) <= 4096
    return answer


def patched(pod, answer):
    if "patch" not in answer:
        return pod
    return json_patch(copy.deepcopy(pod), json.loads(base64.b64decode(answer["patch"])))


def owned(pod):
    metadata = pod["metadata"]
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    return {key: annotations.get(key) for key in keys.OWNED_ON_PODS} | {
        "label": labels.get(keys.POD_NODE)
    }


@given(pod=PODS)
def test_a_created_pod_is_refused_in_words_or_stored_without_a_reservation(pod):
    answer = review("CREATE", pod)
    if not answer["allowed"]:
        return
    stored = patched(pod, answer)
    assert set(owned(stored).values()) == {None}
    again = review("CREATE", stored)
    assert again["allowed"]
    assert patched(stored, again) == stored


@given(pod=PODS, old=PODS, user=USERS)
def test_a_change_is_refused_for_owned_keys_alone_and_never_patched(pod, old, user):
    answer = review("UPDATE", pod, old, user)
    assert "patch" not in answer
    assert answer["allowed"] == (user == AGENT or owned(pod) == owned(old))


@given(pod=PODS, operation=st.sampled_from(["UPDATE", "DELETE", "CONNECT", "", "odd"]))
def test_what_cannot_be_judged_passes_untouched(pod, operation):
    answer = review(operation, pod)
    assert (answer["allowed"], "patch" in answer) == (True, False)


@given(data=st.data(), pod=PODS, old=PODS)
def test_reviews_of_pods_of_odd_shapes_are_answered(data, pod, old):
    whole = {"object": pod, "oldObject": old}
    for _ in range(data.draw(st.integers(1, 4))):
        places = list(spots(whole))
        container, key = data.draw(st.sampled_from(places))
        container[key] = data.draw(ODD)
    operation = data.draw(st.sampled_from(["CREATE", "UPDATE"]))
    review(operation, whole["object"], whole["oldObject"])
