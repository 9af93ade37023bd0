"""The statuses that a kubelet writes."""

from __future__ import annotations

from hami_web.simulator.documents import JsonObject, key_of, timestamp, uid_of
from hami_web.simulator.pods import set_condition


def running_status(pod: JsonObject, node_address: str) -> JsonObject:
    """All init containers done, sidecars and app containers running."""
    now = timestamp()
    status: JsonObject = {
        "phase": "Running",
        "startTime": now,
        "hostIP": node_address,
        "podIP": node_address,
        "initContainerStatuses": [
            _container(pod, container, _running(now) if _is_sidecar(container) else _exited(now, 0))
            for container in pod["spec"].get("initContainers") or []
        ],
        "containerStatuses": [
            _container(pod, container, _running(now)) for container in pod["spec"]["containers"]
        ],
    }
    changed = {"status": status}
    for kind in ("Initialized", "Ready", "ContainersReady"):
        set_condition(changed, kind, "True")
    return status


def finished_status(pod: JsonObject, exit_code: int) -> JsonObject:
    """Every container has terminated; the Pod succeeded when the exit code is 0."""
    now = timestamp()
    phase, reason = ("Succeeded", "PodCompleted") if exit_code == 0 else ("Failed", "PodFailed")
    status: JsonObject = {
        "phase": phase,
        "containerStatuses": [
            _container(pod, container, _exited(now, exit_code))
            for container in pod["spec"]["containers"]
        ],
    }
    changed = {"status": status}
    for kind in ("Ready", "ContainersReady"):
        set_condition(changed, kind, "False", reason=reason)
    return status


def rejected_status(reason: str, message: str) -> JsonObject:
    """The Pod was not admitted; none of its containers ever ran."""
    return {"phase": "Failed", "reason": reason, "message": f"Pod {message}"}


def rejection_event(pod: JsonObject, node: str, reason: str, message: str) -> JsonObject:
    """The core v1 Event beside a rejection."""
    namespace, name = key_of(pod)
    now = timestamp()
    return {
        "metadata": {"generateName": f"{name}."},
        "involvedObject": {
            "kind": "Pod",
            "namespace": namespace,
            "name": name,
            "uid": uid_of(pod),
        },
        "reason": reason,
        "message": message,
        "type": "Warning",
        "source": {"component": "kubelet", "host": node},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }


def _container(pod: JsonObject, container: JsonObject, state: JsonObject) -> JsonObject:
    uid = uid_of(pod)
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "containerID": f"simulated://{uid}/{container['name']}",
        "restartCount": 0,
        "ready": "running" in state,
        "started": "running" in state,
        "state": state,
        "lastState": {},
    }


def _running(since: str) -> JsonObject:
    return {"running": {"startedAt": since}}


def _exited(at: str, code: int) -> JsonObject:
    reason = "Completed" if code == 0 else "Error"
    ended = {"exitCode": code, "reason": reason, "startedAt": at, "finishedAt": at}
    return {"terminated": ended}


def _is_sidecar(container: JsonObject) -> bool:
    return container.get("restartPolicy") == "Always"
