"""The kubelet's device-plugin service: translate, delegate, translate back."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Final, NoReturn, Protocol

import grpc

from node_agent.allocation import Allocated
from node_agent.delivery import Grant
from node_agent.deviceplugin import v1beta1_pb2 as api
from node_agent.deviceplugin import v1beta1_pb2_grpc as api_grpc
from node_agent.deviceplugin.errors import status_of, text_of
from node_agent.errors import AgentError, DeadlineExceeded
from node_agent.inventory import Inventory, OfferedDevice
from node_agent.locks import Deadline
from node_agent.metrics import AgentMetrics
from node_agent.nvml.ports import DriverError

logger = logging.getLogger(__name__)

_HEALTHY: Final = "Healthy"
_UNHEALTHY: Final = "Unhealthy"
_STREAM_WAIT_SECONDS: Final = 1.0
_NOT_READY: Final = "the node agent has not read the node's state yet; try again in a moment"
# The worker sees its own deadline first; this much later the call is answered without it.
_ANSWER_SLACK_SECONDS: Final = 1.0


class Allocates(Protocol):
    """The use-case behind Allocate."""

    def allocate(self, device_ids: list[str], deadline: Deadline) -> Allocated:
        """Serve one container or raise."""


class DevicePluginService(api_grpc.DevicePluginServicer):
    """One service for the life of the agent; the gRPC servers around it come and go."""

    def __init__(
        self, inventory: Inventory, metrics: AgentMetrics, allocate_seconds: float
    ) -> None:
        self._inventory = inventory
        self._metrics = metrics
        self._allocate_seconds = allocate_seconds
        self._allocator: Allocates | None = None
        self._workers = ThreadPoolExecutor(max_workers=4, thread_name_prefix="allocate")
        self._work_mutex = threading.Lock()
        self._running: set[Future[Allocated]] = set()
        self._stream = 0
        self._followed = 0
        self._stream_mutex = threading.Lock()
        self._changed: Callable[[], None] = _nobody

    @property
    def serving(self) -> bool:
        """True while Allocate is served."""
        return self._allocator is not None

    @property
    def followed(self) -> bool:
        """True while the kubelet has the offer and keeps its stream open.

        The kernel closes the stream of a kubelet that dies, long before its socket is replaced.
        """
        return self._followed != 0

    def watch(self, changed: Callable[[], None]) -> None:
        """Call ``changed``, on any thread, when ``serving`` or ``followed`` may have changed."""
        self._changed = changed

    def serve_with(self, allocator: Allocates) -> None:
        """Begin to serve Allocate; before this it is refused as not ready."""
        with self._work_mutex:
            self._allocator = allocator
        self._changed()

    def refuse(self) -> None:
        """Refuse Allocate again, and wait for the calls in progress, which still need NVML."""
        with self._work_mutex:
            self._allocator = None
            running = tuple(self._running)
        self._changed()
        wait(running, self._allocate_seconds + _ANSWER_SLACK_SECONDS)

    def end_streams(self) -> None:
        """End every ListAndWatch stream, before the server around it stops."""
        with self._stream_mutex:
            self._stream += 1
            self._followed = 0
        self._changed()
        self._inventory.wake()

    def close(self) -> None:
        """Wait for the calls in progress; none is accepted any more."""
        self.end_streams()
        self._workers.shutdown(wait=True)

    def GetDevicePluginOptions(  # noqa: N802, the wire's name
        self, request: api.Empty, context: grpc.ServicerContext
    ) -> api.DevicePluginOptions:
        """Neither a call before start nor a preferred allocation: ids carry no identity."""
        del request, context
        return api.DevicePluginOptions()

    def ListAndWatch(  # noqa: N802, the wire's name
        self, request: api.Empty, context: grpc.ServicerContext
    ) -> Iterator[api.ListAndWatchResponse]:
        """Send the offer now and whenever it changes; a newer stream ends this one."""
        del request
        with self._stream_mutex:
            self._stream += 1
            mine = self._stream
        context.add_callback(lambda: self._left(mine))
        sent = -1
        while context.is_active():
            number, devices = self._inventory.devices(sent, _STREAM_WAIT_SECONDS)
            if self._stream != mine:
                return
            if number != sent:
                sent = number
                yield api.ListAndWatchResponse(devices=[_device(item) for item in devices])
                self._reached(mine, context)

    def _reached(self, stream: int, context: grpc.ServicerContext) -> None:
        """The offer left on this stream. One that ended meanwhile was reported, or will be."""
        with self._stream_mutex:
            if stream != self._stream or self._followed == stream or not context.is_active():
                return
            self._followed = stream
        self._changed()

    def _left(self, stream: int) -> None:
        with self._stream_mutex:
            if self._followed != stream:
                return
            self._followed = 0
        self._changed()

    def PreStartContainer(  # noqa: N802, the wire's name
        self, request: api.PreStartContainerRequest, context: grpc.ServicerContext
    ) -> api.PreStartContainerResponse:
        """Nothing is to be done; the kubelet only calls it for plugins that ask for it."""
        del request, context
        return api.PreStartContainerResponse()

    def Allocate(  # noqa: N802, the wire's name
        self, request: api.AllocateRequest, context: grpc.ServicerContext
    ) -> api.AllocateResponse:
        """Serve each container of the request, or end the call with a status and a text."""
        deadline = Deadline(self._allocate_seconds)
        responses = [
            self._container(list(item.devicesIDs), deadline, context)
            for item in request.container_requests
        ]
        return api.AllocateResponse(container_responses=responses)

    def _container(
        self, device_ids: list[str], deadline: Deadline, context: grpc.ServicerContext
    ) -> api.ContainerAllocateResponse:
        if not device_ids:
            self._abort(context, AgentError("the kubelet asked for no device"))
        started = time.monotonic()
        work = self._submit(device_ids, deadline)
        if work is None:
            self._metrics.allocations.labels("not-ready").inc()
            context.abort(grpc.StatusCode.UNAVAILABLE, _NOT_READY)
        try:
            allocated = self._wait(work, deadline)
        except (AgentError, DriverError) as error:
            self._abort(context, error)
        self._metrics.allocations.labels("success").inc()
        self._metrics.allocate_seconds.observe(time.monotonic() - started)
        return _answer(allocated.grant)

    def _submit(self, device_ids: list[str], deadline: Deadline) -> Future[Allocated] | None:
        """Begin the work, or None while nothing is served."""
        with self._work_mutex:
            if self._allocator is None:
                return None
            work = self._workers.submit(self._allocator.allocate, device_ids, deadline)
            self._running.add(work)
        work.add_done_callback(self._ended)
        return work

    def _ended(self, work: Future[Allocated]) -> None:
        with self._work_mutex:
            self._running.discard(work)

    def _wait(self, work: Future[Allocated], deadline: Deadline) -> Allocated:
        """The result, or an error in time: work that hangs in NVML goes on and cleans up later."""
        try:
            return work.result(deadline.remaining + _ANSWER_SLACK_SECONDS)
        except FutureTimeout:
            work.cancel()
            raise DeadlineExceeded(
                f"Allocate did not end in {self._allocate_seconds:g} s; "
                "what it still makes is reclaimed when the Pod is over"
            ) from None

    def _abort(self, context: grpc.ServicerContext, error: Exception) -> NoReturn:
        logger.warning("Allocate refused: %s", error)
        self._metrics.allocations.labels(type(error).__name__).inc()
        context.abort(status_of(error), text_of(error))


def _nobody() -> None:
    """Nobody asked to be told."""


def _answer(grant: Grant) -> api.ContainerAllocateResponse:
    return api.ContainerAllocateResponse(
        envs=grant.envs,
        cdi_devices=[api.CDIDevice(name=name) for name in grant.cdi_names],
        devices=[
            api.DeviceSpec(
                host_path=item.host_path, container_path=item.container_path, permissions="rw"
            )
            for item in grant.devices
        ],
    )


def _device(item: OfferedDevice) -> api.Device:
    return api.Device(
        ID=item.device_id,
        health=_HEALTHY if item.healthy else _UNHEALTHY,
        topology=api.TopologyInfo(nodes=[api.NUMANode(ID=item.numa)]),
    )
