"""One node with a real agent, a real extender, and all its Pods bound at the same moment."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hami_web.core import annotations as keys
from hami_web.core.reservation import decode_allocations
from hami_web.simulator.client import ApiClient, Endpoint
from hami_web.simulator.demo_cluster import ROOT
from hami_web.simulator.demo_dashboard import answers
from hami_web.simulator.demo_nodes import DemoNode
from hami_web.simulator.demo_plan import NAMESPACE, NodePlan, PodPlan
from hami_web.simulator.demo_processes import LOOPBACK, Children, choose_port
from hami_web.simulator.device_plugins import DevicePlugins, Injected
from hami_web.simulator.extender import Extender, ExtenderConfig, ExtenderError
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig

NODE = "gpu-node"
MEMORY_MIB = 4000
BIND_WAIT_S = "120"
"""Nobody is sent away for waiting: what is measured is the queue, not the scheduler's retries."""
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_WAIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Burst:
    """Seconds from the first ``/bind`` to the last Pod that runs, and of each Allocate, as the
    kubelet waited for it. ``shared`` are memory slices that two Pods were given.
    """

    wall_s: float
    allocate_s: tuple[float, ...]
    running: int
    shared: int
    instances: int
    refused: tuple[str, ...]

    @property
    def ratio(self) -> float:
        """Wall time over the sum of the Allocates, which a node serves one after another."""
        return self.wall_s / sum(self.allocate_s)


def run_burst(pods: int, gpus: int, create_s: float = 0.0) -> Burst:
    """Filter ``pods`` Pods, then bind them all at once to a node of ``gpus`` A100.

    ``create_s`` is how long the driver takes to create a GPU instance.
    """
    plan = NodePlan(NODE, ("a100-sxm4-40gb",) * gpus, create_s=create_s)
    folder = Path(tempfile.mkdtemp(prefix="burst-"))
    try:
        with _cluster(folder, plan) as (api, node, extender), _timed() as allocate_s:
            plans = [PodPlan(f"p{number}", MEMORY_MIB) for number in range(pods)]
            created = [api.create(_PODS, plan.document()) for plan in plans]
            for pod in created:
                answer = extender.filter(pod, {NODE: {}})
                assert answer.nodes == (NODE,), answer.failed
            with ThreadPoolExecutor(pods) as binders:
                began = time.monotonic()
                refused = [e for e in binders.map(lambda pod: _bind(extender, pod), created) if e]
                found = _wait_for(lambda: _all_run(api, pods - len(refused)))
                wall_s = time.monotonic() - began
            slices = [s for pod in found for s in _memory_slices(pod)]
            return Burst(
                wall_s,
                tuple(allocate_s),
                len(found),
                len(slices) - len(set(slices)),
                len(node.instances()),
                tuple(refused),
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _cluster(folder: Path, plan: NodePlan) -> Iterator[tuple[ApiClient, DemoNode, Extender]]:
    with contextlib.ExitStack() as closing:
        server = closing.enter_context(SimulatedApiServer())
        endpoint = Endpoint(server.url)
        api = ApiClient(endpoint)
        closing.callback(api.close)
        api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        kubeconfig = write_kubeconfig(folder / "kubeconfig", server=server.url)
        children = Children(folder)
        closing.callback(children.stop)
        signing = folder / "signing-keys"
        signing.write_text(f"test {base64.b64encode(os.urandom(32)).decode()}\n")
        node = DemoNode(plan, folder, children)
        node.start(endpoint, kubeconfig, signing)
        closing.callback(node.stop)
        listen = f"{LOOPBACK}:{choose_port(0, '')}"
        command = [str(ROOT / "manage.py"), "extender", "--listen", listen]
        settings = {
            "HAMI_KUBECONFIG": str(kubeconfig),
            "HAMI_BIND_WAIT_S": BIND_WAIT_S,
            "HAMI_SIGNING_KEYS": str(signing),
        }
        children.start("extender", command, settings)
        _wait_for(lambda: answers(f"http://{listen}/readyz"), children.check)
        _wait_for(lambda: node.is_offered(api), children.check)
        extender = Extender(ExtenderConfig(f"http://{listen}", timeout=_WAIT_S))
        closing.callback(extender.close)
        yield api, node, extender


@contextmanager
def _timed() -> Iterator[list[float]]:
    """Notes how long the kubelet waits for each Allocate, in seconds."""
    found: list[float] = []
    lock = threading.Lock()
    call = DevicePlugins._call

    def timed(*arguments: Any) -> Injected:
        began = time.monotonic()
        answer = call(*arguments)
        with lock:
            found.append(time.monotonic() - began)
        return answer

    DevicePlugins._call = staticmethod(timed)  # type: ignore[method-assign]
    try:
        yield found
    finally:
        DevicePlugins._call = staticmethod(call)  # type: ignore[method-assign]


def _bind(extender: Extender, pod: dict[str, Any]) -> str:
    """Bind as kube-scheduler does, once; the error's text, empty for none."""
    try:
        extender.bind(pod, NODE)
    except ExtenderError as error:
        return str(error)
    return ""


def _all_run(api: ApiClient, pods: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = api.get(_PODS)["items"]
    failed = [i["status"] for i in items if i["status"].get("phase") == "Failed"]
    assert not failed, failed
    running = [item for item in items if item["status"].get("phase") == "Running"]
    return running if len(running) == pods else []


def _memory_slices(pod: dict[str, Any]) -> list[tuple[str, int]]:
    text = pod["metadata"]["annotations"][keys.POD_MIG_ALLOCATIONS]
    return [
        (r.gpu_uuid, s)
        for r in decode_allocations(text)
        for s in range(r.placement.start, r.placement.end)
    ]


def _wait_for(check: Callable[[], Any], alive: Callable[[], None] = lambda: None) -> Any:
    deadline = time.monotonic() + _WAIT_S
    while not (found := check()):
        alive()
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.02)
    return found
