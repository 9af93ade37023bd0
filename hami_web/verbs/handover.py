"""Start a node's take-over, approve its steps, turn it back, close it."""

from __future__ import annotations

from datetime import UTC, datetime

from hami_web.access.audit import Action, Actor, audited
from hami_web.handover import store
from hami_web.handover.models import NodeHandover
from hami_web.handover.steps import Direction
from hami_web.verbs import cluster


def start(actor: Actor, node: str, direction: Direction) -> NodeHandover:
    """Begin with a node as it is now, recorded before and after; the cluster is not changed.

    Raises HandoverOpen, ClusterError (NotFound for a node that is not there) and DatabaseError.
    """
    action = Action("handover.start", "node", node, after={"direction": direction.value})
    with audited(actor, action):
        seen = cluster.nodes().get_node(node)
        uid, cordoned = seen.metadata.uid, seen.spec.unschedulable
        return store.begin(
            store.Beginning(node, uid, direction, actor.name, cordoned=cordoned), datetime.now(UTC)
        )


def approve(actor: Actor, pk: int, step: str) -> NodeHandover:
    """Let the worker do a step, recorded. Raises DoesNotExist, HandoverOver, OtherStep."""
    with audited(actor, _action("approve", pk, step)):
        return store.approve(store.Asked(pk, step, actor.name), datetime.now(UTC))


def withdraw(actor: Actor, pk: int, step: str) -> NodeHandover:
    """Take an approval back, recorded. Raises DoesNotExist, HandoverOver, OtherStep."""
    with audited(actor, _action("withdraw", pk, step)):
        return store.withdraw(store.Asked(pk, step, actor.name), datetime.now(UTC))


def turn_back(actor: Actor, pk: int) -> NodeHandover:
    """Lead the node back, recorded. Raises DoesNotExist, HandoverOver, OtherStep."""
    with audited(actor, _action("turn-back", pk)):
        return store.turn_back(pk, actor.name, datetime.now(UTC))


def close(actor: Actor, pk: int) -> NodeHandover:
    """End it where it is, recorded. Raises DoesNotExist, HandoverOver, OtherStep."""
    with audited(actor, _action("close", pk)):
        return store.close(pk, actor.name, datetime.now(UTC))


def _action(verb: str, pk: int, step: str = "") -> Action:
    return Action(f"handover.{verb}", "handover", str(pk), after={"step": step} if step else None)
