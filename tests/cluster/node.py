"""A node of the suite's cluster: its simulated hardware, its agent, and what it offers."""

from __future__ import annotations

import json
import re
import signal
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kubernetes import client

from node_agent.nvml.simulated.lookups import GpuSpec
from node_agent.nvml.simulated.node import SimulatedNode
from tests.cluster.kubelets import Kubelet
from tests.cluster.processes import ROOT, Process, free_port, wait_until

Instances = dict[tuple[str, int, int], str]
"""(GPU, start, size) to the MIG UUID."""


def offered_by(node: Any) -> int:
    """Devices that the kubelet of the node offers to Pods."""
    return int((node.status.allocatable or {}).get("nvidia.com/gpu", 0))


def published_by(node: Any) -> list[dict[str, Any]]:
    """GPUs of a node's annotation; none while it has none."""
    text = (node.metadata.annotations or {}).get("hami.io/node-nvidia-register", "[]")
    gpus: list[dict[str, Any]] = json.loads(text)
    return gpus


class GpuNode:
    """One node with an agent of its own over simulated NVML.

    ``environ`` is what the agent needs to know of the cluster; ``folder`` is the node's own.
    """

    def __init__(
        self, name: str, folder: Path, environ: Mapping[str, str], kubelet: Kubelet
    ) -> None:
        self.name = name
        self.kubelet = kubelet
        self._metrics_port = free_port()
        folder.mkdir()
        self.hardware = SimulatedNode(folder / "nvml")
        own = {
            "NODE_NAME": name,
            "HAMI_DEVICE_CONFIG": str(ROOT / "deploy" / "device-config.yaml"),
            "HAMI_DEVICE_PLUGIN_DIR": str(kubelet.plugins),
            "HAMI_STATE_DIR": str(folder / "agent"),
            "HAMI_SIMULATED_NVML": str(folder / "nvml"),
            "HAMI_LOG_FORMAT": "json",
            "HAMI_METRICS_PORT": str(self._metrics_port),
        }
        self.agent = Process(
            f"agent of {name}",
            [sys.executable, "-m", "node_agent"],
            own | dict(environ),
            folder / "agent.log",
        )

    def create_gpus(self, *specs: GpuSpec) -> None:
        self.hardware.create(list(specs))

    def start_agent(self) -> None:
        """Start it and wait until it is ready; the kubelet admits no GPU Pod before."""
        self.agent.start()
        wait_until("the agent is ready", self._agent_ready)

    def restart_agent(self) -> None:
        """As a crash would: no clean-up, then a fresh process."""
        self.agent.stop(signal.SIGKILL)
        self.start_agent()

    def _agent_ready(self) -> bool:
        if not self.agent.runs:
            raise RuntimeError(self.agent.tail())
        try:
            address = f"http://127.0.0.1:{self._metrics_port}/readyz"
            with urllib.request.urlopen(address, timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def agent_metrics(self) -> str:
        address = f"http://127.0.0.1:{self._metrics_port}/metrics"
        with urllib.request.urlopen(address, timeout=5) as answer:
            return str(answer.read().decode())

    def agent_registrations(self) -> float:
        """How often the agent registered with the kubelet since it started."""
        text = self.agent_metrics()
        found = re.search(r'registrations_total\{outcome="success"\} ([0-9.]+)', text)
        return float(found[1]) if found else 0.0

    def offers_all(self) -> bool:
        """Whether the kubelet offers as many devices as the node's annotation counts."""
        node = client.CoreV1Api().read_node(self.name)
        count = sum(gpu["count"] for gpu in published_by(node))
        return count > 0 and offered_by(node) == count

    def offered_devices(self) -> int:
        return offered_by(client.CoreV1Api().read_node(self.name))

    def published(self) -> list[dict[str, Any]]:
        return published_by(client.CoreV1Api().read_node(self.name))

    def instances(self) -> Instances:
        """What exists on the hardware, a GPU instance without a compute instance with ""."""
        found: Instances = {}
        for gpu in self.hardware.state().gpus:
            for instance in gpu.instances:
                uuids = [ci.mig_uuid for ci in instance.compute_instances]
                found[gpu.uuid, instance.start, instance.size] = ",".join(uuids)
        return found

    def log_of(self, pod: Any, container: str) -> str:
        """What a container printed so far."""
        about = pod.metadata
        folder = self.kubelet.pod_logs / f"{about.namespace}_{about.name}_{about.uid}"
        path = folder / container / "0.log"
        return path.read_text() if path.exists() else ""
