"""Codec of ``hami.io/mutex.lock``: how ``Allocate``, which names no Pod, finds its Pod."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from hami_web.core.annotations import NODE_LOCK
from hami_web.core.errors import MalformedContract


@dataclass(frozen=True, slots=True)
class NodeLock:
    """Who holds a node's lock since when. Holder fields are empty in HAMi's legacy form."""

    locked_at: datetime
    namespace: str
    pod_name: str

    def held_by(self, namespace: str, pod_name: str) -> bool:
        """HAMi's lock names the Pod by namespace and name; the UID is checked on the Pod."""
        return self.namespace == namespace and self.pod_name == pod_name


def encode_lock(lock: NodeLock) -> str:
    """``2026-09-21T14:13:20Z,team-a,job-1``: UTC, whole seconds."""
    moment = lock.locked_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{moment},{lock.namespace},{lock.pod_name}"


def decode_lock(text: str) -> NodeLock:
    """Read a lock; a bare time is HAMi's legacy form. Raises :class:`MalformedContract`."""
    parts = text.split(",")
    if len(parts) not in (1, 3):
        raise MalformedContract(NODE_LOCK, text, "time or time,namespace,name")
    try:
        moment = datetime.fromisoformat(parts[0])
    except ValueError as error:
        raise MalformedContract(NODE_LOCK, text, "an RFC 3339 time first") from error
    if moment.tzinfo is None:
        raise MalformedContract(NODE_LOCK, text, "a time with its zone")
    namespace, pod_name = parts[1:] if len(parts) == 3 else ("", "")
    return NodeLock(moment, namespace, pod_name)
