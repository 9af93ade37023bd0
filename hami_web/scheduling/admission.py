"""What a new Pod is changed to, or why it is refused, before it is stored.

GPU rules concern only Pods that ask for NVIDIA GPU resources of a mode we serve and that no other
scheduler was named for; a reservation that someone else wrote concerns every Pod. Everything else
passes untouched. Reviewing the outcome again changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from hami_web.cluster.views import PodView
from hami_web.core import annotations as keys
from hami_web.core.capability import GpuCapability
from hami_web.core.errors import InvalidRequest
from hami_web.core.policy import SchedulingPolicy
from hami_web.core.request import PodRequest, parse_pod_request
from hami_web.scheduling import ownership, visible_devices
from hami_web.scheduling.admission_policy import REFUSE, WARN, AdmissionPolicy, Refusing
from hami_web.scheduling.reviewed import DEVICE_DETAILS, ReviewedContainer, containers_of
from hami_web.scheduling.sizes import unsatisfiable
from hami_web.scheduling.verdict import AdmissionCall, PatchOperation, Verdict, escape

DEFAULT_SCHEDULER: Final = "default-scheduler"
MIRROR: Final = "kubernetes.io/config.mirror"
"""On what a kubelet shows of a Pod that it runs from a file: refusing it would stop nothing."""


@dataclass(frozen=True, slots=True)
class AdmissionOptions:
    """``trusted`` are the users who may change reservations: scheduler and agents."""

    scheduler_name: str = "hami-scheduler"
    policy: AdmissionPolicy = field(default_factory=AdmissionPolicy)
    scheduling: SchedulingPolicy = field(default_factory=SchedulingPolicy)
    trusted: frozenset[str] = frozenset()


class Admission:
    """Reviews Pods. ``models`` tells which GPUs the cluster has, nothing while it is not known."""

    def __init__(
        self,
        options: AdmissionOptions | None = None,
        models: Callable[[], Sequence[GpuCapability]] = tuple,
    ) -> None:
        self._options = options or AdmissionOptions()
        self._models = models

    def change_policies(self, policy: AdmissionPolicy, scheduling: SchedulingPolicy) -> None:
        """Review by other policies from now on; a review that goes on ends by the old ones."""
        self._options = replace(self._options, policy=policy, scheduling=scheduling)

    def review(self, call: AdmissionCall) -> Verdict:
        """Decide about a Pod that is being created or changed."""
        if call.operation == "UPDATE" and call.old is not None:
            return ownership.check_update(call.pod, call.old, call.user, self._options.trusted)
        if call.operation != "CREATE" or MIRROR in call.pod.annotations:
            return Verdict()
        pod, stripped, told = ownership.strip(call.pod)
        try:
            found = self._review_gpus(pod)
        except (InvalidRequest, _Refused) as error:
            found = Verdict(refusal=str(error))
        if found.refusal is not None:
            return Verdict(refusal=f"Pod {call.display_name}: {found.refusal}")
        return Verdict(patch=stripped + found.patch, warnings=told + found.warnings)

    def _review_gpus(self, pod: PodView) -> Verdict:
        containers = containers_of(pod.spec)
        options = self._options
        if pod.spec.scheduler_name not in ("", DEFAULT_SCHEDULER, options.scheduler_name):
            return Verdict()
        warnings: list[str] = []
        _judge(options.policy.legacy_profiles, _legacy(containers), warnings)
        if not any(item.wants_gpu for item in containers):
            return Verdict(warnings=tuple(warnings))
        _check_modes(pod)
        request = _request_of(pod, containers)
        if not request.devices:
            return Verdict(warnings=tuple(warnings))
        options.scheduling.rule_for(request)
        _check_pod(pod, containers)
        _judge(options.policy.several_devices, _several(request), warnings)
        if options.policy.unknown_sizes in (WARN, REFUSE):
            size = unsatisfiable(request, self._models())
            _judge(options.policy.unknown_sizes, size, warnings)
        patch, told = self._changes(pod, containers)
        return Verdict(patch=tuple(patch), warnings=(*told, *warnings, *_old_kubelets(containers)))

    def _changes(
        self, pod: PodView, containers: Sequence[ReviewedContainer]
    ) -> tuple[list[PatchOperation], list[str]]:
        patch, told = visible_devices.changes_of(containers)
        for item in containers:
            if item.lacks_count:
                path = f"{item.path}/resources/limits/{escape(keys.RESOURCE_COUNT)}"
                patch.append(PatchOperation("add", path, "1"))
                told.append(f"container {item.container.name}: {keys.RESOURCE_COUNT} set to 1")
        name = self._options.scheduler_name
        if pod.spec.scheduler_name != name:
            patch.append(PatchOperation("add", "/spec/schedulerName", name))
            told.append(f"spec.schedulerName set to {name}, which reserves GPU memory")
        return patch, told


def _judge(policy: Refusing, finding: str | None, warnings: list[str]) -> None:
    """Refuse a finding, note it as a warning, or let it pass."""
    if finding is None:
        return
    if policy == REFUSE:
        raise _Refused(finding)
    if policy == WARN:
        warnings.append(finding)


class _Refused(Exception):
    """A Pod that must not be stored, in words for its user."""


def _request_of(pod: PodView, containers: Sequence[ReviewedContainer]) -> PodRequest:
    """The request as it will be; nothing for a Pod of another mode, whose values are not ours."""
    if not parse_pod_request((), pod.annotations).accepts_mig:
        return parse_pod_request((), pod.annotations)
    return parse_pod_request([item.with_count() for item in containers], pod.annotations)


def _check_modes(pod: PodView) -> None:
    text = pod.annotations.get(keys.POD_MODE, "")
    for word in (part.strip() for part in text.split(",")):
        if word and word not in keys.MODES:
            raise InvalidRequest(keys.POD_MODE, word, ", ".join(keys.MODES))


def _check_pod(pod: PodView, containers: Sequence[ReviewedContainer]) -> None:
    if pod.spec.node_name:
        raise _Refused(
            f"spec.nodeName: {pod.spec.node_name!r} is not allowed beside a GPU request; allowed: "
            "none, since GPU memory is reserved by the scheduler (use spec.nodeSelector)"
        )
    for item in containers:
        if item.container.is_privileged:
            raise _Refused(
                f"container {item.container.name}: securityContext.privileged: true is not allowed "
                "in a GPU Pod; allowed: false, since a privileged container sees every GPU"
            )


def _legacy(containers: Sequence[ReviewedContainer]) -> str | None:
    for item in containers:
        for resource in item.legacy_resources:
            profile = resource.removeprefix(keys.LEGACY_PROFILE_PREFIX)
            return (
                f"container {item.container.name}: {resource} is not allowed: it belongs to fixed "
                f"MIG geometries and reserves nothing; allowed: {keys.RESOURCE_COUNT}: 1 with "
                f"{keys.RESOURCE_MEMORY}, or with the annotation {keys.POD_PROFILE}: {profile}"
            )
    return None


def _several(request: PodRequest) -> str | None:
    for container in request.containers:
        if container.count > 1:
            return (
                f"container {container.container}: {keys.RESOURCE_COUNT}: {container.count} MIG "
                "devices in one container: a CUDA process uses only one of them; use one larger "
                "device, or one container for each"
            )
    return None


def _old_kubelets(containers: Sequence[ReviewedContainer]) -> list[str]:
    return [
        f"init container {item.container.name}: kubelets of old Kubernetes releases (1.20 among "
        f"them) refuse a Pod whose init container asks for {resource}; newer ones accept it"
        for item in containers
        if item.is_init
        for resource in DEVICE_DETAILS
        if item.spec.quantity(resource) is not None
    ]
