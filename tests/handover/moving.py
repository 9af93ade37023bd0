"""A simulated cluster that people move from, with real agents, an extender and a scheduler.

Controllers are stood in for by :meth:`MovingCluster.settle`: it does what a DaemonSet's controller
and a Deployment's would have done by now, with the agent's Pods as real agent processes.
"""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml

from hami_web.core.allowlist import AllowlistEntry, render_allowlist
from hami_web.simulator.client import ApiClient, Endpoint
from hami_web.simulator.demo_nodes import DemoNode
from hami_web.simulator.demo_plan import A100, NodePlan
from hami_web.simulator.demo_processes import Children, choose_port
from hami_web.simulator.documents import lookup
from hami_web.simulator.extender import ExtenderConfig
from hami_web.simulator.identity import ANYONE, AccessRule, Identities
from hami_web.simulator.resources import STORED
from hami_web.simulator.scheduler import SchedulerConfig, SimulatedScheduler
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig
from tests.migration.clusters import described, hami, operator, workload

ROOT = Path(__file__).parents[2]
SYSTEM = "hami-system"
KINDS = {resource.kind: resource for resource in STORED}
AGENT_LABELS = {
    "app.kubernetes.io/name": "hami-web",
    "app.kubernetes.io/component": "node-agent",
}
PROFILES = ("1g.5gb", "7g.40gb")
"""What the allowlist permits: the second has the whole GPU, so nothing may be left of the first."""
OURS = {"hami.io/dynamic-mig": "on"}
"""The label that our agent's DaemonSet selects here, as an admin would choose one of its own."""
Document = dict[str, Any]


def rights() -> Identities:
    """Our roles have theirs."""
    accounts = ("hami-extender", "hami-node-agent")
    rules = [AccessRule(f"system:serviceaccount:{SYSTEM}:{name}", ("*",), "*") for name in accounts]
    return Identities(rules=rules)


class Node(DemoNode):
    """A node whose agent is started by the DaemonSet's stand-in, not with the node."""

    agent_pod = ""

    def start_agent(self) -> None:
        """Not yet."""

    def run_agent(self, pod_uid: str) -> None:
        config = self._folder.parent / "device-config.yaml"
        self._environment = {**self._environment, "HAMI_DEVICE_CONFIG": str(config)}
        self.agent_pod = pod_uid
        super().start_agent()

    def end_agent(self) -> None:
        """SIGTERM, as the kubelet ends a container."""
        self.agent_pod = ""
        process = self._children._running.pop(self._agent).process
        process.terminate()
        process.wait(20)


class MovingCluster:
    """Nodes of one HAMi 2.9 cluster beside our own installation."""

    def __init__(self, folder: Path, names: tuple[str, ...]) -> None:
        self.folder = folder
        (folder / "logs").mkdir()
        self.names = names
        self.nodes: dict[str, Node] = {}
        self._stack = ExitStack()

    def __enter__(self) -> MovingCluster:
        with ExitStack() as stack:
            self.children = Children(self.folder / "logs")
            port = choose_port(0, "--extender-port")
            url = f"http://127.0.0.1:{port}"
            self.server = stack.enter_context(
                SimulatedApiServer(services={(SYSTEM, "hami-extender"): url}, identities=rights())
            )
            self.endpoint = Endpoint(self.server.url)
            self.api = ApiClient(self.endpoint)
            stack.callback(self.api.close)
            stack.callback(self.children.stop)
            self.kubeconfig = write_kubeconfig(self.folder / "kubeconfig", server=self.server.url)
            self._install(url)
            keys = self.folder / "signing-keys"
            keys.write_text(f"k1 {base64.b64encode(os.urandom(32)).decode()}\n")
            for name in self.names:
                node = Node(NodePlan(name, (A100,)), self.folder, self.children)
                node.start(self.endpoint, self.kubeconfig, keys)
                stack.callback(node.stop)
                self.nodes[name] = node
            command = [str(ROOT / "manage.py"), "extender", "--listen", f"127.0.0.1:{port}"]
            environment = {
                "HAMI_KUBECONFIG": str(self.kubeconfig),
                "HAMI_TRUSTED_WRITERS": ANYONE.name,
                "HAMI_SIGNING_KEYS": str(keys),
            }
            self.children.start("extender", command, environment)
            scheduler = SimulatedScheduler(self.endpoint, SchedulerConfig(ExtenderConfig(url)))
            scheduler.start()
            stack.callback(scheduler.stop)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def create_pod(self, document: Document) -> Document:
        """Through the API, which gives it a UID; the node's kubelet runs it."""
        namespace = document["metadata"]["namespace"]
        return self.api.create(f"/api/v1/namespaces/{namespace}/pods", document)

    def create(self, document: Document) -> Document:
        document["metadata"].setdefault("uid", document["metadata"]["name"])
        return self.server.api.store.create(KINDS[document["kind"]], document).document

    def get(self, kind: str, name: str, namespace: str = "") -> Document | None:
        found = self.listed(kind)
        return next(
            (
                item
                for item in found
                if item["metadata"]["name"] == name
                and (not namespace or item["metadata"].get("namespace") == namespace)
            ),
            None,
        )

    def listed(self, kind: str) -> list[Document]:
        return [item.document for item in self.server.api.store.listing(KINDS[kind], "")[1]]

    def labels(self, node: str) -> Document:
        return dict(self.api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"])

    def label(self, node: str, **labels: str | None) -> None:
        self.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": labels}})

    def is_cordoned(self, node: str) -> bool:
        return bool(lookup(self.api.get(f"/api/v1/nodes/{node}"), "spec.unschedulable"))

    def settle(self) -> None:
        """What controllers and kubelets do meanwhile."""
        for kept in self.listed("DaemonSet"):
            selector = lookup(kept, "spec.template.spec.nodeSelector") or {}
            for name in self.names:
                wanted = selector.items() <= self.labels(name).items()
                self._keep_pod(kept, name, wanted=wanted)
        for name, node in self.nodes.items():
            pod = self.get("Pod", f"hami-node-agent-{name}", SYSTEM)
            uid = "" if pod is None else pod["metadata"]["uid"]
            leaving = pod is None or pod["metadata"].get("deletionTimestamp")
            if node.agent_pod and (leaving or node.agent_pod != uid):
                node.end_agent()
            if uid and not leaving and not node.agent_pod:
                node.run_agent(uid)
        self.children.check()

    def owners(self, node: str) -> set[str]:
        """Programs that could cut the node's GPUs now."""
        found = {"agent"} if self.nodes[node].agent_pod else set()
        for pod in self.listed("Pod"):
            labels = pod["metadata"].get("labels") or {}
            if lookup(pod, "spec.nodeName") == node and "legacy" in labels:
                found.add(labels["legacy"])
        return found

    def _keep_pod(self, kept: Document, node: str, *, wanted: bool) -> None:
        meta = kept["metadata"]
        name = f"{meta['name']}-{node}"
        there = self.get("Pod", name, meta["namespace"])
        if wanted and there is None:
            owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": meta["name"]}
            document = described(
                "Pod",
                name,
                meta["namespace"],
                metadata={
                    "labels": meta["labels"],
                    "ownerReferences": [{**owner, "uid": meta["name"], "controller": True}],
                },
                spec={"nodeName": node, "containers": [{"name": "c", "image": "agent:1"}]},
            )
            self.create_pod(document)
        elif there is not None and not wanted:
            path = f"/api/v1/namespaces/{meta['namespace']}/pods/{name}"
            if not there["metadata"].get("deletionTimestamp"):
                self.api.delete(path, {"gracePeriodSeconds": 1})

    def _install(self, extender: str) -> None:
        for name in ("kube-system", "team-a", "gpu-operator"):
            if self.get("Namespace", name) is None:
                self.create({"kind": "Namespace", "metadata": {"name": name}})
        agents = workload("DaemonSet", "hami-node-agent", SYSTEM, "agent:1", labels=AGENT_LABELS)
        agents["spec"]["template"]["spec"]["nodeSelector"] = dict(OURS)
        self.create(agents)
        device_config = render_allowlist([AllowlistEntry(("A100-SXM4-40GB",), PROFILES)])
        (self.folder / "device-config.yaml").write_text(device_config, encoding="utf-8")
        maps = {
            "hami-device-config": {"device-config.yaml": device_config},
            "hami-kube-scheduler": {
                "config.yaml": f"urlPrefix: {extender}\nfilterVerb: filter\nname: hami-scheduler"
            },
        }
        for name, data in maps.items():
            self.create(described("ConfigMap", name, SYSTEM, data=data))
        webhook = yaml.safe_load((ROOT / "deploy/webhook.yaml").read_text(encoding="utf-8"))
        webhook["webhooks"][0]["clientConfig"]["caBundle"] = "Q0E="
        self.create(webhook)

    def install_hami(self) -> None:
        """HAMi 2.9: scheduler, webhook, and its plugin on every node with ``gpu=on``."""
        for document in hami("v2.9.0"):
            if document["kind"] == "Pod":
                continue  # the DaemonSet's stand-in makes them
            if document["kind"] == "DaemonSet":
                document["spec"]["template"]["spec"]["nodeSelector"] = {"gpu": "on"}
                document["metadata"]["labels"]["legacy"] = "hami"
            self.create(document)

    def install_operator(self, node: str) -> None:
        """NVIDIA's GPU Operator with MIG Manager on one node, which HAMi does not have."""
        for document in operator(on=node):
            if document["kind"] in ("Pod", "Node"):
                continue
            if document["kind"] == "DaemonSet":
                chosen = {"nvidia.com/gpu.deploy.mig-manager": "true"}
                document["spec"]["template"]["spec"]["nodeSelector"] = chosen
                document["metadata"]["labels"]["legacy"] = "mig-manager"
            self.create(document)
        self.label(
            node,
            **{
                "gpu": None,
                "nvidia.com/gpu.deploy.mig-manager": "true",
                "nvidia.com/mig.config": "all-1g.5gb",
                "nvidia.com/mig.config.state": "success",
            },
        )

    def uninstall_scheduler(self) -> None:
        """What the admin does at the step that is not ours: HAMi's scheduler and webhook go."""
        path = "/apis/apps/v1/namespaces/kube-system/deployments/hami-scheduler"
        self.api.patch(path, {"spec": {"replicas": 0}})
        hooks = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
        self.api.delete(f"{hooks}/hami-scheduler-webhook")


def wait_for(what: str, holds: Callable[[], object], seconds: float = 90.0) -> None:
    """Poll until it holds. Raises AssertionError after so many seconds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:.0f} s"
        time.sleep(0.05)


@contextmanager
def moving_cluster(folder: Path, *names: str) -> Iterator[MovingCluster]:
    with MovingCluster(folder, names) as cluster:
        yield cluster
