"""The agent's Lease: held while it serves, empty as soon as it does not."""

from __future__ import annotations

import signal

import pytest

from hami_web.core import liveness
from hami_web.simulator.faults import RequestMatch
from node_agent import lease
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
