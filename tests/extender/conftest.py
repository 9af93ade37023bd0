"""The extender as it is run: ``manage.py extender`` in a process, on a simulated API server."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hami_web.cluster.client import KubernetesClient, OfficialConnection
from hami_web.cluster.transport import Request, Transport
from hami_web.core.capability import NodeCapability
from hami_web.core.registration import encode_registration
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig
from tests.builders import a100_40gb

ROOT = Path(__file__).parent.parent.parent
REGISTER = "hami.io/node-nvidia-register"


class Extender:
    """Speaks to a running extender over one kept-alive connection."""

    def __init__(self, port, process=None):
        self.port = port
        self.process = process
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def call(self, method, path, body=None):
        headers = {"Content-Type": "application/json"}
        self.connection.request(method, path, body=body, headers=headers)
        answer = self.connection.getresponse()
        found = answer.status, answer.read()
        if answer.status == 503:
            # Who is sent away must be free to reach another replica with the next call.
            assert self.connection.sock is None or self.connection.sock.recv(1) == b""
            self.connection.close()
        return found

    def post(self, path, document):
        status, body = self.call("POST", path, json.dumps(document).encode())
        assert status == 200, (status, body)
        return json.loads(body)

    def filter(self, pod, *names):
        return self.post("/filter", {"Pod": pod, "Nodes": None, "NodeNames": list(names)})

    def bind(self, pod, node):
        meta = pod["metadata"]
        return self.post(
            "/bind",
            {
                "PodName": meta["name"],
                "PodNamespace": meta["namespace"],
                "PodUID": meta["uid"],
                "Node": node,
            },
        )["Error"]

    def stop(self, how=signal.SIGTERM):
        """End the process and return its status."""
        self.connection.close()
        if self.process.poll() is None:
            if how == signal.SIGTERM:
                self.process.send_signal(how)
            else:
                self.signal_all(how)
        return self.process.wait(30)

    def signal_all(self, how):
        """To the server and its worker."""
        os.killpg(self.process.pid, how)

    def wait_ready(self, within_s=45.0):
        deadline = time.monotonic() + within_s
        while True:
            try:
                if self.call("GET", "/readyz")[0] == 200:
                    return
            except (OSError, http.client.HTTPException):
                self.connection.close()
            assert time.monotonic() < deadline, "the extender is not ready in time"
            time.sleep(0.05)


class Cluster:
    """What the tests put into the simulated cluster."""

    def __init__(self, transport):
        self.transport = transport
        self.client = KubernetesClient(transport)

    def create(self, path, document):
        return json.loads(self.transport.send(Request("POST", path, body=document)))

    def delete_pod(self, name):
        self.delete(f"/api/v1/namespaces/default/pods/{name}", {"gracePeriodSeconds": 0})

    def delete(self, path, options=None):
        self.transport.send(Request("DELETE", path, body=options or {}))

    def gpu_node(self, name, *gpus):
        register = encode_registration(NodeCapability(gpus or (a100_40gb(),)))
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "annotations": {REGISTER: register}},
            "status": {
                "allocatable": {"nvidia.com/gpu": "7"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        return self.create("/api/v1/nodes", node)

    def pod(self, name, count="1", **limits):
        values = {f"nvidia.com/{key.replace('_', '-')}": value for key, value in limits.items()}
        if count:
            values["nvidia.com/gpu"] = count
        main = {"name": "main", "image": "x", "resources": {"limits": values, "requests": values}}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"containers": [main], "schedulerName": "hami-scheduler"},
        }
        return self.create("/api/v1/namespaces/default/pods", pod)

    def annotations(self, name):
        return dict(self.client.get_pod("default", name).annotations)

    def lock_of(self, node):
        return self.client.get_node(node).annotations.get("hami.io/mutex.lock")

    def unlock(self, node):
        view = self.client.get_node(node)
        self.client.annotate_node(view, {"hami.io/mutex.lock": None})


@pytest.fixture
def api():
    with SimulatedApiServer() as server:
        yield server


@pytest.fixture
def cluster(api, tmp_path):
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", server=api.url)
    connection = OfficialConnection(kubeconfig)
    yield Cluster(Transport(connection, user_agent="test"))
    connection.close()


@pytest.fixture
def start_extender(api, tmp_path):
    started = []

    def start(**environment):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        kubeconfig = write_kubeconfig(tmp_path / "extender-kubeconfig", server=api.url)
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "extender"],
            cwd=tmp_path,
            start_new_session=True,
            env=os.environ
            | {
                "HAMI_KUBECONFIG": str(kubeconfig),
                "HAMI_EXTENDER_LISTEN": f"127.0.0.1:{port}",
                "HAMI_EXTENDER_THREADS": "16",
                "DJANGO_SETTINGS_MODULE": "hami_web.settings",
                "PYTHONPATH": str(ROOT),
            }
            | environment,
        )
        extender = Extender(port, process)
        started.append(extender)
        return extender

    yield start
    for extender in started:  # how one ends by itself is tested in test_restart and test_failover
        assert extender.process.poll() in (None, 0, -signal.SIGKILL)
        extender.stop(signal.SIGKILL)


@pytest.fixture
def extender(start_extender):
    running = start_extender()
    running.wait_ready()
    return running
