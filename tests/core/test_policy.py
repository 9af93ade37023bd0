"""The scheduling section of the policy file, and what a Pod may ask of it."""

from __future__ import annotations

import pytest

from hami_web.core import annotations as keys
from hami_web.core.errors import InvalidPolicy, InvalidRequest
from hami_web.core.hami import HamiRule, Weights, parse_weights
from hami_web.core.policies import Rule
from hami_web.core.policy import SchedulingPolicy, parse_scheduling_policy
from hami_web.core.request import PodRequest, parse_pod_request


def test_nothing_written_means_the_defaults() -> None:
    assert parse_scheduling_policy(None) == SchedulingPolicy() == parse_scheduling_policy({})
    assert SchedulingPolicy().placement == "cap-loss"


def test_every_field_is_read() -> None:
    document = {
        "placementPolicy": "hami",
        "nodeSchedulerPolicy": "spread",
        "gpuSchedulerPolicy": "binpack,numa",
        "upsize": True,
        "holdSeconds": 30,
        "deviceScoringWeights": "slot=1,core=0,memory=2",
    }
    assert parse_scheduling_policy(document) == SchedulingPolicy(
        "hami", "spread", "binpack,numa", True, 30.0, Weights(1, 0, 2)
    )


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ([], "scheduling"),
        ({"placement": "cap-loss"}, "scheduling.placement"),
        ({"placementPolicy": "best"}, "scheduling.placementPolicy"),
        ({"placementPolicy": 1}, "scheduling.placementPolicy"),
        ({"nodeSchedulerPolicy": "mutex"}, "scheduling.nodeSchedulerPolicy"),
        ({"placementPolicy": "hami", "nodeSchedulerPolicy": "cap-loss"}, ".nodeSchedulerPolicy"),
        ({"gpuSchedulerPolicy": "numa"}, "scheduling.gpuSchedulerPolicy"),
        ({"placementPolicy": "hami", "gpuSchedulerPolicy": "x"}, ".gpuSchedulerPolicy"),
        ({"placementPolicy": "hami", "gpuSchedulerPolicy": "numa,topology-aware"}, ".gpu"),
        ({"upsize": "yes"}, "scheduling.upsize"),
        ({"holdSeconds": 0}, "scheduling.holdSeconds"),
        ({"holdSeconds": True}, "scheduling.holdSeconds"),
        ({"holdSeconds": 1e9}, "scheduling.holdSeconds"),
        ({"deviceScoringWeights": "slot=1"}, "scheduling.deviceScoringWeights"),
        ({"deviceScoringWeights": 3}, "scheduling.deviceScoringWeights"),
    ],
)
def test_a_wrong_field_is_named(document: object, field: str) -> None:
    with pytest.raises(InvalidPolicy) as caught:
        parse_scheduling_policy(document)
    assert field in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "slot=1", "slot=0,core=0,memory=0", "slot=-1,core=0,memory=0", "a=1,b=2,c=3",
             "slot=1,slot=2,core=1,memory=1", "slot=1.5,core=0,memory=0"]
)  # fmt: skip
def test_weights_that_do_not_parse_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="weights"):
        parse_weights(text, "weights")


def test_weights_are_read_in_any_order() -> None:
    assert parse_weights("memory=3, slot=1,core=2", "weights") == Weights(1, 2, 3)


def asking(**annotations: str) -> PodRequest:
    return parse_pod_request([], annotations)


def test_a_pods_wishes_replace_the_policys_choice() -> None:
    policy = SchedulingPolicy("cap-loss", node="spread")
    assert policy.rule_for(asking()) == Rule("spread", "cap-loss")
    wishes = {keys.POD_NODE_POLICY: "binpack", keys.POD_GPU_POLICY: "first-fit"}
    assert policy.rule_for(asking(**wishes)) == Rule("binpack", "first-fit")


def test_hamis_rule_reads_hamis_words() -> None:
    wishes = {
        keys.POD_GPU_POLICY: "spread, numa",
        keys.POD_DEVICE_WEIGHTS: "slot=2,core=0,memory=0",
    }
    rule = SchedulingPolicy("hami").rule_for(asking(**wishes))
    assert rule == HamiRule("binpack", ("spread", "numa"), Weights(2, 0, 0))


@pytest.mark.parametrize(
    ("placement", "wishes"),
    [
        ("cap-loss", {keys.POD_GPU_POLICY: "mutex"}),
        ("hami", {keys.POD_GPU_POLICY: "cap-loss"}),
        ("hami", {keys.POD_NODE_POLICY: "first-fit"}),
        ("spread", {keys.POD_DEVICE_WEIGHTS: "slot"}),
    ],
)
def test_a_wish_that_is_not_known_is_refused(placement: str, wishes: dict[str, str]) -> None:
    (key,) = wishes
    with pytest.raises(InvalidRequest, match=key):
        SchedulingPolicy(placement).rule_for(asking(**wishes))


@pytest.mark.parametrize(
    ("text", "bound"), [("true", True), ("1", True), ("F", False), ("", False)]
)
def test_numa_binding_is_read_as_go_reads_it(text: str, bound: bool) -> None:
    assert asking(**{keys.POD_NUMA_BIND: text}).numa_bind is bound


def test_numa_binding_that_is_neither_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="numa-bind"):
        asking(**{keys.POD_NUMA_BIND: "maybe"})
