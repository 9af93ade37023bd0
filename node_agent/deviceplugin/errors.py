"""One table from the agent's errors to the status and text that the kubelet shows to users."""

from __future__ import annotations

from typing import Final

import grpc

from node_agent import errors
from node_agent.nvml import ports

_STATUS: Final[dict[type[Exception], grpc.StatusCode]] = {
    errors.NoPodToServe: grpc.StatusCode.FAILED_PRECONDITION,
    errors.ReservationMismatch: grpc.StatusCode.FAILED_PRECONDITION,
    errors.ReservationUntrusted: grpc.StatusCode.PERMISSION_DENIED,
    errors.CapabilityMismatch: grpc.StatusCode.FAILED_PRECONDITION,
    errors.OtherOwner: grpc.StatusCode.FAILED_PRECONDITION,
    errors.OwnerUnknown: grpc.StatusCode.UNAVAILABLE,
    errors.PlacementTaken: grpc.StatusCode.FAILED_PRECONDITION,
    errors.InstanceUnverified: grpc.StatusCode.INTERNAL,
    errors.InstanceBusy: grpc.StatusCode.UNAVAILABLE,
    errors.GpuLocked: grpc.StatusCode.UNAVAILABLE,
    errors.DeadlineExceeded: grpc.StatusCode.DEADLINE_EXCEEDED,
    errors.DeviceNodeMissing: grpc.StatusCode.UNAVAILABLE,
    errors.DeliveryFailure: grpc.StatusCode.UNAVAILABLE,
    errors.JournalFailure: grpc.StatusCode.UNAVAILABLE,
    errors.ClusterError: grpc.StatusCode.UNAVAILABLE,
    errors.InvalidSetting: grpc.StatusCode.INTERNAL,
    ports.DriverUnavailable: grpc.StatusCode.UNAVAILABLE,
    ports.DriverNoPermission: grpc.StatusCode.PERMISSION_DENIED,
    ports.DriverInsufficientResources: grpc.StatusCode.RESOURCE_EXHAUSTED,
    ports.DriverError: grpc.StatusCode.INTERNAL,
}
# What a user can do about NVML's refusals, which say little by themselves.
_ADVICE: Final[dict[type[Exception], str]] = {
    ports.DriverUnavailable: "the NVIDIA driver on the node cannot be used",
    ports.DriverNoPermission: "the node agent lacks the right to configure MIG (run it privileged)",
    ports.DriverInsufficientResources: "the placement is taken on the GPU",
    ports.DriverInUse: "another process uses the GPU",
    ports.DriverGpuLost: "the GPU is lost; the node needs attention",
}


def status_of(error: Exception) -> grpc.StatusCode:
    """The status of the nearest class in the table."""
    for kind in type(error).__mro__:
        if kind in _STATUS:
            return _STATUS[kind]
    return grpc.StatusCode.INTERNAL


def text_of(error: Exception) -> str:
    """The text a user reads in the Pod's status, with advice where NVML's own says little."""
    advice = next((_ADVICE[kind] for kind in type(error).__mro__ if kind in _ADVICE), "")
    code = getattr(error, "code", "")
    shown = f"{error}" if not advice else f"{advice}: {error}"
    return f"[{code}] {shown}" if isinstance(code, str) and code else shown
