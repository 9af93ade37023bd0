"""The node condition ``hami.io/DynamicMIGReady``: why a node takes no MIG work, in one place."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from hami_web.core.trouble import Trouble
from node_agent.cluster import Cluster
from node_agent.errors import ClusterError
from node_agent.inventory import Discovered, GpuProblem

logger = logging.getLogger(__name__)

CONDITION: Final = "hami.io/DynamicMIGReady"
_MESSAGE_MOST: Final = 4096


@dataclass(frozen=True, slots=True)
class Verdict:
    """``status`` is the API's True, False or Unknown; ``reason`` one word."""

    status: str
    reason: str
    message: str


STOPPED: Final = Verdict("Unknown", "AgentStopped", "the node agent was stopped")


def verdict_on(discovered: Discovered) -> Verdict:
    """What a look at the hardware means for the node."""
    healthy = [gpu for gpu in discovered.capability.gpus if gpu.healthy]
    message = _text(discovered.problems)
    if healthy:
        reason = "SomeGpusNotOffered" if message else "AllGpusOffered"
        return Verdict("True", reason, message or f"{len(healthy)} GPUs are offered")
    first = discovered.problems[0].code if discovered.problems else "NoGpu"
    return Verdict("False", first, message or "the node has no GPU")


class NodeCondition:
    """Writes the condition when it changes; the kubelet leaves conditions of others alone."""

    def __init__(self, cluster: Cluster, node: str) -> None:
        self._cluster = cluster
        self._path = f"/api/v1/nodes/{quote(node, safe='')}/status"
        self._shown: Verdict | None = None
        self._since = ""
        self._trouble = Trouble(logger, "the node condition could not be written: %s; again soon")

    def show(self, verdict: Verdict) -> bool:
        """Returns False when it could not be written and is to be repeated."""
        if verdict == self._shown:
            return True
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        same_status = self._shown is not None and self._shown.status == verdict.status
        since = self._since if same_status else now
        condition = {
            "type": CONDITION,
            "status": verdict.status,
            "reason": verdict.reason,
            "message": verdict.message,
            "lastHeartbeatTime": now,
            "lastTransitionTime": since,
        }
        try:
            self._cluster.patch(self._path, {"status": {"conditions": [condition]}})
        except ClusterError as error:
            self._trouble.tell(error)
            return False
        self._shown, self._since = verdict, since
        return True


def _text(problems: Sequence[GpuProblem]) -> str:
    return "; ".join(str(problem) for problem in problems)[:_MESSAGE_MOST]
