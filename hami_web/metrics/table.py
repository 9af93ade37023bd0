"""Every series that is ours: name, kind, labels, meaning, and the role that answers for it.

Names have base units, ratios are 0 to 1, and no label holds a Pod's UID or anything else that
grows with time: each series is there as long as the object that it tells of.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hami_web.metrics.hami_series import HAMI
from hami_web.metrics.legacy import LEGACY
from hami_web.metrics.series import Kind, Owner, Series


def _gauge(name: str, text: str, *labels: str) -> Series:
    return Series(name, Kind.GAUGE, text, labels)


def _counter(name: str, text: str, *labels: str) -> Series:
    return Series(name, Kind.COUNTER, text, labels)


def _histogram(name: str, text: str, *labels: str) -> Series:
    return Series(name, Kind.HISTOGRAM, text, labels)


# --- the cluster's GPUs -------------------------------------------------------------------------

FREE: Final = _gauge(
    "hami_mig_free_placements",
    "Instances of a profile that still fit on a GPU together.",
    *("device_uuid", "node", "profile"),
)
FRAGMENTATION: Final = _gauge(
    "hami_mig_fragmentation_ratio",
    "Share of a GPU's free memory slices that its largest free placement cannot use, 0 to 1.",
    *("device_uuid", "node"),
)
INSTANCE_POD: Final = _gauge(
    "hami_mig_instance_pod_info",
    "The container that a realized MIG instance was made for.",
    *("container_index", "device_uuid", "gpu_instance_id", "namespace", "node", "pod", "profile"),
)
RESERVATIONS: Final = _gauge(
    "hami_mig_reservations", "Reservations by how far they have come.", "state"
)
ORPHANS: Final = _gauge(
    "hami_mig_orphan_instances",
    "Intervals of memory slices that agents report as taken by what no reservation explains.",
)
UNREALIZED_AGE: Final = _gauge(
    "hami_mig_unrealized_reservation_age_seconds",
    "Time since this process saw the oldest reservation that has no instance yet, 0 for none.",
)
REALIZATION: Final = _histogram(
    "hami_mig_realization_duration_seconds",
    "Time from a Pod's Binding to the runtime identity of its last instance, as watched.",
)
NODE_CLOSED: Final = _gauge(
    "hami_node_closed", "1 for a node that takes no new work.", "node", "reason"
)
PROBLEM: Final = _gauge(
    "hami_mig_reservation_problem",
    "1 for a Pod whose reservation is malformed, misplaced, overlapping, altered or not trusted.",
    *("device_uuid", "namespace", "node", "pod", "problem"),
)
AGENT_DEAD: Final = _gauge(
    "hami_node_agent_dead", "1 for a node whose agent does not serve.", "node"
)

# --- the scheduler ------------------------------------------------------------------------------

FILTER: Final = _histogram(
    "hami_scheduler_filter_duration_seconds", "Time to decide one filter call."
)
BIND: Final = _histogram(
    "hami_scheduler_bind_duration_seconds", "Time of one bind call, waiting included."
)
LOCK_WAIT: Final = _histogram(
    "hami_scheduler_node_lock_wait_seconds", "Time until the node lock was taken or given up."
)
BIND_QUEUE: Final = _gauge(
    "hami_scheduler_bind_queue_depth", "Binds that wait or run for a node.", "node"
)
WAITING: Final = _gauge("hami_scheduler_waiting_pods", "Refused Pods that wait.")
REJECTIONS: Final = _counter(
    "hami_scheduler_filter_rejections_total",
    "Nodes that were refused for a Pod, by reason.",
    "reason",
)
UNSETTLED: Final = _gauge(
    "hami_scheduler_unsettled_binds",
    "Binds of which it is not known yet whether they happened.",
)
WOKEN: Final = _counter("hami_scheduler_woken_pods_total", "Waiting Pods woken when they fit.")
DROPPED: Final = _counter(
    "hami_scheduler_decisions_dropped_total",
    "Decisions that left the extender's memory before anyone read them.",
)
READY: Final = _gauge("hami_scheduler_ready", "1 while this replica decides.")
EVENTS: Final = _counter("hami_scheduler_events_total", "Events by what became of them.", "outcome")
API_WAIT: Final = _counter(
    "hami_scheduler_api_wait_seconds_total",
    "Time that calls to the API server waited for their turn.",
)
LEADER: Final = _gauge("hami_leader", "1 while this replica leads.")
LEADER_TERM: Final = _gauge("hami_leader_term", "Number of the term that this replica leads.")
TRUSTED: Final = _gauge(
    "hami_webhook_certificate_trusted",
    "1 while the API server's CA bundle fits the serving certificate.",
)

# --- list-and-watch, of the extender and of the worker ------------------------------------------

SILENCE: Final = _gauge(
    "hami_informer_silence_seconds",
    "Time since the API server was last heard about a resource.",
    "resource",
)
LAST_LIST: Final = _gauge(
    "hami_informer_last_list_timestamp_seconds",
    "When the last complete list of a resource came, as Unix time.",
    "resource",
)
RELISTS: Final = _counter(
    "hami_informer_relists_total", "Complete lists of a resource.", "resource"
)
FAILURES: Final = _counter(
    "hami_informer_failures_total", "Lists and watches that failed.", "resource"
)

# --- the mirror; all from its database, so that any worker gives the same answer ------------------

MIRROR_UP: Final = _gauge("hami_mirror_up", "1 while the mirror's database answers.")
MIRROR_LAG: Final = _gauge(
    "hami_mirror_lag_seconds",
    "Time since everything that the live feed had seen was written to the mirror.",
)
MIRROR_ROWS: Final = _gauge(
    "hami_mirror_rows", "Rows of what the cluster has now, by what they tell of.", "entity"
)
CORRECTIONS: Final = _counter(
    "hami_mirror_corrections_total",
    "Corrections that reconciliations made, by their cause, by what was wrong and of what.",
    *("cause", "entity", "kind"),
)
ALERTS: Final = _gauge("hami_alerts", "Open alerts by code.", "code")
TASKS: Final = _counter(
    "hami_worker_tasks_total", "Tasks of the worker that ended, by outcome.", "outcome", "task"
)
TASK_DURATION: Final = _histogram(
    "hami_worker_task_duration_seconds", "Time that a task of the worker took.", "task"
)
TASK_SUCCESS: Final = _gauge(
    "hami_worker_task_last_success_timestamp_seconds",
    "When a task of the worker last ended well, as Unix time.",
    "task",
)
SKIPPED: Final = _counter(
    "hami_reconcile_skipped_total", "Reconciliations that corrected nothing, by reason.", "reason"
)

# --- the web role -------------------------------------------------------------------------------

REQUESTS: Final = _histogram(
    "hami_web_request_duration_seconds",
    "Time until an answer began, by method, address pattern and class of status.",
    *("method", "route", "status"),
)

_CLUSTER: Final = (
    *(FREE, FRAGMENTATION, RESERVATIONS, ORPHANS, UNREALIZED_AGE, REALIZATION),
    *(INSTANCE_POD, PROBLEM, NODE_CLOSED, AGENT_DEAD),
)
_SCHEDULER: Final = (
    *(FILTER, BIND, LOCK_WAIT, BIND_QUEUE, WAITING, REJECTIONS, UNSETTLED, WOKEN, DROPPED),
    *(READY, EVENTS, API_WAIT, LEADER, LEADER_TERM, TRUSTED),
)
_WATCHES: Final = (SILENCE, LAST_LIST, RELISTS, FAILURES)
_MIRROR: Final = (
    *(MIRROR_UP, MIRROR_LAG, MIRROR_ROWS, CORRECTIONS, ALERTS),
    *(TASKS, TASK_DURATION, TASK_SUCCESS, SKIPPED),
)
OWNED: Final[Mapping[Owner, tuple[Series, ...]]] = {
    Owner.EXTENDER: (*HAMI, *_CLUSTER, *_SCHEDULER, *_WATCHES),
    Owner.WORKER: (*_MIRROR, *_WATCHES),
    Owner.WEB: (REQUESTS,),
}
"""What each role answers for. The watches are those of the process that is asked."""

OPTIONAL: Final = LEGACY
"""Of the extender, with ``HAMI_LEGACY_METRICS``."""
