"""The codec of the device lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from hami_web.core.device_list import ListedDevice, decode_devices, encode_devices, is_erased
from hami_web.core.errors import MalformedContract

GOLDEN = Path(__file__).parent.parent / "golden" / "contract" / "device-lists.txt"
DEVICE = ListedDevice("U1", 4864, 15)


@pytest.mark.parametrize("text", GOLDEN.read_text().splitlines())
def test_what_hami_writes_is_read_and_written_again_byte_for_byte(text: str) -> None:
    assert encode_devices(decode_devices(text)) == text


def test_a_container_without_a_gpu_keeps_its_position() -> None:
    assert encode_devices([(), (DEVICE,)]) == ";U1,NVIDIA,4864,15:;"
    assert decode_devices(";U1,NVIDIA,4864,15:;") == ((), (DEVICE,))


@pytest.mark.parametrize("text", ["", ";", ";;", ";;;;"])
def test_a_list_without_devices_is_erased_however_long_it_grew(text: str) -> None:
    assert is_erased(decode_devices(text))


def test_a_list_with_a_device_left_is_not_erased() -> None:
    assert not is_erased(decode_devices(";U1,NVIDIA,4864,15:;;"))


def test_fields_after_the_fourth_are_ignored() -> None:
    assert decode_devices("U1,NVIDIA,4864,15,later:;") == ((DEVICE,),)


@pytest.mark.parametrize(
    "text", ["U1,NVIDIA,4864:;", ",NVIDIA,1,1:;", "U1,NVIDIA,-1,1:;", "U1,NVIDIA,1,x:;", "U1:;"]
)
def test_a_malformed_device_is_refused(text: str) -> None:
    with pytest.raises(MalformedContract, match="vgpu-devices-to-allocate"):
        decode_devices(text)
