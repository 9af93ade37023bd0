"""What a new Pod is changed to, or why it is refused, before it is stored.

Concerns only Pods that ask for NVIDIA GPU resources of a mode we serve and that no other scheduler
was named for; everything else passes untouched. Reviewing the outcome again changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hami_web.cluster.views import Container, PodSpec, PodView
from hami_web.core import annotations as keys
from hami_web.core.errors import InvalidRequest
from hami_web.core.request import ContainerSpec, parse_pod_request

DEFAULT_SCHEDULER = "default-scheduler"
DEVICE_DETAILS = (
    keys.RESOURCE_MEMORY,
    keys.RESOURCE_MEMORY_PERCENTAGE,
    keys.RESOURCE_CORES,
)
"""Resources that describe a device; each of them implies that one is wanted."""
GPU_RESOURCES = (keys.RESOURCE_COUNT, *DEVICE_DETAILS)


@dataclass(frozen=True, slots=True)
class AdmissionCall:
    """A Pod under review. A Pod of a controller has no name yet, only ``generateName``."""

    operation: str
    pod: PodView
    display_name: str


@dataclass(frozen=True, slots=True)
class PatchOperation:
    """One JSON Patch operation; ``path`` is an escaped JSON Pointer."""

    op: str
    path: str
    value: object


@dataclass(frozen=True, slots=True)
class Verdict:
    """Allowed with changes and warnings, or refused with a text for the user."""

    refusal: str | None = None
    patch: tuple[PatchOperation, ...] = ()
    warnings: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class _Listed:
    """A container and where the Pod holds it."""

    path: str
    container: Container
    is_init: bool

    @property
    def spec(self) -> ContainerSpec:
        return self.container.spec()

    @property
    def wants_gpu(self) -> bool:
        return any(self.spec.quantity(resource) is not None for resource in GPU_RESOURCES)

    @property
    def lacks_count(self) -> bool:
        spec = self.spec
        return spec.quantity(keys.RESOURCE_COUNT) is None and any(
            resource in spec.limits for resource in DEVICE_DETAILS
        )


class Admission:
    """Reviews Pods for one scheduler name."""

    def __init__(self, scheduler_name: str) -> None:
        self._scheduler_name = scheduler_name

    def review(self, call: AdmissionCall) -> Verdict:
        """Decide about a Pod that is being created."""
        pod = call.pod
        containers = _listed(pod.spec)
        if call.operation != "CREATE" or not self._concerns(pod, containers):
            return Verdict()
        try:
            request = parse_pod_request([_with_count(item) for item in containers], pod.annotations)
        except InvalidRequest as error:
            return Verdict(refusal=f"Pod {call.display_name}: {error}")
        if not request.devices:
            return Verdict()
        refusal = _refusal(pod, containers)
        if refusal is not None:
            return Verdict(refusal=f"Pod {call.display_name}: {refusal}")
        return Verdict(
            patch=tuple(self._changes(pod, containers)), warnings=tuple(_warnings(containers))
        )

    def _concerns(self, pod: PodView, containers: Sequence[_Listed]) -> bool:
        ours = ("", DEFAULT_SCHEDULER, self._scheduler_name)
        return (
            pod.spec.scheduler_name in ours
            and any(item.wants_gpu for item in containers)
            and parse_pod_request((), pod.annotations).accepts_mig
        )

    def _changes(self, pod: PodView, containers: Sequence[_Listed]) -> list[PatchOperation]:
        changes = [
            PatchOperation(
                "add", f"{item.path}/resources/limits/{_escape(keys.RESOURCE_COUNT)}", "1"
            )
            for item in containers
            if item.lacks_count
        ]
        if pod.spec.scheduler_name != self._scheduler_name:
            changes.append(PatchOperation("add", "/spec/schedulerName", self._scheduler_name))
        return changes


def _refusal(pod: PodView, containers: Sequence[_Listed]) -> str | None:
    if pod.spec.node_name:
        return (
            f"spec.nodeName: {pod.spec.node_name!r} is not allowed beside a GPU request; allowed: "
            "none, since GPU memory is reserved by the scheduler (use spec.nodeSelector)"
        )
    for item in containers:
        if item.wants_gpu and item.container.is_privileged:
            return (
                f"container {item.container.name}: securityContext.privileged: true is not allowed "
                "beside a GPU request; allowed: false, since a privileged container sees every GPU"
            )
    return None


def _warnings(containers: Sequence[_Listed]) -> list[str]:
    return [
        f"init container {item.container.name}: kubelets of old Kubernetes releases (1.20 among "
        f"them) refuse a Pod whose init container asks for {resource}; newer ones accept it"
        for item in containers
        if item.is_init
        for resource in DEVICE_DETAILS
        if item.spec.quantity(resource) is not None
    ]


def _listed(spec: PodSpec) -> list[_Listed]:
    """Init containers, then app containers, as positions count on the wire."""
    init = [
        _Listed(f"/spec/initContainers/{position}", container, is_init=True)
        for position, container in enumerate(spec.init_containers or ())
    ]
    return init + [
        _Listed(f"/spec/containers/{position}", container, is_init=False)
        for position, container in enumerate(spec.containers or ())
    ]


def _with_count(item: _Listed) -> ContainerSpec:
    """The container as it will be after our change."""
    spec = item.spec
    if not item.lacks_count:
        return spec
    limits: Mapping[str, str | int] = {**spec.limits, keys.RESOURCE_COUNT: 1}
    return ContainerSpec(spec.name, limits, spec.requests)


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
