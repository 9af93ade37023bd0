"""Decisions from an index equal decisions from nothing but the records of the moment."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from hami_web.core.capability import GpuCapability
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.policy_names import PLACEMENT_POLICIES
from hami_web.core.request import PodRequest
from hami_web.core.selection import Choice, Selection
from hami_web.scheduling.index import order_among_equals
from hami_web.scheduling.nodes import build_record
from hami_web.scheduling.records import GpuRecord, NodeRecord
from hami_web.scheduling.state import ClusterState, Held
from tests.boards import board, profiles_of
from tests.scheduling.state.cluster import bound, node, pod, request_of

NODES = 130
BOARDS = ("a100-sxm4-40gb", "a30", "rtx-pro-6000-se")
ASKED = ((4000,), (9000,), (20000,), (4000, 9000), (4000, 4000, 20000))


def gpus_of(name: str, rng: Random) -> tuple[GpuCapability, ...]:
    """Some with all profiles: those with attributes have limits and share media engines."""
    key = rng.choice(BOARDS)
    every = tuple(profile.name for profile in profiles_of(key))
    chosen = every if rng.random() < 0.5 else None
    return tuple(
        board(key, f"GPU-{name}-{index}", index, names=chosen, numa=index) for index in (0, 1)
    )


def plainly(
    state: ClusterState, request: PodRequest, names: Sequence[str]
) -> tuple[str, Choice] | None:
    """The node and the choice without any index: every named node planned anew."""
    rule = state.policy.rule_for(request)
    selection = Selection(request, rule, upsize=state.policy.upsize)
    nodes = state.snapshot().nodes
    found = []
    for name in dict.fromkeys(names):
        choice = selection.choose(nodes[name].open_gpus) if name in nodes else None
        if choice is not None:
            found.append((choice.rank, order_among_equals(selection, name), name, choice))
    best = min(found, key=lambda item: item[:3], default=None)
    return None if best is None else (best[2], best[3])


def facts(record: NodeRecord) -> tuple[object, ...]:
    def of_gpu(gpu: GpuRecord) -> tuple[object, ...]:
        claims = {(claim.pod.uid, claim.phase, claim.reservation) for claim in gpu.claims}
        return (gpu.capability, gpu.state, gpu.conflicted, gpu.cordoned, claims)

    opened = [gpu.capability.uuid for gpu in record.open_gpus]
    return (record.name, [*map(of_gpu, record.gpus)], opened, record.closed, record.doubts)


class World:
    """A cluster to which random things happen."""

    def __init__(self, placement: str, seed: int) -> None:
        self.random = Random(seed)
        self.state = ClusterState(SchedulingPolicy(placement=placement))
        self.gpus = {
            name: gpus_of(name, self.random) for name in (f"node-{n:03}" for n in range(NODES))
        }
        self.state.replace_nodes(node(name, gpus) for name, gpus in self.gpus.items())
        self.live: list[str] = []
        self.serial = 0

    def decide(self) -> None:
        self.serial += 1
        annotations = {"hami.io/numa-bind": "true"} if self.random.random() < 0.2 else {}
        count = self.random.choice((1, 1, 1, 2))
        asked = self.random.choice(ASKED)
        view = pod(f"p{self.serial}", *asked, count=count, annotations=annotations)
        names = self.random.sample(sorted(self.gpus), self.random.choice((3, 40, 55, 90, NODES)))
        expected = plainly(self.state, request_of(view), names)
        answer = self.state.filter(view, request_of(view), names)
        if not isinstance(answer, Held):
            assert expected is None
            return
        assert expected is not None
        assert (answer.node, answer.hold.reservations) == (expected[0], expected[1].reservations)
        assert answer.hold.devices == expected[1].devices
        self.live.append(view.uid)
        if self.random.random() < 0.5:
            self.state.set_pod(bound(view, answer.hold))

    def end(self) -> None:
        if self.live:
            self.live.sort()
            self.state.remove_pod(self.live.pop(self.random.randrange(len(self.live))))

    def change_node(self) -> None:
        name = self.random.choice(sorted(self.gpus))
        gpus = self.gpus[name]
        change = self.random.random()
        if change < 0.3:
            self.state.remove_node(name)
        else:
            cordon = gpus[0].uuid if change < 0.6 else ""
            self.state.set_node(node(name, gpus, cordon=cordon))


@pytest.mark.parametrize("placement", PLACEMENT_POLICIES)
@pytest.mark.parametrize("seed", range(2))
def test_a_decision_from_the_index_is_the_one_from_the_records(placement: str, seed: int) -> None:
    world = World(placement, seed)
    for _ in range(90):
        step = world.random.choice((world.decide, world.decide, world.end, world.change_node))
        step()


@pytest.mark.parametrize("seed", range(3))
def test_a_node_that_pods_came_to_and_left_is_as_one_made_from_its_pods(seed: int) -> None:
    world = World("cap-loss", seed)
    for _ in range(150):
        world.random.choice((world.decide, world.decide, world.end))()
    occupants = world.state._occupants
    for name, record in world.state.snapshot().nodes.items():
        anew = build_record(occupants._published[name], occupants.pods_on(name), record.version)
        assert facts(anew) == facts(record)


def test_a_front_that_is_used_up_is_made_anew() -> None:
    state = ClusterState(SchedulingPolicy())
    names = [f"node-{number:03}" for number in range(400)]
    state.replace_nodes(node(name, [board("a100-sxm4-40gb", f"GPU-{name}")]) for name in names)
    seen = set()
    for number in range(400):  # each takes a whole GPU, and so a node, of the hundred it is offered
        offered = names[number % 4 * 100 :][:100]
        view = pod(f"p{number}", 40000)
        expected = plainly(state, request_of(view), offered)
        answer = state.filter(view, request_of(view), offered)
        assert isinstance(answer, Held)
        assert expected is not None
        assert answer.node == expected[0]
        seen.add(answer.node)
    assert len(seen) == 400
