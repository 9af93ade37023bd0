"""The lifecycle test of a profile, against a cluster that does as it likes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.capability import NodeCapability
from hami_web.handover.lifecycle import (
    PHASE_S,
    Deed,
    Place,
    Seen,
    SeenAgent,
    SeenPod,
    Trial,
    TrialState,
    proceed,
    trials_of,
)
from tests.builders import a100_40gb

TRIAL = Trial("A100", "1g.5gb", "GPU-1")


@dataclass
class World:
    """One GPU, its agent, and the two Pods; ``whims`` say what happens beside what is asked."""

    whims: list[str]
    first: SeenPod | None = None
    second: SeenPod | None = None
    agent: SeenAgent = field(default_factory=lambda: SeenAgent("a0", ready=True))
    destroyed: bool = True
    made: int = 0
    created: list[Deed] = field(default_factory=list)

    @property
    def seen(self) -> Seen:
        return Seen(self.first, self.second, self.agent)

    def do(self, deed: Deed) -> None:
        if deed in (Deed.CREATE_FIRST, Deed.CREATE_SECOND):
            self.created.append(deed)
        if deed is Deed.CREATE_FIRST and self.first is None:
            self.first = SeenPod()
        if deed is Deed.CREATE_SECOND and self.second is None:
            assert self.first is None, "the second Pod is made while the first is there"
            self.second = SeenPod()
        if deed in (Deed.DELETE_FIRST, Deed.DELETE_BOTH):
            self.first = None
        if deed in (Deed.DELETE_SECOND, Deed.DELETE_BOTH):
            self.second = None
        if deed is Deed.RESTART_AGENT:
            self.agent = SeenAgent(f"a{int(self.agent.uid[1:]) + 1}", ready=False)

    def happen(self) -> None:
        whim = self.whims.pop() if self.whims else "realize"
        if whim == "realize":
            self.agent = replace(self.agent, ready=True)
            if self.first is not None and not self.first.over and self.first.place is None:
                self.first = SeenPod(self._make(0))
            if self.second is not None and not self.second.over and self.second.place is None:
                self.second = SeenPod(self._make(0 if self.destroyed else 1))
        elif whim == "leak":
            self.destroyed = False
        elif whim == "evict" and self.first is not None:
            self.first = SeenPod(trouble="Evicted", over=True)
        elif whim == "lose" and self.first is not None and self.first.place is not None:
            self.first = SeenPod(self._make(0))

    def _make(self, start: int) -> Place:
        self.made += 1
        return Place("GPU-1", start, 1, f"MIG-{self.made}")


def lived(world: World, looks: int = 200) -> tuple[Trial, list[TrialState]]:
    """Look again and again; a look may be killed before it did what it wrote down."""
    trial, states = TRIAL, []
    for look in range(looks):
        trial, deed = proceed(trial, world.seen)
        states.append(trial.state)
        if trial.is_over:
            break
        if look % 3:  # every third look dies after it wrote
            world.do(deed)
        world.happen()
        trial = replace(trial, since_s=trial.since_s + PHASE_S / 20)
    return trial, states


def test_a_profile_passes_through_every_state_in_order() -> None:
    trial, states = lived(World([]))
    assert trial.state is TrialState.PASSED
    order = [state for state in TrialState if state in states]
    assert list(dict.fromkeys(states)) == order
    assert TrialState.FAILING not in states


@given(st.lists(st.sampled_from(["realize", "leak", "evict", "lose", "nothing"]), max_size=40))
def test_it_always_ends_without_pods_and_passes_only_what_was_proven(whims: list[str]) -> None:
    world = World(whims)
    trial, states = lived(world)
    assert trial.is_over
    assert world.first is None
    assert world.second is None
    if trial.state is TrialState.PASSED:
        assert {TrialState.ADOPTED, TrialState.RECLAIMED} <= set(states)
        assert world.agent.uid != "a0"
        assert world.destroyed or "leak" not in states
    else:
        assert trial.error


def test_memory_slices_that_were_not_free_again_fail_it_and_are_named() -> None:
    trial, _states = lived(World(["leak"]))
    assert trial.state is TrialState.FAILED
    assert "0:1 of GPU-1" in trial.error
    assert "1:1 of GPU-1" in trial.error


def test_another_instance_after_the_restart_fails_it() -> None:
    world = World([])
    world.first, world.agent = SeenPod(Place("GPU-1", 0, 1, "MIG-9")), SeenAgent("a1", ready=True)
    restarting = replace(
        TRIAL, state=TrialState.RESTARTING, agent_uid="a0", place=Place("GPU-1", 0, 1, "MIG-1")
    )
    trial, deed = proceed(restarting, world.seen)
    assert (trial.state, deed) == (TrialState.FAILING, Deed.DELETE_BOTH)
    assert "after the agent's restart" in trial.error


def test_a_state_that_lasts_too_long_fails_it_with_what_the_scheduler_said() -> None:
    created = replace(TRIAL, state=TrialState.CREATED, since_s=PHASE_S + 1)
    waiting = Seen(SeenPod(trouble="0/1 nodes are available"), None, SeenAgent("a0", ready=True))
    trial, _deed = proceed(created, waiting)
    assert trial.state is TrialState.FAILING
    assert "0/1 nodes are available" in trial.error


def test_each_profile_of_each_model_is_tried_once_on_a_healthy_gpu() -> None:
    ill = replace(a100_40gb(), uuid="GPU-ill", healthy=False, index=0)
    well = replace(a100_40gb(), uuid="GPU-well", index=1)
    also = replace(a100_40gb(), uuid="GPU-also", index=2)
    trials = trials_of(NodeCapability((ill, well, also)))
    assert [trial.profile for trial in trials] == [profile.name for profile in well.profiles]
    assert {trial.gpu for trial in trials} == {"GPU-well"}
