"""What the driver asks people to do: the GPU takes no new work, and everybody is told why."""

from __future__ import annotations

import pytest

from node_agent.nvml.ports import RecoveryAction
from node_agent.recovery import _WORDS
from tests.node_agent.lab import Lab, wait_until
from tests.node_agent.test_health import healthy, started
from tests.node_agent.test_told import condition


def test_every_action_but_none_has_words() -> None:
    assert set(_WORDS) == set(RecoveryAction) - {RecoveryAction.NONE}


@pytest.mark.parametrize(
    ("action", "code", "advice"),
    [
        ("gpu-reset", "ResetNeeded", "nvidia-smi -i 1 --gpu-reset"),
        ("node-reboot", "RebootNeeded", "drain the node and reboot it"),
        ("drain-p2p", "DrainNeeded", "end the processes"),
        ("drain-and-reset", "DrainAndResetNeeded", "let its Pods end"),
    ],
)
def test_a_gpu_with_a_request_takes_no_new_work_until_it_is_withdrawn(
    two_gpus: Lab, action: str, code: str, advice: str
) -> None:
    """Told by the driver's event, long before the next periodic look."""
    lab = two_gpus
    with lab.agent(HAMI_DISCOVERY_SECONDS="600") as agent:
        started(lab)
        lab.reserve("job", [(1, "1g.5gb", 0, 1)])
        lab.kubelet.allocate(lab.ids(gpu=1)[0])
        lab.hardware.set_recovery_action(1, action)
        wait_until(lambda: healthy(lab) == [True, False], "published as unhealthy")
        wait_until(lambda: len(lab.kubelet.devices) == 7, "the kubelet offers one GPU")
        wait_until(lambda: advice in condition(lab)["message"], "said on the node")
        assert lab.gpus[1] in condition(lab)["message"]
        assert agent.metrics.problems.labels(code)._value.get() == 1
        (event,) = wait_until(lambda: lab.events("job", "GpuError"), "told on its Pod")
        assert advice in event["message"]
        assert lab.placements(1) == [(0, 1)], "what runs is left alone"
        lab.hardware.set_recovery_action(1, "none")
        wait_until(lambda: healthy(lab) == [True, True], "offered again")
        assert code not in agent.metrics.text().decode()


def test_a_node_whose_only_gpu_needs_a_reset_says_so(lab: Lab) -> None:
    lab.hardware.set_recovery_action(0, "gpu-reset")
    with lab.starting_agent() as agent:
        wait_until(lambda: condition(lab).get("reason") == "ResetNeeded", "said")
        assert condition(lab)["status"] == "False"
        assert "asks for a reset" in agent.problem()
        assert lab.kubelet.devices == ()


@pytest.mark.parametrize("kind", ["no field", "no function", "an error"])
def test_a_driver_that_cannot_tell_closes_no_gpu(lab: Lab, kind: str) -> None:
    lab.hardware.set_recovery_action(0, "gpu-reset")
    if kind == "no field":
        lab.hardware.set_options(recovery_field="unknown")
    elif kind == "no function":
        lab.hardware.set_options(hidden_symbols=["nvmlDeviceGetFieldValues"])
    else:
        lab.hardware.fail("nvmlDeviceGetFieldValues", 999, times=-1)
    with lab.agent():
        assert len(lab.kubelet.devices) == 7
        wait_until(lambda: condition(lab).get("reason") == "AllGpusOffered", "offered")
