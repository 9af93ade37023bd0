"""A real Kubernetes of the suite's own, and the product's processes on it."""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config
from kubernetes.client.rest import ApiException
from urllib3.exceptions import HTTPError

from node_agent.nvml.simulated.lookups import GpuSpec
from tests.cluster import accounts
from tests.cluster.kubelets import FirstKubelet, Kubelet, SecondKubelet
from tests.cluster.node import GpuNode, Instances
from tests.cluster.processes import ROOT, Process, free_port, restart_program, wait_until
from tests.cluster.service import Service

NODE = "gpu-node-a"
NAMESPACE = "hami-e2e"
SYSTEM = accounts.SYSTEM
SCHEDULER = ROOT / "deploy" / "scheduler-config" / "kube-scheduler-1.20.yaml"
A100 = "a100-sxm4-40gb"


class Lab:
    """The cluster of a folder with ``up.sh``, with extender and agent under least privilege."""

    def __init__(self, kube: Path, work: Path) -> None:
        self.kube = kube
        self.work = work
        self.directory = work / "kube"
        self.port = free_port()
        self.service = Service(free_port(), self._is_ready, self.port)
        self._restarted: list[subprocess.Popen[bytes]] = []
        self.extender = self.replica("extender-a", self.port)
        self.kubelet = FirstKubelet(self.directory)
        self.node = self._gpu_node(NODE, self.kubelet)
        self.nodes = [self.node]

    def up(self) -> None:
        self.node.create_gpus(GpuSpec(A100), GpuSpec(A100, id_map="swapped"))
        (self.work / "signing-keys").write_text(f"k1 {_base64(os.urandom(32))}\n")
        scheduler = self.work / "kube-scheduler.yaml"
        scheduler.write_text(self._scheduler_config())
        with (self.work / "up.log").open("ab") as output:
            subprocess.run(
                [self.kube / "up.sh", "--dir", self.directory, "--scheduler-config", scheduler],
                check=True,
                stdout=output,
                stderr=output,
                timeout=1500,
            )
        # With leader election it ends when the API server is away for ten seconds, for good here.
        alone = ("controller-manager", "--leader-elect=false")
        self._restarted.append(restart_program(self.directory, *alone))
        audit = accounts.audit_arguments(self.directory)
        self._restarted.append(restart_program(self.directory, "apiserver", *audit))
        config.load_kube_config(str(self.directory / "admin.conf"))
        wait_until("the API server answers", _api_answers)
        for namespace in (NAMESPACE, SYSTEM):
            client.CoreV1Api().create_namespace({"metadata": {"name": namespace}})
        accounts.create_accounts()
        for role in accounts.ROLES:
            accounts.write_access(self.directory, role)
        self.extender.start()
        self.service.start()
        self.node.start_agent()
        wait_until("the extender is ready", self._extender_ready)
        self._register_webhook()
        wait_until("the kubelet offers what is published", self.offers_all)

    def down(self) -> None:
        self.node.agent.stop()
        self.extender.stop()
        self.service.stop()
        subprocess.run([self.kube / "down.sh", self.directory], check=False, timeout=120)
        for program in self._restarted:
            program.wait(30)

    @contextmanager
    def second_node(self, name: str, *specs: GpuSpec, **environ: str) -> Iterator[GpuNode]:
        """Another node with a kubelet and an agent of its own, gone from the cluster at the end.

        ``environ`` are variables of its agent.
        """
        kubelet = SecondKubelet(name, self.directory, self.work / f"kubelet-of-{name}")
        node = self._gpu_node(name, kubelet, **environ)
        node.create_gpus(*specs)
        try:
            kubelet.start()
            wait_until(f"the kubelet of {name} is ready", lambda: _is_ready(name), 90)
            node.start_agent()
            self.nodes.append(node)
            wait_until(f"{name} offers what is published", node.offers_all)
            yield node
        except Exception:
            print(kubelet.tail(), node.agent.tail())
            raise
        finally:
            self.nodes = [other for other in self.nodes if other is not node]
            node.agent.stop()
            kubelet.stop()
            node.hardware.close()
            with suppress(ApiException, HTTPError):  # it may never have come
                client.CoreV1Api().delete_node(name)

    def restart_api_server(self) -> None:
        """Kill it and start it again with the same arguments, as its supervisor would."""
        self._restarted.append(restart_program(self.directory, "apiserver"))

    def offers_all(self) -> bool:
        """Whether each kubelet offers as many devices as its node's annotation counts."""
        return all(node.offers_all() for node in self.nodes)

    def published(self) -> list[dict[str, Any]]:
        """GPUs of the first node."""
        return self.node.published()

    def instances(self) -> Instances:
        """What exists on the hardware of all nodes."""
        found: Instances = {}
        for node in self.nodes:
            found |= node.instances()
        return found

    def log_of(self, pod: Any, container: str) -> str:
        (node,) = (node for node in self.nodes if node.name == pod.spec.node_name)
        return node.log_of(pod, container)

    def story(self, uid: str) -> list[str]:
        """What extender and agents logged of a Pod, in order: role and message."""
        files = [self.extender.log, *(node.agent.log for node in self.nodes)]
        lines = [line for file in files for line in file.read_text().splitlines()]
        entries = [json.loads(line) for line in lines if line.startswith("{")]
        about = [entry for entry in entries if entry.get("pod_uid") == uid]
        return [f"{e['role']}: {e['message']}" for e in sorted(about, key=lambda e: e["time"])]

    def diagnosis(self) -> str:
        parts = [self.extender.tail(), *(node.agent.tail() for node in self.nodes)]
        with suppress(ApiException, HTTPError):  # the cluster may be what broke
            for event in client.CoreV1Api().list_namespaced_event(NAMESPACE).items[-20:]:
                about = event.involved_object.name
                parts.append(f"{event.last_timestamp} {about} {event.reason}: {event.message}")
        return "\n".join(parts)

    def replica(self, pod: str, port: int) -> Process:
        """An extender as one Pod of its Deployment would run it."""
        pki = self.directory / "pki"
        return Process(
            pod,
            [sys.executable, "manage.py", "extender"],
            {
                "DJANGO_SETTINGS_MODULE": "hami_web.settings",
                "HAMI_KUBECONFIG": str(self.access("extender")),
                "HAMI_EXTENDER_LISTEN": f"127.0.0.1:{port}",
                "HAMI_EXTENDER_TLS_CERT": str(pki / "serving.crt"),
                "HAMI_EXTENDER_TLS_KEY": str(pki / "serving.key"),
                "HAMI_POD_NAME": pod,
                "HAMI_LOG_FORMAT": "json",
                "HAMI_SIGNING_KEYS": str(self.work / "signing-keys"),
            },
            self.work / f"{pod}.log",
        )

    def access(self, role: str) -> Path:
        """Kubeconfig of a role's own account."""
        return accounts.kubeconfig(self.directory, role)

    def _gpu_node(self, name: str, kubelet: Kubelet, **environ: str) -> GpuNode:
        access = {
            "HAMI_KUBECONFIG": str(self.access("node-agent")),
            "HAMI_SIGNING_KEYS": str(self.work / "signing-keys"),
        }
        return GpuNode(name, self.work / name, access | environ, kubelet)

    def _scheduler_config(self) -> str:
        """The shipped configuration, pointed at this suite's extender over TLS."""
        document = yaml.safe_load(SCHEDULER.read_text())
        document["clientConnection"] = {"kubeconfig": "@KUBECONFIG@"}
        document["leaderElection"] = {"leaderElect": False}
        names = {profile["schedulerName"] for profile in document["profiles"]}
        document["profiles"] += [{"schedulerName": name} for name in {"default-scheduler"} - names]
        (extender,) = document["extenders"]
        extender["urlPrefix"] = f"https://localhost:{self.service.port}"
        extender["enableHTTPS"] = True
        extender["tlsConfig"] = {"caFile": str(self.directory / "pki" / "ca.crt")}
        return yaml.safe_dump(document)

    def _extender_ready(self) -> bool:
        if not self.extender.runs:
            raise RuntimeError(self.extender.tail())
        return self._is_ready(self.port)

    def _is_ready(self, port: int) -> bool:
        return self.answers(port, "/readyz")

    def answers(self, port: int, path: str) -> bool:
        """Whether an extender answers 200 at this port."""
        try:
            with urllib.request.urlopen(
                f"https://localhost:{port}{path}",
                context=_trusting(self.directory / "pki" / "ca.crt"),
                timeout=2,
            ) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def metrics(self, port: int | None = None) -> str:
        """Metrics of the extender at this port, the first replica's by default."""
        context = _trusting(self.directory / "pki" / "ca.crt")
        with urllib.request.urlopen(
            f"https://localhost:{port or self.port}/metrics", context=context, timeout=5
        ) as answer:
            return str(answer.read().decode())

    def _register_webhook(self) -> None:
        text = (ROOT / "deploy" / "webhook.yaml").read_text()
        document = yaml.safe_load(text)
        authority = (self.directory / "pki" / "ca.crt").read_bytes()
        for webhook in document["webhooks"]:
            webhook["clientConfig"] = {
                "url": f"https://localhost:{self.service.port}/webhook",
                "caBundle": _base64(authority),
            }
        client.AdmissionregistrationV1Api().create_mutating_webhook_configuration(document)


def _api_answers() -> bool:
    try:
        client.CoreV1Api().list_namespace()
    except (ApiException, HTTPError):
        return False
    return True


def _is_ready(name: str) -> bool:
    nodes = client.CoreV1Api().list_node(field_selector=f"metadata.name={name}").items
    conditions = nodes[0].status.conditions or [] if nodes else []
    return any((item.type, item.status) == ("Ready", "True") for item in conditions)


def _trusting(authority: Path) -> Any:
    return ssl.create_default_context(cafile=str(authority))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
