"""The Node object that a kubelet keeps."""

from __future__ import annotations

from hami_web.simulator.client import ApiClient, ApiError
from hami_web.simulator.device_plugins import DevicePlugins
from hami_web.simulator.documents import timestamp
from hami_web.simulator.patches import STRATEGIC

ADDRESS = "127.0.0.1"
_CAPACITY = {"cpu": "64", "memory": "512Gi", "pods": "250"}


class NodeObject:
    """Registers the Node once and writes its status after every change of ``ready`` or devices."""

    def __init__(
        self, client: ApiClient, name: str, labels: dict[str, str], plugins: DevicePlugins
    ) -> None:
        self.ready = True
        self._client = client
        self._name = name
        self._labels = labels
        self._plugins = plugins

    def register(self) -> None:
        """Create the Node, or take over the one of that name."""
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": self._name,
                "labels": {"kubernetes.io/hostname": self._name, **self._labels},
            },
            "status": {"capacity": _CAPACITY, "allocatable": _CAPACITY},
        }
        try:
            self._client.create("/api/v1/nodes", node)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
        self.write_status()

    def write_status(self) -> None:
        """Capacity counts all devices of a resource, allocatable the healthy ones."""
        condition = {
            "type": "Ready",
            "status": "True" if self.ready else "False",
            "reason": "KubeletReady" if self.ready else "KubeletNotReady",
            "lastHeartbeatTime": timestamp(),
        }
        counts = self._plugins.counts()
        status = {
            "capacity": {name: str(everything) for name, (everything, _) in counts.items()},
            "allocatable": {name: str(healthy) for name, (_, healthy) in counts.items()},
            "conditions": [condition],
            "addresses": [{"type": "InternalIP", "address": ADDRESS}],
        }
        path = f"/api/v1/nodes/{self._name}/status"
        self._client.patch(path, {"status": status}, STRATEGIC)
