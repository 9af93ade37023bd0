"""A device plugin whose answers a test decides, over real gRPC."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

import grpc

from node_agent.deviceplugin import v1beta1_pb2 as api
from node_agent.deviceplugin import v1beta1_pb2_grpc as rpc


def answer_ids(ids: list[str]) -> api.ContainerAllocateResponse:
    return api.ContainerAllocateResponse(envs={"NVIDIA_VISIBLE_DEVICES": ",".join(sorted(ids))})


class ScriptedPlugin(rpc.DevicePluginServicer):
    """Offers devices d0, d1, …; registers when its context is entered."""

    def __init__(self, folder: Path, count: int, *, endpoint: str = "test.sock") -> None:
        self.decide: Callable[[list[str]], api.ContainerAllocateResponse] = answer_ids
        self.refusal: tuple[grpc.StatusCode, str] | None = None
        self.prefers: Callable[[list[str]], list[str]] | None = None
        self.allocated: list[list[str]] = []
        self.streams_ended = threading.Event()
        self._folder = folder
        self._endpoint = endpoint
        self._devices = {f"d{number}": "Healthy" for number in range(count)}
        self._changed = threading.Condition()
        self._stopping = False
        self._workers = ThreadPoolExecutor(max_workers=8)
        self._server = grpc.server(self._workers)
        rpc.add_DevicePluginServicer_to_server(self, self._server)
        self._server.add_insecure_port(f"unix:{folder / endpoint}")

    def __enter__(self) -> Self:
        self._server.start()
        self.register()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._server.stop(0).wait()
        self._workers.shutdown()

    def register(self, version: str = "v1beta1", resource: str = "nvidia.com/gpu") -> None:
        options = api.DevicePluginOptions(
            get_preferred_allocation_available=self.prefers is not None
        )
        request = api.RegisterRequest(
            version=version, endpoint=self._endpoint, resource_name=resource, options=options
        )
        with grpc.insecure_channel(f"unix:{self._folder / 'kubelet.sock'}") as channel:
            rpc.RegistrationStub(channel).Register(request, wait_for_ready=True, timeout=5)

    def set_health(self, device: str, health: str) -> None:
        with self._changed:
            self._devices[device] = health
            self._changed.notify_all()

    def ListAndWatch(  # noqa: N802
        self, request: api.Empty, context: grpc.ServicerContext
    ) -> Iterator[object]:
        context.add_callback(self._wake)
        sent = None
        while context.is_active() and not self._stopping:
            with self._changed:
                current = dict(self._devices)
                if current == sent:
                    self._changed.wait(5)
                    continue
            sent = current
            devices = [api.Device(ID=name, health=health) for name, health in current.items()]
            yield api.ListAndWatchResponse(devices=devices)
        self.streams_ended.set()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def GetPreferredAllocation(  # noqa: N802
        self, request: api.PreferredAllocationRequest, context: grpc.ServicerContext
    ) -> api.PreferredAllocationResponse:
        available = list(request.container_requests[0].available_deviceIDs)
        chosen = api.ContainerPreferredAllocationResponse(deviceIDs=self.prefers(available))
        return api.PreferredAllocationResponse(container_responses=[chosen])

    def Allocate(  # noqa: N802
        self, request: api.AllocateRequest, context: grpc.ServicerContext
    ) -> api.AllocateResponse:
        ids = list(request.container_requests[0].devicesIDs)
        self.allocated.append(ids)
        if self.refusal is not None:
            context.abort(*self.refusal)
        return api.AllocateResponse(container_responses=[self.decide(ids)])
