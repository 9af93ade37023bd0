"""Codes of findings, how grave each is, and its words in both languages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from hami_web.migration.severity import Severity


class FindingCode(StrEnum):
    """Stable across releases and languages."""

    LEGACY_SCHEDULER = "LegacyScheduler"
    OTHER_SCHEDULER = "OtherScheduler"
    LEGACY_DEVICE_PLUGIN = "LegacyDevicePlugin"
    OTHER_DEVICE_PLUGIN = "OtherDevicePlugin"
    MIXED_VERSIONS = "MixedVersions"
    LEGACY_POD = "LegacyPod"
    LEGACY_GEOMETRIES = "LegacyGeometries"
    MIG_MANAGER_RUNS = "MigManagerRuns"
    MIG_MANAGER_CONTROLLED = "MigManagerControlled"
    MIG_CONFIG_LABEL = "MigConfigLabel"
    MIG_CONFIG_PENDING = "MigConfigPending"
    MIG_CONFIG_FAILED = "MigConfigFailed"
    PAUSED_FOR_MIG = "PausedForMigChange"
    FIXED_INSTANCES = "FixedInstancesOffered"
    OTHER_GPU_WORK = "OtherGpuWork"
    GPU_MODE = "GpuNeedsMode"
    GPU_RESET = "GpuNeedsReset"
    GPU_REBOOT = "NodeNeedsReboot"
    AGENT_MISSING = "AgentMissing"
    OWNER_TOLD = "OtherOwnerTold"
    REGISTRATION_UNREADABLE = "RegistrationUnreadable"
    MODEL_NOT_LISTED = "ModelNotListed"
    PROFILE_NOT_REPORTED = "ProfileNotReported"
    ALLOWLIST_UNREADABLE = "AllowlistUnreadable"
    ALLOWLIST_MISSING = "AllowlistMissing"
    POD_WITHOUT_CONTROLLER = "PodWithoutController"
    BUDGET_BLOCKS = "BudgetBlocksDrain"
    KUBELET_TOO_OLD = "KubeletTooOld"
    KUBELET_TOO_NEW = "KubeletNewerThanApiServer"
    DRIVER_TOO_OLD = "DriverTooOld"
    WEBHOOK_MISSING = "WebhookMissing"
    WEBHOOK_UNTRUSTED = "WebhookWithoutAuthority"
    CERTIFICATE_EXPIRED = "CertificateExpired"
    CERTIFICATE_EXPIRES = "CertificateExpiresSoon"
    OTHER_WEBHOOK = "OtherWebhook"
    EXTENDER_NOT_CONFIGURED = "ExtenderNotConfigured"
    RIGHT_MISSING = "RightMissing"
    NOT_READ = "CouldNotLook"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a finding means for a take-over, and what to do. Texts may name {node} and {subject}."""

    severity: Severity
    consequence: Promise
    mend: Promise


_B, _W = Severity.BLOCKER, Severity.WARNING
MEANINGS: Final[Mapping[FindingCode, Meaning]] = {
    FindingCode.LEGACY_SCHEDULER: Meaning(_B, _("It places MIG Pods by templates, which the new agents cannot read."), _("Stop new MIG Pods, drain the old ones node by node, then scale it to zero or uninstall its chart.")),
    FindingCode.OTHER_SCHEDULER: Meaning(_B, _("Two schedulers would give away the same memory slices."), _("Scale it to zero when its last Pod is over, before the extender here starts.")),
    FindingCode.LEGACY_DEVICE_PLUGIN: Meaning(_B, _("It cuts whole GPUs by templates and would cut the same cards as our agent."), _("Take the node out of its node selector after the drain, or uninstall it when no node needs it.")),
    FindingCode.OTHER_DEVICE_PLUGIN: Meaning(_B, _("It offers GPUs of this node to the kubelet beside our agent."), _("Keep it off this node: change its node selector, or the label that the GPU Operator deploys it by.")),
    FindingCode.MIXED_VERSIONS: Meaning(_B, _("Scheduler and device plugin of these versions do not understand each other's MIG annotations."), _("Let no MIG Pod be scheduled until both are gone or of one version.")),
    FindingCode.LEGACY_POD: Meaning(_B, _("Its identity is a template and a slot, which proves no placement: it cannot be adopted."), _("Let it end, or evict it: kubectl drain {node} --pod-selector=… after its owner agreed.")),
    FindingCode.LEGACY_GEOMETRIES: Meaning(_B, _("Whole-GPU geometries are refused at start."), _("Convert it: manage.py migrate_geometries FILE, and replace the key with its answer.")),
    FindingCode.MIG_MANAGER_RUNS: Meaning(_B, _("MIG Manager may cut this node's GPUs at any moment."), _("Stop it by its controller, not by deleting the Pod.")),
    FindingCode.MIG_MANAGER_CONTROLLED: Meaning(_B, _("A controller would bring MIG Manager back, or apply its configuration again."), _("Set spec.migManager.enabled to false in the ClusterPolicy (kubectl edit clusterpolicy), or remove the DaemonSet.")),
    FindingCode.MIG_CONFIG_LABEL: Meaning(_B, _("MIG Manager cuts the node to this layout whenever it runs."), _("kubectl label node {node} nvidia.com/mig.config- after MIG Manager is off.")),
    FindingCode.MIG_CONFIG_PENDING: Meaning(_B, _("MIG Manager is in the middle of a change, or was left in it."), _("Let it finish or stop it, look at the GPUs with nvidia-smi, then remove the label nvidia.com/mig.config.state.")),
    FindingCode.MIG_CONFIG_FAILED: Meaning(_W, _("The last layout was not applied: instances may be left over."), _("Look with nvidia-smi mig -lgi; what is left over on an idle GPU is removed at the agent's start.")),
    FindingCode.PAUSED_FOR_MIG: Meaning(_B, _("MIG Manager changes the layout, or stopped in the middle: operands of the node stay away, and nothing is made or placed there."), _("Set the label back to true, so that driver, toolkit and DCGM return.")),
    FindingCode.FIXED_INSTANCES: Meaning(_B, _("A device plugin hands out instances that exist already."), _("Drain its Pods, and keep the plugin off this node.")),
    FindingCode.OTHER_GPU_WORK: Meaning(_B, _("It uses a GPU that must be idle before MIG mode changes or instances are made."), _("Let it end or move it; the agent changes nothing under a running process.")),
    FindingCode.GPU_MODE: Meaning(_W, _("The GPU is not offered until its MIG mode is on."), _("The message names the GPU and who holds it; the mode is turned on when the GPU is idle.")),
    FindingCode.GPU_RESET: Meaning(_B, _("The driver asks for a reset, which ends everything on the GPU."), _("kubectl drain {node}; stop the agent; nvidia-smi -i N --gpu-reset")),
    FindingCode.GPU_REBOOT: Meaning(_B, _("The driver asks for a reboot of the node."), _("kubectl drain {node}; reboot it; look again.")),
    FindingCode.AGENT_MISSING: Meaning(_W, _("The node has GPUs, and nothing is known of what they can be cut into."), _("Expected before the agent runs there; afterwards see its log.")),
    FindingCode.OWNER_TOLD: Meaning(_B, _("The agent sees another owner on the node: nothing is made, destroyed or placed there."), _("Stop it by its controller, not by deleting the Pod; the agent then takes the annotation away itself.")),
    FindingCode.REGISTRATION_UNREADABLE: Meaning(_B, _("The scheduler places nothing on what it cannot read."), _("The evidence names the field; see the version and the log of the agent or plugin that wrote it.")),
    FindingCode.MODEL_NOT_LISTED: Meaning(_W, _("GPUs of this model are not offered."), _("Add the model to migProfileAllowlist if they should be.")),
    FindingCode.PROFILE_NOT_REPORTED: Meaning(_W, _("The allowlist permits it, and NVML on the node does not have it."), _("Nothing breaks; Pods that need it wait for another node. Correct the allowlist.")),
    FindingCode.ALLOWLIST_UNREADABLE: Meaning(_B, _("Agents that start offer no GPU."), _("Correct the field that the evidence names.")),
    FindingCode.ALLOWLIST_MISSING: Meaning(_B, _("Agents that start offer no GPU."), _("Install the chart with migProfileAllowlist, or convert what there is: manage.py migrate_geometries FILE.")),
    FindingCode.POD_WITHOUT_CONTROLLER: Meaning(_W, _("Evicted, it does not come back."), _("Ask its owner; kubectl drain refuses without --force.")),
    FindingCode.BUDGET_BLOCKS: Meaning(_B, _("The API server refuses to evict the Pod now."), _("Ask its owner for another replica or a pause; nothing here goes around a budget.")),
    FindingCode.KUBELET_TOO_OLD: Meaning(_B, _("Versions before 1.20 were never tried."), _("Upgrade the node.")),
    FindingCode.KUBELET_TOO_NEW: Meaning(_W, _("Kubernetes does not support a kubelet that is newer than its API server."), _("Upgrade the control plane.")),
    FindingCode.DRIVER_TOO_OLD: Meaning(_B, _("The driver cannot create an instance at a chosen placement."), _("Upgrade the NVIDIA driver of the node.")),
    FindingCode.WEBHOOK_MISSING: Meaning(_W, _("Pods reach our scheduler only by naming it themselves, and nothing refuses reservations that users write."), _("kubectl apply -f deploy/webhook.yaml with the authority of the extender's certificate.")),
    FindingCode.WEBHOOK_UNTRUSTED: Meaning(_B, _("The API server cannot trust the extender: every call to the webhook fails."), _("Fill caBundle with the authority of the extender's certificate.")),
    FindingCode.CERTIFICATE_EXPIRED: Meaning(_B, _("The API server cannot trust the extender: every call to the webhook fails."), _("Renew the certificate (hami-web setup, or cert-manager), and fill caBundle with its authority.")),
    FindingCode.CERTIFICATE_EXPIRES: Meaning(_W, _("From then on the API server cannot trust the extender, and every call to the webhook fails."), _("Renew the certificate (hami-web setup, or cert-manager), and fill caBundle with its authority.")),
    FindingCode.OTHER_WEBHOOK: Meaning(_B, _("It sends GPU Pods to the other scheduler."), _("kubectl delete mutatingwebhookconfiguration {subject}, or uninstall its chart.")),
    FindingCode.EXTENDER_NOT_CONFIGURED: Meaning(_W, _("No kube-scheduler configuration in our namespace names the extender."), _("See deploy/scheduler-config; a scheduler that takes its configuration from a file is not seen here.")),
    FindingCode.RIGHT_MISSING: Meaning(_B, _("The role cannot do its work."), _("kubectl apply -f deploy/rbac/")),
    FindingCode.NOT_READ: Meaning(_B, _("What was not seen may be in the way; nodes are not called ready."), _("Give the worker the right that the evidence names (deploy/rbac/worker.yaml), or see why the API server refuses.")),
}  # fmt: skip
"""One for every code."""


def consequence(code: str, node: str, subject: str) -> str:
    """What a finding means; empty for a code of another release."""
    return _filled(code, "consequence", node, subject)


def mend(code: str, node: str, subject: str) -> str:
    """What to do about a finding; empty for a code of another release."""
    return _filled(code, "mend", node, subject)


def _filled(code: str, name: str, node: str, subject: str) -> str:
    if code not in MEANINGS:
        return ""
    words: Promise = getattr(MEANINGS[FindingCode(code)], name)
    return str(words).format(node=node or "NODE", subject=subject)
