"""The live feed: list-and-watch into the mirror, in batches, within a second."""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from django.db import DatabaseError, close_old_connections

from hami_web.cluster.client import OfficialConnection
from hami_web.cluster.reflector import Reflector, Timing
from hami_web.cluster.resources import leases, nodes, pods_with_progress
from hami_web.cluster.transport import Transport
from hami_web.core.liveness import AGENT_LEASE_LABEL, AGENT_LEASE_ROLE
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.signature import KeyFile
from hami_web.core.trouble import Trouble
from hami_web.history.tenure import FeedTenure, TenureLost
from hami_web.scheduling.agents import AgentLeases
from hami_web.scheduling.state import ClusterState
from hami_web.sync.changes import Batch, NodeChanges, PodChanges
from hami_web.sync.writer import write_batch

logger = logging.getLogger(__name__)

USER_AGENT: Final = "hami-web/worker"
BATCH_S: Final = 0.25
"""Pause between two batches: many changes, one transaction."""
BEAT_S: Final = 1.0
"""Without changes, how often it is written that there were none."""
SILENCE_S: Final = 90.0
"""An API server sends a bookmark about once a minute: a longer silence is no news at all."""
RETRY_S: Final = 1.0


class Feed:
    """Follows the cluster while it holds the feed, and keeps the mirror as far as it sees."""

    def __init__(
        self,
        kubeconfig: Path | None,
        namespace: str,
        tenure: FeedTenure,
        *,
        keys: KeyFile | None = None,
        timing: Timing | None = None,
    ) -> None:
        self._tenure = tenure
        self._trouble = Trouble(logger, "the mirror cannot be written: %s; again soon")
        self._connection = OfficialConnection(kubeconfig)
        transport = Transport(self._connection, user_agent=USER_AGENT)
        self._state = ClusterState(SchedulingPolicy())
        self._pods = PodChanges(self._state, keys)
        self._nodes = NodeChanges(self._state)
        self._agents = AgentLeases(self._state)
        label = f"{AGENT_LEASE_LABEL}={AGENT_LEASE_ROLE}"
        self.reflectors: tuple[Reflector[Any], ...] = (
            Reflector("leases", leases(transport, namespace, label), self._agents, timing=timing),
            Reflector("nodes", nodes(transport), self._nodes, timing=timing),
            Reflector("pods", pods_with_progress(transport), self._pods, timing=timing),
        )

    def run(self, stopped: threading.Event) -> None:
        """Watch and write until ``stopped``, in this thread. Raises TenureLost.

        The first batch is written when every list is complete; what is not written at the end a
        reconciliation finds.
        """
        try:
            for reflector in self.reflectors:
                reflector.start()
            self._write_all(stopped)
        finally:
            for reflector in self.reflectors:
                reflector.stop()
            self._connection.close()

    def _write_all(self, stopped: threading.Event) -> None:
        beaten = 0.0
        while not stopped.wait(BATCH_S):
            try:
                beaten += BATCH_S
                if self._turn(beat=beaten >= BEAT_S):
                    beaten = 0.0
                    self._trouble.over()
            except TenureLost:
                raise
            except DatabaseError as error:
                self._trouble.tell(error)
                stopped.wait(RETRY_S)
            except Exception:
                logger.exception("the mirror's feed; again soon")
                stopped.wait(RETRY_S)

    def _turn(self, *, beat: bool) -> bool:
        """Write what changed; True when the database was told."""
        if not all(reflector.synced.is_set() for reflector in self.reflectors):
            return False
        self._agents.tick()
        ages = [reflector.age_s() for reflector in self.reflectors]
        seen_at = datetime.now(UTC)
        batch = self._take()
        silent = any(age is None or age > SILENCE_S for age in ages)
        if batch.is_empty and (silent or not beat):
            return False
        close_old_connections()
        try:
            write_batch(batch, self._tenure, seen_at=seen_at)
        except Exception:
            self._pods.give_back(batch)
            self._nodes.give_back(batch)
            raise
        return True

    def _take(self) -> Batch:
        pods_, ended, refusals = self._pods.take()
        nodes_, lost = self._nodes.take()
        return Batch(tuple(nodes_), tuple(lost), tuple(pods_), tuple(ended), tuple(refusals))
