"""Whose word counts on a bound Pod: reservations as the scheduler wrote them.

Annotations of a Pod can be written by whoever may patch it, should the webhook be away. Where the
cluster has signing keys, only what the scheduler signed counts, so that nobody can take memory
slices, or close a GPU or a node, with what they write on a Pod of theirs. And nothing that they
write frees anything: what was known of a Pod stays taken until the Pod is over.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Protocol

from hami_web.cluster.views import NodeView, PodView
from hami_web.core import annotations as keys
from hami_web.core.errors import InvalidField
from hami_web.core.reservation import Reservation, decode_allocations, encode_allocations
from hami_web.core.signature import InvalidSignature, KeyFile, KeyRing
from hami_web.scheduling.pods import identity_of
from hami_web.scheduling.problems import ProblemCode, ReservationProblem

_RESERVED: Final = (keys.POD_MIG_ALLOCATIONS, keys.POD_DEVICES_ALLOCATED)
_ANYTHING: Final = '"gpuUUID"'
"""In every annotation that reserves anything."""


class Knowledge(Protocol):
    """What the scheduling state knows."""

    def written(self, uid: str, node: str) -> tuple[Reservation, ...] | None:
        """What is known to be reserved for a Pod on its node, None for nothing."""
        ...

    def is_bound_here(self, uid: str, node: str) -> bool:
        """Whether this process sent, or is sending, the Pod's Binding to the node."""
        ...

    def has_agent(self, node: str) -> bool:
        """Whether an agent of ours looks after a node: it has a Lease, renewed or not."""
        ...


@dataclass(slots=True)
class _Doubted:
    """A Pod and its annotations as they were shown."""

    pod: PodView
    annotations: dict[str, str]
    problem: ReservationProblem


class Custody:
    """Gives each observed Pod the reservation that counts. Safe for threads.

    Without ``keys`` annotations are believed as they stand; only one that is taken off a bound Pod
    is put back.
    """

    def __init__(self, knowledge: Knowledge, keys: KeyFile | None = None) -> None:
        self.version = 0
        """Grows when problems come or go."""
        self._knowledge = knowledge
        self._keys = keys
        self._ring: KeyRing | None = None
        self.read_keys()
        self._lock = threading.Lock()
        self._verified: dict[str, int] = {}
        """Hash of what was verified, by UID; the hash is keyed by the process."""
        self._doubted: dict[str, _Doubted] = {}
        self._verifying: set[str] = set()
        """Nodes whose agent publishes what no verified reservation explains."""

    def set_node(self, node: NodeView) -> None:
        """A node as it is now."""
        if node.annotations.get(keys.NODE_MIG_VERIFIED) == "true":
            self._verifying.add(node.name)
        else:
            self._verifying.discard(node.name)

    def remove_node(self, name: str) -> None:
        """A node is gone."""
        self._verifying.discard(name)

    def admit(self, pod: PodView) -> None:
        """Replace the annotations of a reservation by those that count."""
        uid = pod.uid
        if not pod.node_name or pod.is_terminal:
            self.forget(uid)
            return
        annotations = pod.metadata.annotations
        text = "" if annotations is None else annotations.get(keys.POD_MIG_ALLOCATIONS, "")
        ring = self._ring
        if ring is None:
            if _ANYTHING in text or not self._restore(pod, "it was removed"):
                self._settle(uid)
            return
        if not annotations or not any(key in annotations for key in _RESERVED):
            if not self._restore(pod, "it was removed"):
                self._settle(uid)
            return
        why = self._mistrust(ring, pod, annotations, text)
        if why is None:
            # The signature covers every device of the Pod; nobody signed the list of devices.
            annotations.pop(keys.POD_DEVICES_ALLOCATED, None)
            self._settle(uid)
        elif not (self._is_known(uid, pod.node_name) and self._restore(pod, why)):
            self._distrust(pod, why)

    def forget(self, uid: str) -> None:
        """The Pod is gone, over, or not bound."""
        self._settle(uid)
        if uid in self._verified:
            with self._lock:
                self._verified.pop(uid, None)

    def keep(self, uids: Collection[str]) -> None:
        """Forget all Pods but these."""
        with self._lock:
            gone = [uid for known in (self._verified, self._doubted) for uid in known]
        for uid in gone:
            if uid not in uids:
                self.forget(uid)

    def doubted(self) -> list[PodView]:
        """Pods whose annotations do not count as they stand, as they were shown.

        To be admitted again; the keys are read anew for that.
        """
        self.read_keys()
        with self._lock:
            found = list(self._doubted.values())
        for item in found:
            item.pod.metadata.annotations = dict(item.annotations)
        return [item.pod for item in found]

    def problems(self) -> list[ReservationProblem]:
        """What is wrong now, with which Pods."""
        with self._lock:
            return [item.problem for item in self._doubted.values()]

    def read_keys(self) -> None:
        """Look at the keys anew, as before a complete list."""
        self._ring = None if self._keys is None else self._keys.ring()

    def _mistrust(
        self, ring: KeyRing, pod: PodView, annotations: dict[str, str], text: str
    ) -> str | None:
        """Why this is not what the scheduler signed, or None."""
        uid, node = pod.uid, pod.node_name
        signature = annotations.get(keys.POD_MIG_SIGNATURE)
        seen = hash((signature, text, node))
        if self._verified.get(uid) == seen:
            return None
        try:
            ring.verify(signature, uid, node, decode_allocations(text))
        except (InvalidSignature, InvalidField) as error:
            return str(error)
        with self._lock:
            self._verified[uid] = seen
        return None

    def _is_known(self, uid: str, node: str) -> bool:
        """Whether what the state knows of a Pod was verified, or was bound by this process."""
        with self._lock:
            if uid in self._verified:
                return True
        return self._knowledge.is_bound_here(uid, node)

    def _restore(self, pod: PodView, why: str) -> bool:
        """Put back what is known to be reserved; False where nothing is."""
        known = self._knowledge.written(pod.uid, pod.node_name)
        if known is None:
            return False
        with self._lock:
            self._verified.setdefault(pod.uid, 0)  # no text has this hash: it was seen no more
        self._doubt(pod, ProblemCode.ALTERED, f"its reservation was altered, and stays: {why}")
        pod.metadata.annotations = {keys.POD_MIG_ALLOCATIONS: encode_allocations(known)}
        return True

    def _distrust(self, pod: PodView, why: str) -> None:
        """Count nothing where an agent of ours tells what is live; elsewhere what is written."""
        node = pod.node_name
        if node in self._verifying and self._knowledge.has_agent(node):
            text = f"its reservation counts for nothing: {why}"
            self._doubt(pod, ProblemCode.UNTRUSTED, text)
            pod.metadata.annotations = None
        else:
            self._doubt(pod, ProblemCode.UNTRUSTED, f"its reservation cannot be trusted: {why}")

    def _doubt(self, pod: PodView, code: ProblemCode, why: str) -> None:
        text = f"Pod {pod.full_name}: {why}"
        problem = ReservationProblem(identity_of(pod), pod.node_name, code, text)
        annotations = pod.metadata.annotations or {}
        read = (*_RESERVED, keys.POD_MIG_SIGNATURE)
        shown = {key: annotations[key] for key in read if key in annotations}
        with self._lock:
            before = self._doubted.get(pod.uid)
            if before is None or before.problem != problem:
                self.version += 1
            self._doubted[pod.uid] = _Doubted(pod, shown, problem)

    def _settle(self, uid: str) -> None:
        if uid not in self._doubted:
            return
        with self._lock:
            if self._doubted.pop(uid, None) is not None:
                self.version += 1
