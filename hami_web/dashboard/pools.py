"""Which pool of nodes each node belongs to, by a label of the node."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence

from hami_web.cluster.views import NodeView


class PoolBook:
    """Pools by name of the node; safe for threads.

    ``labels`` are keys of labels: the first one that a node has names its pool.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        self._labels = tuple(labels)
        self._lock = threading.Lock()
        self._pools: dict[str, str] = {}

    def replace(self, nodes: Iterable[NodeView]) -> None:
        """Take a complete list."""
        pools = {node.name: self._pool(node) for node in nodes}
        with self._lock:
            self._pools = pools

    def put(self, node: NodeView) -> None:
        """Take one node as it is now."""
        with self._lock:
            self._pools[node.name] = self._pool(node)

    def remove(self, name: str) -> None:
        """Forget a node."""
        with self._lock:
            self._pools.pop(name, None)

    def listed(self) -> Mapping[str, str]:
        """All nodes that were seen; an empty text is no pool."""
        with self._lock:
            return dict(self._pools)

    def _pool(self, node: NodeView) -> str:
        labels = node.metadata.labels or {}
        return next((value for key in self._labels if (value := labels.get(key))), "")
