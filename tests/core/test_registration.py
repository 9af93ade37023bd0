"""The codec of hami.io/node-nvidia-register."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hami_web.core.capability import GpuCapability, NodeCapability, ProfileCapability
from hami_web.core.errors import InvalidField, MalformedContract
from hami_web.core.placement import Placement
from hami_web.core.registration import decode_registration, encode_registration
from tests.builders import GPU_A, GPU_B, a100_40gb, profile

GOLDEN = Path(__file__).parent.parent / "golden" / "contract"


@pytest.mark.parametrize("name", ["register-two-a100.txt", "register-hami-core.txt"])
def test_what_hamis_plugin_writes_is_read_and_written_again_byte_for_byte(name: str) -> None:
    text = (GOLDEN / name).read_text().rstrip("\n")
    assert encode_registration(decode_registration(text).capability) == text


def test_values_built_from_capability_equal_what_hamis_plugin_writes() -> None:
    node = NodeCapability((a100_40gb(GPU_B, 1), a100_40gb(GPU_A, 0)))
    assert encode_registration(node) == (GOLDEN / "register-two-a100.txt").read_text().rstrip("\n")


def test_an_unhealthy_gpu_has_no_health_key_as_go_omits_false() -> None:
    text = encode_registration(NodeCapability((a100_40gb(healthy=False),)))
    assert "health" not in json.loads(text)[0]
    assert decode_registration(text).capability.gpus[0].healthy is False


def test_characters_that_go_escapes_are_escaped() -> None:
    text = encode_registration(NodeCapability((a100_40gb(model="NVIDIA <A&B>"),)))
    assert '"type":"NVIDIA \\u003cA\\u0026B\\u003e"' in text


def test_unknown_keys_are_kept_at_both_levels() -> None:
    entry = json.loads(encode_registration(NodeCapability((a100_40gb(),))))
    entry[0]["custominfo"] = {"rack": "r1"}
    entry[0]["migProfiles"][0]["note"] = 7
    again = json.loads(encode_registration(decode_registration(json.dumps(entry)).capability))
    assert again == entry


@pytest.mark.parametrize(
    "text", ["", "{", "{}", "null", "7", "[7]", '[{"index":1}]', '[{"id":""}]', "[NaN]"]
)
def test_text_that_is_no_list_of_gpus_is_refused_as_a_whole(text: str) -> None:
    with pytest.raises(MalformedContract):
        decode_registration(text)


def test_one_gpu_twice_is_refused_as_a_whole() -> None:
    text = encode_registration(NodeCapability((a100_40gb(), a100_40gb(index=1))))
    with pytest.raises(MalformedContract, match="each GPU once"):
        decode_registration(text)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("devmem", 40960.0),
        ("devmem", -1),
        ("index", "0"),
        ("health", 1),
        ("type", None),
        ("migProfiles", {}),
        ("migProfiles", [{"name": "1g.5gb"}]),
        ("count", True),
    ],
)
def test_a_wrong_field_refuses_that_gpu_and_keeps_the_others(key: str, value: object) -> None:
    entries = json.loads(encode_registration(NodeCapability((a100_40gb(), a100_40gb(GPU_B, 1)))))
    entries[0][key] = value
    decoded = decode_registration(json.dumps(entries))
    assert [gpu.uuid for gpu in decoded.capability.gpus] == [GPU_B]
    ((uuid, error),) = decoded.refused
    assert uuid == GPU_A
    assert key in error.field


@pytest.mark.parametrize(
    "bad",
    [
        (profile("1g.5gb", 4864, 15, 1, (0, 0), 1),),
        (profile("1g.5gb", 4864, 15, 1, (0,), 1), profile("1g.5gb", 4864, 15, 1, (1,), 1)),
        (profile("9g.99gb", 99999, 15, 1, (0,), 1),),
        (ProfileCapability("2g.10gb", 9984, 29, 2, (Placement(0, 2), Placement(2, 1))),),
    ],
)
def test_contradicting_profiles_refuse_the_gpu(bad: tuple[ProfileCapability, ...]) -> None:
    text = encode_registration(NodeCapability((a100_40gb(profiles=bad),)))
    assert len(decode_registration(text).refused) == 1


def test_null_placements_read_as_none() -> None:
    entries = json.loads(encode_registration(NodeCapability((a100_40gb(),))))
    entries[0]["migProfiles"][0]["placements"] = None
    decoded = decode_registration(json.dumps(entries))
    assert decoded.capability.gpus[0].profiles[0].placements == ()


texts = st.text(min_size=1, max_size=12)
counts = st.integers(0, 2**31 - 1)


@st.composite
def capabilities(draw: st.DrawFn) -> GpuCapability:
    sizes = draw(st.lists(st.integers(1, 4), max_size=4))
    profiles = tuple(
        ProfileCapability(
            name=f"p{number}",
            memory_mib=draw(st.integers(1, 1000)),
            core_percent=draw(st.integers(0, 100)),
            compute_slices=draw(st.integers(1, 8)),
            placements=tuple(Placement(s, size) for s in draw(st.sets(st.integers(0, 11)))),
            instance_limit=draw(st.none() | st.integers(1, 4)),
            attribute=draw(st.sampled_from(["", "+me", "-me"])),
        )
        for number, size in enumerate(sizes)
    )
    return GpuCapability(
        uuid=draw(texts),
        index=draw(counts),
        count=draw(counts),
        memory_mib=draw(st.integers(1000, 2**31 - 1)),
        core_percent=draw(st.integers(0, 100)),
        model=draw(texts),
        numa=draw(counts),
        mode=draw(st.sampled_from(["", "mig", "hami-core"])),
        profiles=profiles,
        healthy=draw(st.booleans()),
    )


@given(st.lists(capabilities(), max_size=3, unique_by=lambda gpu: gpu.uuid))
def test_decoding_what_was_encoded_gives_it_back(gpus: list[GpuCapability]) -> None:
    node = NodeCapability(tuple(sorted(gpus, key=lambda g: (g.index, g.uuid))))
    decoded = decode_registration(encode_registration(node))
    assert decoded.capability == node
    assert decoded.refused == ()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "type", "devmem", "migProfiles", "placements", "start", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.text(max_size=40) | json_values.map(json.dumps))
def test_anything_else_is_read_or_refused_and_never_crashes(text: str) -> None:
    with suppress(InvalidField):
        decode_registration(text)
