"""Restarts of the agent, the extender and the kubelet under running Pods."""

from __future__ import annotations

import signal

from kubernetes import client

from tests.cluster import pods
from tests.cluster.lab import NODE, Lab
from tests.cluster.observed import as_instances, assert_exist, realized
from tests.cluster.pods import Want
from tests.cluster.processes import wait_until


def test_running_pods_keep_their_instances_when_the_agent_is_killed(lab: Lab) -> None:
    pods.create("keeps", Want(), Want(memory=9500))
    pods.running("keeps")
    before = as_instances(realized("keeps"))
    assert_exist(lab, before)

    lab.node.restart_agent()
    pods.create("after", Want())
    pods.running("after")
    after = as_instances(realized("after"))
    assert_exist(lab, before | after)
    assert pods.read("keeps").status.phase == "Running"

    pods.delete("keeps")
    wait_until("an adopted instance is reclaimed", lambda: lab.instances() == after, 30)


def test_a_pod_that_ends_while_the_agent_is_away_is_reclaimed_when_it_returns(lab: Lab) -> None:
    pods.create("short", Want())
    pods.running("short")
    realized("short")
    lab.node.agent.stop(signal.SIGKILL)
    try:
        pods.delete("short")
        wait_until("the Pod is gone", lambda: pods.is_gone("short"))
        assert len(lab.instances()) == 1
    finally:
        lab.node.start_agent()
    wait_until("its instance is gone", lambda: not lab.instances(), 60)


def test_running_pods_keep_their_instances_when_the_kubelet_restarts(lab: Lab) -> None:
    pods.create("stays", Want())
    pods.running("stays")
    before = as_instances(realized("stays"))
    registered = lab.node.agent_registrations()

    lab.node.kubelet.restart()
    wait_until(
        "the plugin is registered again", lambda: lab.node.agent_registrations() > registered
    )
    pods.create("next", Want())
    pods.running("next", 90)
    assert_exist(lab, before | as_instances(realized("next")))
    assert pods.read("stays").status.phase == "Running"


def test_the_extender_finds_everything_again_when_it_is_killed(lab: Lab) -> None:
    pods.create("held", Want(memory=19000))
    pods.running("held")
    before = as_instances(realized("held"))
    lab.extender.stop(signal.SIGKILL)
    lab.extender.start()
    # Nobody answers the webhook now, so the Pod names its scheduler itself.
    pods.create("beside", Want(memory=19000), scheduler="hami-scheduler")
    pods.running("beside")
    assert_exist(lab, before | as_instances(realized("beside")))
    assert len(lab.instances()) == 2


def test_the_node_offers_a_constant_number_of_devices(lab: Lab) -> None:
    offered = lab.node.offered_devices()
    assert offered == sum(gpu["count"] for gpu in lab.published())
    pods.create("counted", Want())
    pods.running("counted")
    assert lab.node.offered_devices() == offered
    assert client.CoreV1Api().read_node(NODE).status.capacity["nvidia.com/gpu"] == str(offered)
