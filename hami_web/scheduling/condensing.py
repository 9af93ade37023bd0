"""Lists of Pods cut down page by page to what the state reads of a Pod.

A complete list is held at once while it is taken over. Most Pods in it are bound, and of a bound
Pod only its identity and the reservation matter: without the rest a large list costs half.
"""

from __future__ import annotations

from typing import Final

from hami_web.cluster.ports import ObjectSource, Page, WatchStream
from hami_web.cluster.views import PodView
from hami_web.core import annotations as keys
from hami_web.scheduling.pods import ends_hold

_READ: Final = (keys.POD_MIG_ALLOCATIONS, keys.POD_DEVICES_ALLOCATED, keys.POD_MIG_SIGNATURE)


class CondensedPods:
    """A source of Pods whose lists hold bound Pods without what nobody reads of them."""

    def __init__(self, source: ObjectSource[PodView]) -> None:
        self._source = source

    def list_page(self, *, limit: int, more: str) -> Page[PodView]:
        """One page; Pods that are not bound are whole."""
        page = self._source.list_page(limit=limit, more=more)
        for pod in page.items:
            if ends_hold(pod):
                condense(pod)
        return page

    def watch(self, *, resource_version: str, timeout_s: int) -> WatchStream[PodView]:
        """Changes, each whole."""
        return self._source.watch(resource_version=resource_version, timeout_s=timeout_s)


def condense(pod: PodView) -> None:
    """Drop containers, labels and the annotations that no reservation is read from."""
    pod.spec.containers = pod.spec.init_containers = None
    pod.metadata.labels = None
    annotations = pod.metadata.annotations
    pod.metadata.annotations = annotations and {
        key: annotations[key] for key in _READ if key in annotations
    }
