"""A whole simulated cluster in one process: API server, scheduler and kubelets."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from hami_web.simulator.client import ApiClient, ApiError, Endpoint
from hami_web.simulator.documents import JsonObject
from hami_web.simulator.kubelet import NodeConfig, SimulatedKubelet
from hami_web.simulator.scheduler import SchedulerConfig, SimulatedScheduler
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """One container's wishes: number of GPUs, and memory of each in MiB (None: not named)."""

    name: str = "main"
    gpu: int = 0
    gpumem: int | None = None
    gpucores: int | None = None
    init: bool = False
    sidecar: bool = False

    def manifest(self) -> JsonObject:
        limits: dict[str, str] = {}
        if self.gpu:
            limits["nvidia.com/gpu"] = str(self.gpu)
        if self.gpumem is not None:
            limits["nvidia.com/gpumem"] = str(self.gpumem)
        if self.gpucores is not None:
            limits["nvidia.com/gpucores"] = str(self.gpucores)
        document: JsonObject = {
            "name": self.name,
            "image": "lab.local/pause:1",
            "imagePullPolicy": "Never",
            "resources": {"limits": limits} if limits else {},
        }
        if self.sidecar:
            document["restartPolicy"] = "Always"
        return document


@dataclass(frozen=True, slots=True)
class PodSpec:
    """A Pod to create. ``priority`` makes a PriorityClass of that value."""

    name: str
    containers: Sequence[ContainerSpec] = (ContainerSpec(gpu=1),)
    annotations: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    namespace: str = "default"
    priority: int = 0
    scheduler_name: str = "hami-scheduler"
    node_selector: dict[str, str] = field(default_factory=dict)

    def manifest(self) -> JsonObject:
        early = [c.manifest() for c in self.containers if c.init or c.sidecar]
        spec: JsonObject = {
            "schedulerName": self.scheduler_name,
            "containers": [c.manifest() for c in self.containers if not (c.init or c.sidecar)],
        }
        if early:
            spec["initContainers"] = early
        if self.node_selector:
            spec["nodeSelector"] = self.node_selector
        if self.priority:
            spec["priorityClassName"] = f"priority-{self.priority}"
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self.name,
                "annotations": self.annotations,
                "labels": self.labels,
            },
            "spec": spec,
        }


class SimulatedCluster:
    """Context manager: everything runs inside, nothing is left after it.

    The scheduler starts with :meth:`start_scheduler`, since its extender needs the API server
    first. ``folder`` (kubeconfigs, plugin sockets) is a short temporary one unless given: the path
    of a unix socket has at most 107 bytes.
    """

    def __init__(
        self,
        nodes: Sequence[str] = (),
        *,
        server: SimulatedApiServer | None = None,
        folder: Path | None = None,
        token: str = "",
    ) -> None:
        self.server = server or SimulatedApiServer()
        self.endpoint = Endpoint(self.server.url, token)
        self.client = ApiClient(self.endpoint)
        self.kubelets: dict[str, SimulatedKubelet] = {}
        self._names = tuple(nodes)
        self._owns_folder = folder is None
        self.folder = folder or Path(tempfile.mkdtemp(prefix="hami-sim-"))
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            if self._owns_folder:
                stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            stack.enter_context(self.server)
            stack.callback(self.client.close)
            self._stack = stack
            for name in self._names:
                self.add_node(name)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def add_node(self, name: str, labels: dict[str, str] | None = None) -> SimulatedKubelet:
        """Start one more kubelet; its sockets are in ``folder/NAME``."""
        config = NodeConfig(name, self.folder / name, labels or {})
        kubelet = SimulatedKubelet(self.endpoint, config)
        kubelet.start()
        self._stack.callback(kubelet.stop)
        self.kubelets[name] = kubelet
        return kubelet

    def start_scheduler(self, config: SchedulerConfig) -> SimulatedScheduler:
        """Start a scheduler; it stops with the cluster, before kubelets and server."""
        scheduler = SimulatedScheduler(self.endpoint, config)
        scheduler.start()
        self._stack.callback(scheduler.stop)
        return scheduler

    def kubeconfig(self, token: str = "") -> Path:
        """A kubeconfig file for this cluster and a bearer token."""
        path = self.folder / f"kubeconfig-{token or 'admin'}"
        return write_kubeconfig(path, server=self.server.url, token=token or self.endpoint.token)

    def create_pod(self, spec: PodSpec) -> JsonObject:
        """Create a Pod and return it as the API server stored it."""
        if spec.priority:
            self._ensure_priority_class(spec.priority)
        return self.client.create(f"/api/v1/namespaces/{spec.namespace}/pods", spec.manifest())

    def pod(self, name: str, namespace: str = "default") -> JsonObject | None:
        """The Pod as it is now, or None."""
        try:
            return self.client.get(f"/api/v1/namespaces/{namespace}/pods/{name}")
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def delete_pod(
        self, name: str, namespace: str = "default", grace_seconds: int | None = None
    ) -> None:
        """Delete a Pod; None leaves the grace to the Pod's own."""
        options = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        self.client.delete(f"/api/v1/namespaces/{namespace}/pods/{name}", options)

    def wait_until(self, look: Callable[[], T], timeout: float = 10.0) -> T:
        """Return the first true result of ``look``; raises TimeoutError after ``timeout`` s."""
        return wait_until(look, timeout)

    def _ensure_priority_class(self, value: int) -> None:
        document = {"metadata": {"name": f"priority-{value}"}, "value": value}
        try:
            self.client.create("/apis/scheduling.k8s.io/v1/priorityclasses", document)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise


def wait_until(look: Callable[[], T], timeout: float = 10.0) -> T:
    """Call ``look`` until its result is true and return that; raises TimeoutError."""
    deadline = time.monotonic() + timeout
    while True:
        result = look()
        if result:
            return result
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {timeout} s the last result is {result!r}")
        time.sleep(0.01)
