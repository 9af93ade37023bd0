"""Whose instance is it: specs, owners and the records that the journal keeps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from hami_web.core.placement import Placement
from hami_web.core.reservation import RuntimeIdentity


@dataclass(frozen=True, slots=True, order=True)
class Owner:
    """One device of one container of one Pod, the unit that owns an instance."""

    pod_uid: str
    container_index: int
    device_index: int

    def __str__(self) -> str:
        return f"Pod {self.pod_uid} container {self.container_index} device {self.device_index}"


@dataclass(frozen=True, slots=True, order=True)
class InstanceSpec:
    """What is wanted: a profile at an exact placement of one physical GPU."""

    gpu_uuid: str
    profile: str
    placement: Placement

    def __str__(self) -> str:
        return f"{self.profile} at {self.placement} of {self.gpu_uuid}"


@dataclass(frozen=True, slots=True)
class Claim:
    """One reservation of one Pod, with the identity its annotation carries (or None)."""

    owner: Owner
    namespace: str
    pod_name: str
    spec: InstanceSpec
    identity: RuntimeIdentity | None = None

    @property
    def pod(self) -> str:
        return f"{self.namespace}/{self.pod_name}"


class RecordState(StrEnum):
    """How far an instance of ours has come."""

    INTENT = "intent"
    REALIZED = "realized"
    RECLAIMING = "reclaiming"


@dataclass(frozen=True, slots=True)
class InstanceRecord:
    """An instance of ours, as the journal keeps it.

    ``profile_id`` is NVML's number of the profile. ``identity`` is None until the instance was seen
    whole. ``device_ids`` are the kubelet's ids of the call that it was made for. ``since`` is when
    the state was entered, in seconds since the epoch; ``reason`` says why a destroy is refused.
    """

    owner: Owner
    namespace: str
    pod_name: str
    spec: InstanceSpec
    profile_id: int
    state: RecordState
    identity: RuntimeIdentity | None
    device_ids: tuple[str, ...]
    since: float
    reason: str = ""

    @property
    def pod(self) -> str:
        return f"{self.namespace}/{self.pod_name}"


def located(item: Claim | InstanceRecord) -> dict[str, str]:
    """Fields of a log record about an instance."""
    return {
        "pod": item.pod,
        "pod_uid": item.owner.pod_uid,
        "gpu": item.spec.gpu_uuid,
        "profile": item.spec.profile,
        "placement": str(item.spec.placement),
    }
