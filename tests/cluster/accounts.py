"""The product's ServiceAccounts with exactly their rights, and what the API server saw them do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client

from tests.cluster.processes import ROOT

SYSTEM = "hami-system"
ROLES = ("extender", "node-agent", "web", "worker")
_PREFIX = f"system:serviceaccount:{SYSTEM}:hami-"
_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [
        {"level": "Metadata", "userGroups": [f"system:serviceaccounts:{SYSTEM}"]},
        {"level": "None"},
    ],
}


@dataclass(frozen=True, order=True)
class Right:
    """One verb on one resource, ``pods/binding`` for a subresource."""

    group: str
    resource: str
    verb: str


def manifests(role: str) -> list[dict[str, Any]]:
    """What ``deploy/rbac`` says of a role."""
    (path,) = (ROOT / "deploy" / "rbac").rglob(f"{role}.yaml")
    return list(yaml.safe_load_all(path.read_text()))


def create_accounts() -> None:
    """Apply the shipped manifests as they stand."""
    for role in ROLES:
        apply(role)


def apply(role: str) -> None:
    """Apply ``deploy/rbac`` of one role."""
    core, rbac = client.CoreV1Api(), client.RbacAuthorizationV1Api()
    for document in manifests(role):
        match document["kind"]:
            case "ServiceAccount":
                core.create_namespaced_service_account(SYSTEM, document)
            case "ClusterRole":
                rbac.create_cluster_role(document)
            case "ClusterRoleBinding":
                rbac.create_cluster_role_binding(document)
            case "Role":
                rbac.create_namespaced_role(SYSTEM, document)
            case "RoleBinding":
                rbac.create_namespaced_role_binding(SYSTEM, document)
            case other:
                raise AssertionError(other)


def remove(role: str) -> None:
    """Take away what :func:`apply` bound."""
    rbac = client.RbacAuthorizationV1Api()
    rbac.delete_cluster_role_binding(f"hami-{role}")
    rbac.delete_cluster_role(f"hami-{role}")
    rbac.delete_namespaced_role_binding(f"hami-{role}", SYSTEM)
    rbac.delete_namespaced_role(f"hami-{role}", SYSTEM)


def kubeconfig(cluster: Path, role: str) -> Path:
    """Where the access of a role is written."""
    return cluster / f"account-{role}.conf"


def write_access(cluster: Path, role: str) -> None:
    """A kubeconfig with a token of the role's account and nothing else."""
    request = {"spec": {"expirationSeconds": 6 * 3600}}
    answer = client.CoreV1Api().create_namespaced_service_account_token(
        f"hami-{role}", SYSTEM, request, _preload_content=False
    )
    token = json.loads(answer.data)["status"]["token"]
    document = yaml.safe_load((cluster / "nobody.conf").read_text())
    (user,) = document["users"]
    user["user"] = {"token": token}
    kubeconfig(cluster, role).write_text(yaml.safe_dump(document))


def audit_arguments(cluster: Path) -> tuple[str, str]:
    """Arguments of an API server that notes what these accounts ask for."""
    policy = cluster / "audit-policy.yaml"
    policy.write_text(yaml.safe_dump(_AUDIT_POLICY))
    return f"--audit-policy-file={policy}", f"--audit-log-path={cluster / 'log' / 'audit.log'}"


def granted(role: str) -> set[Right]:
    """All that the manifests let a role do."""
    return {
        Right(group, resource, verb)
        for document in manifests(role)
        for rule in document.get("rules", [])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(cluster: Path, role: str) -> set[Right]:
    """What a role asked for and was let do; a watch is noted when it is received."""
    return {request.right for request, _ in _asked(cluster, role)} - refused(cluster, role)


def refused(cluster: Path, role: str) -> set[Right]:
    """What a role asked for without having the right.

    An API server that has just begun refuses what it has not read the rights for yet; the same
    request is let pass soon after, as nobody changes rights here.
    """
    answers: dict[_Request, set[bool]] = {}
    for request, code in _asked(cluster, role):
        if code:
            answers.setdefault(request, set()).add(code == 403)
    return {request.right for request, found in answers.items() if found == {True}}


@dataclass(frozen=True)
class _Request:
    """A request as far as rights depend on it."""

    right: Right
    namespace: str
    name: str


def _asked(cluster: Path, role: str) -> Iterator[tuple[_Request, int]]:
    """Each request with its status; 0 for one that is not answered yet."""
    for line in (cluster / "log" / "audit.log").read_text().splitlines():
        try:
            event = json.loads(line)
        except ValueError:  # the last line may be half written
            continue
        about = event.get("objectRef", {})
        if event["user"]["username"] != _PREFIX + role or "resource" not in about:
            continue
        kind = "/".join(filter(None, (about["resource"], about.get("subresource"))))
        right = Right(about.get("apiGroup", ""), kind, event["verb"])
        code = event.get("responseStatus", {}).get("code", 0)
        # What is created has a name of its own each time, which no right depends on.
        name = "" if event["verb"] == "create" else about.get("name", "")
        yield _Request(right, about.get("namespace", ""), name), code
