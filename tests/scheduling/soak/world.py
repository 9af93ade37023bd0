"""A small cluster under fire: replicas of the scheduling core over a simulated API server.

What stands in is the node agent: it finds its Pod by the node lock, refuses what it must refuse,
and remembers what it made. The scheduling core is whole, with its own connection for each replica.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

from hami_web.cluster.client import KubernetesClient, OfficialConnection
from hami_web.cluster.errors import ClusterError, Conflict, NotFound
from hami_web.cluster.reflector import Timing
from hami_web.cluster.transport import Request, Transport
from hami_web.cluster.views import PodView
from hami_web.core import annotations as keys
from hami_web.core.capability import NodeCapability
from hami_web.core.nodelock import decode_lock
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.registration import encode_registration
from hami_web.core.reservation import Reservation, RuntimeIdentity, decode_allocations
from hami_web.core.reservation import encode_allocations as encode
from hami_web.core.signature import KeyFile, KeyRing
from hami_web.scheduling.bind import BindOrder
from hami_web.scheduling.decisions import Fits, NotReady
from hami_web.scheduling.errors import BindError
from hami_web.scheduling.leadership import Election
from hami_web.scheduling.runtime import Runtime, RuntimeOptions
from hami_web.simulator.identity import ADMIN_GROUP, Identities, User
from hami_web.simulator.server import SimulatedApiServer, write_kubeconfig
from tests.builders import a100_40gb

NAMESPACE = "default"
EXTENDER = "extender"
"""User of the replicas; faults are ordered for it alone."""
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
HOLD_S = 2.0
QUICK = Timing(backoff_first_s=0.02, backoff_most_s=0.1)


def eventually(what: str, condition: Callable[[], object], within_s: float = 10.0) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not in time: {what}")
        time.sleep(0.005)


class Replica:
    """One extender process's core; ``crash`` ends it as SIGKILL does, its Lease stays."""

    def __init__(self, kubeconfig: Path, pod: str, keys_file: Path) -> None:
        election = Election("hami-system", pod, lease_s=3, look_every_s=0.05)
        options = RuntimeOptions(
            kubeconfig,
            policy=SchedulingPolicy(hold_seconds=HOLD_S),
            election=election,
            keys=KeyFile(keys_file),
            bind_wait_s=0.3,
            timing=QUICK,
            calls_per_second=5000,
        )
        self.pod = pod
        self.runtime = Runtime(options)
        self.runtime.start()

    def crash(self) -> None:
        """Nothing is sent any more, not even what would give the Lease up."""
        self.runtime._connection._host = "http://127.0.0.1:9"
        self.runtime.stop()


class Agent:
    """What a node's agent does, as far as the scheduler sees it."""

    def __init__(self, client: KubernetesClient, node: str, ring: Callable[[], KeyRing]) -> None:
        self.instances: dict[tuple[str, int, int], str] = {}
        self._client = client
        self._node = node
        self._ring = ring

    def turn(self) -> None:
        """Reclaim what is over, then realize the lock's holder if everything agrees."""
        alive = set()
        for uid in set(self.instances.values()):
            if self._lives(uid):
                alive.add(uid)
        self.instances = {k: uid for k, uid in self.instances.items() if uid in alive}
        view = self._client.get_node(self._node)
        text = view.annotations.get(keys.NODE_LOCK)
        if not text:
            return
        lock = decode_lock(text)
        try:
            pod = self._client.get_pod(lock.namespace, lock.pod_name)
        except NotFound:
            return
        if pod.node_name != self._node or pod.is_terminal:
            return
        if pod.annotations.get(keys.POD_BIND_PHASE) == keys.BIND_PHASE_ALLOCATING:
            self._realize(pod)
        self._unlock(text)

    def _unlock(self, text: str) -> None:
        while True:
            view = self._client.get_node(self._node)
            if view.annotations.get(keys.NODE_LOCK) != text:
                return
            with contextlib.suppress(Conflict):
                self._client.annotate_node(view, {keys.NODE_LOCK: None})
                return

    def _lives(self, uid: str) -> bool:
        pod = self._pods().get(uid)
        return pod is not None and not pod.is_terminal

    def _pods(self) -> dict[str, PodView]:
        return {pod.uid: pod for pod in list_pods(self._client)}

    def _realize(self, pod: PodView) -> None:
        records = decode_allocations(pod.annotations[keys.POD_MIG_ALLOCATIONS])
        signature = pod.annotations.get(keys.POD_MIG_SIGNATURE)
        self._ring().verify(signature, pod.uid, self._node, records)
        made: list[Reservation] = []
        for number, item in enumerate(records):
            where = (item.gpu_uuid, item.placement.start, item.placement.size)
            taken = {
                (gpu, s) for gpu, start, size in self.instances for s in range(start, start + size)
            }
            wanted = {(item.gpu_uuid, s) for s in range(item.placement.start, item.placement.end)}
            assert not taken & wanted, f"{pod.full_name}: {where} overlaps {self.instances}"
            self.instances[where] = pod.uid
            identity = RuntimeIdentity(f"MIG-{pod.uid}-{number}", number, 0)
            made.append(
                Reservation(
                    item.container_index,
                    item.device_index,
                    item.gpu_uuid,
                    item.profile,
                    item.placement,
                    identity,
                )
            )
        self._client.annotate_pod(
            pod,
            {
                keys.POD_MIG_ALLOCATIONS: encode(made),
                keys.POD_BIND_PHASE: keys.BIND_PHASE_SUCCESS,
            },
        )


def list_pods(client: KubernetesClient) -> list[PodView]:
    from hami_web.cluster.resources import pods  # noqa: PLC0415

    return list(pods(client._transport).list_page(limit=5000, more="").items)


class World:
    """The whole of it, from ``__init__`` to ``close``."""

    def __init__(self, folder: Path, nodes: tuple[str, ...] = ("n1", "n2")) -> None:
        self.nodes = nodes
        self._folder = folder
        self._closing = contextlib.ExitStack()
        tokens = {name: User(name, (ADMIN_GROUP,)) for name in (EXTENDER, "world")}
        self.api = self._closing.enter_context(
            SimulatedApiServer(identities=Identities(tokens=tokens))
        )
        self.kubeconfig = write_kubeconfig(
            folder / "kubeconfig", server=self.api.url, token=EXTENDER
        )
        own = write_kubeconfig(folder / "own", server=self.api.url, token="world")
        connection = OfficialConnection(own)
        self._closing.callback(connection.close)
        self.transport = Transport(connection, user_agent="world")
        self.client = KubernetesClient(self.transport)
        self.keys_file = folder / "keys"
        self.keys_file.write_text("k1 " + "QUFB" * 16 + "\n")
        self.agents = {
            name: Agent(self.client, name, KeyFile(self.keys_file).ring) for name in nodes
        }
        for name in nodes:
            self.add_node(name)
        self._replicas = 0
        self.leader = self.start_replica("a")
        self.seen: dict[str, tuple[str, str]] = {}

    def start_replica(self, pod: str) -> Replica:
        return Replica(self.kubeconfig, pod, self.keys_file)

    def ready(self) -> None:
        eventually(
            f"ready: {self.leader.runtime.not_ready_because()}",
            lambda: self.leader.runtime.not_ready_because() is None,
        )

    def add_node(self, name: str) -> None:
        gpus = (a100_40gb(f"GPU-{name}-0"), a100_40gb(f"GPU-{name}-1", 1))
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "annotations": {keys.NODE_REGISTER: encode_registration(NodeCapability(gpus))},
            },
            "status": {
                "allocatable": {"nvidia.com/gpu": "14"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }
        self.transport.send(Request("POST", "/api/v1/nodes", body=node))

    def create_pod(self, name: str, memory: int, count: int = 1) -> None:
        limits = {"nvidia.com/gpu": str(count), "nvidia.com/gpumem": str(memory)}
        main = {"name": "main", "image": "x", "resources": {"limits": limits, "requests": limits}}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"containers": [main], "schedulerName": "hami-scheduler"},
        }
        self.transport.send(Request("POST", PODS, body=pod))

    def pod(self, name: str) -> PodView | None:
        try:
            return self.client.get_pod(NAMESPACE, name)
        except NotFound:
            return None

    def filter(self, name: str) -> str | None:
        """The node that the leader chooses, or None."""
        pod = self.pod(name)
        if pod is None:
            return None
        try:
            answer = self.leader.runtime.filter(pod, self.nodes)
        except NotReady:
            return None
        return answer.names[0] if isinstance(answer, Fits) else None

    def bind(self, name: str, uid: str, node: str) -> str:
        """Empty for success, else why not."""
        try:
            self.leader.runtime.bind(BindOrder(NAMESPACE, name, uid, node))
        except (BindError, ClusterError, NotReady) as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def finish_pod(self, name: str) -> None:
        body = {"status": {"phase": "Succeeded"}}
        merge = "application/merge-patch+json"
        request = Request("PATCH", f"{PODS}/{name}/status", body=body, content_type=merge)
        self.transport.send(request)

    def delete_pod(self, name: str) -> None:
        with contextlib.suppress(NotFound):
            body = {"gracePeriodSeconds": 0}
            self.transport.send(Request("DELETE", f"{PODS}/{name}", body=body))

    def agents_turn(self) -> None:
        for agent in self.agents.values():
            with contextlib.suppress(NotFound):
                agent.turn()

    def check(self) -> None:
        """What must hold at every moment, read from the API server alone."""
        taken: dict[tuple[str, int], str] = {}
        ring = KeyFile(self.keys_file).ring()
        for pod in list_pods(self.client):
            owned = {k: v for k, v in pod.annotations.items() if k in keys.OWNED_ON_PODS}
            owned.pop(keys.POD_RETRY_AT, None)
            if not pod.node_name:
                assert not owned, f"{pod.full_name} is unbound and carries {owned}"
                continue
            records = decode_allocations(owned[keys.POD_MIG_ALLOCATIONS])
            ring.verify(owned[keys.POD_MIG_SIGNATURE], pod.uid, pod.node_name, records)
            logical = str([(r.key, r.gpu_uuid, r.profile, r.placement) for r in records])
            assert self.seen.setdefault(pod.uid, (pod.node_name, logical)) == (
                pod.node_name,
                logical,
            ), f"{pod.full_name} was moved"
            if pod.is_terminal:
                continue
            for item in records:
                for s in range(item.placement.start, item.placement.end):
                    other = taken.setdefault((item.gpu_uuid, s), pod.full_name)
                    assert other == pod.full_name, f"{pod.full_name} and {other} share {item}"

    def claims(self) -> list[object]:
        return list(self.leader.runtime.state.snapshot().claims())

    def locks(self) -> dict[str, str]:
        found = {}
        for name in self.nodes:
            with contextlib.suppress(NotFound):
                text = self.client.get_node(name).annotations.get(keys.NODE_LOCK)
                if text:
                    found[name] = text
        return found

    def close(self) -> None:
        self.api.faults.clear()
        self.leader.runtime.stop()
        self._closing.close()
