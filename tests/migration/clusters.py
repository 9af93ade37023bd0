"""Clusters that people move from, as their objects: shapes of HAMi's and NVIDIA's own charts."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from hami_web.core import annotations as keys
from hami_web.core.allowlist import AllowlistEntry, render_allowlist
from hami_web.core.capability import NodeCapability
from hami_web.core.registration import encode_registration
from hami_web.extender.issuing import make_authority
from tests.builders import a100_40gb

Document = dict[str, Any]
Cluster = list[Document]
CLUSTERS: dict[str, Callable[[], Cluster]] = {}
GPU = "GPU-5d1c0c7e-0000-4000-8000-000000000001"
A100 = ("A100-SXM4-40GB",)
EVERY = ("1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb")


def cluster(make: Callable[[], Cluster]) -> Callable[[], Cluster]:
    CLUSTERS[make.__name__] = make
    return make


def described(kind: str, name: str, namespace: str = "", **more: Any) -> Document:
    metadata = {"name": name, **more.pop("metadata", {})}
    if namespace:
        metadata["namespace"] = namespace
    return {"kind": kind, "metadata": metadata, **more}


def node(name: str = "gpu-1", labels: Document | None = None, **more: Any) -> Document:
    annotations = more.get("annotations", {})
    conditions = [{"type": "Ready", "status": "True"}, *more.get("conditions", [])]
    return described(
        "Node",
        name,
        metadata={
            "labels": {"gpu": "on", **(labels or {})},
            "annotations": annotations,
        },
        spec={"taints": more.get("taints", [])},
        status={
            "allocatable": {"cpu": "64", **more.get("allocatable", {})},
            "conditions": conditions,
            "nodeInfo": {"kubeletVersion": more.get("kubelet", "v1.29.4")},
        },
    )


def published(name: str = "gpu-1", labels: Document | None = None, **more: Any) -> Document:
    """A node whose agent has told what its GPUs can be cut into."""
    text = encode_registration(NodeCapability((a100_40gb(),)))
    notes = {keys.NODE_REGISTER: text, **more.pop("annotations", {})}
    return node(name, labels, annotations=notes, **more)


def owned(kind: str, name: str) -> Document:
    owner = {"apiVersion": "v1", "kind": kind, "name": name, "uid": name, "controller": True}
    return {"ownerReferences": [owner]}


def pod(name: str, on: str = "gpu-1", namespace: str = "team-a", **more: Any) -> Document:
    metadata = {
        "labels": more.get("labels", {}),
        "annotations": more.get("annotations", {}),
        **(more.get("owner") or {}),
    }
    container = {"name": "main", "image": more.get("image", "train:1")}
    container["resources"] = {"limits": more.get("limits", {})}
    return described(
        "Pod",
        name,
        namespace,
        metadata=metadata,
        spec={"nodeName": on, "containers": [container]},
        status={"phase": more.get("phase", "Running")},
    )


def legacy_pod(name: str, **more: Any) -> Document:
    """A MIG Pod of HAMi up to 2.9: template 1, slot 0."""
    devices = f"{GPU}[1-0],NVIDIA,10240,0:;"
    return pod(
        name,
        annotations={keys.POD_DEVICES_ALLOCATED: devices, keys.POD_MODE: "mig"},
        limits={"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8000"},
        **more,
    )


def workload(kind: str, name: str, namespace: str, image: str, **more: Any) -> Document:
    status = {"desiredNumberScheduled": more.get("wanted", 1)} if kind == "DaemonSet" else {}
    container = {"name": "main", "image": image}
    spec: Document = {"template": {"spec": {"containers": [container], **more.get("runs", {})}}}
    if kind == "Deployment":
        spec["replicas"] = more.get("wanted", 1)
    metadata = {"labels": more.get("labels", {}), **(more.get("owner") or {})}
    return described(kind, name, namespace, metadata=metadata, spec=spec, status=status)


def hami(version: str, scheduler: int = 1, plugin: int = 1) -> Cluster:
    """HAMi's chart of a release: scheduler, device plugin with a Pod on gpu-1, webhook."""
    image = f"docker.io/projecthami/hami:{version}"
    component = {"app.kubernetes.io/component": "hami-scheduler"}
    of_plugin = {"app.kubernetes.io/component": "hami-device-plugin"}
    client = {"service": {"name": "hami-scheduler", "namespace": "kube-system"}, "caBundle": "Q0E="}
    found = [
        workload("Deployment", "hami-scheduler", "kube-system", image,
                 labels=component, wanted=scheduler),
        workload("DaemonSet", "hami-device-plugin", "kube-system", image,
                 labels=of_plugin, wanted=plugin),
        described("MutatingWebhookConfiguration", "hami-scheduler-webhook",
                  webhooks=[{"name": "vgpu.hami.io", "clientConfig": client}]),
    ]  # fmt: skip
    if plugin:
        found.append(pod("hami-device-plugin-x", namespace="kube-system", labels=of_plugin,
                         image=image, owner=owned("DaemonSet", "hami-device-plugin")))  # fmt: skip
    return found


def geometries(key: str = "device-config.yaml", text: str | None = None) -> Document:
    """The ConfigMap of HAMi's chart with whole-GPU layouts."""
    layouts = (
        "nvidia:\n  knownMigGeometries:\n  - models: [A100-SXM4-40GB]\n    allowedGeometries:\n"
        "    - - {name: 1g.5gb, memory: 5120, count: 7}\n"
    )
    data = {key: layouts if text is None else text}
    return described("ConfigMap", "hami-scheduler-device", "kube-system", data=data)


def operator(*, enabled: bool = True, on: str = "gpu-1", config: str = "all-1g.5gb") -> Cluster:
    """GPU Operator with MIG Manager on a node."""
    labels = {"app": "nvidia-mig-manager"}
    found = [
        described("ClusterPolicy", "cluster-policy", spec={"migManager": {"enabled": enabled}})
    ]
    if enabled:
        found += [
            workload("DaemonSet", "nvidia-mig-manager", "gpu-operator", "mig-manager:v0.12",
                     labels=labels, owner=owned("ClusterPolicy", "cluster-policy")),
            pod("nvidia-mig-manager-x", on, "gpu-operator", labels=labels,
                image="mig-manager:v0.12", owner=owned("DaemonSet", "nvidia-mig-manager")),
            node(on, {"nvidia.com/mig.config": config, "nvidia.com/mig.config.state": "success"}),
        ]  # fmt: skip
    return found


def ours(*, profiles: tuple[str, ...] = EVERY, ca_bundle: str = "Q0E=") -> Cluster:
    """What our own installation brings."""
    service = {"name": "hami-extender", "namespace": "hami-system"}
    client: Document = {"service": service, "caBundle": ca_bundle}
    allowlist = render_allowlist([AllowlistEntry(A100, profiles)])
    scheduler = "extenders:\n- {filterVerb: filter}\nprofiles: [{schedulerName: hami-scheduler}]\n"
    return [
        described("MutatingWebhookConfiguration", "hami-webhook",
                  webhooks=[{"name": "vgpu.hami.io", "clientConfig": client}]),
        described("ConfigMap", "device-config", "hami-system",
                  data={"device-config.yaml": allowlist}),
        described("ConfigMap", "scheduler-config", "hami-system", data={"config.yaml": scheduler}),
    ]  # fmt: skip


@cluster
def nothing_but_a_node_without_gpus() -> Cluster:
    plain = node("cpu-1")
    plain["metadata"]["labels"] = {}
    return [*ours(), plain]


@cluster
def ready_to_be_taken_over() -> Cluster:
    return [*ours(), published()]


@cluster
def hami_2_3_with_templates_as_lists() -> Cluster:
    return [
        *hami("v2.3.13"),
        geometries(),
        node(),
        legacy_pod("train", owner=owned("Job", "train")),
    ]


@cluster
def hami_2_5_with_groups() -> Cluster:
    text = (
        "nvidia:\n  knownMigGeometries:\n  - models: [A30]\n    allowedGeometries:\n"
        "    - group: group1\n      geometries: [{name: 1g.6gb, memory: 6144, count: 4}]\n"
    )
    return [*hami("v2.5.2"), geometries(text=text), node(), legacy_pod("alone")]


@cluster
def hami_2_7_whose_geometries_cannot_be_read() -> Cluster:
    text = "nvidia:\n  knownMigGeometries:\n  - models: []\n"
    return [*hami("v2.7.1"), geometries(text=text), node()]


@cluster
def hami_2_9_with_a_budget_that_allows_nothing() -> Cluster:
    budget = described("PodDisruptionBudget", "serve", "team-a",
                       spec={"selector": {"matchLabels": {"app": "serve"}}},
                       status={"disruptionsAllowed": 0})  # fmt: skip
    serving = legacy_pod("serve-0", labels={"app": "serve"}, owner=owned("StatefulSet", "serve"))
    return [*hami("v2.9.0"), geometries(), node(), serving, budget]


@cluster
def hami_2_9_drained_and_scaled_to_zero() -> Cluster:
    return [*hami("v2.9.0", scheduler=0, plugin=0)[:2], *ours(), published()]


@cluster
def hami_2_9_scheduler_beside_a_2_10_plugin() -> Cluster:
    old, new = hami("v2.9.0", plugin=0), hami("v2.10.0", scheduler=0)
    return [old[0], new[1], new[2], new[3], node()]


@cluster
def hami_2_10_running() -> Cluster:
    return [*hami("v2.10.0"), published()]


@cluster
def hami_built_by_people_themselves() -> Cluster:
    found = hami("latest")
    for item in found[:2]:
        item["spec"]["template"]["spec"]["containers"][0]["image"] = "internal/hami@sha256:12ab"
    return [*found, node()]


@cluster
def gpu_operator_with_mig_manager() -> Cluster:
    return operator()


@cluster
def gpu_operator_with_mig_manager_off_and_labels_left() -> Cluster:
    left = node(labels={"nvidia.com/mig.config": "all-balanced"})
    return [*operator(enabled=False), *ours(), left]


@cluster
def gpu_operator_in_the_middle_of_a_change() -> Cluster:
    found = operator()
    found[-1]["metadata"]["labels"] |= {
        "nvidia.com/mig.config.state": "pending",
        "nvidia.com/gpu.deploy.dcgm-exporter": "paused-for-mig-change",
        "nvidia.com/gpu.deploy.device-plugin": "paused-for-mig-change",
    }
    return found


@cluster
def gpu_operator_whose_last_change_failed() -> Cluster:
    labels = {"nvidia.com/mig.config.state": "failed"}
    return [*operator(enabled=False), *ours(), published(labels=labels)]


@cluster
def a_fixed_plugin_with_work_on_it() -> Cluster:
    labels = {"app": "nvidia-device-plugin-daemonset"}
    return [
        *ours(),
        node(allocatable={"nvidia.com/mig-1g.5gb": "7", "nvidia.com/mig-2g.10gb": "0"}),
        pod("nvidia-device-plugin-x", namespace="gpu-operator", labels=labels),
        pod("train", limits={"nvidia.com/mig-1g.5gb": "1"}, owner=owned("Job", "train")),
        pod("over", limits={"nvidia.com/mig-1g.5gb": "1"}, phase="Succeeded"),
    ]


@cluster
def whole_gpus_in_use_on_cards_to_be_cut() -> Cluster:
    return [*ours(), published(), pod("whole", limits={"nvidia.com/gpu": "1"})]


@cluster
def gpus_in_use_by_init_containers_and_sidecars() -> Cluster:
    def asking(name: str, **more: Any) -> Document:
        found = pod(name, owner=owned("Job", name))
        resources = {"limits": {"nvidia.com/gpu": "1"}}
        found["spec"]["initContainers"] = [{"name": "first", "resources": resources, **more}]
        return found

    return [*ours(), published(), asking("prepares"), asking("serves", restartPolicy="Always")]


@cluster
def mig_manager_by_itself_that_runs_on_no_node_now() -> Cluster:
    waiting = workload("DaemonSet", "nvidia-mig-manager", "kube-system", "mig-manager:v0.12",
                       labels={"app": "nvidia-mig-manager"}, wanted=0)  # fmt: skip
    return [*ours(), published(), waiting]


@cluster
def gpus_that_need_people() -> Cluster:
    def told(word: str) -> list[Document]:
        message = f"{word}: GPU 0 ({GPU}) is held by process 4711"
        return [{"type": "hami.io/DynamicMIGReady", "status": "False",
                 "reason": word, "message": message}]  # fmt: skip

    words = ("MigModePending", "ResetNeeded", "RebootNeeded")
    return [
        *ours(),
        *(published(f"gpu-{n}", conditions=told(word)) for n, word in enumerate(words)),
    ]


@cluster
def old_and_new_kubelets_and_an_old_driver() -> Cluster:
    return [
        *ours(),
        published("older", kubelet="v1.19.16"),
        published("newer", kubelet="v1.99.0"),
        published("driver", labels={"nvidia.com/cuda.driver.major": "440"}),
    ]


@cluster
def an_allowlist_that_does_not_fit_the_node() -> Cluster:
    return [*ours(profiles=("1g.5gb", "1g.6gb")), published()]


@cluster
def an_allowlist_without_the_model_and_one_that_is_wrong() -> Cluster:
    found = ours()
    found[1]["data"]["device-config.yaml"] = render_allowlist(
        [AllowlistEntry(("A30",), ("1g.6gb",))]
    )
    wrong = "nvidia:\n  migProfileAllowlist:\n  - {models: [A30], profiles: [six]}\n"
    other = described("ConfigMap", "old-config", "hami-system", data={"a.yaml": wrong})
    return [*found, other, published()]


@cluster
def a_webhook_that_the_api_server_cannot_trust() -> Cluster:
    return [*ours(ca_bundle=""), published()]


@cluster
def a_node_whose_registration_cannot_be_read() -> Cluster:
    return [*ours(), node(annotations={keys.NODE_REGISTER: "[{]"})]


@cluster
def a_plugin_that_runs_on_some_nodes_only() -> Cluster:
    """By selector, affinity or taint: what keeps a plugin off one node is no matter of it."""
    image = "docker.io/projecthami/hami:v2.9.0"
    of_plugin = {"app.kubernetes.io/component": "hami-device-plugin"}
    away = {"key": "pool", "operator": "NotIn", "values": ["ours"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [away]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    runs = {"nodeSelector": {"gpu": "on"}, "affinity": {"nodeAffinity": affinity}}
    plugin = workload("DaemonSet", "hami-device-plugin", "kube-system", image,
                      labels=of_plugin, runs=runs)  # fmt: skip
    taint = {"key": "moving", "value": "in", "effect": "NoSchedule"}
    return [
        *ours(),
        plugin,
        published("by-affinity", {"pool": "ours"}),
        published("by-selector", {"gpu": "ours"}),
        published("by-taint", taints=[taint]),
        published("not-kept-off", {"pool": "theirs"}),
    ]


@cluster
def mig_manager_that_one_node_refuses() -> Cluster:
    switch = "nvidia.com/gpu.deploy.mig-manager"
    found = operator()[:2]
    found[1]["spec"]["template"]["spec"]["nodeSelector"] = {switch: "true"}
    return [
        *ours(),
        *found,
        published("has-it", {switch: "true"}),
        published("may-get-it"),
        published("refuses", {switch: "false"}),
    ]


@cluster
def another_owner_that_the_agent_tells_of() -> Cluster:
    told = {keys.NODE_MIG_OWNER: "Pod gpu-operator/nvidia-mig-manager-x (MIG Manager)"}
    return [*ours(), published(annotations=told)]


@cluster
def a_certificate_that_has_ended() -> Cluster:
    ended = make_authority(datetime(2010, 1, 1, tzinfo=UTC)).certificate
    return [*ours(ca_bundle=b64encode(ended).decode()), published()]


@cluster
def no_allowlist_and_a_gpu_that_cannot_be_read() -> Cluster:
    gpus = json.loads(encode_registration(NodeCapability((a100_40gb(), a100_40gb("GPU-2", 1)))))
    gpus[1]["devmem"] = "plenty"
    found = [item for item in ours() if item["metadata"]["name"] != "device-config"]
    waiting = legacy_pod("waits", owner=owned("Job", "waits"))
    notes = waiting["metadata"]["annotations"]
    notes[keys.POD_DEVICES_TO_ALLOCATE] = notes.pop(keys.POD_DEVICES_ALLOCATED)
    return [*found, node(annotations={keys.NODE_REGISTER: json.dumps(gpus)}), waiting]
