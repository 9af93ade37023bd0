"""Which Pods the API server asks about, where it can tell: never one too few."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given

from hami_web.cluster.errors import ClusterError, ServerFailed
from hami_web.cluster.transport import Request
from hami_web.simulator.cel import parse
from tests.extender.test_fuzz_webhook import AGENT, PODS, USERS, review
from tests.extender.test_webhook import (
    ALLOCATIONS,
    CONFIGURATIONS,
    annotate,
    annotations_of,
    as_user,
    gpu_pod,
)
from tests.extender.test_webhook import PODS as PATH

__all__ = ["as_user"]
DOCUMENT = Path(__file__).parents[2] / "deploy" / "webhook-match-conditions.yaml"
CONDITIONS = [
    parse(item["expression"])
    for item in yaml.safe_load(DOCUMENT.read_text())["webhooks"][0]["matchConditions"]
]


def without_null(value):
    """As the API server shows objects to expressions: what is not set is not there."""
    if isinstance(value, dict):
        return {key: without_null(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_null(item) for item in value]
    return value


def is_asked(operation, pod, old, user):
    scope = {
        "object": without_null(pod),
        "oldObject": without_null(old),
        "request": {"operation": operation, "userInfo": {"username": user}},
    }
    return all(condition.truth(scope) for condition in CONDITIONS)


@given(pod=PODS)
def test_of_a_new_pod_nobody_is_asked_only_if_there_is_nothing_to_say(pod):
    if not is_asked("CREATE", pod, None, "eve"):
        answer = review("CREATE", pod)
        assert (answer["allowed"], answer.get("patch"), answer.get("warnings")) == (
            True,
            None,
            None,
        )


@given(pod=PODS, old=PODS, user=USERS)
def test_of_a_change_the_extender_is_asked_exactly_when_it_would_refuse(pod, old, user):
    assert review("UPDATE", pod, old, user)["allowed"] != is_asked("UPDATE", pod, old, user)


def plain_pod(name):
    pod = gpu_pod(name)
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    return pod


@pytest.fixture
def away(cluster):
    """Registered as shipped, and nobody answers."""
    document = yaml.safe_load(DOCUMENT.read_text())
    document["webhooks"][0]["clientConfig"] = {"url": "http://127.0.0.1:9/webhook"}
    cluster.create(CONFIGURATIONS, document)


def test_while_no_extender_answers_other_pods_start_and_gpu_pods_do_not(away, cluster):
    cluster.create(PATH.format("default"), plain_pod("web"))
    annotate(cluster.transport, "web", {"team/owner": "a"})
    with pytest.raises(ServerFailed, match=r"failed calling webhook .vgpu.hami.io"):
        cluster.create(PATH.format("default"), gpu_pod("job"))
    for namespace in ("kube-system", "hami-system"):
        cluster.create(PATH.format(namespace), gpu_pod("job"))


def test_while_no_extender_answers_nobody_but_we_write_a_reservation(cluster, as_user, request):
    cluster.create(PATH.format("default"), plain_pod("web"))
    request.getfixturevalue("away")
    eve, agent = as_user("eve"), as_user(AGENT)
    with pytest.raises(ClusterError, match="failed calling webhook"):
        annotate(eve, "web", {ALLOCATIONS: "[{"})
    annotate(agent, "web", {ALLOCATIONS: "[]"})
    for text in (None, "[{"):
        with pytest.raises(ClusterError, match="failed calling webhook"):
            annotate(eve, "web", {ALLOCATIONS: text})
    annotate(eve, "web", {"team/owner": "eve"})
    assert annotations_of(agent, "web") == {ALLOCATIONS: "[]", "team/owner": "eve"}


def test_a_running_extender_is_asked_about_gpu_pods_and_answers(extender, cluster):
    document = yaml.safe_load(DOCUMENT.read_text())
    url = f"http://127.0.0.1:{extender.port}/webhook"
    document["webhooks"][0]["clientConfig"] = {"url": url}
    cluster.create(CONFIGURATIONS, document)
    stored = cluster.create(PATH.format("default"), gpu_pod("job"))
    assert stored["spec"]["schedulerName"] == "hami-scheduler"
    path = f"{PATH.format('default')}/job"
    cluster.transport.send(Request("DELETE", path, body={"gracePeriodSeconds": 0}))
