"""On which nodes a workload may run, as the scheduler and the DaemonSet controller judge it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from hami_web.migration.objects import CheckedNode, Workload
from hami_web.migration.reach import may_run_on

NODE = {
    "metadata": {"name": "n1", "labels": {"gpu": "on", "cards": "8"}},
    "spec": {
        "taints": [
            {"key": "team", "value": "a", "effect": "NoSchedule"},
            {"key": "soft", "effect": "PreferNoSchedule"},
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        ]
    },
}
TOLERATES = {"tolerations": [{"key": "team", "value": "a"}]}


def reaches(kind: str = "DaemonSet", **spec: Any) -> bool:
    document = {"metadata": {"name": "w"}, "spec": {"template": {"spec": {**TOLERATES, **spec}}}}
    workload = msgspec.json.decode(json.dumps(document), type=Workload)
    workload.kind = kind
    return may_run_on(workload, msgspec.json.decode(json.dumps(NODE), type=CheckedNode))


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("term", "fits"),
    [
        (expression("gpu", "In", "on", "yes"), True),
        (expression("gpu", "In", "off"), False),
        (expression("gpu", "NotIn", "on"), False),
        (expression("absent", "NotIn", "on"), True),
        (expression("gpu", "Exists"), True),
        (expression("gpu", "DoesNotExist"), False),
        (expression("cards", "Gt", "4"), True),
        (expression("cards", "Lt", "4"), False),
        (expression("gpu", "Gt", "4"), False),
        (expression("gpu", "OfAnotherRelease"), True),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}, False),
        ({}, False),
    ],
)
def test_required_affinity_is_judged_as_the_scheduler_does(
    term: dict[str, Any], fits: bool
) -> None:
    assert reaches(affinity=affinity(term)) is fits
    assert reaches(affinity=affinity(term, expression("gpu", "Exists")))


@pytest.mark.parametrize(
    ("tolerations", "fits"),
    [
        ([], False),
        ([{"operator": "Exists"}], True),
        ([{"key": "team", "operator": "Exists", "effect": "NoSchedule"}], True),
        ([{"key": "team", "operator": "Exists", "effect": "NoExecute"}], False),
        ([{"key": "team", "value": "b"}], False),
        ([{"key": "other", "operator": "Exists"}], False),
    ],
)
def test_a_taint_keeps_off_who_does_not_tolerate_it(
    tolerations: list[dict[str, str]], fits: bool
) -> None:
    assert reaches(tolerations=tolerations) is fits


def test_selectors_must_fit_and_daemons_bear_the_state_of_a_node() -> None:
    assert reaches(nodeSelector={"gpu": "on"})
    assert not reaches(nodeSelector={"gpu": "off"})
    assert not reaches(affinity=affinity())
    assert not reaches("Deployment")
