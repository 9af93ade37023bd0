"""A drain plan as commands for a person to read and run; nothing here runs them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from shlex import quote
from typing import Final

from hami_web.core.annotations import NODE_DEVICE_CORDON
from hami_web.planning.drain import DrainAnswer
from hami_web.scheduling.records import PodIdentity

WAIT: Final = "10m"


def commands_of(answer: DrainAnswer, sees: Callable[[str], bool]) -> tuple[str, ...]:
    """Lines of a shell script.

    The GPUs that are to become free are cordoned first, so that no Pod comes back to them, and
    offered again at the end. Pods are evicted, never deleted: the API server then keeps their
    disruption budgets. ``sees`` tells which namespaces may be named.
    """
    if not answer.moves:
        return ()
    return (*_cordons(answer), *_evictions(answer, sees), *_offers(answer))


def _cordons(answer: DrainAnswer) -> Iterator[str]:
    yield "# keep the GPUs free while Pods move"
    for node, cordoned in answer.cordoned.items():
        own = [uuid for name, uuid, _ in answer.placements if name == node]
        yield _annotate(node, [*cordoned, *own])


def _evictions(answer: DrainAnswer, sees: Callable[[str], bool]) -> Iterator[str]:
    yield "# move; whoever made these Pods makes them anew elsewhere"
    pods = [move.claims[0].pod for move in answer.moves]
    for pod in pods:
        if sees(pod.namespace):
            yield _evict(pod)
    hidden = sum(not sees(pod.namespace) for pod in pods)
    if hidden:
        yield f"# and {hidden} more in namespaces that are unavailable to you"
    for pod in pods:
        if sees(pod.namespace):
            name = quote(f"pod/{pod.name}")
            yield f"kubectl -n {quote(pod.namespace)} wait --for=delete {name} --timeout={WAIT}"


def _offers(answer: DrainAnswer) -> Iterator[str]:
    yield "# offer the GPUs again, as before"
    for node, cordoned in answer.cordoned.items():
        yield _annotate(node, cordoned)


def _annotate(node: str, uuids: Sequence[str]) -> str:
    value = ",".join(dict.fromkeys(uuids))
    change = f"{NODE_DEVICE_CORDON}={value}" if value else f"{NODE_DEVICE_CORDON}-"
    return f"kubectl annotate node {quote(node)} --overwrite {quote(change)}"


def _evict(pod: PodIdentity) -> str:
    metadata = {"name": pod.name, "namespace": pod.namespace}
    document = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/eviction"
    text = json.dumps(document, separators=(",", ":"))
    return f"echo {quote(text)} | kubectl create --raw {quote(path)} -f -"
