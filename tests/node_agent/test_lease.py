"""The agent's Lease: held while it serves, empty as soon as it does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hami_web.core import liveness
from hami_web.simulator.faults import RequestMatch
from node_agent import lease
from node_agent.deviceplugin import registration
from tests.node_agent.lab import NODE, Lab, wait_until


def document(lab: Lab) -> dict[str, object]:
    name = liveness.agent_lease_name(NODE)
    path = f"/apis/coordination.k8s.io/v1/namespaces/hami-system/leases/{name}"
    found: dict[str, object] = lab.client.get(path)
    return found


def test_the_lease_is_held_while_the_agent_serves_and_empty_when_it_has_stopped(lab: Lab) -> None:
    with lab.agent():
        wait_until(lambda: lab.lease_holder() == NODE, "held")
        found = document(lab)
        assert found["metadata"]["labels"] == {liveness.AGENT_LEASE_LABEL: "node-agent"}
        assert found["spec"]["leaseDurationSeconds"] == liveness.AGENT_LEASE_SECONDS
    assert lab.lease_holder() == ""


def test_the_lease_is_renewed_again_and_again(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "AGENT_RENEW_SECONDS", 0.1)
    with lab.agent():
        wait_until(lambda: lab.lease_holder() == NODE, "held")
        first = document(lab)["spec"]["renewTime"]
        wait_until(lambda: document(lab)["spec"]["renewTime"] != first, "renewed")


def test_a_node_whose_kubelet_is_away_is_closed_until_it_is_back(lab: Lab) -> None:
    with lab.agent():
        wait_until(lambda: lab.lease_holder() == NODE, "held")
        lab.kubelet.stop()
        wait_until(lambda: lab.lease_holder() == "", "released")
        lab.kubelet.start()
        wait_until(lambda: lab.lease_holder() == NODE, "held again")


@contextmanager
def killable_kubelet(lab: Lab) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "tests.node_agent.kubelet", str(lab.kubelet.folder)]
    process = subprocess.Popen(command, env=os.environ)
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


def test_the_death_of_the_kubelet_closes_the_node_though_its_socket_stays(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither socket changes before another kubelet starts; only the stream tells."""
    monkeypatch.setattr(lease, "_LOOK_SECONDS", 30.0)
    monkeypatch.setattr(registration, "_FOLLOW_SECONDS", 0.5)
    lab.kubelet.stop()
    with lab.starting_agent() as agent, killable_kubelet(lab) as kubelet:
        wait_until(lambda: lab.lease_holder() == NODE, "held")
        socket = (lab.kubelet.folder / "kubelet.sock").stat()
        kubelet.kill()
        wait_until(lambda: lab.lease_holder() == "", "emptied at once", 5)
        assert (lab.kubelet.folder / "kubelet.sock").stat().st_ino == socket.st_ino
        failed = agent.metrics.registrations.labels("failed")
        wait_until(lambda: failed._value.get() > 3, "asked in vain")
        lab.kubelet.start()
        wait_until(lambda: lab.lease_holder() == NODE, "held for the next one", 5)


def test_a_kubelet_that_lost_the_plugin_is_registered_with_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration, "_FOLLOW_SECONDS", 0.5)
    with lab.agent() as agent:
        wait_until(lambda: lab.lease_holder() == NODE, "held")
        lab.kubelet.forget_the_plugin()
        wait_until(lambda: lab.lease_holder() == "", "emptied")
        assert agent.problem()
        wait_until(lambda: len(lab.kubelet.registrations) == 2, "registered again")
        wait_until(lambda: lab.lease_holder() == NODE, "held again")


def test_a_node_without_its_driver_is_closed(lab: Lab) -> None:
    with lab.agent(HAMI_DISCOVERY_SECONDS="0.1"):
        wait_until(lambda: lab.lease_holder() == NODE, "held")
        lab.hardware.set_options(driver="not_loaded")
        wait_until(lambda: lab.lease_holder() == "", "released")
        lab.hardware.set_options(driver="loaded")
        wait_until(lambda: lab.lease_holder() == NODE, "held again")


def test_a_lease_that_a_killed_agent_left_is_emptied_by_the_next_one_until_it_serves(
    lab: Lab,
) -> None:
    with lab.agent_process() as process:
        wait_until(lambda: lab.lease_holder() == NODE, "held")
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    assert lab.lease_holder() == NODE
    lab.hardware.set_options(driver="not_loaded")
    with lab.starting_agent():
        wait_until(lambda: lab.lease_holder() == "", "emptied")
        lab.hardware.set_options(driver="loaded")
        wait_until(lambda: lab.lease_holder() == NODE, "held")


def test_a_refused_write_is_repeated_and_disturbs_nothing_else(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "_RETRY_SECONDS", 0.1)
    lab.server.faults.answer(403, RequestMatch(verb="patch", resource="leases"), times=3)
    with lab.agent() as agent:
        lab.reserve("job", [(0, "1g.5gb", 6, 1)])
        lab.kubelet.allocate(lab.ids()[0])
        wait_until(lambda: lab.lease_holder() == NODE, "held")
        assert agent.metrics.renewals.labels("failed")._value.get() >= 1
