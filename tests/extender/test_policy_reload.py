"""A running extender follows the policy file, and keeps the last good policies."""

from __future__ import annotations

import logging
import time

import pytest

from hami_web.cluster.errors import ClusterError
from hami_web.core.policy import SchedulingPolicy
from hami_web.extender.policy_watch import PolicyWatch
from hami_web.scheduling.admission_policy import AdmissionPolicy
from hami_web.scheduling.state import ClusterState
from tests.extender.test_webhook import PODS, gpu_pod, register

GOOD = "scheduling: {upsize: true, holdSeconds: 5}\nadmission: {unknownSizes: allow}\n"
BAD = [
    "scheduling: {upsize: maybe}\nadmission: {unknownSizes: refuse}\n",
    "scheduling: {}\nadmission: {unknownSizes: sometimes}\n",
    "no mapping",
    "{",
    "",
]


@pytest.fixture
def watched(tmp_path):
    """A watch over a file, and what it applied."""
    path, applied = tmp_path / "policy.yaml", []
    path.write_text("scheduling: {}\n")
    return path, PolicyWatch(path, lambda *policies: applied.append(policies)), applied


def test_what_is_there_at_the_start_is_not_applied_again(watched):
    _, watch, applied = watched
    watch.look()
    assert applied == []


def test_a_new_text_is_applied_once(watched):
    path, watch, applied = watched
    path.write_text(GOOD)
    watch.look()
    watch.look()
    expected = SchedulingPolicy(upsize=True, hold_seconds=5), AdmissionPolicy(unknown_sizes="allow")
    assert applied == [expected]


@pytest.mark.parametrize("text", BAD)
def test_a_text_that_is_wrong_in_either_section_changes_neither(watched, text, caplog):
    path, watch, applied = watched
    path.write_text(text)
    with caplog.at_level(logging.ERROR):
        watch.look()
        watch.look()
    assert applied == []
    assert watch.problem
    assert len(caplog.records) == 1
    path.write_text(GOOD)
    watch.look()
    assert len(applied) == 1
    assert watch.problem == ""


def test_a_file_that_is_gone_changes_nothing(watched):
    path, watch, applied = watched
    path.unlink()
    watch.look()
    assert applied == []
    assert "No such file" in watch.problem


def test_holds_last_as_long_as_the_new_policy_says():
    state = ClusterState(SchedulingPolicy(hold_seconds=60))
    state.change_policy(SchedulingPolicy(hold_seconds=5))
    assert state.policy.hold_seconds == state._holds.seconds == 5


def test_a_running_extender_reviews_by_the_new_policy(start_extender, cluster, tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text("admission: {unknownSizes: refuse}\n")
    cluster.gpu_node("n1")
    extender = start_extender(HAMI_POLICY_FILE=str(path))
    extender.wait_ready()
    register(cluster, f"http://127.0.0.1:{extender.port}")
    pod = gpu_pod("huge")
    for part in ("limits", "requests"):
        pod["spec"]["containers"][0]["resources"][part]["nvidia.com/gpumem"] = "999999"
    folder = PODS.format("default")
    with pytest.raises(ClusterError, match="999999"):
        cluster.create(folder, pod)
    path.write_text("admission: {unknownSizes: allow}\n")
    deadline = time.monotonic() + 30
    while True:
        try:
            cluster.create(folder, pod)
            break
        except ClusterError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
