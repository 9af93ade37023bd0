"""Rules about what concerns every node: schedulers, controllers, webhooks, configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

import yaml

from hami_web.core.device_config import parse_device_config
from hami_web.core.errors import InvalidPolicy
from hami_web.core.geometries import LEGACY_KEY, convert, holds_geometries
from hami_web.migration.certificates import end_of_bundle
from hami_web.migration.codes import FindingCode
from hami_web.migration.controllers import returning_everywhere, subject_of, told_of
from hami_web.migration.facts import ClusterFacts, Part
from hami_web.migration.findings import FoundFinding
from hami_web.migration.objects import Workload
from hami_web.migration.recognized import (
    DYNAMIC_SINCE,
    HAMI_PLUGIN,
    component,
    hami_version,
    is_hami,
    program,
)

OUR_SERVICE: Final = "hami-extender"
"""The Service that our webhook calls."""
ALLOWLIST_KEY: Final = "migProfileAllowlist"
ENDS_SOON: Final = timedelta(days=21)
"""cert-manager renews earlier, and set-up a month before the end, at each upgrade of the chart."""
_OTHER_SERVICE: Final = "hami-scheduler"


def examine_cluster(facts: ClusterFacts) -> Iterator[FoundFinding]:
    """Everything that is about no node in particular."""
    for part, why in facts.unread.items():
        yield FoundFinding(FindingCode.NOT_READ, part.value, why)
    for workload in facts.workloads:
        yield from _scheduler(workload)
    yield from _versions(facts)
    if Part.NODES in facts.unread:
        yield from returning_everywhere(facts)
    yield from _webhooks(facts)
    served = f"Service {facts.namespace}/{OUR_SERVICE}"
    yield from _expiry(served, facts.certificate_ends, facts)
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


def _scheduler(workload: Workload) -> Iterator[FoundFinding]:
    if workload.wanted and is_hami_scheduler(workload):
        version = hami_version(workload.images)
        legacy = version is None or version < DYNAMIC_SINCE
        code = FindingCode.LEGACY_SCHEDULER if legacy else FindingCode.OTHER_SCHEDULER
        yield FoundFinding(code, subject_of(workload), told_of(workload))


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
                bundle = hook.client_config.ca_bundle
                if not bundle:
                    yield FoundFinding(FindingCode.WEBHOOK_UNTRUSTED, name, "caBundle is empty")
                else:
                    yield from _expiry(f"{name} caBundle", end_of_bundle(bundle), facts)
            elif service.name.endswith(_OTHER_SERVICE):
                evidence = f"webhook {hook.name} calls {service.namespace}/{service.name}"
                yield FoundFinding(FindingCode.OTHER_WEBHOOK, name, evidence)
    if not ours:
        evidence = f"none calls Service {facts.namespace}/{OUR_SERVICE}"
        yield FoundFinding(FindingCode.WEBHOOK_MISSING, "MutatingWebhookConfiguration", evidence)


def _expiry(subject: str, ends: datetime | None, facts: ClusterFacts) -> Iterator[FoundFinding]:
    """A certificate that has ended, or ends before people may have looked again."""
    if ends is None or facts.read_at is None or ends - facts.read_at > ENDS_SOON:
        return
    over = ends <= facts.read_at
    code = FindingCode.CERTIFICATE_EXPIRED if over else FindingCode.CERTIFICATE_EXPIRES
    yield FoundFinding(code, subject, f"valid until {ends:%F %T} UTC")


def _configuration(facts: ClusterFacts) -> Iterator[FoundFinding]:
    if Part.CONFIG_MAPS in facts.unread:
        return
    extender = allowlist = False
    for item in facts.config_maps:
        ours = item.metadata.namespace == facts.namespace
        for key, text in (item.data or {}).items():
            extender |= ours and "filterVerb" in text and "hami-scheduler" in text
            document = _document(text)
            allowlist |= ours and ALLOWLIST_KEY in _section(document)
            yield from _device_configuration(f"ConfigMap {item.full_name}", key, document)
    if not allowlist:
        evidence = f"no ConfigMap of namespace {facts.namespace} has nvidia.{ALLOWLIST_KEY}"
        yield FoundFinding(FindingCode.ALLOWLIST_MISSING, "device configuration", evidence)
    if not extender:
        evidence = f"no ConfigMap of namespace {facts.namespace} has filterVerb"
        yield FoundFinding(FindingCode.EXTENDER_NOT_CONFIGURED, "kube-scheduler", evidence)


def _document(text: str) -> object:
    """What a text of a ConfigMap says, where it is YAML."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _section(document: object) -> Mapping[str, object]:
    """The part of a device configuration that is about NVIDIA's GPUs; empty where there is none."""
    section = document.get("nvidia") if isinstance(document, dict) else None
    return section if isinstance(section, dict) else {}


def _device_configuration(subject: str, key: str, document: object) -> Iterator[FoundFinding]:
    if ALLOWLIST_KEY in _section(document):
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
