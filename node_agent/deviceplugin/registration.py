"""Keeps the service registered with the kubelet, whatever the kubelet does to the sockets.

A kubelet that restarts deletes every socket of the folder, so its socket's identity and our own
socket's existence are looked at; either change means: serve anew, register anew.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

import grpc

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
_STOP_SECONDS: Final = 30.0
_END_STREAMS_SECONDS: Final = 0.02
_SERVER_THREADS: Final = 8


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
        self.registered = threading.Event()

    @property
    def socket(self) -> Path:
        """Where the service is served."""
        return self._folder / self._endpoint

    def run(self, stop: threading.Event) -> None:
        """Serve and register until told to stop, then stop serving after the calls in progress."""
        wait = _BACKOFF_FIRST_SECONDS
        while not stop.is_set():
            try:
                self._look()
            except (grpc.RpcError, OSError, RuntimeError) as error:
                self.registered.clear()
                self._metrics.registrations.labels("failed").inc()
                logger.warning("registration with the kubelet failed: %s", _text(error))
                stop.wait(wait)
                wait = min(wait * 2, _BACKOFF_MOST_SECONDS)
            else:
                wait = _BACKOFF_FIRST_SECONDS
                stop.wait(_LOOK_SECONDS)
        self._stop_server()

    def _look(self) -> None:
        kubelet = _identity(self._folder / _KUBELET_SOCKET)
        if kubelet is None:
            self.registered.clear()
            self._registered_with = None
            return
        served = self._server is not None and _identity(self.socket) is not None
        if served and kubelet == self._registered_with:
            return
        self.registered.clear()
        self._stop_server()
        self._start_server()
        self._register()
        self._registered_with = kubelet
        self.registered.set()
        self._metrics.registrations.labels("success").inc()
        logger.info("registered with the kubelet as %s on %s", self._resource, self._endpoint)

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
        with grpc.insecure_channel(f"unix:{self._folder / _KUBELET_SOCKET}") as channel:
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
