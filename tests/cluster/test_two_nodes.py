"""Two nodes, each with a kubelet, a container runtime and an agent of its own."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes import client

from node_agent.nvml.simulated.lookups import GpuSpec
from tests.cluster import pods
from tests.cluster.bursts import allowed, burst, plain_burst
from tests.cluster.installed import InstalledCluster
from tests.cluster.lab import A100, NODE, Lab
from tests.cluster.node import GpuNode
from tests.cluster.observed import as_instances, closed_nodes, placements, realized
from tests.cluster.pods import Want
from tests.cluster.processes import wait_until

OTHER = "gpu-node-b"
POLICY = "hami.io/node-scheduler-policy"


@pytest.fixture(scope="module")
def second(lab: Lab | InstalledCluster) -> Iterator[GpuNode]:
    if not isinstance(lab, Lab):
        pytest.skip("needs a cluster of the suite's own, to add a node to")
    with lab.second_node(OTHER, GpuSpec(A100), GpuSpec(A100)) as node:
        yield node


@pytest.fixture(autouse=True)
def both_offer(second: GpuNode, clean: None) -> None:
    """The second node is there before the first test begins on it."""
    wait_until(f"{OTHER} offers what is published", second.offers_all)


def nodes_of(found: list[Any]) -> list[str]:
    return sorted(pod.spec.node_name for pod in found)


def test_eight_pods_created_at_once_for_two_nodes_run_within_five_seconds() -> None:
    spread = {POLICY: "spread"}
    plain_s = plain_burst(8, annotations=spread)
    seconds, found = burst("mig", 8, Want(), annotations=spread)
    print(f"8 Pods ran after {seconds:.2f} s, as many without a device after {plain_s:.2f} s")
    assert nodes_of(found) == [NODE] * 4 + [OTHER] * 4
    assert seconds < allowed(5, plain_s)


def test_packed_pods_fill_one_node_before_they_take_the_other() -> None:
    _, found = burst("packed", 6, Want(), annotations={POLICY: "binpack"})
    assert len(set(nodes_of(found))) == 1


def test_instances_are_made_on_the_node_of_their_pod(lab: Lab, second: GpuNode) -> None:
    _, found = burst("there", 4, Want(memory=9500), annotations={POLICY: "spread"})
    for node in (lab.node, second):
        mine = [pod.metadata.name for pod in found if pod.spec.node_name == node.name]
        assert len(mine) == 2
        assert node.instances() == as_instances([r for name in mine for r in realized(name)])


def test_a_killed_agent_closes_its_own_node_only(lab: Lab, second: GpuNode) -> None:
    pods.create("runs-there", Want(), node=OTHER)
    pods.running("runs-there")
    before = second.instances()
    second.agent.stop(signal.SIGKILL)
    try:
        wait_until("its node is closed", lambda: OTHER in closed_nodes(lab))
        pods.create("waits", Want(), node=OTHER)
        assert "NodeCapabilityStale" in pods.unschedulable("waits")
        _, found = burst("free", 4, Want(), annotations={POLICY: "spread"})
        assert nodes_of(found) == [NODE] * 4
        assert pods.read("runs-there").status.phase == "Running"
        assert second.instances() == before
    finally:
        second.start_agent()
    pods.running("waits")
    assert second.instances().items() > before.items()


def test_a_node_that_was_deleted_and_comes_back_is_used_again(lab: Lab, second: GpuNode) -> None:
    pods.create("before", Want(), node=OTHER)
    pods.running("before")
    client.CoreV1Api().delete_node(OTHER)
    wait_until("the extender noticed", lambda: f'"{OTHER}"' not in lab.metrics())
    pods.create("after", Want(), node=OTHER)
    assert pods.unschedulable("after")
    _, found = burst("elsewhere", 2, Want())
    assert nodes_of(found) == [NODE] * 2

    second.kubelet.restart()
    pods.running("after", 90)
    realized("after")
    own = {gpu["id"] for gpu in second.published()}

    def agree() -> bool:
        reserved = {found for found in placements() if found[0] in own}
        return reserved == set(second.instances())

    wait_until("exactly the instances of its Pods exist", agree)
