"""Taking and releasing ``hami.io/mutex.lock``, by which ``Allocate`` finds its Pod.

The agent removes the lock when the Pod's devices are realized; until then the next Pod of that
node waits here instead of failing into the scheduler's back-off.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from hami_web.cluster.errors import ClusterError, Conflict, NotFound
from hami_web.cluster.ports import Cluster
from hami_web.cluster.views import NodeView, ObjectMeta, PodView
from hami_web.core import annotations as keys
from hami_web.core.errors import MalformedContract
from hami_web.core.nodelock import NodeLock, decode_lock, encode_lock
from hami_web.core.reservation import decode_allocations
from hami_web.scheduling.errors import LockBusy, LockUnreadable

logger = logging.getLogger(__name__)

EXPIRY = timedelta(minutes=5)
"""HAMi's fixed age after which a lock may be taken over."""
UNBOUND_GRACE = timedelta(seconds=45)
"""A holder that is not bound this long after locking lost its bind (extender timeout: 30 s)."""
SWEEP_AFTER = timedelta(seconds=10)
"""Age of a lock before it is looked after beside the binds, which come and go faster."""
RELEASE_ATTEMPTS = 4
LOOK_AGAIN_S = 1.0
"""How long to trust that a watch would have told of a change."""


class LockChanges:
    """Wakes waiters when a node's lock annotation changes, fed by the node watch."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._texts: dict[str, str] = {}
        self._unlocked: dict[str, str] = {}
        self._versions: dict[str, int] = {}
        self.closed = False

    def close(self) -> None:
        """Send everyone away who waits for a lock."""
        with self._condition:
            self.closed = True
            self._condition.notify_all()

    def observe(self, node: str, text: str, resource_version: str = "") -> None:
        """Note a node's lock annotation, empty for none, and the version that showed it."""
        with self._condition:
            self._unlocked[node] = "" if text else resource_version
            if self._texts.get(node, "") == text:
                return
            self._texts[node] = text
            self._versions[node] = self._versions.get(node, 0) + 1
            self._condition.notify_all()

    def forget(self, node: str) -> None:
        """A node is gone; waiters look again and find out."""
        self.observe(node, "")
        with self._condition:
            self._texts.pop(node, None)
            self._unlocked.pop(node, None)

    def unlocked(self, node: str) -> str:
        """The resource version at which the watch shows the node without a lock, empty for none."""
        with self._condition:
            return self._unlocked.get(node, "")

    def held(self) -> dict[str, str]:
        """Lock annotations by node, as the watch showed them last."""
        with self._condition:
            return {node: text for node, text in self._texts.items() if text}

    def version(self, node: str) -> int:
        """Counts changes; read it before the state that is waited on."""
        with self._condition:
            return self._versions.get(node, 0)

    def wait(self, node: str, version: int, timeout_s: float) -> None:
        """Return when the lock changed since ``version``, or after the timeout."""
        with self._condition:
            self._condition.wait_for(
                lambda: self.closed or self._versions.get(node, 0) != version, timeout_s
            )


class NodeLocks:
    """The locks of all nodes, over the API. ``clock`` is monotonic; ``now`` the wall, in UTC."""

    def __init__(
        self,
        cluster: Cluster,
        changes: LockChanges,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._cluster = cluster
        self._changes = changes
        self._clock = clock
        self._now = now

    def acquire(self, node: str, pod: PodView, *, deadline: float) -> None:
        """Take the node's lock for a Pod, waiting until ``deadline`` on the clock.

        A lock that the Pod's name holds already is success. Raises LockBusy, LockUnreadable or
        ClusterError (the node is gone, the API server refuses).
        """
        tried = ""
        while True:
            version = self._changes.version(node)
            shown = self._changes.unlocked(node)
            if shown and shown != tried:
                # An old version is refused, and then the node is read.
                tried = shown
                if self._take(NodeView(ObjectMeta(name=node, resource_version=shown)), pod):
                    return
            view = self._cluster.get_node(node)
            text = view.annotations.get(keys.NODE_LOCK, "")
            obstacle = self._obstacle(node, text, pod)
            if obstacle is None:
                if self._take(view, pod):
                    return
                obstacle = "other writers of the node were first"
                wait_s = 0.05
            else:
                wait_s = LOOK_AGAIN_S
            remaining = deadline - self._clock()
            if remaining <= 0 or self._changes.closed:
                raise LockBusy(f"node {node}: {obstacle}")
            self._changes.wait(node, version, min(wait_s, remaining))

    def release(self, node: str, namespace: str, pod_name: str) -> None:
        """Remove the node's lock if that Pod holds it; never another's. Errors are logged.

        A lock left behind is taken over once its holder proves unbound.
        """
        for _attempt in range(RELEASE_ATTEMPTS):
            try:
                view = self._cluster.get_node(node)
                lock = _read(node, view.annotations.get(keys.NODE_LOCK, ""))
                if lock is None or not lock.held_by(namespace, pod_name):
                    return
                self._cluster.annotate_node(view, {keys.NODE_LOCK: None})
            except Conflict:
                continue
            except NotFound:
                return
            except (ClusterError, LockUnreadable) as error:
                logger.warning("node %s: lock of %s/%s: %s", node, namespace, pod_name, error)
                return
            else:
                return
        logger.warning("node %s: lock of %s/%s stays: conflicts", node, namespace, pod_name)

    def sweep(self) -> None:
        """Remove locks that no one needs any more and no bind has taken over. Errors are logged.

        For locks of Pods that are gone and of binds that were cut off: a node without new binds
        would keep them for ever. A lock that cannot be read is left to a person.
        """
        for node, text in self._changes.held().items():
            try:
                lock = _read(node, text)
                if lock is None or self._age(lock) < SWEEP_AFTER or self._holder_needs(node, lock):
                    continue
                view = self._cluster.get_node(node)
                if view.annotations.get(keys.NODE_LOCK, "") == text:
                    self._cluster.annotate_node(view, {keys.NODE_LOCK: None})
                    logger.info("node %s: removed the lock that was left: %s", node, text)
            except (Conflict, NotFound):
                continue
            except (ClusterError, LockUnreadable) as error:
                logger.warning("node %s: looking after its lock: %s", node, error)

    def _take(self, view: NodeView, pod: PodView) -> bool:
        """Write our lock over what was read; False if the node changed meanwhile."""
        # Never before the Pod's creation, even with a slow clock: see _is_over.
        moment = max(self._now(), _created_at(pod))
        lock = NodeLock(moment, pod.metadata.namespace, pod.metadata.name)
        try:
            self._cluster.annotate_node(view, {keys.NODE_LOCK: encode_lock(lock)})
        except Conflict:
            return False
        except ClusterError as error:
            if not error.outcome_unclear:
                raise
            # Whether it was written shows when the lock is read again: ours is re-entrant.
            return False
        return True

    def _obstacle(self, node: str, text: str, pod: PodView) -> str | None:
        """Say who is in the way, or None if the lock may be written now."""
        lock = _read(node, text)
        if lock is None or lock.held_by(pod.metadata.namespace, pod.metadata.name):
            return None
        return self._holder_needs(node, lock)

    def _holder_needs(self, node: str, lock: NodeLock) -> str | None:
        """Say why a lock must stay with its holder, or None if it needs it no more."""
        if not lock.pod_name:
            return None if self._age(lock) > EXPIRY else "locked by an unnamed holder"
        holder = f"{lock.namespace}/{lock.pod_name}"
        try:
            found = self._cluster.get_pod(lock.namespace, lock.pod_name)
        except NotFound:
            return None
        except ClusterError as error:
            return f"locked by {holder}, whose state is not known: {error}"
        if self._is_over(found, lock, node):
            return None
        return f"locked by {holder} since {lock.locked_at.isoformat()}; its devices are not ready"

    def _is_over(self, holder: PodView, lock: NodeLock, node: str) -> bool:
        """Whether a lock has outlived its holder's need of it."""
        phase = holder.annotations.get(keys.POD_BIND_PHASE)
        if holder.is_terminal or phase in (keys.BIND_PHASE_SUCCESS, keys.BIND_PHASE_FAILED):
            return True
        age = self._age(lock)
        if not holder.node_name:
            # Younger than the lock means that the locking Pod is gone: this one has its name.
            return age > UNBOUND_GRACE or _created_at(holder) > lock.locked_at
        if holder.node_name != node:
            return True
        # Bound and not realized: Allocate may still come, however old the lock.
        return age > EXPIRY and _is_realized(holder)

    def _age(self, lock: NodeLock) -> timedelta:
        return self._now() - lock.locked_at


def _read(node: str, text: str) -> NodeLock | None:
    if not text:
        return None
    try:
        return decode_lock(text)
    except MalformedContract as error:
        raise LockUnreadable(f"node {node}: {error}; remove the annotation") from error


def _is_realized(pod: PodView) -> bool:
    try:
        reservations = decode_allocations(pod.annotations.get(keys.POD_MIG_ALLOCATIONS, ""))
    except MalformedContract:
        return False
    return bool(reservations) and all(item.identity is not None for item in reservations)


def _created_at(pod: PodView) -> datetime:
    text = pod.metadata.creation_timestamp
    return datetime.fromisoformat(text) if text else datetime.min.replace(tzinfo=UTC)
