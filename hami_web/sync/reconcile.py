"""Compare the mirror with a complete list of the cluster, correct it, and count the drift."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

from hami_web.cluster.client import OfficialConnection
from hami_web.cluster.ports import HasMetadata
from hami_web.cluster.resources import Resource, leases, nodes, pods_with_progress
from hami_web.cluster.transport import Transport
from hami_web.cluster.views import PodView
from hami_web.core.annotations import POD_DEVICES_ALLOCATED, POD_MIG_ALLOCATIONS
from hami_web.core.liveness import AGENT_LEASE_LABEL, AGENT_LEASE_ROLE
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.signature import KeyFile
from hami_web.history.drift import feed_caught_up_at, record_reconciliation
from hami_web.history.models import Reconciliation
from hami_web.inventory.mirror import mirror_nodes
from hami_web.inventory.observed import ObservedNode
from hami_web.reservations.mirror import mirror_pods
from hami_web.reservations.observed import ObservedPod
from hami_web.scheduling.agents import AgentLeases
from hami_web.scheduling.state import ClusterState
from hami_web.sync.feed import USER_AGENT
from hami_web.sync.observing import observe_node, observe_pod, sign_of_other_owner

PAGE: Final = 500
FEED_PATIENCE_S: Final = 4.0
"""How long the feed may take to write what the list shows; then it counts as absent."""
POLL_S: Final = 0.1
T = TypeVar("T", bound=HasMetadata)


@dataclass(frozen=True, slots=True)
class ClusterList:
    """Everything that the mirror stores, from lists that began at ``began_at`` and are complete."""

    began_at: datetime
    ended_at: datetime
    nodes: tuple[ObservedNode, ...]
    pods: tuple[ObservedPod, ...]


def list_cluster(
    kubeconfig: Path | None, namespace: str, keys: KeyFile | None = None
) -> ClusterList:
    """List the cluster; ClusterError when any page is missing: half a list says nothing."""
    connection = OfficialConnection(kubeconfig)
    try:
        transport = Transport(connection, user_agent=USER_AGENT)
        began_at = datetime.now(UTC)
        state = ClusterState(SchedulingPolicy())
        label = f"{AGENT_LEASE_LABEL}={AGENT_LEASE_ROLE}"
        found = _every(leases(transport, namespace, label), lambda _lease: True)
        AgentLeases(state).replace(found, listed_at=0.0)
        every_node = _every(nodes(transport), lambda _node: True)
        state.replace_nodes(every_node)
        held = _every(pods_with_progress(transport), _has_reservations)
        state.replace_pods(held)
    finally:
        connection.close()
    owners = {node.name: sign_of_other_owner(node) for node in every_node}
    records = state.snapshot().nodes
    observed = [observe_node(record, owners[name]) for name, record in records.items()]
    seen = (observe_pod(pod, keys) for pod in held)
    return ClusterList(
        began_at,
        datetime.now(UTC),
        tuple(node for node in observed if node is not None),
        tuple(pod for pod in seen if pod is not None),
    )


def reconcile(listed: ClusterList) -> Reconciliation:
    """Make the mirror equal to a list; what was seen after the list began stays."""
    fed = _feed_follows(listed.ended_at)
    now = datetime.now(UTC)
    moment = {"seen_at": listed.began_at, "now": now}
    differences = [
        *mirror_nodes(listed.nodes, complete=True, **moment),
        *mirror_pods(listed.pods, complete=True, **moment),
    ]
    run = Reconciliation(
        began_at=listed.began_at,
        finished_at=datetime.now(UTC),
        nodes=len(listed.nodes),
        pods=len(listed.pods),
    )
    record_reconciliation(run, differences, fed=fed)
    return run


def _feed_follows(moment: datetime) -> bool:
    """Wait until the feed has written what it saw until ``moment``; False when it does not.

    Without this, changes on their way through the feed would be counted as drift.
    """
    deadline = time.monotonic() + FEED_PATIENCE_S
    while True:
        reached = feed_caught_up_at()
        if reached is not None and reached >= moment:
            return True
        behind_s = FEED_PATIENCE_S if reached is None else (moment - reached).total_seconds()
        if behind_s > 10 * FEED_PATIENCE_S or reached is None or time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)


def _has_reservations(pod: PodView) -> bool:
    """Of the others nothing is kept, so that memory follows Pods with GPUs, not all Pods."""
    annotations = pod.annotations
    return POD_MIG_ALLOCATIONS in annotations or POD_DEVICES_ALLOCATED in annotations


def _every(resource: Resource[T], keep: Callable[[T], bool]) -> list[T]:
    kept: list[T] = []
    more = ""
    while True:
        page = resource.list_page(limit=PAGE, more=more)
        kept.extend(item for item in page.items if keep(item))
        more = page.more
        if not more:
            return kept
