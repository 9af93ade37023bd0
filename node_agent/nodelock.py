"""The node lock as the agent uses it: whose turn it is, and giving it back."""

from __future__ import annotations

import logging
from typing import Final

from hami_web.core import annotations as keys
from hami_web.core.errors import InvalidField
from hami_web.core.nodelock import NodeLock, decode_lock
from node_agent.cluster import Cluster
from node_agent.errors import ClusterConflict, ClusterError, NoPodToServe
from node_agent.pods import ObservedNode

logger = logging.getLogger(__name__)

_ATTEMPTS: Final = 5


def holder(node: ObservedNode) -> NodeLock | None:
    """Who holds the node's lock; None for nobody. Raises :class:`NoPodToServe` if unreadable."""
    text = node.annotations.get(keys.NODE_LOCK, "")
    if not text:
        return None
    try:
        return decode_lock(text)
    except InvalidField as error:
        raise NoPodToServe(f"the lock of node {node.name} cannot be read: {error}") from error


def unlock(
    cluster: Cluster, namespace: str, pod_name: str, known: ObservedNode | None = None
) -> bool:
    """Take the lock off the node if this Pod still holds it.

    ``known`` is a reading of the node from before, which saves reading it again. Returns False
    when that could not be done now; the reclaimer tries again. A lock of another Pod is left alone.
    """
    for _attempt in range(_ATTEMPTS):
        try:
            node, known = known or cluster.node(), None
            lock = holder(node)
            if lock is None or not lock.held_by(namespace, pod_name):
                return True
            cluster.patch_node({keys.NODE_LOCK: None}, node.resource_version)
        except ClusterConflict:
            continue
        except (ClusterError, NoPodToServe) as error:
            logger.warning("cannot unlock the node for Pod %s/%s: %s", namespace, pod_name, error)
            return False
        return True
    return False
