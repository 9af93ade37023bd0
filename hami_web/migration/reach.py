"""On which nodes a workload's Pods may run; what is not understood counts as "may"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hami_web.migration.objects import (
    CheckedNode,
    Expression,
    NodeTerm,
    Taint,
    Toleration,
    Workload,
)

KEEPS_OFF: Final = ("NoSchedule", "NoExecute")
_OF_EVERY_DAEMON: Final = "node.kubernetes.io/"
"""Taints of the node's own state: a DaemonSet's Pods tolerate them by themselves."""


def may_run_on(workload: Workload, node: CheckedNode) -> bool:
    """By node selector, required node affinity and taints; not by room, which changes."""
    spec = workload.spec.template.spec
    if any(node.labels.get(key) != value for key, value in (spec.node_selector or {}).items()):
        return False
    terms = spec.node_terms
    if terms is not None and not any(_fits(term, node) for term in terms):
        return False
    taints = [taint for taint in node.spec.taints or [] if taint.effect in KEEPS_OFF]
    if workload.kind == "DaemonSet":
        taints = [taint for taint in taints if not taint.key.startswith(_OF_EVERY_DAEMON)]
    return all(any(_tolerates(one, taint) for one in spec.tolerations or []) for taint in taints)


def _fits(term: NodeTerm, node: CheckedNode) -> bool:
    """An empty term fits no node."""
    fields = {"metadata.name": node.name}
    expressions, of_fields = term.match_expressions or [], term.match_fields or []
    return (
        bool(expressions or of_fields)
        and all(_holds(item, node.labels) for item in expressions)
        and all(_holds(item, fields) for item in of_fields)
    )


def _holds(item: Expression, found: Mapping[str, str]) -> bool:
    value = found.get(item.key)
    values = item.values or []
    match item.operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(item.operator, value, values)
    return True


def _compares(operator: str, value: str | None, values: list[str]) -> bool:
    try:
        here, bound = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False  # as the scheduler has it: what is no number fits nothing
    return here > bound if operator == "Gt" else here < bound


def _tolerates(one: Toleration, taint: Taint) -> bool:
    if one.effect and one.effect != taint.effect:
        return False
    if not one.key:
        return one.operator == "Exists"
    if one.key != taint.key:
        return False
    return one.operator == "Exists" or (one.value or "") == (taint.value or "")
