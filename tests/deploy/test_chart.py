"""What the chart renders: valid for every Kubernetes, least privilege, known to the product."""

from __future__ import annotations

import functools
import importlib
import re
import subprocess
import tomllib
from typing import Any

import kubernetes_validate
import pytest
import yaml
from django.core.management import get_commands

from hami_web import environment
from hami_web.core.device_config import parse_device_config
from node_agent.config import AgentConfig
from tests.deploy.chart import (
    CHART,
    ROOT,
    containers,
    documents,
    of_kind,
    pod_templates,
    render,
    rendered,
)
from tests.deploy.manifests import POSTGRES

pytestmark = pytest.mark.usefixtures("helm")

MONITORED: dict[str, Any] = {
    "tracing": {"endpoint": "http://otel-collector.observability:4318"},
    "monitoring": {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
        "dashboards": {"enabled": True, "annotations": {"grafana_folder": "GPUs"}},
    },
}
MATRIX: dict[str, dict[str, Any]] = {
    "default": {},
    "postgres": POSTGRES,
    "replicas": POSTGRES
    | {"scheduler": {"replicas": 3}, "web": {"replicas": 2}, "worker": {"replicas": 2}}
    | MONITORED,
    "cert-manager": {"scheduler": {"certManager": {"enabled": True}}},
    "own issuer": {
        "scheduler": {
            "certManager": {"enabled": True, "issuerRef": {"name": "ca", "kind": "ClusterIssuer"}}
        }
    },
    "all secrets given": {
        "setup": {"enabled": False},
        "scheduler": {
            "patch": {"enabled": False},
            "tls": {"existingSecret": "mine", "caBundle": "bWluZQ=="},
        },
        "signingKeys": {"existingSecret": "keys"},
        "secretKey": {"existingSecret": "django"},
        "admin": {"existingSecret": "boss"},
    },
    "air gap": {
        "global": {
            "imageRegistry": "mirror.example:5000",
            "imagePullSecrets": ["pull", {"name": "other"}],
            "imageTag": "1.2.3",
            "labels": {"team": "gpu"},
            "annotations": {"example.com/a": "b"},
        }
    },
    "beside HAMi": {"devicePlugin": {"enabled": False}, "signingKeys": {"enabled": False}},
    "device nodes": {
        "devicePlugin": {
            "deviceListStrategy": "cdi",
            "excludedGpus": ["0", "GPU-1"],
            "runtimeClassName": "nvidia",
            "extraEnv": [{"name": "HAMI_RECLAIM_SECONDS", "value": "5"}],
        }
    }
    | MONITORED,
    "ingress": {
        "web": {
            "hosts": ["gpus.example"],
            "https": True,
            "proxyAddresses": ["10.0.0.0/8"],
            "ingress": {"enabled": True, "className": "nginx", "tlsSecret": "web-tls"},
        },
        "networkPolicy": {
            "controlPlaneCIDRs": ["10.1.0.0/24"],
            "monitoringNamespaceSelector": {"matchLabels": {"name": "monitoring"}},
            "webNamespaceSelector": {"matchLabels": {"name": "ingress"}},
        },
    },
    "own scheduler": {
        "scheduler": {
            "kubeScheduler": {"enabled": False},
            "admissionWebhook": {"enabled": False},
            "service": {"type": "NodePort", "schedulerPort": 31998},
            "kubeQPS": 50,
            "kubeBurst": "100",
            "legacyMetrics": True,
            "nodeName": "control-1",
        },
        "persistence": {"enabled": False},
        "networkPolicy": {"enabled": False},
    },
}
KUBE = ["1.25.16", "1.29.0", "1.30.0", "1.33.2", "1.37.1"]
OF_OPERATORS = ("cert-manager.io/", "monitoring.coreos.com/")
# Read by NVIDIA's container runtime, by Django, or by Kubernetes itself in another variable.
OF_OTHERS = {
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_MIG_CONFIG_DEVICES",
    "NVIDIA_MIG_MONITOR_DEVICES",
    "DJANGO_SETTINGS_MODULE",
    "POD_IP",
}


@functools.cache
def variant(name: str, kube: str = KUBE[-1]) -> list[Any]:
    return rendered(MATRIX[name], kube=kube)


@pytest.mark.parametrize("name", MATRIX)
@pytest.mark.parametrize("kube", [KUBE[0], KUBE[-1]])
def test_every_manifest_is_valid_for_its_kubernetes(name: str, kube: str) -> None:
    found = variant(name, kube)
    assert found
    for document in found:
        if document["apiVersion"].startswith(OF_OPERATORS):
            continue
        kubernetes_validate.validate(document, kube.rpartition(".")[0], strict=True)


@pytest.mark.parametrize("kube", KUBE[1:-1])
def test_the_default_is_valid_in_between_too(kube: str) -> None:
    for document in variant("default", kube):
        kubernetes_validate.validate(document, kube.rpartition(".")[0], strict=True)


def test_helm_finds_nothing_to_complain_of(helm: str) -> None:
    done = subprocess.run(
        [helm, "lint", "--strict", str(CHART)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_old_clusters_get_the_versions_that_they_serve() -> None:
    found = rendered(POSTGRES | {"worker": {"replicas": 2}}, kube="1.20.2")
    assert of_kind(found, "CronJob")["hami-setup"]["apiVersion"] == "batch/v1beta1"
    assert of_kind(found, "PodDisruptionBudget")["hami-worker"]["apiVersion"] == "policy/v1beta1"
    assert not of_kind(found, "ValidatingAdmissionPolicy")
    config = yaml.safe_load(
        of_kind(found, "ConfigMap")["hami-scheduler-config"]["data"]["config.yaml"]
    )
    assert config["apiVersion"] == "kubescheduler.config.k8s.io/v1beta1"
    scheduler = containers(found)["Deployment/hami-extender/kube-scheduler"]
    assert scheduler["image"].endswith("/kube-scheduler:v1.20.2")
    assert "--port=0" in scheduler["args"]
    (webhook,) = of_kind(found, "MutatingWebhookConfiguration")["hami-webhook"]["webhooks"]
    assert webhook["failurePolicy"] == "Ignore"
    assert "matchConditions" not in webhook


@pytest.mark.parametrize(
    ("version", "image", "api"),
    [("v1.31.4-eks-1a2b", "v1.31.4", "v1"), ("1.24.17-gke.5", "v1.24.17", "v1beta2")],
)
def test_kube_scheduler_follows_the_cluster_without_what_providers_add(
    version: str, image: str, api: str
) -> None:
    found = rendered(kube=version)
    assert containers(found)["Deployment/hami-extender/kube-scheduler"]["image"].endswith(
        f":{image}"
    )
    text = of_kind(found, "ConfigMap")["hami-scheduler-config"]["data"]["config.yaml"]
    assert yaml.safe_load(text)["apiVersion"] == f"kubescheduler.config.k8s.io/{api}"


@pytest.mark.parametrize("name", MATRIX)
def test_every_variable_is_one_that_its_role_reads(name: str) -> None:
    agent = {setting.name for setting in AgentConfig.settings()}
    control_plane = set(environment.SETTINGS) | {
        f"{setting.name}_FILE" for setting in environment.SETTINGS.values() if setting.secret
    }
    for where, container in containers(variant(name)).items():
        known = agent if "node-agent" in where else control_plane
        names = [variable["name"] for variable in container.get("env", [])]
        assert len(names) == len(set(names)), where
        assert set(names) <= known | OF_OTHERS, where


def test_every_required_variable_of_the_agent_is_set_and_all_are_accepted() -> None:
    container = containers(variant("device nodes"))["DaemonSet/hami-node-agent/node-agent"]
    environ = {v["name"]: v.get("value", "gpu-node-1") for v in container["env"]}
    config = AgentConfig.from_env(environ)
    assert config.reclaim_seconds == 5
    assert config.excluded_gpus == {"0", "GPU-1"}
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    for path in (config.state_dir, config.device_plugin_dir, config.cdi_dir):
        assert str(path) in mounts
    assert config.signing_keys is not None
    assert str(config.signing_keys.parent) in mounts
    assert str(config.device_config.parent) in mounts


@pytest.mark.parametrize("name", MATRIX)
def test_every_file_that_a_variable_names_is_mounted(name: str) -> None:
    for where, container in containers(variant(name)).items():
        mounts = {mount["mountPath"] for mount in container.get("volumeMounts", [])}
        for variable in container.get("env", []):
            value = str(variable.get("value", ""))
            if value.startswith("/etc/hami/"):
                assert value.rpartition("/")[0] in mounts, (where, variable)


@pytest.mark.parametrize("name", MATRIX)
def test_every_mount_has_its_volume_and_every_volume_a_mount(name: str) -> None:
    for where, spec in pod_templates(variant(name)).items():
        used = {
            mount["name"]
            for container in [*spec.get("initContainers", []), *spec["containers"]]
            for mount in container.get("volumeMounts", [])
        }
        assert used == {volume["name"] for volume in spec.get("volumes", [])}, where


def test_every_command_is_an_entry_point_of_ours() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        scripts = tomllib.load(file)["project"]["scripts"]
    for where, container in containers(variant("postgres")).items():
        command = container["command"]
        if where.endswith("/kube-scheduler") or where.startswith("Pod/"):
            continue
        module, _, function = scripts[command[0]].partition(":")
        assert callable(getattr(importlib.import_module(module), function)), where
        if command[0] == "hami-web":
            assert command[1] in get_commands(), where


@pytest.mark.parametrize("name", MATRIX)
def test_nobody_but_the_agent_has_privileges(name: str) -> None:
    for where, spec in pod_templates(variant(name)).items():
        for flag in ("hostNetwork", "hostPID", "hostIPC"):
            assert not spec.get(flag), where
        is_agent = where == "DaemonSet/hami-node-agent"
        paths = [v["hostPath"]["path"] for v in spec.get("volumes", []) if "hostPath" in v]
        assert bool(paths) == is_agent, where
        if not is_agent:
            assert spec["securityContext"]["runAsNonRoot"] is True
            assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for where, container in containers(variant(name)).items():
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] is True, where
        if "/hami-node-agent/" in where:
            assert security["privileged"] is True
            continue
        assert "privileged" not in security, where
        assert security["allowPrivilegeEscalation"] is False, where
        assert security["capabilities"] == {"drop": ["ALL"]}, where


@pytest.mark.parametrize("name", MATRIX)
def test_every_pod_has_an_account_that_is_bound(name: str) -> None:
    found = variant(name)
    accounts = set(of_kind(found, "ServiceAccount"))
    for where, spec in pod_templates(found).items():
        if where.startswith("Pod/"):
            assert spec["automountServiceAccountToken"] is False
        else:
            assert spec["serviceAccountName"] in accounts, where
    bound = {
        subject["name"]
        for kind in ("ClusterRoleBinding", "RoleBinding")
        for binding in of_kind(found, kind).values()
        for subject in binding["subjects"]
    }
    assert bound == accounts


def test_no_role_has_a_wildcard() -> None:
    found = variant("postgres")
    for kind in ("ClusterRole", "Role"):
        for name, role in of_kind(found, kind).items():
            for rule in role["rules"]:
                parts = [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
                assert "*" not in parts, name


def test_only_set_up_touches_secrets_and_reads_none_but_the_certificates() -> None:
    found = variant("default")
    roles = of_kind(found, "ClusterRole") | {
        f"ns/{name}": role for name, role in of_kind(found, "Role").items()
    }
    rules = [
        (n, r) for n, role in roles.items() for r in role["rules"] if "secrets" in r["resources"]
    ]
    assert {name for name, _ in rules} == {"ns/hami-setup"}
    for _, rule in rules:
        if rule["verbs"] != ["create"]:
            assert set(rule["resourceNames"]) <= {"hami-ca", "hami-extender-tls"}


def test_the_signing_keys_are_shown_to_those_who_sign_and_check() -> None:
    specs = containers(variant("postgres"))
    shown = {
        where
        for where, container in specs.items()
        if any(m["name"] == "signing" for m in container.get("volumeMounts", []))
    }
    assert shown == {
        "Deployment/hami-extender/extender",
        "DaemonSet/hami-node-agent/node-agent",
        "Deployment/hami-worker/worker",
    }
    for where, container in specs.items():
        if any(m["name"] == "tls" for m in container.get("volumeMounts", [])):
            assert where == "Deployment/hami-extender/extender"


def test_one_host_needs_neither_a_database_server_nor_a_queue() -> None:
    specs = pod_templates(variant("default"))
    assert "Deployment/hami-worker" not in specs
    web = specs["Deployment/hami-web"]
    assert [c["name"] for c in web["containers"]] == ["web", "worker"]
    deployment = of_kind(variant("default"), "Deployment")["hami-web"]
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}


def test_several_extenders_are_called_by_the_service_of_the_leader() -> None:
    found = variant("replicas")
    text = of_kind(found, "ConfigMap")["hami-scheduler-config"]["data"]["config.yaml"]
    (extender,) = yaml.safe_load(text)["extenders"]
    assert extender["urlPrefix"] == "https://hami-extender.hami-system.svc:443"
    service = of_kind(found, "Service")["hami-extender"]
    assert service["spec"]["selector"]["hami.io/scheduler-role"] == "leader"
    assert set(of_kind(found, "PodDisruptionBudget")) == {
        "hami-extender",
        "hami-web",
        "hami-worker",
    }


def test_every_image_comes_from_the_mirror() -> None:
    for where, container in containers(variant("air gap")).items():
        assert container["image"].startswith("mirror.example:5000/"), where
    specs = pod_templates(variant("air gap")).values()
    assert all(spec["imagePullSecrets"] == [{"name": "pull"}, {"name": "other"}] for spec in specs)


def test_the_allowlist_is_one_that_the_agent_takes() -> None:
    text = of_kind(variant("default"), "ConfigMap")["hami-device-config"]["data"]
    assert parse_device_config(yaml.safe_load(text["device-config.yaml"]))


def test_a_network_policy_stands_before_every_pod() -> None:
    found = variant("postgres")
    guarded = {
        policy["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
        for policy in of_kind(found, "NetworkPolicy").values()
    }
    running = {
        d["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]
        for d in found
        if d["kind"] in {"Deployment", "DaemonSet", "Job"}
    }
    assert guarded == running


def test_the_same_values_render_the_same_text() -> None:
    assert render() == render()


def test_the_notes_name_three_commands() -> None:
    text = render(notes=True).partition("NOTES:")[2]
    assert len(re.findall(r"^[123]\. ", text, re.MULTILINE)) == 3
    assert "rollout status" in text
    assert "port-forward" in text


def test_the_release_can_be_in_another_namespace() -> None:
    text = render(POSTGRES, kube="1.33.0")
    other = render(POSTGRES, kube="1.33.0", namespace="gpus")
    assert "hami-system" not in other
    assert len(documents(other)) == len(documents(text))


@pytest.mark.parametrize("name", MATRIX)
def test_every_port_names_its_protocol(name: str) -> None:
    """Before 1.21 it is part of a port's key without a default, where an apply is merged."""
    found = variant(name)
    ports = [port for c in containers(found).values() for port in c.get("ports", [])]
    for service in of_kind(found, "Service").values():
        ports += service["spec"]["ports"]
    assert ports
    assert all(port["protocol"] == "TCP" for port in ports)
