"""What the API server does to Pods beyond storing them: defaults, binding, deletion, eviction."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from hami_web.simulator import problems
from hami_web.simulator.documents import (
    JsonObject,
    lookup,
    metadata,
    parse_timestamp,
    timestamp,
    uid_of,
)
from hami_web.simulator.resources import PODS
from hami_web.simulator.selectors import selector_object_predicate
from hami_web.simulator.store import Store, StoredObject

_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
FINISHED = ("Succeeded", "Failed")


def complete_new_pod(pod: JsonObject, priority: int) -> None:
    """Fill what the real defaulting and admission chain fills into a new Pod."""
    spec = pod["spec"]
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("enableServiceLinks", True)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    spec["priority"] = priority
    tolerations = spec.setdefault("tolerations", [])
    tolerations += [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in _TAINTS
        if not any(toleration.get("key") in (key, None) for toleration in tolerations)
    ]
    for container in _containers(spec):
        _complete_container(container)
    pod["status"] = {}


def start_status(pod: JsonObject) -> None:
    """The status of a Pod that was just stored."""
    pod["status"] = {"phase": "Pending", "qosClass": _quality_of_service(pod["spec"])}


def _complete_container(container: JsonObject) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    image = str(container.get("image", ""))
    latest = ":" not in image.rpartition("/")[2] or image.endswith(":latest")
    container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    resources = container.setdefault("resources", {})
    limits = resources.get("limits")
    if limits:
        resources["requests"] = dict(limits) | (resources.get("requests") or {})


def _containers(spec: JsonObject) -> Iterable[JsonObject]:
    yield from spec.get("initContainers") or []
    yield from spec.get("containers") or []


def _quality_of_service(spec: JsonObject) -> str:
    """BestEffort, Guaranteed or Burstable, by the CPU and memory of all containers."""
    guaranteed, asked = True, False
    for container in _containers(spec):
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for name in ("cpu", "memory"):
            asked = asked or name in limits or name in requests
            guaranteed = guaranteed and name in limits and requests.get(name) == limits[name]
    if not asked:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def check_pod_update(old: JsonObject, new: JsonObject) -> None:
    """Refuse changes to the immutable part of a Pod's spec: 422."""
    if _immutable(old) != _immutable(new):
        text = (
            "Forbidden: pod updates may not change fields other than `spec.containers[*].image`, "
            "`spec.initContainers[*].image`, `spec.activeDeadlineSeconds` or `spec.tolerations` "
            "(only additions to existing tolerations)"
        )
        raise problems.invalid("Pod", str(metadata(new).get("name")), [("spec", text)])


def _immutable(pod: JsonObject) -> dict[str, Any]:
    spec: dict[str, Any] = dict(pod["spec"])
    for field in ("containers", "initContainers"):
        spec[field] = [
            {key: value for key, value in container.items() if key != "image"}
            for container in spec.get(field) or []
        ]
    for field in ("activeDeadlineSeconds", "tolerations"):
        spec.pop(field, None)
    return spec


def bind(store: Store, namespace: str, name: str, binding: JsonObject) -> JsonObject:
    """``POST pods/NAME/binding``: node name and the Binding's annotations in one write."""
    target = binding.get("target") or {}
    if target.get("kind") not in (None, "", "Node"):
        text = f'Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"'
        raise problems.ApiProblem(500, "", f"target.kind: {text}")
    if not target.get("name"):  # the real server wraps this one in no Status reason either
        raise problems.ApiProblem(500, "", "target.name: Required value")

    def assign(pod: JsonObject) -> JsonObject:
        _check_bindable(pod, binding)
        pod["spec"]["nodeName"] = target["name"]
        added = (binding.get("metadata") or {}).get("annotations")
        if added:
            metadata(pod)["annotations"] = (metadata(pod).get("annotations") or {}) | added
        set_condition(pod, "PodScheduled", "True")
        return pod

    store.change(PODS, (namespace, name), assign)
    return problems.success() | {"code": 201}


def _check_bindable(pod: JsonObject, binding: JsonObject) -> None:
    name = str(metadata(pod)["name"])
    wanted = uid_of(binding)
    if wanted and wanted != uid_of(pod):
        why = (
            f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid_of(pod)}"
        )
        raise problems.conflict(PODS, name, why, subresource="binding")
    if metadata(pod).get("deletionTimestamp"):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
        raise problems.conflict(PODS, name, why, subresource="binding")
    node = pod["spec"].get("nodeName")
    if node:
        why = f'pod {name} is already assigned to node "{node}"'
        raise problems.conflict(PODS, name, why, subresource="binding")


def set_condition(
    pod: JsonObject, kind: str, status: str, *, reason: str = "", message: str = ""
) -> None:
    """Set one status condition; its transition time moves only when the status does."""
    conditions = pod.setdefault("status", {}).setdefault("conditions", [])
    found = next((entry for entry in conditions if entry.get("type") == kind), None)
    if found is None:
        found = {"type": kind}
        conditions.append(found)
    if found.get("status") != status:
        found["lastTransitionTime"] = timestamp()
    found.update({"status": status, "lastProbeTime": None})
    for field, value in (("reason", reason), ("message", message)):
        found.pop(field, None)
        if value:
            found[field] = value


def grace_seconds(pod: JsonObject, asked: int | None) -> int:
    """How long a deletion leaves the Pod; 0 removes it at once."""
    spec = pod.get("spec") or {}
    if not spec.get("nodeName") or lookup(pod, "status.phase") in FINISHED:
        return 0
    seconds = int(spec.get("terminationGracePeriodSeconds", 30)) if asked is None else asked
    return 1 if seconds < 0 else seconds


def mark_deleted(pod: JsonObject, seconds: int) -> JsonObject | None:
    """Start or shorten a graceful deletion; None when the Pod is to go now."""
    meta = metadata(pod)
    already = meta.get("deletionTimestamp")
    finalizers = meta.get("finalizers")
    if seconds == 0 and not finalizers:
        return None
    if already:
        left = int(meta.get("deletionGracePeriodSeconds") or 0)
        if seconds >= left:
            return pod
        at = parse_timestamp(already) - timedelta(seconds=left - seconds)
    else:
        at = datetime.now(UTC) + timedelta(seconds=seconds)
    meta["deletionTimestamp"] = timestamp(at)
    meta["deletionGracePeriodSeconds"] = seconds
    return pod


def disruption_status(budget: JsonObject, pods: list[StoredObject]) -> JsonObject:
    """What the disruption controller would write: healthy, desired and allowed numbers."""
    spec = budget.get("spec") or {}
    mine = [stored.document for stored in pods if covers(budget, stored.document)]
    healthy = sum(1 for pod in mine if is_ready(pod) and not metadata(pod).get("deletionTimestamp"))
    if "minAvailable" in spec:
        desired = _share(spec["minAvailable"], len(mine))
    else:
        desired = len(mine) - _share(spec.get("maxUnavailable", 1), len(mine))
    return {
        "currentHealthy": healthy,
        "desiredHealthy": max(0, desired),
        "disruptionsAllowed": max(0, healthy - desired),
        "expectedPods": len(mine),
    }


def covers(budget: JsonObject, pod: JsonObject) -> bool:
    """The budget's selector selects the Pod."""
    return selector_object_predicate((budget.get("spec") or {}).get("selector"))(pod)


def _share(value: int | str, total: int) -> int:
    if isinstance(value, str):
        return -(-int(value.rstrip("%")) * total // 100)
    return value


def is_ready(pod: JsonObject) -> bool:
    """The Pod's Ready condition is True."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(
        entry.get("type") == "Ready" and entry.get("status") == "True" for entry in conditions
    )


def is_ignored_by_budgets(pod: JsonObject) -> bool:
    """Pods that are over, on their way out or not started may always be evicted."""
    phase = lookup(pod, "status.phase")
    return phase in (*FINISHED, "Pending") or bool(metadata(pod).get("deletionTimestamp"))


def budget_refusal(budget: JsonObject, status: JsonObject) -> problems.ApiProblem:
    """429 as the eviction subresource words it."""
    name = metadata(budget)["name"]
    needs, has = status["desiredHealthy"], status["currentHealthy"]
    cause = {
        "reason": "DisruptionBudget",
        "message": (
            f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
        ),
    }
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return problems.too_many_requests(message, details={"causes": [cause]})
