"""What the server's worker runs: the extender's views and metrics over one scheduling core.

Built in the worker, after the fork: it starts threads and holds the cluster's occupancy, which
must exist once only.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import TypeVar

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hami_web.settings")  # noqa: TID251
django.setup()

# isort: split
from django.conf import settings  # noqa: E402  # Django must be set up first
from django.core.exceptions import ImproperlyConfigured  # noqa: E402

from hami_web.core.errors import CoreError  # noqa: E402
from hami_web.core.policy import SchedulingPolicy, parse_scheduling_policy  # noqa: E402
from hami_web.core.signature import InvalidSigningKey, KeyFile  # noqa: E402
from hami_web.extender.certificates import TrustWatch  # noqa: E402
from hami_web.extender.handler import ExtenderHandler  # noqa: E402
from hami_web.extender.policy_watch import PolicyWatch  # noqa: E402
from hami_web.extender.serving import serving  # noqa: E402
from hami_web.extender.views import ExtenderViews  # noqa: E402
from hami_web.metrics.views import metrics_pattern  # noqa: E402
from hami_web.scheduling.admission import Admission, AdmissionOptions  # noqa: E402
from hami_web.scheduling.admission_policy import (  # noqa: E402
    AdmissionPolicy,
    parse_admission_policy,
)
from hami_web.scheduling.leadership import Election  # noqa: E402
from hami_web.scheduling.records import ClusterSnapshot  # noqa: E402
from hami_web.scheduling.runtime import Runtime, RuntimeOptions  # noqa: E402
from hami_web.scheduling.sizes import GpuModels  # noqa: E402

_Policy = TypeVar("_Policy")

WEBHOOK = "hami-webhook"
"""Name of our MutatingWebhookConfiguration."""
WAITING_SHARE = 0.75
"""Of the threads, those that may wait in ``/bind``; the others answer ``/filter``."""


def build_application() -> ExtenderHandler:
    """Start the scheduling core and return the WSGI callable; its ``close`` stops the core."""
    runtime = Runtime(
        RuntimeOptions(
            kubeconfig=settings.KUBECONFIG,
            policy=_checked(parse_scheduling_policy, settings.SCHEDULING_POLICY),
            scheduler_name=settings.SCHEDULER_NAME,
            namespace=settings.NAMESPACE,
            election=_election(),
            instance=settings.POD_NAME or socket.gethostname() or "extender",
            keys=_keys(),
            bind_wait_s=settings.BIND_WAIT_S,
            most_waiting_binds=max(1, int(settings.EXTENDER_THREADS * WAITING_SHARE)),
            calls_per_second=settings.KUBE_QPS,
            call_burst=settings.KUBE_BURST,
        )
    )
    admission = _admission(runtime)
    views = ExtenderViews(runtime, admission, _mistrusted())
    trust = _trust_watch(runtime)
    watches = [watch for watch in (trust, _policy_watch(runtime, admission)) if watch is not None]
    runtime.start()
    for watch in watches:
        watch.start()

    def close() -> None:
        for watch in watches:
            watch.stop()
        runtime.stop()

    return ExtenderHandler(
        (
            *views.patterns(),
            metrics_pattern(
                runtime,
                legacy=settings.LEGACY_METRICS,
                trust=None if trust is None else lambda: trust.problem is None,
            ),
        ),
        close=close,
        retire=runtime.retire,
    )


def _admission(runtime: Runtime) -> Admission:
    """The webhook's rules; what they say of the cluster's GPUs comes from the same watches."""

    def known() -> ClusterSnapshot | None:
        return None if runtime.stale_because() else runtime.state.snapshot()

    options = AdmissionOptions(
        scheduler_name=settings.SCHEDULER_NAME,
        policy=_checked(parse_admission_policy, settings.ADMISSION_POLICY),
        scheduling=_checked(parse_scheduling_policy, settings.SCHEDULING_POLICY),
        trusted=settings.TRUSTED_WRITERS,
    )
    return Admission(options, GpuModels(known).models)


def _policy_watch(runtime: Runtime, admission: Admission) -> PolicyWatch | None:
    if settings.POLICY_FILE is None:
        return None

    def apply(scheduling: SchedulingPolicy, reviewing: AdmissionPolicy) -> None:
        runtime.state.change_policy(scheduling)
        admission.change_policies(reviewing, scheduling)

    return PolicyWatch(settings.POLICY_FILE, apply)


def _trust_watch(runtime: Runtime) -> TrustWatch | None:
    certificate, key = settings.EXTENDER_TLS_CERT, settings.EXTENDER_TLS_KEY
    if certificate is None or key is None:
        return None
    return TrustWatch(lambda: runtime.client.get_webhook(WEBHOOK), certificate, key)


def _mistrusted() -> Callable[[], str]:
    certificate, key = settings.EXTENDER_TLS_CERT, settings.EXTENDER_TLS_KEY
    if certificate is None or key is None:
        return lambda: ""
    return serving(certificate, key).problem


def _election() -> Election | None:
    if not settings.LEADER_ELECTION:
        return None
    return Election(settings.NAMESPACE, settings.POD_NAME, lease_s=settings.LEASE_SECONDS)


def _keys() -> KeyFile | None:
    if settings.SIGNING_KEYS is None:
        return None
    try:
        return KeyFile(settings.SIGNING_KEYS)
    except InvalidSigningKey as error:
        raise ImproperlyConfigured(f"HAMI_SIGNING_KEYS: {error}") from error


def _checked(parse: Callable[[object], _Policy], document: object) -> _Policy:
    try:
        return parse(document)
    except CoreError as error:
        raise ImproperlyConfigured(str(error)) from error
