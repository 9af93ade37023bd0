"""Why a Pod fits nowhere: the answer for kube-scheduler, and the details behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hami_web.core.reasons import Reason, summarize
from hami_web.core.selection import Selection
from hami_web.scheduling.records import NodeRecord


@dataclass(frozen=True, slots=True)
class NodeRefusal:
    """Why one node cannot take a Pod.

    ``gpus`` gives a reason for each GPU on which not one device fits. ``found`` is how many of
    the ``wanted`` devices fit together on the others.
    """

    node: str
    text: str
    reason: Reason | None
    gpus: Mapping[str, Reason]
    found: int = 0
    wanted: int = 0


def refuse(record: NodeRecord, selection: Selection) -> NodeRefusal:
    """Explain a node on which the request has no plan."""
    if record.closed is not None:
        return NodeRefusal(record.name, str(record.closed), record.closed, {})
    reasons: dict[str, Reason] = {uuid: Reason.CAPABILITY_INVALID for uuid, _ in record.refused}
    for gpu in record.gpus:
        reason = gpu.refusal or selection.explain(gpu)
        if reason is not None:
            reasons[gpu.capability.uuid] = reason
    total = record.gpu_count
    text = summarize(list(reasons.values()), total)
    wanted = selection.request.devices
    found = 0
    if len(reasons) < total:
        found = selection.found(record.open_gpus)
        short = f"{found}/{total} {Reason.INSUFFICIENT_DEVICES}"
        text = ", ".join(sorted([*filter(None, [text]), short]))
    return NodeRefusal(record.name, text, None, reasons, found, wanted)


def unregistered(name: str) -> NodeRefusal:
    """A node that published nothing, or that is not known."""
    return NodeRefusal(name, str(Reason.NODE_UNREGISTERED), Reason.NODE_UNREGISTERED, {})
