"""Whatever is created and destroyed, a GPU keeps its rules."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.placement import Placement
from node_agent.nvml.simulated import gpu_models
from node_agent.nvml.simulated.mutations import (
    Refusal,
    create_compute_instance,
    create_gpu_instance,
    destroy_compute_instance,
    destroy_gpu_instance,
)
from node_agent.nvml.simulated.state import ID_MAPS, Gpu, Node, decode_node, encode_node
from node_agent.nvml.simulated.topology import (
    compute_profiles,
    driver_choice,
    free_placements,
    placement_of,
    remaining_capacity,
)

CAPABLE = sorted(each.key for each in gpu_models().values() if each.profiles)


@st.composite
def used_gpus(draw):
    """A GPU after some creates and destroys, of which each may have been refused."""
    model, id_map = draw(st.sampled_from(CAPABLE)), draw(st.sampled_from(ID_MAPS))
    gpu = Gpu("GPU-x", model, 0, 0, "", id_map, mig_current=True, mig_pending=True)
    node = Node(seed="s", boot_id="b", gpus=[gpu])
    for _ in range(draw(st.integers(0, 12))):
        if gpu.instances and draw(st.booleans()) and draw(st.booleans()):
            destroy_any(gpu, draw(st.integers(0, 99)))
        else:
            create_any(node, gpu, draw(st.sampled_from(gpu.facts.profiles)), draw)
    return node


def create_any(node, gpu, profile, draw):
    start = draw(st.sampled_from([None, *profile.starts]))
    placement = None if start is None else Placement(start, profile.size)
    try:
        made = create_gpu_instance(node, gpu, profile.profile_id, placement)
    except Refusal:
        return
    if draw(st.booleans()):
        whole = compute_profiles(gpu.facts, profile)[-1]
        create_compute_instance(node, gpu, made, whole.profile_id)


def destroy_any(gpu, number):
    instance = gpu.instances[number % len(gpu.instances)]
    for compute in tuple(instance.compute_instances):
        destroy_compute_instance(gpu, instance, compute)
    destroy_gpu_instance(gpu, instance)


@given(used_gpus())
def test_instances_never_overlap_and_ids_are_unique(node):
    (gpu,) = node.gpus
    placed = [placement_of(each) for each in gpu.instances]
    assert not [pair for pair in combinations(placed, 2) if pair[0].overlaps(pair[1])]
    assert len({each.gi_id for each in gpu.instances}) == len(gpu.instances)
    indexes = [ci.index for each in gpu.instances for ci in each.compute_instances]
    assert len(set(indexes)) == len(indexes)


@given(used_gpus(), st.data())
def test_capacity_left_means_that_a_create_succeeds(node, data):
    (gpu,) = node.gpus
    profile = data.draw(st.sampled_from(gpu.facts.profiles))
    left = remaining_capacity(gpu, profile)
    assert 0 <= left <= len(free_placements(gpu, profile))
    if left:
        chosen = driver_choice(gpu, profile, node.seed)
        made = create_gpu_instance(node, gpu, profile.profile_id, None)
        assert placement_of(made) == chosen
        assert remaining_capacity(gpu, profile) < left


@given(used_gpus())
def test_the_state_survives_its_file(node):
    assert decode_node(encode_node(node)) == node
