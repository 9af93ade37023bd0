"""The label by which a Service finds the Pod that decides.

The leader labels its own Pod and takes the label off the one that led before: a Pod on a node that
died cannot do so itself, and kube-scheduler would still be sent there.
"""

from __future__ import annotations

import logging
import threading
from typing import Final, Protocol

from hami_web.cluster.errors import ClusterError, NotFound
from hami_web.cluster.ports import Annotations

logger = logging.getLogger(__name__)

ROLE_LABEL: Final = "hami.io/scheduler-role"
LEADER: Final = "leader"
FOLLOWER: Final = "follower"
AGAIN_S: Final = 2.0


class PodLabels(Protocol):
    """Writes labels of the control plane's own Pods; raises ClusterError."""

    def label_pod(self, namespace: str, name: str, labels: Annotations) -> None: ...


class RoleLabel:
    """Keeps the labels as the last known role wants them, on a thread of its own."""

    def __init__(self, labels: PodLabels, namespace: str, pod: str) -> None:
        self._labels = labels
        self._namespace = namespace
        self._pod = pod
        self._lock = threading.Lock()
        self._wanted: dict[str, str] = {}
        self._changed = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="role-label", daemon=True)

    def start(self) -> None:
        """Begin as a follower."""
        self.show(leads=False)
        self._thread.start()

    def stop(self) -> None:
        """Take the role off before the process ends; best effort."""
        self.show(leads=False)
        self._stopped.set()
        self._changed.set()
        if self._thread.is_alive():
            self._thread.join(3)

    def show(self, *, leads: bool, former: str = "") -> None:
        """Label our Pod by its role, and the ``former`` leader's as a follower. Cheap."""
        with self._lock:
            self._wanted[self._pod] = LEADER if leads else FOLLOWER
            if leads and former and former != self._pod:
                self._wanted[former] = FOLLOWER
        self._changed.set()

    def _run(self) -> None:
        while True:
            self._changed.wait()
            self._changed.clear()
            done = self._write()
            if self._stopped.is_set():
                return
            if not done:
                self._changed.set()
                if self._stopped.wait(AGAIN_S):
                    self._write()
                    return

    def _write(self) -> bool:
        """Write what is wanted and not written yet; True when nothing is left."""
        with self._lock:
            wanted = dict(self._wanted)
        for pod, role in wanted.items():
            try:
                self._labels.label_pod(self._namespace, pod, {ROLE_LABEL: role})
            except NotFound:
                logger.info("Pod %s/%s is gone; no label", self._namespace, pod)
            except ClusterError as error:
                logger.warning("label %s of Pod %s/%s: %s", ROLE_LABEL, self._namespace, pod, error)
                continue
            with self._lock:
                if self._wanted.get(pod) == role:
                    del self._wanted[pod]
        with self._lock:
            return not self._wanted
