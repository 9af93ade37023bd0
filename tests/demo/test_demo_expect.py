"""The check of the demo can fail: what it accepts, and what it does not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from hami_web.core.placement import Placement
from hami_web.core.reservation import Reservation, RuntimeIdentity
from hami_web.simulator import demo_check, demo_expect
from hami_web.simulator.demo_board import Board
from hami_web.simulator.demo_expect import NotYet, StepFailed
from hami_web.simulator.demo_observe import SeenInstance
from hami_web.simulator.demo_pods import SeenPod

IDENTITY = RuntimeIdentity("MIG-1", 9, 0)
RESERVED = Reservation(0, 0, "GPU-a", "1g.5gb", Placement(2, 1), IDENTITY)
INSTANCE = SeenInstance(0, Placement(2, 1), "1g.5gb", 9, ("MIG-1",))
POD = SeenPod("job", "uid", "n1", "Running", (RESERVED,), "")


@dataclass
class GivenCluster:
    """A cluster that shows what a test gives it."""

    pods: dict[str, SeenPod] = field(default_factory=lambda: {"job": POD})
    present: tuple[SeenInstance, ...] = (INSTANCE,)
    board: Board = field(default_factory=lambda: Board(Path("/none")))

    def pod(self, name: str) -> SeenPod | None:
        return self.pods.get(name)

    def instances(self, _node: str) -> tuple[SeenInstance, ...]:
        return self.present

    def gpu_uuids(self, _node: str) -> tuple[str, ...]:
        return ("GPU-a", "GPU-b")

    def check(self) -> None:
        """Every program runs."""


def test_a_pod_whose_instance_is_listed_is_realized() -> None:
    assert demo_expect.realized(GivenCluster(), "job") is POD


@pytest.mark.parametrize(
    "other",
    [
        {"gpu_index": 1},
        {"placement": Placement(3, 1)},
        {"profile": "1g.10gb"},
        {"gpu_instance_id": 8},
        {"mig_uuids": ("MIG-2",)},
        {"mig_uuids": ()},
        {"mig_uuids": ("MIG-1", "MIG-2")},
    ],
    ids=lambda other: next(iter(other)),
)
def test_an_instance_that_differs_is_not_that_of_the_pod(other: dict[str, object]) -> None:
    cluster = GivenCluster(present=(replace(INSTANCE, **other),))
    with pytest.raises(NotYet, match="NVML has"):
        demo_expect.realized(cluster, "job")


def test_an_identity_without_an_instance_is_not_realized() -> None:
    with pytest.raises(NotYet, match="NVML has nothing"):
        demo_expect.realized(GivenCluster(present=()), "job")


def test_an_instance_without_an_identity_is_not_realized() -> None:
    bare = replace(POD, reservations=(replace(RESERVED, identity=None),))
    with pytest.raises(NotYet, match="no runtime identity"):
        demo_expect.realized(GivenCluster({"job": bare}), "job")


def test_overlapping_instances_fail_at_once() -> None:
    wide = replace(INSTANCE, placement=Placement(2, 2), profile="2g.10gb")
    with pytest.raises(StepFailed, match="overlaps"):
        demo_expect.instance_count(GivenCluster(present=(INSTANCE, wide)), "n1", 2)


def test_equal_placements_on_two_gpus_do_not_overlap() -> None:
    both = (INSTANCE, replace(INSTANCE, gpu_index=1))
    assert demo_expect.instance_count(GivenCluster(present=both), "n1", 2) == both


def test_a_bound_pod_does_not_wait_and_an_unbound_one_needs_a_reason() -> None:
    silent = replace(POD, node="", reservations=())
    for pod in (POD, silent):
        with pytest.raises(NotYet):
            demo_expect.waiting(GivenCluster({"job": pod}), "job")
    told = replace(silent, message="no room")
    assert demo_expect.waiting(GivenCluster({"job": told}), "job") is told


def test_impatience_tells_what_was_seen_last() -> None:
    def look() -> None:
        raise NotYet("only this")

    with pytest.raises(StepFailed, match="the thing: not within 0 s: only this"):
        demo_expect.until("the thing", look, patience_s=0)


def test_a_failed_step_ends_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_check: demo_check.Check) -> str:
        raise StepFailed("it is not there")

    steps = (("first", lambda _check: "seen"), ("second", fail), ("third", lambda _check: "never"))
    monkeypatch.setattr(demo_check, "STEPS", steps)
    told: list[str] = []
    assert not demo_check.run_check(GivenCluster(), told.append)
    assert [line.split()[:2] for line in told] == [["ok", "first"], ["FAILED", "second"]]
    assert "it is not there" in told[1]
