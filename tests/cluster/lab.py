"""A real Kubernetes of the suite's own, and the product's processes on it."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config
from kubernetes.client.rest import ApiException
from urllib3.exceptions import HTTPError

from node_agent.nvml.simulated.lookups import GpuSpec
from node_agent.nvml.simulated.node import SimulatedNode
from tests.cluster.service import Service

Instances = dict[tuple[str, int, int], str]
"""(GPU, start, size) to the MIG UUID."""
ROOT = Path(__file__).parents[2]
NODE = "gpu-node-a"
NAMESPACE = "hami-e2e"
SYSTEM = "hami-system"
SCHEDULER = ROOT / "deploy" / "scheduler-config" / "kube-scheduler-1.20.yaml"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(what: str, check: Callable[[], Any], seconds: float = 60) -> Any:
    """Poll until ``check`` returns something true; raise with the last answer otherwise."""
    deadline = time.monotonic() + seconds
    while True:
        answer = check()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s: {what}; last answer: {answer!r}")
        time.sleep(0.05)


class Process:
    """One process of the product, restartable, its output in a file."""

    def __init__(self, name: str, command: list[str], environ: Mapping[str, str], log: Path):
        self.name = name
        self.log = log
        self._command = command
        self._environ = dict(environ)
        self._popen: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("ab") as output:
            self._popen = subprocess.Popen(
                self._command,
                env=os.environ | self._environ,
                cwd=ROOT,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._popen is None:
            return
        with suppress(ProcessLookupError):  # it may have ended by itself
            os.killpg(self._popen.pid, how)
        self._popen.wait(30)
        self._popen = None

    @property
    def runs(self) -> bool:
        return self._popen is not None and self._popen.poll() is None

    @property
    def threads(self) -> int:
        if self._popen is None:
            return 0
        return len(list(Path(f"/proc/{self._popen.pid}/task").iterdir()))

    def tail(self, lines: int = 40) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return f"--- {self.name}\n" + "\n".join(text.splitlines()[-lines:])


def offered_by(node: Any) -> int:
    """Devices that the kubelet of the node offers to Pods."""
    return int((node.status.allocatable or {}).get("nvidia.com/gpu", 0))


def published_by(node: Any) -> list[dict[str, Any]]:
    """GPUs of a node's annotation; none while it has none."""
    text = (node.metadata.annotations or {}).get("hami.io/node-nvidia-register", "[]")
    gpus: list[dict[str, Any]] = json.loads(text)
    return gpus


class Lab:
    """The cluster of a folder with ``up.sh``, with extender and agent under least privilege."""

    def __init__(self, kube: Path, work: Path) -> None:
        self.kube = kube
        self.work = work
        self.directory = work / "kube"
        self.port = free_port()
        self.service = Service(free_port(), self._is_ready, self.port)
        self.metrics_port = free_port()
        self._api_server: subprocess.Popen[bytes] | None = None
        self.node = SimulatedNode(work / "nvml")
        self.extender = self.replica("extender-a", self.port)
        self.agent = self._agent()

    def up(self) -> None:
        self.node.create([GpuSpec("a100-sxm4-40gb"), GpuSpec("a100-sxm4-40gb", id_map="swapped")])
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
        config.load_kube_config(str(self.directory / "admin.conf"))
        for namespace in (NAMESPACE, SYSTEM):
            client.CoreV1Api().create_namespace({"metadata": {"name": namespace}})
        self._grant("extender.yaml", "hami-control-plane")
        self._grant("node-agent.yaml", "hami-node-agent")
        self.extender.start()
        self.service.start()
        self.start_agent()
        wait_until("the extender is ready", self._extender_ready)
        self._register_webhook()
        wait_until("the kubelet offers GPUs", self.offered_devices)
        wait_until("the capability is published", self.published)

    def down(self) -> None:
        self.agent.stop()
        self.extender.stop()
        self.service.stop()
        subprocess.run([self.kube / "down.sh", self.directory], check=False, timeout=120)
        if self._api_server is not None:
            self._api_server.wait(30)

    def restart_agent(self) -> None:
        """As a crash would: no clean-up, then a fresh process."""
        self.agent.stop(signal.SIGKILL)
        self.start_agent()

    def start_agent(self) -> None:
        """Start it and wait until it is ready; the kubelet admits no GPU Pod before."""
        self.agent.start()
        wait_until("the agent is ready", self._agent_ready)

    def _agent_ready(self) -> bool:
        if not self.agent.runs:
            raise RuntimeError(self.agent.tail())
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.metrics_port}/readyz", timeout=2
            ) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def restart_api_server(self) -> None:
        """Kill it and start it again with the same arguments, as its supervisor would."""
        file = self.directory / "pid" / "apiserver"
        pid = int(file.read_text())
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
        program = Path(f"/proc/{pid}/exe").readlink()
        os.kill(pid, signal.SIGKILL)
        wait_until("its port is free", lambda: _refuses("127.0.0.1", 6443))
        with (self.work / "apiserver.log").open("ab") as output:
            self._api_server = subprocess.Popen(
                arguments,
                executable=program,
                cwd=self.directory,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        file.write_text(str(self._api_server.pid))

    def kill_kubelet(self) -> None:
        """Without a word; ``restart_kubelet`` brings another one."""
        pid = int((self.directory / "pid" / "kubelet").read_text())
        os.kill(pid, signal.SIGKILL)
        wait_until("it is dead", lambda: not Path(f"/proc/{pid}/cmdline").read_bytes())

    def restart_kubelet(self) -> None:
        subprocess.run([self.directory / "restart-kubelet"], check=True, timeout=60)

    def agent_registrations(self) -> float:
        """How often the agent registered with the kubelet since it started."""
        address = f"http://127.0.0.1:{self.metrics_port}/metrics"
        with urllib.request.urlopen(address, timeout=5) as answer:
            text = answer.read().decode()
        found = re.search(r'registrations_total\{outcome="success"\} ([0-9.]+)', text)
        return float(found[1]) if found else 0.0

    def agent_threads(self) -> int:
        """Threads of the agent's process now."""
        return self.agent.threads

    def offers_all(self) -> bool:
        """Whether the kubelet offers as many devices as the node's annotation counts."""
        return self.offered_devices() == sum(gpu["count"] for gpu in self.published())

    def offered_devices(self) -> int:
        return offered_by(client.CoreV1Api().read_node(NODE))

    def published(self) -> list[dict[str, Any]]:
        return published_by(client.CoreV1Api().read_node(NODE))

    def instances(self) -> Instances:
        """What exists on the hardware, a GPU instance without a compute instance with ""."""
        found: Instances = {}
        for gpu in self.node.state().gpus:
            for instance in gpu.instances:
                uuids = [ci.mig_uuid for ci in instance.compute_instances]
                found[gpu.uuid, instance.start, instance.size] = ",".join(uuids)
        return found

    def log_of(self, pod: Any, container: str) -> str:
        folder = Path("/var/log/pods") / (
            f"{pod.metadata.namespace}_{pod.metadata.name}_{pod.metadata.uid}"
        )
        path = folder / container / "0.log"
        return path.read_text() if path.exists() else ""

    def diagnosis(self) -> str:
        parts = [self.extender.tail(), self.agent.tail()]
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
                "HAMI_KUBECONFIG": str(self.directory / "control-plane.conf"),
                "HAMI_EXTENDER_LISTEN": f"127.0.0.1:{port}",
                "HAMI_EXTENDER_TLS_CERT": str(pki / "serving.crt"),
                "HAMI_EXTENDER_TLS_KEY": str(pki / "serving.key"),
                "HAMI_POD_NAME": pod,
                "HAMI_SIGNING_KEYS": str(self.work / "signing-keys"),
                "HAMI_TRUSTED_WRITERS": "hami-control-plane,hami-node-agent",
            },
            self.work / f"{pod}.log",
        )

    def _agent(self) -> Process:
        return Process(
            "node agent",
            [sys.executable, "-m", "node_agent"],
            {
                "NODE_NAME": NODE,
                "HAMI_KUBECONFIG": str(self.directory / "node-agent.conf"),
                "HAMI_DEVICE_CONFIG": str(ROOT / "deploy" / "device-config.yaml"),
                "HAMI_STATE_DIR": str(self.work / "agent"),
                "HAMI_SIMULATED_NVML": str(self.work / "nvml"),
                "HAMI_LOG_FORMAT": "text",
                "HAMI_METRICS_PORT": str(self.metrics_port),
                "HAMI_SIGNING_KEYS": str(self.work / "signing-keys"),
            },
            self.work / "agent.log",
        )

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

    def _grant(self, manifest: str, user: str) -> None:
        """Give a plain user exactly what the shipped role gives the ServiceAccount."""
        api = client.RbacAuthorizationV1Api()
        text = (ROOT / "deploy" / "rbac" / manifest).read_text()
        for document in yaml.safe_load_all(text):
            subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
            if document["kind"] == "ClusterRole":
                api.create_cluster_role(document)
            elif document["kind"] == "ClusterRoleBinding":
                api.create_cluster_role_binding(document | {"subjects": [subject]})
            elif document["kind"] == "Role":
                api.create_namespaced_role(SYSTEM, document)
            elif document["kind"] == "RoleBinding":
                api.create_namespaced_role_binding(SYSTEM, document | {"subjects": [subject]})

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

    def metrics(self) -> str:
        context = _trusting(self.directory / "pki" / "ca.crt")
        with urllib.request.urlopen(
            f"https://localhost:{self.port}/metrics", context=context, timeout=5
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


def _refuses(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) != 0


def _trusting(authority: Path) -> Any:
    return ssl.create_default_context(cafile=str(authority))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
