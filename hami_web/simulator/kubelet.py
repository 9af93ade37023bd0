"""A kubelet: its Node object, its device plugins, and the life of the Pods bound to it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hami_web.simulator.client import ApiClient, ApiError, Endpoint
from hami_web.simulator.container_devices import ContainerDevices, pod_requests
from hami_web.simulator.device_plugins import AllocationFailed, DevicePlugins, Injected
from hami_web.simulator.documents import (
    JsonObject,
    annotations_of,
    key_of,
    lookup,
    metadata,
    uid_of,
)
from hami_web.simulator.node_object import ADDRESS, NodeObject
from hami_web.simulator.patches import STRATEGIC
from hami_web.simulator.pod_status import (
    finished_status,
    rejected_status,
    rejection_event,
    running_status,
)
from hami_web.simulator.pods import FINISHED
from hami_web.simulator.reflector import Reflector
from hami_web.simulator.timeline import Timeline

RUN_SECONDS = "simulator.hami.io/run-seconds"
"""Pod annotation: its containers end with code 0 after so many seconds."""

STOP_SECONDS = "simulator.hami.io/stop-seconds"
"""Pod annotation: how long its containers take to end after SIGTERM; 0 when absent."""


@dataclass(slots=True)
class _PodState:
    """One Pod that this kubelet has seen.

    ``status`` is what is still to be written; ``stop_seconds`` is set once its deletion began.
    """

    pod: JsonObject
    status: JsonObject | None = None
    stop_seconds: float | None = None
    over: bool = False


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """One node: its name, labels, and the folder of its device-plugin sockets."""

    name: str
    plugin_folder: Path
    labels: dict[str, str] = field(default_factory=dict)


class SimulatedKubelet:
    """Runs one node. All Pod work happens on one thread, in order, as admission does."""

    def __init__(self, endpoint: Endpoint, config: NodeConfig) -> None:
        self.name = config.name
        self.plugin_folder = config.plugin_folder
        self._client = ApiClient(endpoint)
        self._timeline = Timeline(f"kubelet {config.name}")
        self._plugins = DevicePlugins(config.plugin_folder, self._on_devices)
        self._devices = ContainerDevices(self._plugins)
        self._node = NodeObject(self._client, config.name, config.labels, self._plugins)
        self._states: dict[str, _PodState] = {}
        self._lock = threading.Lock()
        self._pods = Reflector(
            self._client,
            "/api/v1/pods",
            self._on_pod,
            field_selector=f"spec.nodeName={config.name}",
        )

    def start(self) -> None:
        """Serve device plugins, register the Node and take in its Pods.

        Raises what the API client raises when the Node cannot be registered.
        """
        self._plugins.start()
        try:
            self._node.register()
        except BaseException:
            self._plugins.stop()
            self._client.close()
            raise
        self._timeline.start()
        self._pods.start()
        self._pods.wait_until_synced(10)

    def stop(self) -> None:
        """End everything; the Node and Pod objects stay as they are."""
        self._pods.stop()
        self._timeline.stop()
        self._plugins.stop()
        self._client.close()

    def restart(self) -> None:
        """As a kubelet's restart looks from outside: sockets gone, streams ended, Pods untouched.

        The resource stays in the node's allocatable until plugins register again.
        """
        self._plugins.stop()
        self._plugins.start()

    def set_ready(self, *, ready: bool) -> None:
        """Let the node's Ready condition be True or False."""
        self._node.ready = ready
        self._timeline.schedule(self._node.write_status)

    def container_env(self, pod_uid: str, container: str) -> dict[str, str] | None:
        """The environment that plugins injected; None when nothing of the Pod runs here."""
        injected = self.injected(pod_uid, container)
        return None if injected is None else dict(injected.env)

    def injected(self, pod_uid: str, container: str) -> Injected | None:
        """Everything that plugins injected into a container of a Pod that is not over."""
        with self._lock:
            return self._devices.of(pod_uid, container)

    def complete(self, namespace: str, name: str, exit_code: int = 0) -> None:
        """Let all containers of a running Pod end with this code."""
        self._timeline.schedule(lambda: self._complete((namespace, name), exit_code))

    def _on_devices(self) -> None:
        self._timeline.schedule(self._node.write_status)

    def _on_pod(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is None:
            if old is not None:
                gone = uid_of(old)
                self._timeline.schedule(lambda: self._forget(gone))
            return
        if old is not None and uid_of(old) != uid_of(new):
            replaced = uid_of(old)
            self._timeline.schedule(lambda: self._forget(replaced))
        self._timeline.schedule(lambda: self._sync(new))

    def _sync(self, pod: JsonObject) -> None:
        """Bring one Pod a step further; called for each of its versions."""
        state = self._states.get(uid_of(pod))
        if lookup(pod, "status.phase") in FINISHED:
            self._release(uid_of(pod))
            if metadata(pod).get("deletionTimestamp"):
                self._delete(pod)
            return
        if state is None:
            if metadata(pod).get("deletionTimestamp"):
                self._delete(pod)
                return
            state = self._states[uid_of(pod)] = _PodState(pod)
            self._admit(state)
        state.pod = pod
        if metadata(pod).get("deletionTimestamp"):
            seconds = _stop_seconds(pod)
            if state.stop_seconds is None or seconds < state.stop_seconds:
                state.stop_seconds = seconds
                self._timeline.schedule(lambda: self._terminate(pod), seconds)

    def _admit(self, state: _PodState) -> None:
        pod = state.pod
        try:
            self._check_room(pod)
            with self._lock:
                self._devices.allocate(pod)
        except _Rejected as rejected:
            self._reject(state, rejected.reason, str(rejected))
            return
        except AllocationFailed as error:
            text = f"Allocate failed due to {error}, which is unexpected"
            self._reject(state, "UnexpectedAdmissionError", text)
            return
        self._report(state, running_status(pod, ADDRESS))
        seconds = annotations_of(pod).get(RUN_SECONDS)
        if seconds is not None:
            key = key_of(pod)
            self._timeline.schedule(lambda: self._complete(key, 0, uid_of(pod)), float(seconds))

    def _check_room(self, pod: JsonObject) -> None:
        """The node has enough of every resource that plugins registered; raises _Rejected."""
        wanted = pod_requests(pod, self._plugins)
        for resource, healthy in self._plugins.allocatable().items():
            used = sum(
                pod_requests(state.pod, self._plugins).get(resource, 0)
                for uid, state in self._states.items()
                if not state.over and uid != uid_of(pod)
            )
            asked = wanted.get(resource, 0)
            if asked and used + asked > healthy:
                raise _Rejected(
                    f"OutOf{resource}",
                    f"Node didn't have enough resource: {resource}, requested: {asked}, "
                    f"used: {used}, capacity: {healthy}",
                )

    def _reject(self, state: _PodState, reason: str, message: str) -> None:
        self._report(state, rejected_status(reason, message))
        event = rejection_event(state.pod, self.name, reason, message)
        path = f"/api/v1/namespaces/{key_of(state.pod)[0]}/events"
        self._timeline.schedule(lambda: self._write_event(path, event))

    def _write_event(self, path: str, event: JsonObject) -> None:
        with _absence_accepted():
            self._client.create(path, event)

    def _report(self, state: _PodState, status: JsonObject) -> None:
        """Write a status, again after a failure, unless a newer one came meanwhile."""
        state.status = status

        def write() -> None:
            if state.status is not status:
                return
            path = _path(state.pod)
            patch = {"metadata": {"uid": uid_of(state.pod)}, "status": status}
            with _absence_accepted():
                self._client.patch(f"{path}/status", patch, STRATEGIC)
            state.status = None

        self._timeline.schedule(write)

    def _complete(self, key: tuple[str, str], exit_code: int, uid: str = "") -> None:
        pod = self._pods.get(key)
        state = self._states.get(uid_of(pod)) if pod is not None else None
        if pod is None or state is None or (uid and uid != uid_of(pod)):
            return
        if not state.over and state.stop_seconds is None:
            self._report(state, finished_status(pod, exit_code))
            self._release(uid_of(pod))

    def _terminate(self, pod: JsonObject) -> None:
        """All containers have ended: say so, then end the object."""
        state = self._states.get(uid_of(pod))
        if state is None or state.over:
            return
        self._report(state, finished_status(pod, 0))
        self._release(uid_of(pod))
        self._timeline.schedule(lambda: self._delete(pod))

    def _delete(self, pod: JsonObject) -> None:
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid_of(pod)}}
        with _absence_accepted():
            self._client.delete(_path(pod), options)

    def _release(self, uid: str) -> None:
        state = self._states.get(uid)
        if state is not None:
            state.over = True
        with self._lock:
            self._devices.release(uid)

    def _forget(self, uid: str) -> None:
        self._release(uid)
        self._states.pop(uid, None)


class _Rejected(Exception):
    """The Pod does not fit on this node."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@contextlib.contextmanager
def _absence_accepted() -> Iterator[None]:
    """The object may be gone, or replaced by another of its name."""
    try:
        yield
    except ApiError as error:
        if error.code not in (404, 409, 422):
            raise


def _path(pod: JsonObject) -> str:
    namespace, name = key_of(pod)
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def _stop_seconds(pod: JsonObject) -> float:
    """What the containers take to end, but never longer than the deletion's grace."""
    grace = float(metadata(pod).get("deletionGracePeriodSeconds") or 0)
    return min(grace, float(annotations_of(pod).get(STOP_SECONDS, "0")))
