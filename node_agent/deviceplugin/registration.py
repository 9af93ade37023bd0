"""Keeps the service registered with the kubelet, whatever the kubelet does to the sockets.

A kubelet that restarts deletes every socket of the folder, so its socket's identity and our own
socket's existence are looked at; either change means: serve anew, register anew. So does a kubelet
that stays and does not follow the offer: it asks no plugin again that it lost once.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

import grpc

from hami_web.core.trouble import Trouble
from node_agent.deviceplugin import v1beta1_pb2 as api
from node_agent.deviceplugin import v1beta1_pb2_grpc as api_grpc
from node_agent.deviceplugin.server import DevicePluginService
from node_agent.metrics import AgentMetrics

logger = logging.getLogger(__name__)

_VERSION: Final = "v1beta1"
_KUBELET_SOCKET: Final = "kubelet.sock"
_LOOK_SECONDS: Final = 0.25
_BACKOFF_FIRST_SECONDS: Final = 0.25
_BACKOFF_MOST_SECONDS: Final = 10.0
_REGISTER_SECONDS: Final = 5.0
_FOLLOW_SECONDS: Final = 15.0
"""So long a kubelet may take to follow the offer; it gives up dialling a plugin after 10 s."""
_STOP_SECONDS: Final = 30.0
_END_STREAMS_SECONDS: Final = 0.02
_SERVER_THREADS: Final = 8
_NO_INHERITED_BACK_OFF: Final = [("grpc.use_local_subchannel_pool", 1)]
"""gRPC would share a connection, and the pause after its last failure, by address."""


class KubeletRegistration:
    """One gRPC server at a time, on one socket in the kubelet's folder."""

    def __init__(
        self, service: DevicePluginService, folder: Path, resource: str, metrics: AgentMetrics
    ) -> None:
        self._service = service
        self._folder = folder
        self._resource = resource
        self._metrics = metrics
        self._endpoint = f"hami-{resource.replace('/', '-')}.sock"
        self._server: grpc.Server | None = None
        self._registered_with: tuple[int, int] | None = None
        self._followed_at = 0.0
        self.registered = threading.Event()

    @property
    def socket(self) -> Path:
        """Where the service is served."""
        return self._folder / self._endpoint

    def run(self, stop: threading.Event) -> None:
        """Serve and register until told to stop, then stop serving after the calls in progress."""
        wait = _BACKOFF_FIRST_SECONDS
        trouble = Trouble(logger, "registration with the kubelet failed: %s; again soon")
        while not stop.is_set():
            kubelet = _identity(self._folder / _KUBELET_SOCKET)
            try:
                self._look(kubelet)
            except (grpc.RpcError, OSError, RuntimeError) as error:
                self.registered.clear()
                self._registered_with = None
                self._metrics.registrations.labels("failed").inc()
                trouble.tell(_text(error))
                self._back_off(kubelet, wait, stop)
                wait = min(wait * 2, _BACKOFF_MOST_SECONDS)
            else:
                trouble.over()
                wait = _BACKOFF_FIRST_SECONDS
                stop.wait(_LOOK_SECONDS)
        self._stop_server()

    def _back_off(
        self, kubelet: tuple[int, int] | None, seconds: float, stop: threading.Event
    ) -> None:
        """Wait before the next attempt; another kubelet has not refused anything yet."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not stop.wait(_LOOK_SECONDS):
            if _identity(self._folder / _KUBELET_SOCKET) != kubelet:
                return

    def _look(self, kubelet: tuple[int, int] | None) -> None:
        if kubelet is None:
            self.registered.clear()
            self._registered_with = None
            return
        served = self._server is not None and _identity(self.socket) is not None
        if served and kubelet == self._registered_with and self._is_followed():
            return
        self.registered.clear()
        self._stop_server()
        self._start_server()
        self._register()
        self._registered_with = kubelet
        self._followed_at = time.monotonic()
        self.registered.set()
        self._metrics.registrations.labels("success").inc()
        logger.info("registered with the kubelet as %s on %s", self._resource, self._endpoint)

    def _is_followed(self) -> bool:
        """False once the kubelet has not followed the offer for too long."""
        now = time.monotonic()
        if self._service.followed:
            self._followed_at = now
        return now - self._followed_at < _FOLLOW_SECONDS

    def _start_server(self) -> None:
        self.socket.unlink(missing_ok=True)
        server = grpc.server(
            ThreadPoolExecutor(max_workers=_SERVER_THREADS, thread_name_prefix="deviceplugin"),
        )
        api_grpc.add_DevicePluginServicer_to_server(self._service, server)
        if not server.add_insecure_port(f"unix:{self.socket}"):
            raise OSError(f"cannot listen on {self.socket}")
        server.start()
        self._server = server

    def _stop_server(self) -> None:
        """Stop for good before anything else uses the path: a stopping server unlinks it."""
        if self._server is None:
            return
        stopped = self._server.stop(_STOP_SECONDS)
        # Again and again: a stream that was accepted just before may only begin now.
        while not stopped.wait(_END_STREAMS_SECONDS):
            self._service.end_streams()
        self._server = None
        self._registered_with = None
        with suppress(FileNotFoundError):
            self.socket.unlink()

    def _register(self) -> None:
        address = f"unix:{self._folder / _KUBELET_SOCKET}"
        with grpc.insecure_channel(address, options=_NO_INHERITED_BACK_OFF) as channel:
            stub = api_grpc.RegistrationStub(channel)
            stub.Register(
                api.RegisterRequest(
                    version=_VERSION,
                    endpoint=self._endpoint,
                    resource_name=self._resource,
                    options=api.DevicePluginOptions(),
                ),
                timeout=_REGISTER_SECONDS,
            )


def _identity(path: Path) -> tuple[int, int] | None:
    """Tells one socket from the next at the same path; an inode number alone is used again."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return (found.st_ino, found.st_ctime_ns)


def _text(error: Exception) -> str:
    details = getattr(error, "details", None)
    return str(details()) if callable(details) else str(error)
