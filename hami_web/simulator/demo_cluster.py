"""The demo's cluster: simulated Kubernetes and NVML, and the product's own programs on them."""

from __future__ import annotations

import base64
import contextlib
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import yaml

from hami_web.simulator.client import ApiClient, ApiError, Endpoint
from hami_web.simulator.demo_board import Board
from hami_web.simulator.demo_dashboard import DemoDashboard, answers
from hami_web.simulator.demo_nodes import DemoNode
from hami_web.simulator.demo_observe import SeenInstance
from hami_web.simulator.demo_plan import CONTAINER, NAMESPACE, ForeignSpot, NodePlan, PodPlan
from hami_web.simulator.demo_pods import SeenPod, read_pod
from hami_web.simulator.demo_processes import LOOPBACK, Children, DemoError, choose_port
from hami_web.simulator.extender import ExtenderConfig
from hami_web.simulator.identity import ANYONE
from hami_web.simulator.scheduler import SchedulerConfig, SimulatedScheduler
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig

ROOT: Final = Path(__file__).resolve().parents[2]
WEBHOOK: Final = ROOT / "deploy/webhook.yaml"
EXTENDER_SERVICE: Final = ("hami-system", "hami-extender")
_PODS: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
_WEBHOOKS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
GRACE_S: Final = 10
_START_S: Final = 60.0
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class DemoPorts:
    """Ports on loopback, 0 for any free one; ``web`` None starts no dashboard."""

    api: int = 0
    extender: int = 0
    web: int | None = None


class DemoCluster:
    """Everything from :meth:`start` to :meth:`stop`; all state is under ``folder``."""

    def __init__(self, folder: Path, plans: tuple[NodePlan, ...]) -> None:
        self.dashboard = DemoDashboard("")
        self._folder = folder
        self._data = folder / "data"
        self._data.mkdir()
        self.board = Board(self._data)
        self._keys = folder / "signing-keys"
        secret = base64.b64encode(secrets.token_bytes(32)).decode()
        self._keys.write_text(f"demo {secret}\n", encoding="utf-8")
        self._plans = plans
        logs = folder / "logs"
        logs.mkdir()
        self._children = Children(logs)
        self._nodes: dict[str, DemoNode] = {}
        self._closing = contextlib.ExitStack()
        self._api: ApiClient | None = None

    def start(self, ports: DemoPorts, tell: Tell) -> None:
        """Start everything and wait until it can take Pods. Raises :class:`DemoError`."""
        if not WEBHOOK.is_file():
            raise DemoError(f"{WEBHOOK}: no such file; run the demo in a checkout of the project")
        api_port = choose_port(ports.api, "--api-port")
        extender_port = choose_port(ports.extender, "--extender-port")
        web_port = None if ports.web is None else choose_port(ports.web, "--port")
        extender_url = f"http://{LOOPBACK}:{extender_port}"
        server = SimulatedApiServer(port=api_port, services={EXTENDER_SERVICE: extender_url})
        self._closing.enter_context(server)
        endpoint = Endpoint(server.url)
        self._api = ApiClient(endpoint)
        self._closing.callback(self._api.close)
        self._closing.callback(self._children.stop)
        kubeconfig = write_kubeconfig(self._folder / "kubeconfig", server=server.url)
        tell(f"A simulated Kubernetes API server listens at {server.url} (KUBECONFIG={kubeconfig})")
        self._prepare_api()
        self._start_nodes(endpoint, kubeconfig, tell)
        mirror = {
            "HAMI_KUBECONFIG": str(kubeconfig),
            "HAMI_DATA_DIR": str(self._data),
            "HAMI_SIGNING_KEYS": str(self._keys),
            # The worker compares so often, and the pages expect it.
            "HAMI_RECONCILE_SECONDS": "3",
        }
        self._start_worker(mirror, extender_url)
        self._start_extender(kubeconfig, extender_port, tell)
        if web_port is not None:
            self._start_web(mirror, web_port, tell)
        scheduler = SimulatedScheduler(endpoint, SchedulerConfig(ExtenderConfig(extender_url)))
        scheduler.start()
        self._closing.callback(scheduler.stop)
        for node in self._nodes.values():
            self._wait(f"the GPUs of {node.name}", partial(node.is_offered, self.api))
        tell("Every node has published its GPUs; the cluster is ready.")

    def stop(self) -> None:
        """Stop the programs, then the simulators."""
        self._closing.close()

    def check(self) -> None:
        """Raise :class:`DemoError` when a program has ended by itself."""
        self._children.check()

    @property
    def api(self) -> ApiClient:
        """The cluster's API, as an administrator."""
        if self._api is None:
            raise DemoError("the demo's cluster is not started")
        return self._api

    def create(self, plan: PodPlan) -> None:
        """Create a Pod."""
        self.api.create(_PODS, plan.document())

    def delete(self, name: str) -> None:
        """Ask for the deletion of a Pod; one that is gone already is no error."""
        try:
            self.api.delete(f"{_PODS}/{name}", {"gracePeriodSeconds": GRACE_S})
        except ApiError as error:
            if error.code != 404:
                raise

    def evict(self, name: str) -> None:
        """Ask for the eviction of a Pod, as ``kubectl drain`` does."""
        eviction = {"metadata": {"name": name, "namespace": NAMESPACE}}
        self.api.create(f"{_PODS}/{name}/eviction", eviction)

    def finish(self, pod: SeenPod) -> None:
        """The containers of a running Pod exit with success."""
        self._nodes[pod.node].finish(pod.name)

    def container_env(self, pod: SeenPod) -> Mapping[str, str]:
        """What plugins put into the environment of the Pod's container."""
        return self._nodes[pod.node].container_env(pod.uid, CONTAINER)

    def pod(self, name: str) -> SeenPod | None:
        """A Pod as it is now, or None."""
        try:
            return read_pod(self.api.get(f"{_PODS}/{name}"))
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def pod_names(self) -> list[str]:
        """Names of all Pods of the demo."""
        items = self.api.get(_PODS)["items"]
        return [str(item["metadata"]["name"]) for item in items]

    def instances(self, node: str) -> tuple[SeenInstance, ...]:
        """What NVML has on a node, listed afresh."""
        return self._nodes[node].instances()

    def gpu_uuids(self, node: str) -> tuple[str, ...]:
        """UUIDs of a node's GPUs by index."""
        return self._nodes[node].gpu_uuids

    def cut_by_hand(self, spot: ForeignSpot) -> str:
        """Make a GPU instance past everyone, as ``nvidia-smi mig -cgi`` does; its placement."""
        return self._nodes[spot.node].cut_by_hand(spot)

    def mend_by_hand(self, spot: ForeignSpot) -> None:
        """Destroy what :meth:`cut_by_hand` made."""
        self._nodes[spot.node].mend_by_hand()

    def restart_agent(self, node: str) -> None:
        """Kill a node's agent (SIGKILL) and start it again; returns when it offers GPUs."""
        target = self._nodes[node]
        target.kill_agent()
        self._wait(f"{node} without GPUs", lambda: not target.is_offered(self.api))
        target.start_agent()
        self._wait(f"the GPUs of {node}", partial(target.is_offered, self.api))

    def _prepare_api(self) -> None:
        self.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        self.api.create(_WEBHOOKS, yaml.safe_load(WEBHOOK.read_text(encoding="utf-8")))

    def _start_nodes(self, endpoint: Endpoint, kubeconfig: Path, tell: Tell) -> None:
        for plan in self._plans:
            node = DemoNode(plan, self._folder, self._children)
            node.start(endpoint, kubeconfig, self._keys)
            self._closing.callback(node.stop)
            self._nodes[plan.name] = node
            tell(f"Node {plan.description}: simulated NVML and kubelet, a real node agent")

    def _start_extender(self, kubeconfig: Path, port: int, tell: Tell) -> None:
        listen = f"{LOOPBACK}:{port}"
        self._children.start(
            "extender",
            [str(ROOT / "manage.py"), "extender", "--listen", listen, "--threads", "16"],
            # Everyone is one user here, the agents too, whose reservations the webhook guards.
            {
                "HAMI_KUBECONFIG": str(kubeconfig),
                "HAMI_TRUSTED_WRITERS": ANYONE.name,
                "HAMI_SIGNING_KEYS": str(self._keys),
            },
        )
        self._wait("the extender", lambda: answers(f"http://{listen}/readyz"))
        tell(f"The scheduler extender answers at http://{listen}")

    def _start_worker(self, mirror: Mapping[str, str], extender_url: str) -> None:
        """Feed, queue and tasks, with SQLite and a queue of files in the demo's folder."""
        self._children.start(
            "worker",
            [str(ROOT / "manage.py"), "worker", "--migrate"],
            {
                **mirror,
                "HAMI_EXTENDER_URL": extender_url,
                "HAMI_SAMPLE_SECONDS": "5",
            },
        )

    def _start_web(self, mirror: Mapping[str, str], port: int, tell: Tell) -> None:
        listen = f"{LOOPBACK}:{port}"
        self._children.start(
            "web",
            [str(ROOT / "manage.py"), "web", "--listen", listen],
            {
                **mirror,
                "DJANGO_SETTINGS_MODULE": "hami_web.simulator.demo_web.settings",
                # As lasting as the demo itself.
                "HAMI_SECRET_KEY": secrets.token_urlsafe(48),
                # Nobody signs in; it listens on this machine alone.
                "HAMI_ANONYMOUS_ROLE": "viewer",
                "HAMI_ANONYMOUS_NAMESPACES": "*",
            },
        )
        self.dashboard = DemoDashboard(f"http://{listen}/")
        self._wait("the dashboard", lambda: self.dashboard.answers)
        self._wait("the mirror", lambda: self.dashboard.follows)
        tell(f"The dashboard answers at {self.dashboard.url}, and the worker mirrors the cluster")

    def _wait(self, what: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _START_S
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                logs = self._children.tails()
                raise DemoError(f"{what}: not ready after {_START_S:g} s; the logs:\n{logs}")
            time.sleep(0.05)
