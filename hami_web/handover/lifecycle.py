"""The lifecycle test of one profile: make, realize, restart the agent, destroy, make again.

Pure: from where a test stands and what is seen of its Pods to where it stands next and the one
thing to do. Every state says what must be so, and what to do while it is not; so a test goes on
after any interruption, and doing a thing twice does it once.

That an instance was destroyed is proven by the second Pod: NVML makes no instance where one is,
so a second one at the very placement of the first can only be after the first is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from hami_web.core.capability import NodeCapability


class TrialState(StrEnum):
    """How far a test is. Stable."""

    WAITING = "waiting"
    CREATED = "created"
    REALIZED = "realized"
    RESTARTING = "restarting"
    ADOPTED = "adopted"
    AGAIN = "again"
    RECLAIMED = "reclaimed"
    FAILING = "failing"
    PASSED = "passed"
    FAILED = "failed"


OVER: Final = frozenset({TrialState.PASSED, TrialState.FAILED})
PHASE_S: Final = 180.0
"""Seconds that a state may last; an agent's restart and a first image pull fit well within."""


class Deed(StrEnum):
    """What is to be done next in the cluster."""

    NOTHING = "nothing"
    CREATE_FIRST = "create-first"
    CREATE_SECOND = "create-second"
    DELETE_FIRST = "delete-first"
    DELETE_SECOND = "delete-second"
    DELETE_BOTH = "delete-both"
    RESTART_AGENT = "restart-agent"


@dataclass(frozen=True, slots=True)
class Place:
    """Where an instance is: GPU, memory slices ``start:size``, and its MIG UUID."""

    gpu: str
    start: int
    size: int
    uuid: str

    def is_at(self, other: Place) -> bool:
        """The same memory slices of the same GPU, whatever instance is there."""
        return (self.gpu, self.start, self.size) == (other.gpu, other.start, other.size)

    def __str__(self) -> str:
        return f"{self.start}:{self.size} of {self.gpu}"


@dataclass(frozen=True, slots=True)
class SeenPod:
    """A Pod of a test: ``place`` once it runs with an instance; ``trouble`` where it cannot."""

    place: Place | None = None
    trouble: str = ""
    over: bool = False


@dataclass(frozen=True, slots=True)
class SeenAgent:
    """The agent's Pod on the node."""

    uid: str
    ready: bool


@dataclass(frozen=True, slots=True)
class Trial:
    """One profile of one model, tried on one GPU. ``since_s`` is how long its state has lasted."""

    model: str
    profile: str
    gpu: str
    state: TrialState = TrialState.WAITING
    since_s: float = 0.0
    place: Place | None = None
    agent_uid: str = ""
    error: str = ""

    @property
    def is_over(self) -> bool:
        return self.state in OVER


@dataclass(frozen=True, slots=True)
class Seen:
    """What there is of a test now."""

    first: SeenPod | None
    second: SeenPod | None
    agent: SeenAgent | None


def trials_of(capability: NodeCapability) -> tuple[Trial, ...]:
    """One test for each profile that a model of the node offers, on its first healthy GPU."""
    made: dict[tuple[str, str], Trial] = {}
    for gpu in sorted(capability.gpus, key=lambda item: item.index):
        if not gpu.healthy:
            continue
        for profile in gpu.profiles:
            key = (gpu.model, profile.name)
            made.setdefault(key, Trial(gpu.model, profile.name, gpu.uuid))
    return tuple(made.values())


def proceed(test: Trial, seen: Seen) -> tuple[Trial, Deed]:
    """The state that holds now, and what to do; a state that lasts too long fails the test."""
    moved, deed = _RULES[test.state](test, seen)
    if moved.state is test.state and not test.is_over and test.since_s > PHASE_S:
        if test.state is TrialState.FAILING:
            return moved, deed
        return _failing(test, _overdue(test, seen)), Deed.DELETE_BOTH
    return moved, deed


def _waiting(test: Trial, _seen: Seen) -> tuple[Trial, Deed]:
    return _into(test, TrialState.CREATED), Deed.CREATE_FIRST


def _created(test: Trial, seen: Seen) -> tuple[Trial, Deed]:
    pod = seen.first
    if pod is None:
        return test, Deed.CREATE_FIRST
    if pod.over:
        return _failing(test, pod.trouble or "its Pod ended"), Deed.DELETE_BOTH
    if pod.place is None:
        return test, Deed.NOTHING
    return replace(_into(test, TrialState.REALIZED), place=pod.place), Deed.NOTHING


def _realized(test: Trial, seen: Seen) -> tuple[Trial, Deed]:
    if seen.agent is None:
        return test, Deed.NOTHING
    moved = replace(_into(test, TrialState.RESTARTING), agent_uid=seen.agent.uid)
    return moved, Deed.RESTART_AGENT


def _restarting(test: Trial, seen: Seen) -> tuple[Trial, Deed]:
    if seen.first is None or seen.first.over:
        return _failing(test, "its Pod ended while the agent restarted"), Deed.DELETE_BOTH
    if seen.agent is not None and seen.agent.uid == test.agent_uid:
        return test, Deed.RESTART_AGENT
    if seen.agent is None or not seen.agent.ready:
        return test, Deed.NOTHING
    if seen.first.place != test.place:
        why = f"after the agent's restart its Pod has {seen.first.place or 'no instance'}"
        return _failing(test, f"{why}, before {test.place}"), Deed.DELETE_BOTH
    return _into(test, TrialState.ADOPTED), Deed.DELETE_FIRST


def _adopted(test: Trial, seen: Seen) -> tuple[Trial, Deed]:
    if seen.first is not None:
        return test, Deed.DELETE_FIRST
    return _into(test, TrialState.AGAIN), Deed.CREATE_SECOND


def _again(test: Trial, seen: Seen) -> tuple[Trial, Deed]:
    pod = seen.second
    if pod is None:
        return test, Deed.CREATE_SECOND
    if pod.over:
        return _failing(test, pod.trouble or "its second Pod ended"), Deed.DELETE_BOTH
    if pod.place is None:
        return test, Deed.NOTHING
    if test.place is None or not pod.place.is_at(test.place):
        why = f"the memory slices {test.place} were not free again; the second Pod has {pod.place}"
        return _failing(test, why), Deed.DELETE_BOTH
    return _into(test, TrialState.RECLAIMED), Deed.DELETE_SECOND


def _reclaimed(test: Trial, seen: Seen) -> tuple[Trial, Deed]:
    if seen.second is not None:
        return test, Deed.DELETE_SECOND
    return _into(test, TrialState.PASSED), Deed.NOTHING


def _ending(test: Trial, seen: Seen) -> tuple[Trial, Deed]:
    if seen.first is not None or seen.second is not None:
        return test, Deed.DELETE_BOTH
    return _into(test, TrialState.FAILED), Deed.NOTHING


def _ended(test: Trial, _seen: Seen) -> tuple[Trial, Deed]:
    return test, Deed.NOTHING


_RULES: Final = {
    TrialState.WAITING: _waiting,
    TrialState.CREATED: _created,
    TrialState.REALIZED: _realized,
    TrialState.RESTARTING: _restarting,
    TrialState.ADOPTED: _adopted,
    TrialState.AGAIN: _again,
    TrialState.RECLAIMED: _reclaimed,
    TrialState.FAILING: _ending,
    TrialState.PASSED: _ended,
    TrialState.FAILED: _ended,
}


def _into(test: Trial, state: TrialState) -> Trial:
    return replace(test, state=state, since_s=0.0)


def _failing(test: Trial, why: str) -> Trial:
    return replace(_into(test, TrialState.FAILING), error=why)


def _overdue(test: Trial, seen: Seen) -> str:
    pod = seen.second if test.state in (TrialState.AGAIN, TrialState.RECLAIMED) else seen.first
    words = (pod and pod.trouble) or ("no agent's Pod is ready" if seen.agent is None else "")
    told = f": {words}" if words else ""
    return f"{test.state.value} for more than {PHASE_S:.0f} s{told}"
