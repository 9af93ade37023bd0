"""What the agent refuses or cannot do, each with a stable code for people and for metrics."""

from __future__ import annotations


class AgentError(Exception):
    """Base of the agent's own errors. The text is shown to the user word for word."""

    code = "mig.agent.error"


class InvalidSetting(AgentError):
    """One setting of the environment cannot be used."""

    code = "mig.agent.setting"

    def __init__(self, variable: str, value: object, allowed: str) -> None:
        super().__init__(f"{variable}: {value!r} is not allowed; allowed: {allowed}")


class NoPodToServe(AgentError):
    """The kubelet asked for devices, and no single Pod can be the one it asks for."""

    code = "mig.allocate.no-pod"


class ReservationMismatch(AgentError):
    """The Pod's reservation does not agree with what the kubelet asks for."""

    code = "mig.allocate.mismatch"


class ReservationUntrusted(AgentError):
    """The Pod's reservation does not carry the scheduler's signature."""

    code = "mig.allocate.untrusted"


class CapabilityMismatch(AgentError):
    """The reserved GPU, profile or placement is not one that NVML on this node knows."""

    code = "mig.allocate.capability"


class OtherOwner(AgentError):
    """Something else may change the MIG layout, so nothing is made or destroyed beside it."""

    code = "mig.other-owner"


class OwnerUnknown(AgentError):
    """Whether something else may change the MIG layout cannot be seen now."""

    code = "mig.owner-unknown"


class PlacementTaken(AgentError):
    """Another instance lies on the reserved memory slices."""

    code = "mig.allocate.taken"


class InstanceUnverified(AgentError):
    """NVML reported success, and a fresh look does not show what it should."""

    code = "mig.instance.unverified"


class InstanceBusy(AgentError):
    """A process uses the instance, so it is not destroyed."""

    code = "mig.instance.busy"


class GpuLocked(AgentError):
    """The GPU's mutation lock could not be had in time."""

    code = "mig.instance.locked"


class DeadlineExceeded(AgentError):
    """The work did not end in its time; what it had made is taken back."""

    code = "mig.allocate.deadline"


class DeviceNodeMissing(AgentError):
    """The driver does not show a device that the container needs."""

    code = "mig.delivery.device-node"


class DeliveryFailure(AgentError):
    """The file by which container runtimes find the instance could not be written or removed."""

    code = "mig.delivery.cdi"


class JournalFailure(AgentError):
    """The journal could not be written, so nothing may be created."""

    code = "mig.journal.unwritable"


class ClusterError(AgentError):
    """The API server refused, or its answer cannot be used. ``status`` 0: there was no answer."""

    code = "mig.cluster.error"

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        super().__init__(message)


class ClusterConflict(ClusterError):
    """Somebody else changed the object in between."""

    code = "mig.cluster.conflict"


class ClusterNotFound(ClusterError):
    """The object does not exist."""

    code = "mig.cluster.not-found"


class ClusterMalformed(ClusterError):
    """The answer lacks a field that every object has; nothing of it may be used."""

    code = "mig.cluster.malformed"
