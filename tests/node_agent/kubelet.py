"""A kubelet's side of the device-plugin API, for one plugin.

``python -m tests.node_agent.kubelet FOLDER`` is one that can be killed.
"""

from __future__ import annotations

import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import grpc

from node_agent.deviceplugin import v1beta1_pb2 as api
from node_agent.deviceplugin import v1beta1_pb2_grpc as api_grpc


class Kubelet(api_grpc.RegistrationServicer):
    """Takes registrations and calls the plugin, as a kubelet does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.registrations: list[api.RegisterRequest] = []
        self.devices: tuple[str, ...] = ()
        self.capacity = 0
        self._server: grpc.Server | None = None
        self._channel: grpc.Channel | None = None
        self._streams: list[threading.Thread] = []
        self._calls = ThreadPoolExecutor(max_workers=4)

    def start(self) -> None:
        self._server = grpc.server(ThreadPoolExecutor(max_workers=2))
        api_grpc.add_RegistrationServicer_to_server(self, self._server)
        assert self._server.add_insecure_port(f"unix:{self.folder}/kubelet.sock")
        self._server.start()

    def stop(self) -> None:
        """End, as a kubelet does: streams end and all sockets of the folder are deleted."""
        if self._server is None:
            return
        self._server.stop(None).wait()
        self._server = None
        self._close_channel()
        for socket in self.folder.glob("*.sock"):
            socket.unlink(missing_ok=True)
        self.devices = ()

    def forget_the_plugin(self) -> None:
        """Lose the stream of the plugin and stay, as after an error of its connection."""
        self._close_channel()

    def Register(self, request: api.RegisterRequest, context: grpc.ServicerContext) -> api.Empty:  # noqa: N802
        self._close_channel()
        self.registrations.append(request)
        self._channel = grpc.insecure_channel(
            f"unix:{self.folder}/{request.endpoint}",
            # without it a new channel inherits the connection back-off of the socket's last owner
            options=[("grpc.use_local_subchannel_pool", 1)],
        )
        thread = threading.Thread(target=self._follow, args=(self._channel,))
        self._streams.append(thread)
        thread.start()
        return api.Empty()

    def allocate(self, *device_ids: str, timeout: float = 20.0) -> dict[str, str]:
        """One container; returns its environment or raises grpc.RpcError."""
        return dict(self.answer(*device_ids, timeout=timeout).envs)

    def answer(self, *device_ids: str, timeout: float = 20.0) -> api.ContainerAllocateResponse:
        """The whole answer for one container."""
        assert self._channel is not None
        stub = api_grpc.DevicePluginStub(self._channel)
        request = api.ContainerAllocateRequest(devicesIDs=device_ids)
        answer = stub.Allocate(api.AllocateRequest(container_requests=[request]), timeout=timeout)
        found: api.ContainerAllocateResponse = answer.container_responses[0]
        return found

    def allocate_in_background(self, *device_ids: str) -> Future[dict[str, str]]:
        """The same, without waiting for the answer."""
        return self._calls.submit(self.allocate, *device_ids)

    def options(self) -> api.DevicePluginOptions:
        assert self._channel is not None
        return api_grpc.DevicePluginStub(self._channel).GetDevicePluginOptions(
            api.Empty(), timeout=5
        )

    def _follow(self, channel: grpc.Channel) -> None:
        try:
            for message in api_grpc.DevicePluginStub(channel).ListAndWatch(
                api.Empty(), wait_for_ready=True
            ):
                self.capacity = len(message.devices)
                healthy = (d.ID for d in message.devices if d.health == "Healthy")
                self.devices = tuple(sorted(healthy))
        except (grpc.RpcError, ValueError):
            if channel is self._channel:
                self.devices, self.capacity = (), 0

    def _close_channel(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        for thread in self._streams:
            thread.join(5)
        self._streams.clear()


if __name__ == "__main__":
    Kubelet(Path(sys.argv[1])).start()
    threading.Event().wait()
