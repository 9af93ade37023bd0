"""A cluster of someone's, where the product is installed: seen through its API only."""

from __future__ import annotations

import os
from typing import Any, NoReturn

import pytest
from kubernetes import client, config
from kubernetes.client.rest import ApiException

from tests.cluster.lab import NAMESPACE
from tests.cluster.node import Instances, offered_by, published_by
from tests.cluster.processes import wait_until


class InstalledCluster:
    """The cluster of a kubeconfig. What needs the hardware or a restart is skipped, saying so."""

    def __init__(self, kubeconfig: str) -> None:
        self._kubeconfig = kubeconfig
        self._node = os.environ.get("HAMI_TEST_NODE", "")

    def up(self) -> None:
        config.load_kube_config(self._kubeconfig)
        client.CoreV1Api().create_namespace({"metadata": {"name": NAMESPACE}})
        wait_until("a node publishes MIG GPUs", self.published, 30)

    def down(self) -> None:
        client.CoreV1Api().delete_namespace(NAMESPACE)

    def published(self) -> list[dict[str, Any]]:
        """Capability of the chosen node, else of the first node that publishes any."""
        node = self._gpu_node()
        return published_by(node) if node else []

    def offers_all(self) -> bool:
        """Whether that node's kubelet offers as many devices as its annotation counts."""
        node = self._gpu_node()
        count = sum(gpu["count"] for gpu in published_by(node)) if node else 0
        return count > 0 and offered_by(node) == count

    def _gpu_node(self) -> Any:
        for node in client.CoreV1Api().list_node().items:
            if published_by(node) and self._node in ("", node.metadata.name):
                return node
        return None

    def instances(self) -> Instances | None:
        """Nothing here can look at the hardware."""
        return None

    def log_of(self, pod: Any, container: str) -> str:
        try:
            return str(
                client.CoreV1Api().read_namespaced_pod_log(
                    pod.metadata.name, NAMESPACE, container=container
                )
            )
        except ApiException:
            return ""

    def diagnosis(self) -> str:
        events = client.CoreV1Api().list_namespaced_event(NAMESPACE).items[-20:]
        return "\n".join(f"{e.involved_object.name} {e.reason}: {e.message}" for e in events)

    def __getattr__(self, name: str) -> NoReturn:
        pytest.skip(f"needs a cluster of the suite's own (HAMI_TEST_KUBE) for {name!r}")
