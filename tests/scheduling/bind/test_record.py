"""The annotations of a Binding, byte for byte."""

from __future__ import annotations

from hami_web.core.device_list import ListedDevice
from hami_web.scheduling.holds import Hold
from hami_web.scheduling.record import reservation_annotations
from tests.builders import GPU_A, GPU_B, reservation


def hold(*, reservations, devices):
    return Hold("uid", "team-a", "job", "gpu-n1", reservations, len(devices), devices, 0.0)


def test_containers_without_gpus_keep_their_positions():
    one_g = ListedDevice(GPU_A, 4864, 15)
    two_g = ListedDevice(GPU_B, 9984, 29)
    found = reservation_annotations(
        hold(
            reservations=(
                reservation(1, 0, name="1g.5gb", start=6, size=1),
                reservation(3, 0, gpu=GPU_B),
                reservation(3, 1, gpu=GPU_B, start=2),
            ),
            devices=((), (one_g,), (), (two_g, two_g)),
        ),
        now_s=1790000000.9,
    )
    listed = f";{GPU_A},NVIDIA,4864,15:;;{GPU_B},NVIDIA,9984,29:{GPU_B},NVIDIA,9984,29:;"
    assert found == {
        "hami.io/vgpu-node": "gpu-n1",
        "hami.io/vgpu-time": "1790000000",
        "hami.io/vgpu-devices-to-allocate": listed,
        "hami.io/vgpu-devices-allocated": listed,
        "hami.io/vgpu-mig-allocations": (
            f'[{{"containerIndex":1,"deviceIndex":0,"gpuUUID":"{GPU_A}","profile":"1g.5gb",'
            '"placement":{"start":6,"size":1}},'
            f'{{"containerIndex":3,"deviceIndex":0,"gpuUUID":"{GPU_B}","profile":"2g.10gb",'
            '"placement":{"start":0,"size":2}},'
            f'{{"containerIndex":3,"deviceIndex":1,"gpuUUID":"{GPU_B}","profile":"2g.10gb",'
            '"placement":{"start":2,"size":2}}]'
        ),
        "hami.io/bind-phase": "allocating",
        "hami.io/bind-time": "1790000000",
    }
