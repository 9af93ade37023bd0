"""What tenants write on Pods of their own while the webhook is away changes nothing for others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kubernetes import client
from kubernetes.client.rest import ApiException

from hami_web.core.blocked import ALTERED
from tests.cluster import pods
from tests.cluster.lab import NAMESPACE, NODE, Lab
from tests.cluster.observed import closed_nodes
from tests.cluster.pods import Want
from tests.cluster.processes import wait_until

ALLOCATIONS = "hami.io/vgpu-mig-allocations"
BLOCKED = "hami.io/node-mig-blocked"


def annotate(name: str, annotations: dict[str, str | None]) -> bool:
    change = {"metadata": {"annotations": annotations}}
    try:
        client.CoreV1Api().patch_namespaced_pod(name, NAMESPACE, change)
    except ApiException as error:
        if error.status != 403:
            raise
        return False
    return True


@contextmanager
def without_webhook(probe: str) -> Iterator[None]:
    """Nobody is asked about the namespace; ``probe`` is a Pod whose reservation shows it."""
    api, key = client.CoreV1Api(), "hami.io/webhook"
    api.patch_namespace(NAMESPACE, {"metadata": {"labels": {key: "ignore"}}})
    try:
        wait_until("nobody is asked", lambda: annotate(probe, {"hami.io/bind-time": "1"}), 10)
        yield
    finally:
        api.patch_namespace(NAMESPACE, {"metadata": {"labels": {key: None}}})
        wait_until(
            "the webhook is asked again",
            lambda: not annotate(probe, {"hami.io/bind-time": "2"}),
            10,
        )


def problems(lab: Lab) -> list[str]:
    name = "hami_mig_reservation_problem{"
    return [line for line in lab.metrics().splitlines() if line.startswith(name)]


def shows(lab: Lab, pod: str, problem: str) -> bool:
    return any(f'pod="{pod}",problem="{problem}"' in line for line in problems(lab))


def blocked() -> list[dict[str, Any]]:
    node = client.CoreV1Api().read_node(NODE)
    return list(json.loads((node.metadata.annotations or {}).get(BLOCKED) or "[]"))


def slices(records: list[dict[str, Any]]) -> set[tuple[str, int]]:
    return {
        (r["gpuUUID"], number)
        for r in records
        for number in range(r["placement"]["start"], sum(r["placement"].values()))
    }


def test_a_tenant_can_neither_close_a_node_nor_free_what_it_uses(lab: Lab) -> None:
    pods.create("mine", Want())
    mine = slices(pods.allocations(pods.running("mine")))
    with without_webhook("mine"):
        assert annotate("mine", {ALLOCATIONS: None})
        forged = pods.manifest("forged", Want(devices=0), annotations={ALLOCATIONS: "[{"})
        forged["spec"]["nodeName"] = NODE
        client.CoreV1Api().create_namespaced_pod(NAMESPACE, forged)
        wait_until("both are told", lambda: shows(lab, "mine", "altered"), 10)
        wait_until("both are told", lambda: shows(lab, "forged", "untrusted"), 10)
    assert NODE not in closed_nodes(lab)
    wait_until("the agent tells of it", lambda: [b["reason"] for b in blocked()] == [ALTERED], 30)

    lab.extender.stop()
    lab.extender.start()
    wait_until("the extender is back", lambda: lab.answers(lab.port, "/readyz"), 30)

    for number in range(3):
        pods.create(f"other-{number}", Want())
    for number in range(3):
        others = slices(pods.allocations(pods.running(f"other-{number}")))
        assert not mine & others
    pods.delete("forged", grace=0)
    wait_until("only the altered one is told of", lambda: not shows(lab, "forged", "untrusted"))
