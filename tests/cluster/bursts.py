"""Many Pods at once, and how long they take beside as many that ask for no device."""

from __future__ import annotations

import time
from typing import Any

from kubernetes import client

from tests.cluster import pods
from tests.cluster.lab import NAMESPACE
from tests.cluster.pods import Want
from tests.cluster.processes import wait_until


def burst(prefix: str, count: int, want: Want, **more: Any) -> tuple[float, list[Any]]:
    """Create so many Pods at once; seconds until all run, and the Pods then."""
    names = {f"{prefix}-{number}" for number in range(count)}
    began = time.monotonic()
    for name in sorted(names):
        pods.create(name, want, scheduler="hami-scheduler", **more)

    def all_run() -> list[Any]:
        found = [p for p in _list() if p.metadata.name in names and p.status.phase != "Pending"]
        failed = [p for p in found if p.status.phase != "Running"]
        assert not failed, [(p.metadata.name, p.status.reason, p.status.message) for p in failed]
        return found if len(found) == count else []

    found = wait_until(f"{count} Pods run", all_run, 120)
    return time.monotonic() - began, found


def plain_burst(count: int, **more: Any) -> float:
    """The same without devices, gone again; seconds. It is what the machine can do now."""
    seconds, found = burst("plain", count, Want(devices=0), **more)
    for pod in found:
        pods.delete(pod.metadata.name, grace=0)
    wait_until("they are gone", lambda: not any(map(_is_plain, _list())))
    return seconds


def allowed(seconds: float, plain_s: float) -> float:
    """Seconds that MIG Pods may take where the same without a device took ``plain_s``.

    Scheduler, kubelet and runtime make a good part of a start; where they alone take half of the
    seconds that are allowed on an idle machine, the MIG Pods may take longer in proportion.
    """
    return max(seconds, 2.5 * plain_s)


def _is_plain(pod: Any) -> bool:
    return str(pod.metadata.name).startswith("plain-")


def _list() -> list[Any]:
    found: list[Any] = client.CoreV1Api().list_namespaced_pod(NAMESPACE).items
    return found
