"""The ``hami`` policy against choices recorded from HAMi v2.10.

``tests/golden/hami-v2.10/choices.json`` holds what the real scheduler was asked and where it put
each device, Pod after Pod. Where ours differs on purpose, ``DIFFERENT`` says how and why.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hami_web.cluster.views import (
    Container,
    NodeView,
    ObjectMeta,
    PodSpec,
    PodStatus,
    PodView,
    Resources,
)
from hami_web.core import annotations as keys
from hami_web.core.errors import InvalidRequest
from hami_web.core.placement import Placement
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.request import parse_pod_request
from hami_web.core.reservation import Reservation, encode_allocations
from hami_web.core.wire import encode
from hami_web.scheduling.state import ClusterState, Held
from tests.scheduling.state.cluster import node

Outcome = tuple[str, list[str]] | None

DRAWN = frozenset({"policy-spread-spread job-01"})
"""Pods whose node HAMi drew among equal ones; ours takes the first by name."""

_SHIFTED = "HAMi leaves containers without a GPU out of the container index"
_INIT = "HAMi lets init containers overlap the app containers; the kubelet holds all to the end"
_LARGEST = "HAMi asks for the card's nominal memory, which no profile has; ours takes the largest"
_SHARE = "HAMi takes the share of the nominal memory; ours of the memory slices"
_CORES = "HAMi only compares gpucores with what is booked; ours asks it of the profile"
_ROUNDED = "HAMi sums rounded cores, and refuses a GPU that has room"
_UNKNOWN = "HAMi takes an unknown word for spread; ours refuses it"
DIFFERENT = {
    **dict.fromkeys(
        [
            "containers-without-gpu c-before",
            "containers-without-gpu c-between",
            "containers-without-gpu c-both-sides",
            "containers-without-gpu c-two-before",
            "containers-without-gpu c-gpu-none-gpu-none",
            "init-containers i-none-1g",
        ],
        _SHIFTED,
    ),
    **dict.fromkeys(
        [
            "init-containers i-1g-1g",
            "init-containers i-1g-3g",
            "init-containers i-3g-1g",
            "init-containers i-1g-2g-1g",
            "init-containers i-none-1g-none-1g",
            "init-containers i-7g-1g",
            "init-containers i-1g-1g-1g",
        ],
        _INIT,
    ),
    "choice-a100 mem-0": _LARGEST,
    "count-2gpu n-2x-no-gpumem": _LARGEST,
    "percentage pct-99": _LARGEST,
    "percentage pct-100": _LARGEST,
    "percentage pct-0": _LARGEST,
    "percentage pct-12": _SHARE,
    "percentage pct-25": _SHARE,
    "percentage pct-50": _SHARE,
    "percentage pct-50-cores-10": _SHARE,
    "gpucores c50": _CORES,
    "gpucores c70": _CORES,
    "gpucores c55": _CORES,
    "gpucores-100-first c100": _CORES,
    "gpucores-rounding d14": _ROUNDED,
    **{f"gpupolicy-nonsense job-{number}": _UNKNOWN for number in range(1, 7)},
}

GOLDEN = json.loads((Path(__file__).parents[2] / "golden/hami-v2.10/choices.json").read_text())
SCENARIOS = {scenario["scenario"]: scenario for scenario in GOLDEN["scenarios"]}


def node_of(item: Mapping[str, Any]) -> NodeView:
    if "gpus" not in item:
        return node(item["name"], register=item["register"] or "")
    entries = []
    for index, gpu in enumerate(item["gpus"]):
        entry = {
            "id": f"GPU-{item['name']}-{index}",
            "index": index,
            **GOLDEN["models"][gpu["model"]],
        }
        entries.append({**entry, "numa": gpu.get("numa", 0), "health": gpu.get("health", True)})
    cordon = ",".join(f"GPU-{item['name']}-{index}" for index in item.get("cordon", ()))
    return node(item["name"], register=encode(entries), cordon=cordon)


def pod_of(step: Mapping[str, Any], uid: str) -> PodView:
    def containers(key: str) -> list[Container]:
        return [
            Container(f"{key}-{n}", Resources(limits=limits))
            for n, limits in enumerate(step.get(key, ()))
        ]

    return PodView(
        ObjectMeta(step["pod"], "team-a", uid, annotations=dict(step.get("annotations", {}))),
        PodSpec(containers=containers("containers"), init_containers=containers("init")),
        PodStatus("Pending"),
    )


def written(answer: Held) -> list[str]:
    return [
        f"c{r.container_index}d{r.device_index} gpu{r.gpu_uuid.rsplit('-', 1)[1]} "
        f"{r.profile}@{r.placement.start}"
        for r in answer.hold.reservations
    ]


def ask(state: ClusterState, view: PodView, names: list[str]) -> Outcome:
    """Our node and placements, or None when the Pod is refused."""
    try:
        request = parse_pod_request(view.container_specs(), view.annotations)
        answer = state.filter(view, request, names)
    except InvalidRequest:
        return None
    return (answer.node, written(answer)) if isinstance(answer, Held) else None


def settle(state: ClusterState, view: PodView, theirs: Outcome) -> None:
    """Leave the cluster as HAMi left it, whatever ours chose."""
    state.release(view.uid)
    if theirs is None:
        return
    name, placements = theirs
    record = state.snapshot().nodes[name]
    reservations = []
    for text in placements:
        device, gpu, place = text.split()
        profile, start = place.split("@")
        container, _, index = device[1:].partition("d")
        capability = record.gpus[int(gpu[3:])].capability
        (size,) = {p.size for p in capability.by_name[profile].placements}
        reservations.append(
            Reservation(int(container), int(index), capability.uuid, profile,
                        Placement(int(start), size))
        )  # fmt: skip
    view.spec.node_name = name
    view.metadata.annotations = {keys.POD_MIG_ALLOCATIONS: encode_allocations(reservations)}
    state.set_pod(view)


def replay(name: str) -> Iterator[tuple[str, Outcome, Outcome]]:
    """Each Pod with HAMi's outcome and ours, both starting from what HAMi left."""
    state = ClusterState(SchedulingPolicy("hami", upsize=True))
    names = [item["name"] for item in SCENARIOS[name]["nodes"]]
    for item in SCENARIOS[name]["nodes"]:
        state.set_node(node_of(item))
    for step in SCENARIOS[name]["steps"]:
        if "pod" not in step or "op" in step:
            state.remove_pod(step.get("delete", step.get("pod")))
            continue
        view = pod_of(step, step["pod"])
        theirs = (step["node"], step["placements"]) if "node" in step else None
        drawn = f"{name} {step['pod']}" in DRAWN and theirs is not None
        ours = ask(state, view, [theirs[0]] if drawn and theirs else names)
        settle(state, view, theirs)
        yield step["pod"], theirs, ours


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_choices_are_hamis(name: str) -> None:
    for pod, theirs, ours in replay(name):
        if f"{name} {pod}" not in DIFFERENT:
            assert (pod, ours) == (pod, theirs)


def test_every_listed_difference_is_one() -> None:
    found = {
        f"{name} {pod}"
        for name in SCENARIOS
        for pod, theirs, ours in replay(name)
        if theirs != ours
    }
    assert found == set(DIFFERENT)
