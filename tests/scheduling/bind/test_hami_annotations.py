"""Every annotation over a Pod's life, byte for byte what HAMi v2.10 wrote.

``tests/golden/hami-v2.10`` holds what its scheduler and its device plugin were seen to write.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hami_web.cluster.views import Container, ObjectMeta, PodSpec, PodView, Resources
from hami_web.core import annotations as keys
from hami_web.core.device_list import decode_devices, encode_devices, is_erased
from hami_web.core.nodelock import decode_lock, encode_lock
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.policy_names import HAMI
from hami_web.core.registration import decode_registration, encode_registration
from hami_web.core.request import parse_pod_request
from hami_web.core.reservation import decode_allocations, encode_allocations
from hami_web.scheduling.pods import read_pod
from hami_web.scheduling.record import reservation_annotations
from hami_web.scheduling.records import Phase
from hami_web.scheduling.state import ClusterState, Held
from tests.scheduling.state.cluster import node as gpu_node

GOLDEN = Path(__file__).parents[2] / "golden" / "hami-v2.10"
LIVES = json.loads((GOLDEN / "lives.json").read_text())
BINDINGS = json.loads((GOLDEN / "bindings.json").read_text())
MOMENT = "1790000000"


def pod_of(entry, written=None, node=""):
    containers = [
        Container(c["name"], Resources(c["limits"], c["limits"])) for c in entry["containers"]
    ]
    annotations = dict(entry["annotations"]) | (written or {})
    name = entry.get("pod") or entry["name"]
    meta = ObjectMeta(name, "team-a", f"uid-{name}", annotations=annotations)
    return PodView(meta, PodSpec(node_name=node, containers=containers))


def dated(written):
    return {key: value.replace("<unix-seconds>", MOMENT) for key, value in written.items()}


def state_of(registers):
    state = ClusterState(SchedulingPolicy(placement=HAMI, upsize=True))
    for name, text in registers.items():
        state.set_node(gpu_node(name, decode_registration(text).capability.gpus))
    return state


@pytest.mark.parametrize("scenario", BINDINGS, ids=lambda scenario: scenario["scenario"])
def test_a_binding_carries_what_hami_writes_until_it_is_bound(scenario):
    state = state_of(scenario["nodes"])
    for step in scenario["steps"]:
        if "delete" in step:
            state.remove_pod(f"uid-{step['delete']}")
            continue
        pod = pod_of(step)
        request = parse_pod_request(pod.container_specs(), pod.annotations)
        answer = state.filter(pod, request, [step["node"]])
        assert isinstance(answer, Held), step["pod"]
        found = reservation_annotations(answer.hold, now_s=int(MOMENT))
        assert found == dated(step["written"]), step["pod"]
        state.set_pod(pod_of(step, dated(step["written"]), step["node"]))


def test_locks_are_written_as_hami_writes_them():
    locks = {step["lock"] for scenario in BINDINGS for step in scenario["steps"] if "pod" in step}
    assert len(locks) > 10
    for text in locks:
        dated_lock = text.replace("<rfc3339>", "2026-11-30T15:31:52Z")
        assert encode_lock(decode_lock(dated_lock)) == dated_lock


def test_the_capability_that_hamis_plugin_publishes_is_written_again_equally():
    text = LIVES["register"]
    assert encode_registration(decode_registration(text).capability) == text


@pytest.mark.parametrize("life", LIVES["pods"], ids=lambda life: life["name"])
def test_each_stage_of_a_life_under_hamis_plugin_is_understood(life):
    phases = []
    for stage in life["stages"]:
        written = dated(stage["annotations"])
        text = written.get(keys.POD_MIG_ALLOCATIONS)
        if text is None:
            continue
        assert encode_allocations(decode_allocations(text)) == text
        devices = written[keys.POD_DEVICES_ALLOCATED]
        assert encode_devices(decode_devices(devices)) == devices
        if not stage["bound"]:
            continue
        record = read_pod(pod_of(life, written, LIVES["node"]))
        assert record is not None
        assert (record.doubt, record.unexplained) == ("", ())
        phases.append({claim.phase for claim in record.claims})
        if written[keys.POD_BIND_PHASE] == keys.BIND_PHASE_SUCCESS:
            assert is_erased(decode_devices(written[keys.POD_DEVICES_TO_ALLOCATE]))
    assert phases[0] == {Phase.RESERVED}
    assert phases[-1] == {Phase.REALIZED}


def test_the_recorded_times_are_the_only_thing_that_is_replaced():
    left = re.findall(r"<[a-z0-9-]+>", json.dumps(BINDINGS))
    assert set(left) == {"<unix-seconds>", "<rfc3339>"}
