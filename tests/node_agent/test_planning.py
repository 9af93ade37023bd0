"""Pure decisions: whatever is observed, doubt preserves."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_web.core import annotations as keys
from hami_web.core.placement import Placement
from hami_web.core.reservation import Reservation, RuntimeIdentity, encode_allocations
from node_agent.nvml.ports import LiveComputeInstance, LiveInstance
from node_agent.ownership import Claim, InstanceRecord, InstanceSpec, Owner, RecordState
from node_agent.planning import (
    Verdict,
    adoption_decisions,
    foreign_instances,
    idle_gpus,
    node_claims,
    other_owner,
    reclaimable,
)
from node_agent.pods import ContainerState, ObservedNode, ObservedPod

GPUS = ("GPU-a", "GPU-b")
PROFILE_IDS = {(gpu, "1g"): 19 for gpu in GPUS} | {(gpu, "2g"): 14 for gpu in GPUS}
IDS = {"1g": 19, "2g": 14}

specs = st.builds(
    InstanceSpec,
    st.sampled_from(GPUS),
    st.sampled_from(("1g", "2g")),
    st.builds(Placement, st.integers(0, 3), st.integers(1, 2)),
)
owners = st.builds(Owner, st.sampled_from("abc"), st.integers(0, 1), st.integers(0, 1))
identities = st.builds(
    RuntimeIdentity, st.sampled_from(("MIG-1", "MIG-2")), st.integers(0, 2), st.just(0)
)
claims_of = st.builds(Claim, owners, st.just("ns"), st.just("pod"), specs, st.none() | identities)


def live_of(spec: InstanceSpec, identity: RuntimeIdentity) -> LiveInstance:
    compute = LiveComputeInstance(identity.compute_instance_id, 0, identity.mig_uuid)
    return LiveInstance(
        spec.gpu_uuid, identity.gpu_instance_id, IDS[spec.profile], spec.placement, (compute,)
    )


lives = st.lists(st.builds(live_of, specs, identities), max_size=4)


def record_of(owner: Owner, spec: InstanceSpec, state: RecordState) -> InstanceRecord:
    identity = RuntimeIdentity("MIG-1", 1, 0) if state is RecordState.REALIZED else None
    return InstanceRecord(
        owner, "ns", "pod", spec, IDS[spec.profile], state, identity, (), since=0.0
    )


records_of = st.builds(record_of, owners, specs, st.sampled_from(RecordState))


def pod(uid: str = "a", **changes: object) -> ObservedPod:
    made = ObservedPod(
        namespace="ns",
        name=f"pod-{uid}",
        uid=uid,
        resource_version="1",
        node="n1",
        phase="Running",
        deleting=False,
        annotations={},
        labels={},
        containers=("c",),
        app_containers=("c",),
        limits=({},),
        states={"c": ContainerState.RUNNING},
    )
    return replace(made, **changes)  # type: ignore[arg-type]


pods = st.builds(
    pod,
    st.sampled_from("abcd"),
    phase=st.sampled_from(("Pending", "Running", "Succeeded", "Failed")),
    deleting=st.booleans(),
    states=st.sampled_from(({}, *({"c": state} for state in ContainerState))),
    annotations=st.sampled_from(
        ({}, {keys.POD_MIG_ALLOCATIONS: "x"}, {keys.POD_MIG_ALLOCATIONS: "GPU-a"})
    ),
)


@given(st.lists(records_of), st.lists(pods))
def test_nothing_of_a_pod_that_is_not_over_is_reclaimable(
    records: list[InstanceRecord], seen: list[ObservedPod]
) -> None:
    chosen = reclaimable(records, seen, node_claims(seen))
    alive = {item.uid for item in seen if not item.over}
    assert not [record for record in chosen if record.owner.pod_uid in alive]


@given(st.lists(records_of), st.lists(pods))
def test_nothing_on_a_gpu_in_doubt_is_reclaimable(
    records: list[InstanceRecord], seen: list[ObservedPod]
) -> None:
    claims = node_claims(seen)
    chosen = reclaimable(records, seen, claims)
    assert not [record for record in chosen if claims.in_doubt(record.spec.gpu_uuid)]


@given(pods)
def test_a_pod_with_a_running_container_is_never_over(seen: ObservedPod) -> None:
    running = ContainerState.RUNNING in seen.states.values()
    assert not (running and seen.over)


@given(st.lists(claims_of, unique_by=lambda c: c.owner), st.lists(records_of), lives)
def test_only_a_proven_instance_is_adopted_and_by_one_owner(
    claims: list[Claim], records: list[InstanceRecord], live: list[LiveInstance]
) -> None:
    by_owner = {record.owner: record for record in records}
    decisions = adoption_decisions(claims, by_owner, live, PROFILE_IDS)
    adopted = [item for item in decisions if item.verdict is Verdict.ADOPT]
    assert len(decisions) == len(claims)
    assert len({id(item.live) for item in adopted}) == len(adopted)
    assert all(item.live in live for item in adopted)
    assert all(proven(item.claim, item.live, by_owner) for item in adopted)


def proven(claim: Claim, live: LiveInstance | None, records: dict[Owner, InstanceRecord]) -> bool:
    """The annotation names the instance, or the journal says that it was made for this owner."""
    assert live is not None
    assert (live.gpu_uuid, live.placement) == (claim.spec.gpu_uuid, claim.spec.placement)
    found = RuntimeIdentity(live.compute_instances[0].mig_uuid, live.gpu_instance_id, 0)
    if found == claim.identity:
        return True
    record = records[claim.owner]
    made = record.state is not RecordState.RECLAIMING and record.identity in (None, found)
    return made and record.spec == claim.spec


@given(lives, st.lists(records_of))
def test_an_instance_is_ours_or_foreign_never_both(
    live: list[LiveInstance], records: list[InstanceRecord]
) -> None:
    foreign = foreign_instances(live, records)
    explained = {(r.spec.gpu_uuid, r.profile_id, r.spec.placement) for r in records}
    assert all(
        ((i.gpu_uuid, i.profile_id, i.placement) in explained) != (i in foreign) for i in live
    )


@given(st.lists(pods), st.lists(records_of), st.sets(st.sampled_from(GPUS)))
def test_a_gpu_with_a_record_a_process_or_a_doubt_is_not_idle(
    seen: list[ObservedPod], records: list[InstanceRecord], busy: set[str]
) -> None:
    claims = node_claims(seen)
    idle = idle_gpus(GPUS, claims, records, busy)
    used = busy | {record.spec.gpu_uuid for record in records}
    assert not [gpu for gpu in idle if gpu in used or claims.in_doubt(gpu)]


def allocations(gpu: str) -> dict[str, str]:
    return {
        keys.POD_MIG_ALLOCATIONS: encode_allocations(
            [Reservation(0, 0, gpu, "1g", Placement(0, 1))]
        )
    }


def test_a_reserved_gpu_is_not_idle_until_its_pod_is_over() -> None:
    claimed = pod(annotations=allocations("GPU-a"))
    over = replace(claimed, phase="Succeeded", states={"c": ContainerState.TERMINATED})
    assert idle_gpus(GPUS, node_claims([claimed]), (), ()) == ("GPU-b",)
    assert idle_gpus(GPUS, node_claims([over]), (), ()) == GPUS


def test_an_unreadable_annotation_puts_the_gpus_it_names_in_doubt() -> None:
    named = node_claims([pod(annotations={keys.POD_MIG_ALLOCATIONS: '[{"gpuUUID":"GPU-a"'})])
    unnamed = node_claims([pod(annotations={keys.POD_MIG_ALLOCATIONS: "?"})])
    assert [named.in_doubt(gpu) for gpu in GPUS] == [True, False]
    assert [unnamed.in_doubt(gpu) for gpu in GPUS] == [True, True]


def test_two_pods_that_claim_one_instance_are_both_preserved() -> None:
    spec = InstanceSpec("GPU-a", "1g", Placement(0, 1))
    identity = RuntimeIdentity("MIG-1", 7, 0)
    rivals = [Claim(Owner(uid, 0, 0), "ns", uid, spec, identity) for uid in "ab"]
    decisions = adoption_decisions(rivals, {}, [live_of(spec, identity)], PROFILE_IDS)
    assert [item.verdict for item in decisions] == [Verdict.PRESERVE] * 2
    assert "also claimed by ns/b" in decisions[0].reason


def test_an_instance_whose_identity_a_living_pod_carries_is_kept() -> None:
    identity = RuntimeIdentity("MIG-1", 1, 0)
    spec = InstanceSpec("GPU-a", "1g", Placement(0, 1))
    record = record_of(Owner("gone", 0, 0), spec, RecordState.REALIZED)
    carried = encode_allocations([Reservation(0, 0, "GPU-a", "1g", Placement(0, 1), identity)])
    living = pod(annotations={keys.POD_MIG_ALLOCATIONS: carried})
    over = replace(living, phase="Failed", states={})
    assert reclaimable([record], [living], node_claims([living])) == ()
    assert reclaimable([record], [over], node_claims([over])) == (record,)


def decided(claim: Claim, record: InstanceRecord | None, *live: LiveInstance) -> Verdict:
    records = {record.owner: record} if record else {}
    return adoption_decisions([claim], records, live, PROFILE_IDS)[0].verdict


def test_each_reservation_gets_the_verdict_its_facts_allow() -> None:
    spec = InstanceSpec("GPU-a", "1g", Placement(0, 1))
    identity = RuntimeIdentity("MIG-1", 1, 0)
    bare = Claim(Owner("a", 0, 0), "ns", "pod", spec)
    full = replace(bare, identity=identity)
    there = live_of(spec, identity)
    half = replace(there, compute_instances=())
    beside = live_of(InstanceSpec("GPU-a", "2g", Placement(0, 2)), identity)
    record = record_of(bare.owner, spec, RecordState.REALIZED)
    unknown = replace(full, spec=replace(spec, profile="9g"))
    assert decided(full, None, there) is Verdict.ADOPT
    assert decided(bare, record, there) is Verdict.ADOPT
    assert decided(bare, None) is Verdict.AWAIT
    assert decided(bare, record, half) is Verdict.AWAIT
    assert decided(full, None) is Verdict.STALE
    assert decided(unknown, None, there) is Verdict.PRESERVE
    assert decided(full, None, beside) is Verdict.PRESERVE
    assert decided(full, None, half) is Verdict.PRESERVE
    assert decided(bare, None, there) is Verdict.PRESERVE
    reclaiming = replace(record, state=RecordState.RECLAIMING)
    assert decided(bare, reclaiming, there) is Verdict.PRESERVE
    # Made anew after a reboot, with another UUID, and killed before the annotation was written.
    intent = replace(record, state=RecordState.INTENT, identity=None)
    old = replace(full, identity=RuntimeIdentity("MIG-0", 1, 0))
    assert decided(old, record, there) is Verdict.ADOPT
    assert decided(old, intent, there) is Verdict.ADOPT
    assert decided(old, intent, half) is Verdict.AWAIT
    assert decided(old, None, there) is Verdict.PRESERVE
    assert decided(old, replace(record, identity=old.identity), there) is Verdict.PRESERVE


def node(labels: dict[str, str], *resources: str) -> ObservedNode:
    return ObservedNode("n1", "uid", "1", {}, labels, dict.fromkeys(resources, "1"))


def test_signs_of_another_owner_are_named() -> None:
    assert "MIG Manager" in other_owner(node({"nvidia.com/mig.config": "all-balanced"}), ())
    assert "nvidia.com/mig-1g.5gb" in other_owner(node({}, "cpu", "nvidia.com/mig-1g.5gb"), ())
    assert other_owner(node({}, "cpu", "nvidia.com/gpu"), [pod()]) == ""


@pytest.mark.parametrize(
    ("labels", "program"),
    [
        ({"app": "nvidia-mig-manager"}, "MIG Manager"),
        ({"app": "nvidia-device-plugin-daemonset"}, "NVIDIA's device plugin"),
        ({"name": "nvidia-device-plugin-ds"}, "NVIDIA's device plugin"),
        ({"app.kubernetes.io/name": "nvidia-dra-driver-gpu"}, "NVIDIA's DRA driver"),
        ({"app.kubernetes.io/component": "hami-device-plugin"}, "HAMi's device plugin"),
    ],
)
def test_a_program_that_offers_gpus_is_known_by_its_pod(
    labels: dict[str, str], program: str
) -> None:
    runs = pod(labels=labels)
    assert other_owner(node({}), [pod(), runs]) == f"Pod {runs.key} ({program})"
    assert other_owner(node({}), [replace(runs, phase="Succeeded", states={})]) == ""


def test_a_deleting_pod_is_over_when_every_container_has_terminated() -> None:
    two = pod(deleting=True, app_containers=("c", "d"), containers=("c", "d"))
    ended = ContainerState.TERMINATED
    assert not replace(two, states={"c": ended}).over
    assert not replace(two, states={"c": ended, "d": ContainerState.WAITING}).over
    assert replace(two, states={"c": ended, "d": ended}).over


def test_a_crash_loop_is_not_over() -> None:
    assert not pod(states={"c": ContainerState.TERMINATED}).over


def test_an_evicted_pod_is_over_only_when_its_containers_have_stopped() -> None:
    assert not pod(phase="Failed").over
    assert pod(phase="Failed", states={}).over
