"""One node to test on: simulated NVML, a simulated API server, and a kubelet of our own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hami_web.core import annotations as keys
from hami_web.core.nodelock import NodeLock, encode_lock
from hami_web.core.reservation import Reservation, decode_allocations
from hami_web.simulator.client import ApiClient, ApiError, Endpoint
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig
from node_agent import hardware
from node_agent.bootstrap import Agent
from node_agent.config import AgentConfig
from node_agent.nvml import simulated
from node_agent.nvml.simulated import GpuSpec, SimulatedNode
from tests.node_agent.kubelet import Kubelet
from tests.node_agent.reserving import NODE, Device, limits_of, reservation_annotations

POLICY = """
nvidia:
  migProfileAllowlist:
    - models: ["A100-SXM4-40GB"]
      profiles: ["1g.5gb", "1g.5gb+me", "2g.10gb", "3g.20gb", "7g.40gb"]
    - models: ["A30"]
      profiles: ["1g.6gb", "2g.12gb", "4g.24gb"]
"""


def wait_until(true: Callable[[], Any], what: str, seconds: float = 30.0) -> Any:
    """Poll until a value is truthy, and return it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := true():
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {what}")


@dataclass
class Lab:
    """A node with its cluster. ``folder`` is short, since unix socket paths must be."""

    folder: Path
    server: SimulatedApiServer
    client: ApiClient
    hardware: SimulatedNode
    kubelet: Kubelet
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        policy = self.folder / "policy.yaml"
        policy.write_text(POLICY)
        self.environment = {
            "NODE_NAME": NODE,
            "HAMI_KUBECONFIG": str(
                write_kubeconfig(self.folder / "kubeconfig", server=self.server.url)
            ),
            "HAMI_DEVICE_PLUGIN_DIR": str(self.folder / "plugins"),
            "HAMI_DEVICE_CONFIG": str(policy),
            "HAMI_STATE_DIR": str(self.folder / "state"),
            "HAMI_SIMULATED_NVML": str(self.folder / "nvml"),
            "HAMI_DISCOVERY_SECONDS": "1",
            "HAMI_RECLAIM_SECONDS": "1",
            "HAMI_LOG_FORMAT": "text",
        }

    @property
    def gpus(self) -> tuple[str, ...]:
        return self.hardware.gpu_uuids()

    def node(self) -> dict[str, Any]:
        return self.client.get(f"/api/v1/nodes/{NODE}")

    def node_annotation(self, key: str) -> str | None:
        return (self.node()["metadata"].get("annotations") or {}).get(key)

    def pod(self, name: str) -> dict[str, Any]:
        return self.client.get(f"/api/v1/namespaces/default/pods/{name}")

    def lease_holder(self) -> str | None:
        """Who holds the agent's Lease; None when there is no Lease."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/hami-system/leases/hami-node-agent-{NODE}"
        try:
            return str(self.client.get(path)["spec"].get("holderIdentity") or "")
        except ApiError:
            return None

    def events(self, pod: str, reason: str) -> list[dict[str, Any]]:
        """Events on a Pod, in core/v1 shape."""
        found = self.client.get("/api/v1/namespaces/default/events")["items"]
        return [e for e in found if (e["involvedObject"]["name"], e["reason"]) == (pod, reason)]

    def annotations(self, name: str) -> dict[str, str]:
        return self.pod(name)["metadata"].get("annotations") or {}

    def reservations(self, name: str) -> tuple[Reservation, ...]:
        return decode_allocations(self.annotations(name)[keys.POD_MIG_ALLOCATIONS])

    def placements(self, index: int = 0) -> list[tuple[int, int]]:
        """(start, size) of the GPU instances that exist on a GPU."""
        found = self.hardware.gpu(index).instances
        return sorted((item.start, item.size) for item in found)

    def create_pod(self, name: str, *devices: int) -> dict[str, Any]:
        """A Pod with one container for each number of devices; none means one without."""
        spec = {
            "containers": [
                {"name": f"c{index}", "image": "lab/pause", "resources": limits_of(count)}
                for index, count in enumerate(devices or (0,))
            ]
        }
        return self.client.create(
            "/api/v1/namespaces/default/pods",
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec},
        )

    def reserve(self, name: str, *containers: Sequence[Device], lock: bool = True) -> str:
        """Create a Pod, lock the node for it and bind it with its reservation; returns the UID."""
        uid = self.create_pod(name, *map(len, containers))["metadata"]["uid"]
        if lock:
            self.lock(name)
        self.bind(name, reservation_annotations(self.gpus, containers))
        return str(uid)

    def lock(self, name: str) -> None:
        text = encode_lock(NodeLock(datetime.now(UTC), "default", name))
        wait_until(lambda: not self.node_annotation(keys.NODE_LOCK), "the node lock is free")
        self.annotate_node({keys.NODE_LOCK: text})

    def annotate_node(self, annotations: dict[str, str | None]) -> None:
        self.client.patch(f"/api/v1/nodes/{NODE}", {"metadata": {"annotations": annotations}})

    def annotate(self, name: str, annotations: dict[str, str | None]) -> None:
        self.client.patch(
            f"/api/v1/namespaces/default/pods/{name}", {"metadata": {"annotations": annotations}}
        )

    def bind(self, name: str, annotations: dict[str, str]) -> None:
        self.client.create(
            f"/api/v1/namespaces/default/pods/{name}/binding",
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": name, "annotations": annotations},
                "target": {"kind": "Node", "name": NODE},
            },
        )

    def set_status(self, name: str, phase: str, state: str = "") -> None:
        """What the kubelet reports: a phase, and one state for all containers."""
        states = {
            "running": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
            "terminated": {"terminated": {"exitCode": 0}},
        }
        status: dict[str, Any] = {"phase": phase}
        if state:
            status["containerStatuses"] = [
                {
                    "name": c["name"],
                    "state": states[state],
                    "ready": False,
                    "restartCount": 0,
                    "image": "",
                    "imageID": "",
                }
                for c in self.pod(name)["spec"]["containers"]
            ]
        self.client.patch(f"/api/v1/namespaces/default/pods/{name}/status", {"status": status})

    def delete(self, name: str, grace: int = 0) -> None:
        self.client.delete(f"/api/v1/namespaces/default/pods/{name}", {"gracePeriodSeconds": grace})

    def exists(self, name: str) -> bool:
        try:
            self.pod(name)
        except ApiError:
            return False
        return True

    def ids(self, count: int = 1, gpu: int = 0) -> tuple[str, ...]:
        return tuple(f"{self.gpus[gpu]}-{number}" for number in range(count))

    def journal(self) -> list[dict[str, Any]]:
        return json.loads((self.folder / "state/instances.json").read_text())["records"]

    def journal_or_nothing(self) -> list[dict[str, Any]]:
        """The journal's records, none when there is no journal."""
        try:
            return self.journal()
        except FileNotFoundError:
            return []

    @contextmanager
    def agent(self, **changes: str) -> Iterator[Agent]:
        """A whole agent in this process, ready to serve."""
        with self.starting_agent(**changes) as agent:
            wait_until(lambda: not agent.problem(), f"ready; {agent.problem()}")
            wait_until(lambda: self.kubelet.devices, "devices offered")
            yield agent

    @contextmanager
    def starting_agent(self, **changes: str) -> Iterator[Agent]:
        config = AgentConfig.from_env(self.environment | changes)
        hardware.use_library(config.simulated_nvml)
        agent = Agent(config)
        thread = threading.Thread(target=agent.run)
        thread.start()
        try:
            yield agent
        finally:
            agent.stop()
            thread.join(20)
            simulated.uninstall()
            assert not thread.is_alive()

    @contextmanager
    def agent_process(
        self, command: Sequence[str] = (), **changes: str
    ) -> Iterator[subprocess.Popen[bytes]]:
        """An agent as a process of its own, ready to serve."""
        environment = {"PATH": os.environ["PATH"]} | self.environment | changes
        before = len(self.kubelet.registrations)
        with (self.folder / "agent.log").open("ab") as log:
            process = subprocess.Popen(
                command or [sys.executable, "-m", "node_agent"], env=environment, stderr=log
            )
            try:
                wait_until(
                    lambda: len(self.kubelet.registrations) > before and self.kubelet.devices,
                    f"the agent is ready:\n{(self.folder / 'agent.log').read_text()}",
                    20,
                )
                yield process
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                process.wait(10)


@contextmanager
def open_lab(*models: str | GpuSpec) -> Iterator[Lab]:
    """A node with GPUs of these models, a kubelet and an API server; nothing is left behind."""
    folder = Path(tempfile.mkdtemp(prefix="hami-", dir="/tmp"))
    (folder / "plugins").mkdir()
    node = SimulatedNode(folder / "nvml")
    node.create(models or ("a100-sxm4-40gb",), seed="lab")
    kubelet = Kubelet(folder / "plugins")
    try:
        with SimulatedApiServer() as server:
            client = ApiClient(Endpoint(server.url))
            client.create(
                "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
            )
            kubelet.start()
            try:
                yield Lab(folder, server, client, node, kubelet)
            finally:
                kubelet.stop()
                client.close()
    finally:
        node.close()
        shutil.rmtree(folder)
