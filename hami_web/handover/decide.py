"""From where a take-over stands and what is seen to what happens next; pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hami_web.handover.changes import Change, change_of, guards, movable
from hami_web.handover.goals import AT_DRAIN, missing, our_pods
from hami_web.handover.obstacles import Obstacle, ObstacleCode
from hami_web.handover.sight import TEST_LABEL, Sight
from hami_web.handover.standing import Standing
from hami_web.handover.steps import Step, after, before
from hami_web.migration.codes import FindingCode
from hami_web.migration.facts import Part, no_node


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing can be judged: nothing is done, and nothing that was reached is given up."""

    obstacles: tuple[Obstacle, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """Go on to a step, or back to one whose goal does not hold any more (``lost`` says why)."""

    step: Step
    lost: tuple[Obstacle, ...] = ()


@dataclass(frozen=True, slots=True)
class End:
    """The last step is reached."""


@dataclass(frozen=True, slots=True)
class Perform:
    """Somebody approved the step and nothing forbids it: change the cluster so."""

    change: Change
    obstacles: tuple[Obstacle, ...]


@dataclass(frozen=True, slots=True)
class Await:
    """Wait for people: for what is in the way, and for an approval where ``change`` is one."""

    obstacles: tuple[Obstacle, ...]
    change: Change


Decision = Hold | Move | End | Perform | Await


def decide(standing: Standing, sight: Sight) -> Decision:
    """What happens next. Doubt holds everything where it is."""
    if held := tuple(_doubts(standing, sight)):
        return Hold(held)
    step = standing.step
    rest = missing(step, sight, standing)
    for earlier in before(step):
        if earlier is Step.DRAIN and step is Step.UNCORDON and not rest:
            continue  # a node that is open again takes whatever Pods come to it
        if lost := missing(earlier, sight, standing):
            return Move(earlier, lost)
    if not rest:
        following = after(step)
        return End() if following is None else Move(following)
    change = change_of(step, sight, standing)
    forbidden = guards(step, sight, standing)
    if forbidden or change.is_nothing or not standing.approved:
        by_hand = tuple(_by_hand(step, sight))
        return Await((*forbidden, *rest, *by_hand), change)
    return Perform(change, (*rest, *_by_hand(step, sight)))


def _doubts(standing: Standing, sight: Sight) -> Iterator[Obstacle]:
    subject = f"Node {standing.node}"
    unread = dict(sight.unread)
    if unread.get(Part.NODES.value) == no_node(standing.node):
        del unread[Part.NODES.value]
    for part, why in unread.items():
        yield Obstacle(FindingCode.NOT_READ, part, why)
    if unread:
        return
    if sight.node is None:
        yield Obstacle(ObstacleCode.NODE_GONE, subject, "the API server does not know it")
    elif sight.node.metadata.uid != standing.uid:
        evidence = f"UID {sight.node.metadata.uid}, it was {standing.uid}"
        yield Obstacle(ObstacleCode.NODE_REPLACED, subject, evidence)


def _by_hand(step: Step, sight: Sight) -> Iterator[Obstacle]:
    """Pods that an eviction would end for good, or not at all; their owners decide."""
    if step is Step.DRAIN:
        named = {item.subject for item in sight.findings if item.code in AT_DRAIN}
        pods = [pod for pod in sight.running() if f"Pod {pod.full_name}" in named]
    elif step is Step.BACK_DRAIN:
        pods = [pod for pod in our_pods(sight) if TEST_LABEL not in pod.labels]
    else:
        return
    for pod in pods:
        if not movable(pod):
            owner = pod.metadata.owner
            evidence = f"its controller is {owner}" if owner else "it has no controller"
            yield Obstacle(ObstacleCode.NOT_EVICTED_BY_US, f"Pod {pod.full_name}", evidence)
