"""What a Pod asks for."""

from __future__ import annotations

import pytest

from hami_web.core.errors import InvalidRequest
from hami_web.core.request import ContainerSpec, Demand, parse_pod_request
from tests.builders import a100_40gb, profile


def limits(**values: str | int) -> ContainerSpec:
    names = {"gpu": "nvidia.com/gpu", "mem": "nvidia.com/gpumem", "cores": "nvidia.com/gpucores"}
    names["percent"] = "nvidia.com/gpumem-percentage"
    return ContainerSpec("main", {names[key]: value for key, value in values.items()})


def demand_of(spec: ContainerSpec, **annotations: str) -> Demand:
    return parse_pod_request([spec], annotations).containers[0].demand


def names(demand: Demand) -> list[str]:
    return [p.name for p in demand.candidates(a100_40gb())]


def test_memory_chooses_the_smallest_profile_first() -> None:
    assert names(demand_of(limits(gpu=1, mem=4500))) == ["1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb"]
    assert names(demand_of(limits(gpu=1, mem=4865)))[0] == "2g.10gb"


def test_memory_at_the_exact_size_of_a_profile_fits_it() -> None:
    assert names(demand_of(limits(gpu=1, mem=4864)))[0] == "1g.5gb"


def test_no_memory_means_the_largest_profile_only() -> None:
    assert names(demand_of(limits(gpu=1))) == ["7g.40gb"]
    assert names(demand_of(limits(gpu=1, mem=0))) == ["7g.40gb"]


@pytest.mark.parametrize(
    ("percent", "first"),
    [(1, "1g.5gb"), (12, "1g.5gb"), (13, "2g.10gb"), (25, "2g.10gb"), (50, "3g.20gb")],
)
def test_a_percentage_is_a_share_of_the_memory_slices(percent: int, first: str) -> None:
    assert names(demand_of(limits(gpu=1, percent=percent)))[0] == first


def test_memory_wins_over_a_percentage() -> None:
    assert names(demand_of(limits(gpu=1, mem=4500, percent=50)))[0] == "1g.5gb"


def test_cores_are_a_lower_bound_on_the_profiles_share() -> None:
    assert names(demand_of(limits(gpu=1, mem=4500, cores=30)))[0] == "3g.20gb"


def test_a_named_profile_is_the_only_candidate() -> None:
    spec = limits(gpu=1)
    demand = demand_of(spec, **{"nvidia.com/mig-profile": "2g.10gb"})
    assert names(demand) == ["2g.10gb"]


def test_a_profile_with_an_attribute_is_taken_only_by_name() -> None:
    special = profile("1g.5gb+me", 4864, 15, 1, range(7), 1)
    special = type(special)(*[getattr(special, f) for f in special.__slots__[:5]], 1, "+me")
    gpu = a100_40gb(profiles=(special, *a100_40gb().profiles))
    assert Demand(memory_mib=100).candidates(gpu)[0].name == "1g.5gb"
    assert [p.name for p in Demand(profile="1g.5gb+me").candidates(gpu)] == ["1g.5gb+me"]


def test_equal_memory_is_decided_by_compute_slices_in_any_order() -> None:
    pair = (profile("2g.45gb", 9000, 20, 2, (0,), 2), profile("1g.45gb", 9000, 10, 1, (0,), 2))
    assert Demand(memory_mib=1).candidates(a100_40gb(profiles=pair))[0].name == "1g.45gb"
    assert Demand(memory_mib=1).candidates(a100_40gb(profiles=pair[::-1]))[0].name == "1g.45gb"


def test_init_containers_come_first_and_containers_without_gpu_keep_their_index() -> None:
    request = parse_pod_request([ContainerSpec("init"), limits(gpu=2, mem=100)], {})
    assert request.container_count == 2
    assert [(c.container_index, c.count) for c in request.containers] == [(1, 2)]
    assert request.devices == 2


@pytest.mark.parametrize("count", [0, "0", None])
def test_a_count_of_zero_asks_for_nothing(count: str | None) -> None:
    spec = ContainerSpec("main", {} if count is None else {"nvidia.com/gpu": count})
    assert parse_pod_request([spec], {}).containers == ()


@pytest.mark.parametrize(("text", "mib"), [("5k", 5000), ("1e3", 1000), ("4500", 4500), (7, 7)])
def test_whole_quantities_of_kubernetes_are_read(text: str | int, mib: int) -> None:
    assert demand_of(limits(gpu=1, mem=text)).memory_mib == mib


@pytest.mark.parametrize(
    "text", ["4500Mi", "4Gi", "2147483648", "4500m", "4.5", "-1", "abc", "", "1e99", "١٢"]
)
def test_memory_that_is_no_whole_number_of_mib_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        demand_of(limits(gpu=1, mem=text))
    assert "container main: nvidia.com/gpumem" in str(caught.value)
    assert repr(text) in str(caught.value)
    assert "MiB" in str(caught.value)


@pytest.mark.parametrize("spec", [limits(gpu=1, percent=101), limits(gpu=1, cores=101)])
def test_a_percentage_above_100_is_refused(spec: ContainerSpec) -> None:
    with pytest.raises(InvalidRequest, match="0…100"):
        demand_of(spec)


def test_memory_without_a_count_is_refused_because_the_kubelet_would_give_nothing() -> None:
    with pytest.raises(InvalidRequest, match=r"nvidia\.com/gpu"):
        parse_pod_request([limits(mem=100)], {})


@pytest.mark.parametrize(
    ("mode", "accepted"), [("mig", True), ("hami-core,mig", True), ("hami-core", False), ("", True)]
)
def test_the_mode_annotation_may_list_several_modes(mode: str, accepted: bool) -> None:
    request = parse_pod_request([limits(gpu=1)], {"nvidia.com/vgpu-mode": mode})
    assert request.accepts_mig is accepted


def test_gpu_types_match_as_parts_and_uuids_exactly() -> None:
    selector = parse_pod_request(
        [limits(gpu=1)],
        {"nvidia.com/use-gputype": "a100, H100", "nvidia.com/nouse-gpuuuid": "GPU-1,"},
    ).selector
    assert selector.accepts_type("NVIDIA A100-SXM4-40GB")
    assert not selector.accepts_type("NVIDIA A30")
    assert not selector.accepts_uuid("GPU-1")
    assert selector.accepts_uuid("GPU-11")
