"""The kubelet's side of the device-plugin API: registration, device lists, Allocate."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from node_agent.deviceplugin import v1beta1_pb2 as api
from node_agent.deviceplugin import v1beta1_pb2_grpc as rpc

VERSION = "v1beta1"
SOCKET = "kubelet.sock"
HEALTHY = "Healthy"
_CALL_SECONDS = 60.0


class AllocationFailed(Exception):
    """Its text stands between ``Allocate failed due to`` and ``which is unexpected``."""


@dataclass(frozen=True, slots=True)
class Injected:
    """What plugins gave one container; ``mounts`` is container path to host path."""

    device_ids: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    mounts: dict[str, str] = field(default_factory=dict)
    device_nodes: tuple[str, ...] = ()
    cdi_devices: tuple[str, ...] = ()

    def and_also(self, other: Injected) -> Injected:
        """With what another resource gave the same container."""
        return Injected(
            device_ids=self.device_ids + other.device_ids,
            env=self.env | other.env,
            annotations=self.annotations | other.annotations,
            mounts=self.mounts | other.mounts,
            device_nodes=self.device_nodes + other.device_nodes,
            cdi_devices=self.cdi_devices + other.cdi_devices,
        )


@dataclass(slots=True)
class _Plugin:
    """One registered plugin. ``devices`` is id to health, as its last message says."""

    resource: str
    options: api.DevicePluginOptions
    channel: grpc.Channel
    stub: rpc.DevicePluginStub
    devices: dict[str, str] = field(default_factory=dict)
    stream: grpc.Call | None = None
    thread: threading.Thread | None = None

    def healthy(self) -> set[str]:
        return {device for device, health in self.devices.items() if health == HEALTHY}


class DevicePlugins:
    """Serves ``kubelet.sock`` in ``folder`` and follows every plugin that registers there.

    ``on_change`` is called, on any thread, when a resource's devices changed.
    """

    def __init__(self, folder: Path, on_change: Callable[[], None]) -> None:
        self._folder = folder
        self._on_change = on_change
        self._lock = threading.Lock()
        self._plugins: dict[str, _Plugin] = {}
        self._retired: list[_Plugin] = []
        self._remembered: dict[str, int] = {}
        self._server: grpc.Server | None = None
        self._workers: ThreadPoolExecutor | None = None
        self._random = random.Random()  # noqa: S311 -- the order of ids, no secret

    def start(self) -> None:
        """Delete every socket in the folder, as a starting kubelet does, and serve."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for entry in self._folder.iterdir():
            if entry.is_socket():
                entry.unlink()
        self._workers = ThreadPoolExecutor(max_workers=4, thread_name_prefix="registration")
        self._server = grpc.server(self._workers)
        rpc.add_RegistrationServicer_to_server(_Registration(self._register), self._server)
        self._server.add_insecure_port(f"unix:{self._folder / SOCKET}")
        self._server.start()

    def stop(self) -> None:
        """End all streams and the registration service."""
        if self._server is not None:
            self._server.stop(0).wait()
        if self._workers is not None:
            self._workers.shutdown()
        with self._lock:
            plugins = [*self._plugins.values(), *self._retired]
            for name, plugin in self._plugins.items():
                self._remembered[name] = len(plugin.healthy())
            self._plugins.clear()
            self._retired.clear()
        for plugin in plugins:
            _end(plugin)

    def counts(self) -> dict[str, tuple[int, int]]:
        """(all devices, healthy devices) of each resource that has registered."""
        with self._lock:
            return {
                name: (len(plugin.devices), len(plugin.healthy()))
                for name, plugin in self._plugins.items()
            }

    def allocatable(self) -> dict[str, int]:
        """Healthy devices of each resource, also of those that registered before a restart.

        A kubelet keeps these in its checkpoint, so that the node goes on to offer them.
        """
        return self._remembered | {name: healthy for name, (_, healthy) in self.counts().items()}

    def allocate(
        self, resource: str, count: int, *, taken: set[str], reusable: set[str]
    ) -> Injected:
        """Choose ``count`` ids, those in ``reusable`` first, and call Allocate with them.

        Raises :class:`AllocationFailed`.
        """
        with self._lock:
            plugin = self._plugins.get(resource)
        if plugin is None:
            raise AllocationFailed(
                f"no healthy devices present; cannot allocate unhealthy devices {resource}"
            )
        reused = sorted(reusable)[:count]
        free = sorted(plugin.healthy() - taken - reusable)
        needed = count - len(reused)
        if len(free) < needed:
            raise AllocationFailed(
                f"requested number of devices unavailable for {resource}. "
                f"Requested: {needed}, Available: {len(free)}"
            )
        try:
            ids = reused + self._choose(plugin, free, needed)
            return self._call(plugin, ids)
        except grpc.RpcError as error:
            raise AllocationFailed(_as_go_prints(error)) from error

    def _choose(self, plugin: _Plugin, free: list[str], needed: int) -> list[str]:
        self._random.shuffle(free)
        if needed and plugin.options.get_preferred_allocation_available:
            asked = api.ContainerPreferredAllocationRequest(
                available_deviceIDs=free, allocation_size=needed
            )
            request = api.PreferredAllocationRequest(container_requests=[asked])
            answer = plugin.stub.GetPreferredAllocation(request, timeout=_CALL_SECONDS)
            if answer.container_responses:
                preferred = [d for d in answer.container_responses[0].deviceIDs if d in free]
                free = preferred + [device for device in free if device not in preferred]
        return free[:needed]

    @staticmethod
    def _call(plugin: _Plugin, ids: list[str]) -> Injected:
        asked = api.ContainerAllocateRequest(devicesIDs=ids)
        request = api.AllocateRequest(container_requests=[asked])
        answer: api.AllocateResponse = plugin.stub.Allocate(request, timeout=_CALL_SECONDS)
        if len(answer.container_responses) != 1:
            raise AllocationFailed(
                f"no containers return in allocation response {len(answer.container_responses)}"
            )
        if plugin.options.pre_start_required:
            start = api.PreStartContainerRequest(devicesIDs=ids)
            plugin.stub.PreStartContainer(start, timeout=_CALL_SECONDS)
        return _injected(ids, answer.container_responses[0])

    def _register(self, request: api.RegisterRequest) -> None:
        """A new registration of a resource ends the stream of the old one."""
        channel = grpc.insecure_channel(
            f"unix:{self._folder / request.endpoint}",
            # without it a new channel inherits the connection back-off of the socket's last owner
            options=[("grpc.use_local_subchannel_pool", 1)],
        )
        stub = rpc.DevicePluginStub(channel)
        plugin = _Plugin(request.resource_name, request.options, channel, stub)
        with self._lock:
            old = self._plugins.get(request.resource_name)
            if old is not None:
                plugin.devices = dict(old.devices)
                self._retired.append(old)
            self._plugins[request.resource_name] = plugin
        if old is not None and old.stream is not None:
            old.stream.cancel()
        plugin.stream = stub.ListAndWatch(api.Empty(), wait_for_ready=True)
        plugin.thread = threading.Thread(
            target=self._follow, args=(plugin,), name=f"plugin {request.resource_name}"
        )
        plugin.thread.start()

    def _follow(self, plugin: _Plugin) -> None:
        """Take in device lists until the stream ends; then the devices count as unhealthy."""
        try:
            for message in plugin.stream:  # type: ignore[union-attr]
                plugin.devices = {device.ID: device.health for device in message.devices}
                self._on_change()
        except grpc.RpcError:
            pass  # the plugin went away, or was replaced
        plugin.devices = dict.fromkeys(plugin.devices, "Unhealthy")
        with self._lock:
            is_current = self._plugins.get(plugin.resource) is plugin
        if is_current:
            self._on_change()


class _Registration(rpc.RegistrationServicer):
    """The Registration service; refuses what the real one refuses."""

    def __init__(self, register: Callable[[api.RegisterRequest], None]) -> None:
        self._register = register

    def Register(  # noqa: N802 -- the wire format's name
        self, request: api.RegisterRequest, context: grpc.ServicerContext
    ) -> api.Empty:
        if request.version != VERSION:
            context.abort(
                grpc.StatusCode.UNKNOWN,
                f"requested API version {request.version!r} is not supported by kubelet. "
                f"Supported version is {VERSION!r}",
            )
        if "/" not in request.resource_name or not request.endpoint:
            context.abort(
                grpc.StatusCode.UNKNOWN,
                f"invalid name of device plugin socket or resource: {request.resource_name!r}",
            )
        self._register(request)
        return api.Empty()


def _injected(ids: list[str], answer: api.ContainerAllocateResponse) -> Injected:
    return Injected(
        device_ids=tuple(ids),
        env=dict(answer.envs),
        annotations=dict(answer.annotations),
        mounts={mount.container_path: mount.host_path for mount in answer.mounts},
        device_nodes=tuple(node.container_path for node in answer.devices),
        cdi_devices=tuple(device.name for device in answer.cdi_devices),
    )


def _end(plugin: _Plugin) -> None:
    if plugin.stream is not None:
        plugin.stream.cancel()
    if plugin.thread is not None:
        plugin.thread.join()
    plugin.channel.close()


def _as_go_prints(error: grpc.RpcError) -> str:
    """``rpc error: code = FailedPrecondition desc = <message>``."""
    code: grpc.StatusCode = error.code()
    name = "".join(part.title() for part in code.name.split("_"))
    name = "Canceled" if name == "Cancelled" else name
    return f"rpc error: code = {name} desc = {error.details()}"
