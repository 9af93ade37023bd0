"""The scheduler's own view of nodes: which cannot take a Pod, and how that is told."""

from __future__ import annotations

from collections import Counter
from typing import Final

from hami_web.simulator.documents import JsonObject, lookup

UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"


def refusal_of(pod: JsonObject, node: JsonObject) -> str:
    """Why the node cannot take the Pod, or an empty text; resources are not looked at."""
    if lookup(node, "spec.unschedulable") and not _tolerates(pod, UNSCHEDULABLE):
        return "node(s) were unschedulable"
    if _ready(node) != "True":
        return "node(s) were not ready"
    labels = lookup(node, "metadata.labels") or {}
    wanted = lookup(pod, "spec.nodeSelector") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return "node(s) didn't match Pod's node affinity/selector"
    return ""


def node_change_matters(old: JsonObject, new: JsonObject) -> bool:
    """What makes kube-scheduler try waiting Pods again; heartbeats and annotations do not."""
    paths = ("spec.unschedulable", "spec.taints", "status.allocatable", "metadata.labels")
    changed = any(lookup(old, path) != lookup(new, path) for path in paths)
    return changed or _ready(old) != _ready(new)


def unschedulable_message(total: int, reasons: dict[str, str]) -> str:
    """``0/3 nodes are available: 1 <reason>, 2 <reason>.``; ``reasons`` is by node name."""
    if total == 0:
        return "no nodes available to schedule pods"
    counted = sorted(f"{count} {reason}" for reason, count in Counter(reasons.values()).items())
    return f"0/{total} nodes are available: {', '.join(counted)}."


def _tolerates(pod: JsonObject, taint: str) -> bool:
    """Whether the Pod tolerates a taint of effect NoSchedule and no value, as cordon sets it."""
    for item in lookup(pod, "spec.tolerations") or []:
        if item.get("effect") not in (None, "", "NoSchedule"):
            continue
        if item.get("operator") == "Exists" and item.get("key") in (None, "", taint):
            return True
        if item.get("key") == taint and not item.get("value"):
            return True
    return False


def _ready(node: JsonObject) -> str:
    for entry in lookup(node, "status.conditions") or []:
        if entry.get("type") == "Ready":
            return str(entry.get("status"))
    return "Unknown"
