"""Rules about what concerns every node: schedulers, controllers, webhooks, configuration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import yaml

from hami_web.core.device_config import parse_device_config
from hami_web.core.errors import InvalidPolicy
from hami_web.core.geometries import LEGACY_KEY, convert, holds_geometries
from hami_web.migration.codes import FindingCode
from hami_web.migration.facts import ClusterFacts, Part
from hami_web.migration.findings import FoundFinding
from hami_web.migration.objects import ClusterPolicy, Workload
from hami_web.migration.recognized import (
    DYNAMIC_SINCE,
    HAMI_PLUGIN,
    MIG_MANAGER,
    component,
    hami_version,
    is_hami,
    program,
)

OUR_SERVICE: Final = "hami-extender"
"""The Service that our webhook calls."""
_OTHER_SERVICE: Final = "hami-scheduler"


def examine_cluster(facts: ClusterFacts) -> Iterator[FoundFinding]:
    """Everything that is about no node in particular."""
    for part, why in facts.unread.items():
        yield FoundFinding(FindingCode.NOT_READ, part.value, why)
    for workload in facts.workloads:
        yield from _workload(workload)
    yield from _versions(facts)
    for policy in facts.policies:
        yield from _policy(policy, facts)
    yield from _webhooks(facts)
    yield from _configuration(facts)
    for right in facts.missing_rights:
        evidence = f"{right.account} may not {right.verb} {right.resource}"
        subject = f"{right.account}: {right.verb} {right.resource}"
        yield FoundFinding(FindingCode.RIGHT_MISSING, subject, evidence)


def is_hami_scheduler(workload: Workload) -> bool:
    """HAMi's own scheduler, by its chart's label or by its image and name."""
    if component(workload.labels) == "hami-scheduler":
        return True
    return is_hami(workload.images) and "scheduler" in workload.metadata.name


def plugin_code(images: Iterable[str]) -> FindingCode:
    """HAMi's plugin by its release: one that does not tell counts as an old one."""
    version = hami_version(images)
    dynamic = version is not None and version >= DYNAMIC_SINCE
    return FindingCode.OTHER_DEVICE_PLUGIN if dynamic else FindingCode.LEGACY_DEVICE_PLUGIN


def _workload(workload: Workload) -> Iterator[FoundFinding]:
    subject = f"{workload.kind} {workload.full_name}"
    told = f"images {', '.join(workload.images)}; {workload.wanted} wanted"
    if program(workload.labels) == MIG_MANAGER:
        # Even with no Pod wanted: a label on a node is enough to bring one back.
        owners = ", ".join(f"{owner.kind}/{owner.name}" for owner in workload.owners)
        evidence = f"{told}; owned by {owners or 'nobody'}"
        yield FoundFinding(FindingCode.MIG_MANAGER_CONTROLLED, subject, evidence)
    elif workload.wanted == 0:
        return
    elif is_hami_scheduler(workload):
        version = hami_version(workload.images)
        legacy = version is None or version < DYNAMIC_SINCE
        code = FindingCode.LEGACY_SCHEDULER if legacy else FindingCode.OTHER_SCHEDULER
        yield FoundFinding(code, subject, told)
    elif program(workload.labels) == HAMI_PLUGIN:
        yield FoundFinding(plugin_code(workload.images), subject, told)


def _versions(facts: ClusterFacts) -> Iterator[FoundFinding]:
    """A scheduler and a plugin of HAMi on both sides of 2.10."""
    seen = {}
    for workload in facts.workloads:
        version = hami_version(workload.images)
        hamis = is_hami_scheduler(workload) or program(workload.labels) == HAMI_PLUGIN
        if version is not None and hamis and workload.wanted:
            seen[f"{workload.kind} {workload.full_name}"] = version
    if len({version >= DYNAMIC_SINCE for version in seen.values()}) > 1:
        evidence = ", ".join(f"{name} {a}.{b}" for name, (a, b) in sorted(seen.items()))
        yield FoundFinding(FindingCode.MIXED_VERSIONS, "HAMi", evidence)


def _policy(policy: ClusterPolicy, facts: ClusterFacts) -> Iterator[FoundFinding]:
    if policy.keeps_mig_manager:
        evidence = "spec.migManager.enabled is not false"
        found = [w.full_name for w in facts.workloads if program(w.labels) == MIG_MANAGER]
        if found:
            evidence += f"; DaemonSet {', '.join(found)}"
        subject = f"ClusterPolicy {policy.metadata.name}"
        yield FoundFinding(FindingCode.MIG_MANAGER_CONTROLLED, subject, evidence)


def _webhooks(facts: ClusterFacts) -> Iterator[FoundFinding]:
    if Part.WEBHOOKS in facts.unread:
        return
    ours = False
    for configuration in facts.webhooks:
        for hook in configuration.webhooks or []:
            service = hook.client_config.service
            if service is None:
                continue
            name = configuration.metadata.name
            if service.name == OUR_SERVICE and service.namespace == facts.namespace:
                ours = True
                if not hook.client_config.ca_bundle:
                    yield FoundFinding(FindingCode.WEBHOOK_UNTRUSTED, name, "caBundle is empty")
            elif service.name.endswith(_OTHER_SERVICE):
                evidence = f"webhook {hook.name} calls {service.namespace}/{service.name}"
                yield FoundFinding(FindingCode.OTHER_WEBHOOK, name, evidence)
    if not ours:
        evidence = f"none calls Service {facts.namespace}/{OUR_SERVICE}"
        yield FoundFinding(FindingCode.WEBHOOK_MISSING, "MutatingWebhookConfiguration", evidence)


def _configuration(facts: ClusterFacts) -> Iterator[FoundFinding]:
    if Part.CONFIG_MAPS in facts.unread:
        return
    extender = False
    for item in facts.config_maps:
        ours = item.metadata.namespace == facts.namespace
        for key, text in (item.data or {}).items():
            extender |= ours and "filterVerb" in text and "hami-scheduler" in text
            yield from _device_configuration(f"ConfigMap {item.full_name}", key, text)
    if not extender:
        evidence = f"no ConfigMap of namespace {facts.namespace} has filterVerb"
        yield FoundFinding(FindingCode.EXTENDER_NOT_CONFIGURED, "kube-scheduler", evidence)


def _device_configuration(subject: str, key: str, text: str) -> Iterator[FoundFinding]:
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError:
        return
    section = document.get("nvidia") if isinstance(document, dict) else None
    if isinstance(section, dict) and "migProfileAllowlist" in section:
        yield from _allowlist(subject, key, document)
    if not holds_geometries(document):
        return
    try:
        made = convert(document)
        evidence = f"{key}: {len(made.entries)} entries of migProfileAllowlist when converted"
    except InvalidPolicy as error:
        evidence = f"{key}: {error}"
    yield FoundFinding(FindingCode.LEGACY_GEOMETRIES, subject, evidence)


def _allowlist(subject: str, key: str, document: object) -> Iterator[FoundFinding]:
    try:
        parse_device_config(document)
    except InvalidPolicy as error:
        if error.field != f"nvidia.{LEGACY_KEY}":
            yield FoundFinding(FindingCode.ALLOWLIST_UNREADABLE, subject, f"{key}: {error}")
