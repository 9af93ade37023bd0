"""The admission policies that tie an agent to its node: the agent works, and nothing else does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from hami_web.core import annotations as keys
from hami_web.core.liveness import agent_lease_name
from hami_web.simulator.cel import parse
from hami_web.simulator.client import ApiClient, ApiError, Endpoint
from hami_web.simulator.identity import ADMIN_GROUP, User
from hami_web.simulator.server import write_kubeconfig
from tests.node_agent.lab import NODE, Lab, wait_until
from tests.node_agent.test_told import condition

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / "deploy" / "policies" / "node-agent.yaml"
ACCOUNT = "system:serviceaccount:hami-system:hami-node-agent"
CLAIM = "authentication.kubernetes.io/node-name"
GROUP = "/apis/admissionregistration.k8s.io/v1"
POD = "/api/v1/namespaces/default/pods/job"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/hami-system/leases"


def documents() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(MANIFEST.read_text()))


def agent_on(node: str | None) -> User:
    return User(ACCOUNT, extra=((CLAIM, (node,)),) if node else ())


@pytest.fixture
def guarded(lab: Lab) -> Iterator[Lab]:
    """A cluster with the policies, where tokens tell who asks."""
    for document in documents():
        plural = {
            "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
            "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
        }[document["kind"]]
        lab.client.create(f"{GROUP}/{plural}", document)
    lab.server.identities.tokens |= {
        "admin": User("admin", (ADMIN_GROUP,)),
        "own": agent_on(NODE),
        "stolen": agent_on("other"),
        "unbound": agent_on(None),
    }
    before = lab.client
    lab.client = ApiClient(Endpoint(lab.server.url, token="admin"))
    yield lab
    lab.client.close()
    lab.client = before
    lab.server.identities.tokens.clear()


@contextmanager
def client_of(lab: Lab, token: str) -> Iterator[ApiClient]:
    client = ApiClient(Endpoint(lab.server.url, token=token))
    try:
        yield client
    finally:
        client.close()


def refused(call: Any, *arguments: Any) -> str:
    with pytest.raises(ApiError) as caught:
        call(*arguments)
    assert caught.value.code == 403
    return str(caught.value)


def test_every_policy_is_bound_strict_and_readable() -> None:
    policies = {
        d["metadata"]["name"]: d["spec"] for d in documents() if d["kind"].endswith("Policy")
    }
    bound = [d["spec"] for d in documents() if d["kind"].endswith("Binding")]
    assert {spec["policyName"] for spec in bound} == set(policies)
    assert all(spec["validationActions"] == ["Deny"] for spec in bound)
    for spec in policies.values():
        assert spec["failurePolicy"] == "Fail"
        assert [c["expression"] for c in spec["matchConditions"]] == [
            f"request.userInfo.username == '{ACCOUNT}'"
        ]
        for each in (*spec["variables"], *spec["validations"]):
            parse(each["expression"])
        assert all(v["reason"] == "Forbidden" and v["message"] for v in spec["validations"])


def test_the_policies_cover_every_write_that_the_role_permits() -> None:
    roles = yaml.safe_load_all((ROOT / "deploy" / "rbac" / "node-agent.yaml").read_text())
    writes = {
        (group, resource)
        for role in roles
        for rule in role.get("rules", [])
        if {"create", "patch", "update", "delete"} & set(rule["verbs"])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    covered = {
        (group, resource)
        for document in documents()
        for rule in document["spec"].get("matchConstraints", {}).get("resourceRules", [])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert {(group, name.split("/")[0]) for group, name in writes} <= covered
    assert ("", "nodes/*") in covered


def test_an_agent_of_its_node_does_all_its_work_under_the_policies(guarded: Lab) -> None:
    lab = guarded
    access = write_kubeconfig(lab.folder / "own", server=lab.server.url, token="own")
    with lab.agent(HAMI_KUBECONFIG=str(access)):
        wait_until(lambda: lab.lease_holder() == NODE, "the Lease")
        wait_until(lambda: condition(lab).get("status") == "True", "the condition")
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        assert lab.annotations("job")[keys.POD_BIND_PHASE] == "success"
        wait_until(lambda: not lab.node_annotation(keys.NODE_LOCK), "unlocked")
        lab.hardware.fail("nvmlDeviceCreateGpuInstanceWithPlacement", 4)
        lab.reserve("unlucky", [(0, "1g.5gb", 5, 1)])
        with pytest.raises(Exception, match=r"mig|permission"):
            lab.kubelet.allocate(lab.ids(2)[1])
        wait_until(lambda: lab.events("unlucky", "MigAllocationFailed"), "told")


@pytest.mark.parametrize("token", ["stolen", "unbound"])
def test_a_token_of_another_node_or_of_none_writes_nothing_here(guarded: Lab, token: str) -> None:
    lab = guarded
    lab.reserve("job", [(0, "1g.5gb", 6, 1)])
    with client_of(lab, token) as client:
        own = {"metadata": {"annotations": {"hami.io/bind-phase": "success"}}}
        assert "node" in refused(client.patch, POD, own)
        assert "token names" in refused(client.patch, f"/api/v1/nodes/{NODE}", own)
        status = {"status": {"conditions": [{"type": "hami.io/DynamicMIGReady", "status": "True"}]}}
        assert "token names" in refused(client.patch, f"/api/v1/nodes/{NODE}/status", status)
        assert "token names" in refused(client.create, LEASES, lease(NODE))
        assert "its own name" in refused(client.create, EVENTS, event(NODE))


def lease(node: str, holder: str | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": agent_lease_name(node), "namespace": "hami-system"},
        "spec": {"holderIdentity": node if holder is None else holder},
    }


def event(node: str, controller: str = "hami.io/node-agent") -> dict[str, Any]:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"job.{node}", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": controller,
        "reportingInstance": node,
        "action": "Realize",
        "reason": "MigAllocationFailed",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "job"},
        "type": "Warning",
    }


@pytest.mark.parametrize(
    ("path", "change", "why"),
    [
        (POD, {"metadata": {"annotations": {"other.io/x": "1"}}}, "only writes annotations"),
        (POD, {"metadata": {"annotations": {"theirs": None}}}, "only removes annotations"),
        (POD, {"metadata": {"labels": {"app": "x"}}}, "only writes labels"),
        (POD, {"spec": {"activeDeadlineSeconds": 5}}, "no Pod's spec"),
        (f"{POD}/status", {"status": {"phase": "Failed"}}, "none of their subresources"),
        (f"/api/v1/nodes/{NODE}", {"spec": {"unschedulable": True}}, "no node's spec"),
        (f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {"a": "b"}}}, "no node's labels"),
        (f"/api/v1/nodes/{NODE}", {"metadata": {"annotations": {"a": "b"}}}, "only writes"),
        (
            f"/api/v1/nodes/{NODE}/status",
            {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
            "DynamicMIGReady",
        ),
        (f"/api/v1/nodes/{NODE}/status", {"status": {"capacity": {"cpu": "1"}}}, "to the kubelet"),
    ],
)
def test_on_its_own_node_an_agent_writes_only_what_is_its_own(
    guarded: Lab, path: str, change: dict[str, Any], why: str
) -> None:
    lab = guarded
    lab.reserve("job", [(0, "1g.5gb", 6, 1)])
    lab.annotate("job", {"theirs": "kept"})
    with client_of(lab, "own") as client:
        assert why in refused(client.patch, path, change)


def test_it_speaks_for_nobody_else(guarded: Lab) -> None:
    with client_of(guarded, "own") as client:
        assert "nobody but its own" in refused(client.create, LEASES, lease(NODE, "other"))
        assert "its own name" in refused(client.create, EVENTS, event(NODE, "kubelet"))
        assert client.create(LEASES, lease(NODE))
        assert client.create(EVENTS, event(NODE))


def test_others_are_not_concerned(guarded: Lab) -> None:
    lab = guarded
    lab.reserve("job", [(0, "1g.5gb", 6, 1)])
    lab.client.patch(POD, {"metadata": {"labels": {"app": "x"}}})
    lab.client.patch(f"/api/v1/nodes/{NODE}", {"spec": {"unschedulable": True}})
