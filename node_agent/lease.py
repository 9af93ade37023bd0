"""The Lease that says: this node's agent serves, so the node may be given new work.

It is renewed while Allocate is served and the kubelet follows what is offered; its holder is
emptied as soon as one of the two ends, which closes the node at once (``hami_web.core.liveness``).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from hami_web.core.liveness import (
    AGENT_LEASE_LABEL,
    AGENT_LEASE_ROLE,
    AGENT_LEASE_SECONDS,
    AGENT_RENEW_SECONDS,
    agent_lease_name,
)
from node_agent.cluster import Cluster
from node_agent.errors import ClusterError, ClusterNotFound
from node_agent.metrics import AgentMetrics

logger = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.25
_RETRY_SECONDS: Final = 2.0


class AgentLease:
    """Follows ``serving`` and keeps the Lease in step; only this agent writes it."""

    def __init__(
        self,
        cluster: Cluster,
        node: str,
        namespace: str,
        metrics: AgentMetrics,
        serving: Callable[[], bool],
    ) -> None:
        self._cluster = cluster
        self._node = node
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._namespace = namespace
        self._metrics = metrics
        self._serving = serving
        self._held: bool | None = None
        self._due = 0.0
        self._complained = False
        self._woken = threading.Event()

    def wake(self) -> None:
        """Look at once: ``serving`` may have changed. Safe from any thread."""
        self._woken.set()

    def run(self, stop: threading.Event) -> None:
        """Renew or release until told to stop; the last write releases."""
        while not stop.is_set():
            self.step(self._serving())
            self._woken.wait(_LOOK_SECONDS)
            self._woken.clear()
        self.step(serving=False)

    def step(self, serving: bool) -> None:  # noqa: FBT001, the only fact there is
        """Write the Lease if it is due: at every change, and while it is held periodically."""
        now = time.monotonic()
        # Whoever held it before this process is gone, so the first word counts in either case.
        if serving == self._held and (not serving or now < self._due):
            return
        if serving != self._held and now < self._due and self._complained:
            return
        try:
            self._write(self._node if serving else "")
        except ClusterError as error:
            self._due = now + _RETRY_SECONDS
            self._metrics.renewals.labels("failed").inc()
            if not self._complained:
                logger.warning("the Lease of this node's agent cannot be written: %s", error)
            self._complained = True
        else:
            self._held = serving
            self._due = now + AGENT_RENEW_SECONDS
            self._metrics.renewals.labels("held" if serving else "released").inc()
            self._complained = False

    def _write(self, holder: str) -> None:
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": AGENT_LEASE_SECONDS,
            "renewTime": datetime.now(UTC).isoformat(timespec="microseconds"),
        }
        name = agent_lease_name(self._node)
        metadata = {"labels": {AGENT_LEASE_LABEL: AGENT_LEASE_ROLE}}
        try:
            self._cluster.patch(f"{self._path}/{name}", {"metadata": metadata, "spec": spec})
        except ClusterNotFound:
            document = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": metadata | {"name": name, "namespace": self._namespace},
                "spec": spec,
            }
            self._cluster.create(self._path, document)
