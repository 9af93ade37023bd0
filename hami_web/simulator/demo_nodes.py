"""One node of the demo: simulated NVML and kubelet, and a real node agent between them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hami_web.core import annotations as keys
from hami_web.simulator.client import ApiClient, Endpoint
from hami_web.simulator.demo_observe import (
    SeenInstance,
    create_instance,
    create_node,
    destroy_instance,
    list_instances,
    slow_down_creation,
)
from hami_web.simulator.demo_plan import NAMESPACE, ForeignSpot, NodePlan
from hami_web.simulator.demo_processes import Children, DemoError
from hami_web.simulator.documents import annotations_of, lookup
from hami_web.simulator.kubelet import NodeConfig, SimulatedKubelet

ROOT: Final = Path(__file__).resolve().parents[2]
DEVICE_CONFIG: Final = ROOT / "deploy/device-config.yaml"
LABELS: Final = {"gpu": "on"}
_SOCKET_NAME_MAX: Final = 107
_LONGEST_SOCKET: Final = "hami-nvidia.com-gpu.sock"
_RECLAIM_SECONDS: Final = "2"
"""Shorter than in earnest, so that a story need not wait for what the watch has missed."""
_DISCOVERY_SECONDS: Final = "3"
"""So too, for an instance that somebody makes by hand."""


def _check_length(plugins: Path) -> None:
    """Unix sockets have short names (108 bytes in Linux's ``sockaddr_un``, zero included)."""
    most = _SOCKET_NAME_MAX - len("/" + _LONGEST_SOCKET)
    if len(str(plugins).encode()) > most:
        raise DemoError(
            f"the temporary folder {plugins} is too long a path for Unix sockets; "
            f"set TMPDIR to a shorter one, for example TMPDIR=/tmp"
        )


class DemoNode:
    """A node from :meth:`start` to :meth:`stop`; everything it keeps is under its folder."""

    def __init__(self, plan: NodePlan, folder: Path, children: Children) -> None:
        self.name = plan.name
        self.gpu_uuids: tuple[str, ...] = ()
        self._plan = plan
        self._folder = folder / plan.name
        self._nvml = self._folder / "nvml" / plan.name
        self._children = children
        self._environment: Mapping[str, str] = {}
        self._kubelet: SimulatedKubelet | None = None
        self._by_hand: list[tuple[int, int]] = []

    def start(self, endpoint: Endpoint, kubeconfig: Path, signing_keys: Path) -> None:
        """Make the hardware, start the kubelet, start the agent."""
        plugins = self._folder / "plugins"
        _check_length(plugins)
        for folder in (plugins, self._folder / "agent", self._folder / "sys"):
            folder.mkdir(parents=True)
        self.gpu_uuids = create_node(self._nvml, self._plan.gpus, self._plan.id_map)
        if self._plan.create_s:
            slow_down_creation(self._nvml, self._plan.create_s)
        self._kubelet = SimulatedKubelet(endpoint, NodeConfig(self.name, plugins, LABELS))
        self._kubelet.start()
        self._environment = {
            "NODE_NAME": self.name,
            "HAMI_KUBECONFIG": str(kubeconfig),
            "HAMI_SIGNING_KEYS": str(signing_keys),
            "HAMI_SIMULATED_NVML": str(self._nvml),
            "HAMI_DEVICE_CONFIG": str(DEVICE_CONFIG),
            "HAMI_DEVICE_PLUGIN_DIR": str(plugins),
            "HAMI_STATE_DIR": str(self._folder / "agent"),
            "HAMI_SYSFS": str(self._folder / "sys"),
            "HAMI_RECLAIM_SECONDS": _RECLAIM_SECONDS,
            "HAMI_DISCOVERY_SECONDS": _DISCOVERY_SECONDS,
            "HAMI_LOG_FORMAT": "text",
        }
        self.start_agent()

    def stop(self) -> None:
        """Stop the kubelet; the agent is stopped with the other programs."""
        if self._kubelet is not None:
            self._kubelet.stop()

    def start_agent(self) -> None:
        """Start the node's agent, with the state that an earlier one left."""
        self._children.start(self._agent, ["-m", "node_agent"], self._environment)

    def kill_agent(self) -> None:
        """SIGKILL."""
        self._children.kill(self._agent)

    def is_offered(self, api: ApiClient) -> bool:
        """The capability is published, and the kubelet offers healthy devices."""
        node = api.get(f"/api/v1/nodes/{self.name}")
        offered = (lookup(node, "status.allocatable") or {}).get(keys.RESOURCE_COUNT, "0")
        published = annotations_of(node).get(keys.NODE_REGISTER, "[]")
        return published != "[]" and int(offered) > 0

    def finish(self, pod_name: str) -> None:
        """Let the containers of a Pod end with success."""
        if self._kubelet is not None:
            self._kubelet.complete(NAMESPACE, pod_name)

    def container_env(self, pod_uid: str, container: str) -> Mapping[str, str]:
        """What the container sees of its devices."""
        found = self._kubelet.container_env(pod_uid, container) if self._kubelet else None
        return found or {}

    def instances(self) -> tuple[SeenInstance, ...]:
        """What NVML has, listed afresh."""
        return list_instances(self._nvml)

    def cut_by_hand(self, spot: ForeignSpot) -> str:
        """Make a GPU instance without the agent; returns its placement."""
        instance_id, placement = create_instance(self._nvml, spot.gpu_index, spot.profile)
        self._by_hand.append((spot.gpu_index, instance_id))
        return placement

    def mend_by_hand(self) -> None:
        """Destroy every instance that was made so."""
        while self._by_hand:
            destroy_instance(self._nvml, *self._by_hand.pop())

    @property
    def _agent(self) -> str:
        return f"agent-{self.name}"
