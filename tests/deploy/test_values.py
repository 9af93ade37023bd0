"""Values that contradict themselves are refused with the sentence that says why."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from hami_web.access.policy import parse_access_policy
from hami_web.core.policy import parse_scheduling_policy
from hami_web.scheduling.admission_policy import parse_admission_policy
from tests.deploy.chart import CHART, Refused, documents, of_kind, render
from tests.deploy.manifests import POSTGRES

pytestmark = pytest.mark.usefixtures("helm")

GIVEN = {"patch": {"enabled": False}}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"schedulerName": "default-scheduler"}, "two schedulers of one name"),
    ({"resourceName": "example.com/gpu"}, "decides about 'nvidia.com/gpu' only"),
    ({"scheduler": {"replicas": 2, "leaderElect": False}}, "without a leader"),
    ({"scheduler": {"replicas": 2, "nodeName": "n1"}}, "several replicas on one node"),
    (
        {"scheduler": {"certManager": {"enabled": True}, "tls": {"existingSecret": "mine"}}},
        "not from both",
    ),
    ({"scheduler": GIVEN}, "the certificate must be given"),
    ({"scheduler": GIVEN | {"tls": {"existingSecret": "mine"}}}, "told whom to trust"),
    ({"scheduler": {"tls": {"existingSecret": "mine"}}}, "set scheduler.patch.enabled to false"),
    ({"setup": {"enabled": False}}, "nobody makes what is missing; give"),
    ({"database": {"existingSecret": "db"}}, "database.kind is sqlite"),
    ({"database": {"kind": "postgresql"}}, "needs a Secret with the URL"),
    ({"broker": {"kind": "redis"}}, "needs a Secret with the URL"),
    ({"broker": {"existingSecret": "q"}}, "broker.kind is filesystem"),
    ({"web": {"replicas": 2}}, "a SQLite file has one host"),
    ({"worker": {"replicas": 2}}, "a SQLite file has one host"),
    (
        {"worker": {"replicas": 2}, "database": POSTGRES["database"]},
        "workers on several hosts share no queue",
    ),
    ({"web": {"ingress": {"enabled": True}}}, "needs the host names"),
    ({"web": {"localLogin": False, "kubernetesLogin": False}}, "nobody can sign in"),
    (
        {"web": {"localLogin": False}, "admin": {"existingSecret": "boss"}},
        "nobody signs in by password",
    ),
    ({"devicePlugin": {"acceptUnsigned": True}}, "an unsigned reservation is forged"),
    (
        {"signingKeys": {"enabled": False, "existingSecret": "keys"}},
        "signingKeys.enabled is false",
    ),
    (
        {"device-config": {"content": "nvidia:\n  knownMigGeometries: []\n"}},
        "list the profiles in migProfileAllowlist",
    ),
    ({"devicePlugin": {"excludedGpus": [str(n) for n in range(65)]}}, "more than 64 GPUs"),
    (
        {
            "monitoring": {"serviceMonitor": {"enabled": True}},
            "networkPolicy": {"controlPlaneCIDRs": ["10.1.0.0/24"]},
        },
        "could not scrape it; select its namespace",
    ),
]
NOT_OF_THE_SCHEMA: list[tuple[dict[str, Any], str]] = [
    ({"schedular": {}}, "schedular"),
    ({"web": {"replicas": "two"}}, "replicas"),
    ({"logLevel": "loud"}, "logLevel"),
    ({"logFormat": "xml"}, "logFormat"),
    ({"tracing": {"endpoint": "otel:4318"}}, "endpoint"),
    ({"monitoring": {"serviceMonitor": {"interval": "often"}}}, "interval"),
    ({"monitoring": {"dashboards": {"language": "fr"}}}, "language"),
    ({"devicePlugin": {"deviceListStrategy": "magic"}}, "deviceListStrategy"),
    ({"migProfileAllowlist": [{"models": ["A30"], "profiles": ["big"]}]}, "migProfileAllowlist"),
    ({"image": {"digest": "sha256:1"}}, "digest"),
    ({"networkPolicy": {"controlPlaneCIDRs": ["everywhere"]}}, "controlPlaneCIDRs"),
    ({"mluResourceName": "cambricon.com/vmlu"}, "mluResourceName"),
]


@pytest.mark.parametrize(("values", "sentence"), REFUSED)
def test_a_contradiction_is_refused_with_its_reason(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused) as caught:
        render(values)
    assert sentence in str(caught.value)


def test_every_sentence_is_tried() -> None:
    text = (CHART / "templates" / "validate.yaml").read_text()
    sentences = re.findall(r'fail (?:\(printf )?"([^"]+)"', text)
    assert len(sentences) == text.count("{{- fail ")
    tried = [sentence for _, sentence in REFUSED] + ["it needs 1.30", "decides about '%s' only"]
    assert all(any(part in sentence for part in tried) for sentence in sentences)


def test_a_policy_that_the_cluster_cannot_have_is_refused() -> None:
    with pytest.raises(Refused, match=r"it needs 1\.30"):
        render({"devicePlugin": {"admissionPolicy": True}}, kube="1.29.4")


@pytest.mark.parametrize(("values", "field"), NOT_OF_THE_SCHEMA)
def test_the_schema_refuses_what_is_not_a_value(values: dict[str, Any], field: str) -> None:
    with pytest.raises(Refused) as caught:
        render(values)
    assert field in str(caught.value)


def _keys(found: Any, path: str = "") -> Iterator[str]:
    if isinstance(found, dict):
        for name, value in found.items():
            yield f"{path}.{name}"
            yield from _keys(value, f"{path}.{name}")


def test_every_value_has_a_place_in_the_schema() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    def check(part: dict[str, Any], value: Any, path: str) -> None:
        if not isinstance(value, dict) or "properties" not in part:
            return
        assert set(part["properties"]) == set(value) or path == ".policy", path
        assert part["additionalProperties"] is False, path
        for name, inner in value.items():
            check(part["properties"][name], inner, f"{path}.{name}")

    check(schema, values, "")


def test_every_value_has_a_comment() -> None:
    """A comment stands above each key, or above a group whose keys follow line by line."""
    lines = (CHART / "values.yaml").read_text().splitlines()
    explained = False
    for number, line in enumerate(lines):
        if not line.strip():
            explained = False
            continue
        if line.lstrip().startswith("#"):
            explained = True
            continue
        key = re.match(r"^ *([\w-]+):", line)
        if key is None:
            continue
        opens = line.rstrip().endswith(":")
        assert explained or opens, f"values.yaml:{number + 1}: {line}"


POLICIES: list[tuple[dict[str, Any], bool]] = [
    ({"scheduling": {"placementPolicy": "cap-loss", "upsize": True, "holdSeconds": 30}}, True),
    ({"scheduling": {"placementPolicy": "hami", "gpuSchedulerPolicy": "numa,spread"}}, True),
    ({"scheduling": {"placementPolicy": "best"}}, False),
    ({"scheduling": {"placement": "cap-loss"}}, False),
    ({"scheduling": {"holdSeconds": 0}}, False),
    ({"scheduling": {"upsize": "yes"}}, False),
    ({"admission": {"unknownSizes": "warn"}}, True),
    ({"admission": {"unknownSizes": "maybe"}}, False),
    ({"admission": {"unknown": "warn"}}, False),
    ({"access": {"roleGroups": {"viewer": ["*"]}, "namespaces": {"viewer": ["a"]}}}, True),
    ({"access": {"roleGroups": {"owner": ["*"]}}}, False),
    ({"access": {"roleGroups": {"viewer": "all"}}}, False),
    ({"acces": {}}, False),
]


@pytest.mark.parametrize(("policy", "taken"), POLICIES)
def test_a_policy_that_the_roles_would_refuse_is_refused_before(
    policy: dict[str, Any], taken: bool
) -> None:
    try:
        text = render({"policy": policy})
    except Refused:
        assert not taken
        return
    assert taken
    config = of_kind(documents(text), "ConfigMap")["hami-policy"]["data"]["policy.yaml"]
    document = yaml.safe_load(config)
    parse_scheduling_policy(document["scheduling"])
    parse_admission_policy(document["admission"])
    parse_access_policy(document["access"])


def test_a_change_of_the_policy_replaces_web_and_worker_and_not_the_extender() -> None:
    def marks(policy: dict[str, Any]) -> set[str]:
        found = documents(render(POSTGRES | {"policy": policy}))
        deployments = of_kind(found, "Deployment").values()
        return {
            f"{d['metadata']['name']} {found['hami.io/policy']}"
            for d in deployments
            if "hami.io/policy" in (found := d["spec"]["template"]["metadata"]["annotations"])
        }

    first, second = marks({}), marks({"scheduling": {"upsize": True}})
    assert {mark.split()[0] for mark in first} == {"hami-web", "hami-worker"}
    assert not first & second
