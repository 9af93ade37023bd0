"""The web role's own, read-only view of the cluster: two watches into a state in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Generic

from hami_web.cluster.client import OfficialConnection
from hami_web.cluster.errors import ClusterError, Expired
from hami_web.cluster.ports import Bookmark, Changed, ObjectSource, Page, Removed, T, WatchStream
from hami_web.cluster.reflector import Reflector
from hami_web.cluster.resources import nodes, pods
from hami_web.cluster.transport import Transport
from hami_web.cluster.views import NodeView, ObjectMeta, PodView
from hami_web.core.policy import SchedulingPolicy
from hami_web.dashboard.cluster_map import ClusterMap
from hami_web.dashboard.drawing import draw_map
from hami_web.dashboard.freshness import Freshness
from hami_web.dashboard.pools import PoolBook
from hami_web.dashboard.waiting import WaitingBook
from hami_web.scheduling.state import ClusterState

USER_AGENT: Final = "hami-web/dashboard"


class ClusterReader:
    """Follows nodes and Pods from :meth:`start` on."""

    def __init__(self, kubeconfig: Path | None, pool_labels: Sequence[str]) -> None:
        self._connection = OfficialConnection(kubeconfig)
        transport = Transport(self._connection, user_agent=USER_AGENT)
        self._changed: Callable[[], None] = _nobody
        self._state = ClusterState(SchedulingPolicy())
        self._waiting = WaitingBook()
        self._pools = PoolBook(pool_labels)
        self._sources = (
            RememberingSource(nodes(transport)),
            RememberingSource(pods(transport)),
        )
        self._nodes = Reflector(
            "nodes", self._sources[0], _NodeSink(self._state, self._pools, self._announce)
        )
        self._pods = Reflector(
            "pods", self._sources[1], _PodSink(self._state, self._waiting, self._announce)
        )

    def start(self, changed: Callable[[], None]) -> None:
        """Begin to list and watch; ``changed`` is called after each change, on any thread."""
        self._changed = changed
        self._nodes.start()
        self._pods.start()

    def stop(self) -> None:
        """End both watches and close the connections."""
        self._nodes.stop()
        self._pods.stop()
        self._connection.close()

    def draw(self, version: int) -> ClusterMap | None:
        """The map of this moment; None until nodes and Pods were listed once."""
        if not (self._nodes.synced.is_set() and self._pods.synced.is_set()):
            return None
        snapshot, waiting = self._state.snapshot(), self._waiting.listed()
        return draw_map(snapshot, waiting, self._pools.listed(), version=version)

    def freshness(self) -> Freshness:
        """Of the two watches, the one that was heard less recently."""
        ages = (self._nodes.age_s(), self._pods.age_s())
        known = [age for age in ages if age is not None]
        error = next((source.error for source in self._sources if source.error), "")
        return Freshness(max(known) if len(known) == len(ages) else None, error)

    def problem(self) -> str:
        """Why nodes and Pods are not known at all, as a line, or an empty text."""
        watches = (self._nodes, self._pods)
        waited = (watch.problem for watch in watches if not watch.synced.is_set())
        return next((text for text in waited if text), "")

    def _announce(self) -> None:
        self._changed()


def _nobody() -> None:
    """Stands for the listener until there is one."""


class RememberingSource(Generic[T]):
    """A source that keeps the text of its newest failure until an answer comes again."""

    def __init__(self, source: ObjectSource[T]) -> None:
        self.error = ""
        self._source = source

    def list_page(self, *, limit: int, more: str) -> Page[T]:
        try:
            page = self._source.list_page(limit=limit, more=more)
        except ClusterError as error:
            self._note(error)
            raise
        self.error = ""
        return page

    def watch(self, *, resource_version: str, timeout_s: int) -> WatchStream[T]:
        try:
            stream = self._source.watch(resource_version=resource_version, timeout_s=timeout_s)
        except ClusterError as error:
            self._note(error)
            raise
        self.error = ""
        return _RememberingWatch(stream, self._note)

    def _note(self, error: ClusterError) -> None:
        # A history that the server has dropped is part of every long watch, no fault to show.
        if not isinstance(error, Expired):
            self.error = str(error)


class _RememberingWatch(Generic[T]):
    def __init__(self, stream: WatchStream[T], note: Callable[[ClusterError], None]) -> None:
        self._stream = stream
        self._note = note

    def __iter__(self) -> Iterator[Changed[T] | Removed | Bookmark]:
        try:
            yield from self._stream
        except ClusterError as error:
            self._note(error)
            raise

    def close(self) -> None:
        self._stream.close()


class _NodeSink:
    def __init__(self, state: ClusterState, pools: PoolBook, changed: Callable[[], None]) -> None:
        self._state = state
        self._pools = pools
        self._changed = changed

    def replace(self, items: Iterable[NodeView], *, listed_at: float) -> None:  # noqa: ARG002
        listed = list(items)
        self._state.replace_nodes(listed)
        self._pools.replace(listed)
        self._changed()

    def put(self, item: NodeView) -> None:
        self._state.set_node(item)
        self._pools.put(item)
        self._changed()

    def remove(self, metadata: ObjectMeta) -> None:
        self._state.remove_node(metadata.name)
        self._pools.remove(metadata.name)
        self._changed()


class _PodSink:
    def __init__(
        self, state: ClusterState, waiting: WaitingBook, changed: Callable[[], None]
    ) -> None:
        self._state = state
        self._waiting = waiting
        self._changed = changed

    def replace(self, items: Iterable[PodView], *, listed_at: float) -> None:
        listed = list(items)
        self._state.replace_pods(listed, listed_at=listed_at)
        self._waiting.replace(listed)
        self._changed()

    def put(self, item: PodView) -> None:
        self._state.set_pod(item)
        self._waiting.put(item)
        self._changed()

    def remove(self, metadata: ObjectMeta) -> None:
        self._state.remove_pod(metadata.uid)
        self._waiting.remove(metadata.uid)
        self._changed()
