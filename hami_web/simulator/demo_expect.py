"""Waiting for what must be observed, with the last thing seen in the text of a failure."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final, TypeVar

from hami_web.core.reservation import Reservation
from hami_web.simulator.demo_cluster import DemoCluster
from hami_web.simulator.demo_observe import SeenInstance
from hami_web.simulator.demo_pods import SeenPod

PATIENCE_S: Final = 15.0
_PAUSE_S: Final = 0.05

Seen = TypeVar("Seen")


class NotYet(Exception):
    """What was expected has not been observed so far; the text says what was seen instead."""


class StepFailed(Exception):
    """What was expected was not observed in time."""


def until(
    what: str,
    look: Callable[[], Seen],
    *,
    patience_s: float = PATIENCE_S,
    pause_s: float = _PAUSE_S,
) -> Seen:
    """Look again and again until ``look`` stops raising :class:`NotYet`; return what it saw."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return look()
        except NotYet as seen:
            if time.monotonic() > deadline:
                raise StepFailed(f"{what}: not within {patience_s:g} s: {seen}") from seen
        time.sleep(pause_s)


def bound(cluster: DemoCluster, name: str) -> SeenPod:
    """The Pod, bound with a reservation for every device."""
    pod = cluster.pod(name)
    if pod is None or not pod.node or not pod.reservations:
        raise NotYet(f"Pod {name} is {_condition(pod)}")
    return pod


def realized(cluster: DemoCluster, name: str) -> SeenPod:
    """The Pod, with every reservation found as an instance in a fresh listing of its node."""
    pod = bound(cluster, name)
    if not pod.is_realized:
        raise NotYet(f"Pod {name} has no runtime identity yet")
    present = cluster.instances(pod.node)
    for item in pod.reservations:
        if not any(_is_instance_of(cluster, pod, item, seen) for seen in present):
            shown = "; ".join(map(str, present)) or "nothing"
            raise NotYet(f"Pod {name} says {item.profile} at {item.placement}; NVML has {shown}")
    return pod


def waiting(cluster: DemoCluster, name: str) -> SeenPod:
    """The Pod, unbound, with the scheduler's reason."""
    pod = cluster.pod(name)
    if pod is None or pod.node or not pod.message:
        raise NotYet(f"Pod {name} is {_condition(pod)}")
    return pod


def decided(cluster: DemoCluster, name: str) -> SeenPod:
    """The Pod, realized, or waiting with a reason."""
    try:
        return realized(cluster, name)
    except NotYet:
        return waiting(cluster, name)


def phase(cluster: DemoCluster, name: str, wanted: str) -> SeenPod:
    """The Pod in this phase."""
    pod = cluster.pod(name)
    if pod is None or pod.phase != wanted:
        raise NotYet(f"Pod {name} is {_condition(pod)}")
    return pod


def gone(cluster: DemoCluster, name: str) -> None:
    """There is no Pod of that name."""
    if cluster.pod(name) is not None:
        raise NotYet(f"Pod {name} is still there")


def instance_count(cluster: DemoCluster, node: str, count: int) -> tuple[SeenInstance, ...]:
    """Exactly so many instances exist on the node; none of them overlap."""
    present = cluster.instances(node)
    if len(present) != count:
        raise NotYet(f"NVML of {node} has {len(present)} instances, not {count}")
    for left, right in pairwise(present):
        if left.gpu_index == right.gpu_index and left.placement.overlaps(right.placement):
            raise StepFailed(f"{node}: {left} overlaps {right}")
    return present


def past(
    cluster: DemoCluster, moment: str, wanted: frozenset[tuple[str, int, int]]
) -> list[dict[str, Any]]:
    """Reservations of a moment by the REST API, which must be exactly these."""
    rows = cluster.dashboard.rows("reservations", {"at": moment})
    found = {(row["pod"], row["start"], row["size"]) for row in rows}
    if found != wanted:
        raise NotYet(f"the mirror has {sorted(found)} at {moment}, not {sorted(wanted)}")
    return rows


def _is_instance_of(
    cluster: DemoCluster, pod: SeenPod, item: Reservation, seen: SeenInstance
) -> bool:
    identity = item.identity
    return (
        identity is not None
        and cluster.gpu_uuids(pod.node)[seen.gpu_index] == item.gpu_uuid
        and (seen.profile, seen.placement) == (item.profile, item.placement)
        and seen.gpu_instance_id == identity.gpu_instance_id
        and seen.mig_uuids == (identity.mig_uuid,)
    )


def _condition(pod: SeenPod | None) -> str:
    if pod is None:
        return "not there"
    return f"{pod.phase or 'new'} on {pod.node or 'no node'}: {pod.message or 'no reason given'}"
