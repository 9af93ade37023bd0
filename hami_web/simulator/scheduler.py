"""The scheduler loop: one Pod at a time through filter and pick, binding beside it."""

from __future__ import annotations

import http.client
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hami_web.simulator.client import ApiClient, ApiError, Endpoint
from hami_web.simulator.documents import JsonObject, key_of, lookup, metadata, uid_of
from hami_web.simulator.extender import Extender, ExtenderConfig, ExtenderError, Filtered
from hami_web.simulator.fitting import node_change_matters, refusal_of, unschedulable_message
from hami_web.simulator.patches import STRATEGIC
from hami_web.simulator.pods import FINISHED, set_condition
from hami_web.simulator.reflector import Reflector
from hami_web.simulator.scheduling_queue import SchedulingQueue

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """What a KubeSchedulerConfiguration says; back-off in seconds."""

    extender: ExtenderConfig
    scheduler_name: str = "hami-scheduler"
    first_backoff: float = 1.0
    longest_backoff: float = 10.0


class SimulatedScheduler:
    """Schedules the Pods of one scheduler name.

    Of kube-scheduler's own plugins it has: node Ready, cordon and ``nodeSelector``. Resources are
    left to the extender, as ``ignoredByScheduler`` has it. ``prioritize`` and preemption are not
    simulated: of several nodes the first that the extender names is taken.
    """

    def __init__(self, endpoint: Endpoint, config: SchedulerConfig) -> None:
        self._name = config.scheduler_name
        self._client = ApiClient(endpoint)
        self._extender = Extender(config.extender)
        self._queue = SchedulingQueue(first=config.first_backoff, longest=config.longest_backoff)
        self._assumed: dict[str, str] = {}
        self._lock = threading.Lock()
        self._nodes = Reflector(self._client, "/api/v1/nodes", self._on_node)
        self._pods = Reflector(self._client, "/api/v1/pods", self._on_pod)
        self._binders = ThreadPoolExecutor(max_workers=32, thread_name_prefix="bind")
        self._thread = threading.Thread(target=self._run, name="simulated-scheduler")

    def start(self) -> None:
        """Begin to schedule; returns once nodes and Pods are known, after 20 s anyway."""
        self._nodes.start()
        self._nodes.wait_until_synced(10)
        self._pods.start()
        self._pods.wait_until_synced(10)
        self._thread.start()

    def stop(self) -> None:
        """End the loop after the binding cycles that are under way."""
        self._queue.close()
        self._thread.join()
        self._binders.shutdown()
        self._pods.stop()
        self._nodes.stop()
        self._extender.close()
        self._client.close()

    def waiting(self) -> list[tuple[str, str]]:
        """(namespace, name) of Pods in the queue."""
        return self._queue.waiting()

    def _on_node(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if new is not None and (old is None or node_change_matters(old, new)):
            self._queue.move_all()

    def _on_pod(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if old is not None and new is not None and uid_of(old) != uid_of(new):
            self._forget(old)
            old = None
        if new is None or self._is_assigned(new) or lookup(new, "status.phase") in FINISHED:
            known = new or old
            if known is not None:
                self._forget(known)
            if old is not None and self._is_assigned(old) and self._frees(old, new):
                self._queue.move_all()
            return
        if lookup(new, "spec.schedulerName") == self._name:
            self._queue_pod(old, new)

    @staticmethod
    def _is_assigned(pod: JsonObject) -> bool:
        return bool(lookup(pod, "spec.nodeName"))

    @staticmethod
    def _frees(old: JsonObject, new: JsonObject | None) -> bool:
        """An assigned Pod was deleted or has just finished."""
        if new is None:
            return True
        return (
            lookup(old, "status.phase") not in FINISHED and lookup(new, "status.phase") in FINISHED
        )

    def _forget(self, pod: JsonObject) -> None:
        self._queue.remove(key_of(pod))
        with self._lock:
            self._assumed.pop(uid_of(pod), None)

    def _queue_pod(self, old: JsonObject | None, new: JsonObject) -> None:
        with self._lock:
            is_assumed = uid_of(new) in self._assumed
        if old is None or _differs(old, new, is_assumed=is_assumed):
            self._queue.add(new)
        else:
            self._queue.refresh(new)

    def _run(self) -> None:
        while (pod := self._queue.pop()) is not None:
            try:
                self._schedule(pod)
            except Exception:
                logger.exception("scheduling %s failed", "/".join(key_of(pod)))
                self._queue.put_back(pod, self._queue.moves, is_error=True)

    def _schedule(self, pod: JsonObject) -> None:
        """One scheduling cycle; a Pod on its way out is skipped."""
        moves = self._queue.moves
        if metadata(pod).get("deletionTimestamp"):
            return
        nodes = {metadata(node)["name"]: node for node in self._nodes.objects()}
        nodes = dict(sorted(nodes.items()))
        refused = {name: why for name, node in nodes.items() if (why := refusal_of(pod, node))}
        fitting = {name: node for name, node in nodes.items() if name not in refused}
        try:
            found = self._filter(pod, fitting)
        except ExtenderError as error:
            self._fail(pod, moves, "SchedulerError", str(error))
            return
        if not found.nodes:
            message = unschedulable_message(len(nodes), refused | found.failed)
            self._fail(pod, moves, "Unschedulable", message)
            return
        with self._lock:
            self._assumed[uid_of(pod)] = found.nodes[0]
        self._binders.submit(self._bind, pod, found.nodes[0], moves)

    def _filter(self, pod: JsonObject, nodes: dict[str, JsonObject]) -> Filtered:
        if not nodes or not self._extender.is_interested(pod):
            return Filtered(tuple(nodes))
        return self._extender.filter(pod, nodes)

    def _bind(self, pod: JsonObject, node: str, moves: int) -> None:
        try:
            if self._extender.is_interested(pod):
                self._extender.bind(pod, node)
            else:
                self._bind_directly(pod, node)
        except (ExtenderError, ApiError, OSError, http.client.HTTPException) as error:
            with self._lock:
                self._assumed.pop(uid_of(pod), None)
            self._fail(pod, moves, "SchedulerError", f"binding rejected: {error}")
        except Exception:
            logger.exception("binding %s failed", "/".join(key_of(pod)))

    def _bind_directly(self, pod: JsonObject, node: str) -> None:
        namespace, name = key_of(pod)
        meta = {"name": name, "namespace": namespace, "uid": uid_of(pod)}
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": meta,
            "target": {"kind": "Node", "name": node},
        }
        self._client.create(f"/api/v1/namespaces/{namespace}/pods/{name}/binding", body)

    def _fail(self, pod: JsonObject, moves: int, reason: str, message: str) -> None:
        """Back into the queue, then the condition, in kube-scheduler's order."""
        current = self._pods.get(key_of(pod))
        if current is None or uid_of(current) != uid_of(pod) or self._is_assigned(current):
            return
        self._queue.put_back(current, moves, is_error=reason != "Unschedulable")
        if _condition(current) == ("False", reason, message):
            return
        changed: JsonObject = {"metadata": {"uid": uid_of(pod)}}
        set_condition(changed, "PodScheduled", "False", reason=reason, message=message)
        namespace, name = key_of(pod)
        try:
            path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
            self._client.patch(path, changed, STRATEGIC)
        except (ApiError, OSError, http.client.HTTPException) as error:
            logger.info("the condition of %s/%s was not written: %s", namespace, name, error)


def _condition(pod: JsonObject) -> tuple[str, str, str] | None:
    for entry in lookup(pod, "status.conditions") or []:
        if entry.get("type") == "PodScheduled":
            return entry.get("status", ""), entry.get("reason", ""), entry.get("message", "")
    return None


def _differs(old: JsonObject, new: JsonObject, *, is_assumed: bool) -> bool:
    """Whether kube-scheduler tries a Pod again because of this update.

    It looks past status and version, but sees its own condition written (the fixtures' observation
    3). While the Pod is assumed, changes of its annotations do not count either, labels do.
    """
    paths = ["metadata.labels", "spec"]
    if not is_assumed:
        paths += ["metadata.annotations", "metadata.deletionTimestamp"]
    if any(lookup(old, path) != lookup(new, path) for path in paths):
        return True
    return not is_assumed and _condition(old) != _condition(new)
