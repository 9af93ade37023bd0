"""The words of alerts and of drift: what a code means, and what helps."""

from __future__ import annotations

from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from hami_web.history.conditions import AlertCode
from hami_web.history.models import DriftCause
from hami_web.inventory.observed import DifferenceKind

ALERTS: Final[dict[str, tuple[Promise, Promise]]] = {
    AlertCode.UNREALIZED: (
        _("A reservation is not realized"),
        _("Look at the Pod's events and at the log of the node's agent."),
    ),
    AlertCode.RECLAIM_STUCK: (
        _("A Pod does not end, and its instance stays"),
        _("Look at why the Pod does not end: a finalizer, or a process that does not stop."),
    ),
    AlertCode.ORPHAN_INSTANCE: (
        _("An instance outlives its Pod"),
        _("A process still uses it: the driver refuses to destroy it. Find and end the process."),
    ),
    AlertCode.FOREIGN_INSTANCE: (
        _("An instance that nobody reserved"),
        _("It was made by hand or by another tool; it is never touched. Remove it there."),
    ),
    AlertCode.CONFLICT: (
        _("Two reservations overlap"),
        _("The GPU takes no new work. Delete the Pod that should not be there."),
    ),
    AlertCode.AGENT_STALE: (
        _("A node's agent is silent"),
        _("Bring the node or its agent back; running Pods are not touched."),
    ),
    AlertCode.OTHER_OWNER: (
        _("Something else cuts managed GPUs too"),
        _("Decide which of the two owns the node, and stop the other."),
    ),
    AlertCode.RESERVATION_MALFORMED: (
        _("A reservation cannot be read"),
        _("Delete the Pod, or restore what the scheduler wrote."),
    ),
    AlertCode.RESERVATION_UNSIGNED: (
        _("A reservation is not signed by the scheduler"),
        _("Someone wrote it by hand, or the signing keys were changed without overlap."),
    ),
    AlertCode.WORKER_SILENT: (
        _("The worker is silent"),
        _("History, drift and alerts stand still. Look at the worker's process and its log."),
    ),
    AlertCode.HANDOVER_REGRESSED: (
        _("A node's take-over fell back"),
        _("Something that was reached does not hold any more; its page says what, and what helps."),
    ),
}

CAUSES: Final[dict[str, Promise]] = {
    DriftCause.FIRST: _("the mirror was never compared before"),
    DriftCause.UNWATCHED: _("nobody followed the cluster when it happened"),
    DriftCause.ALTERED: _("rows were changed by another hand"),
}

KINDS: Final[dict[str, Promise]] = {
    DifferenceKind.MISSING: _("was missing, added"),
    DifferenceKind.VANISHED: _("was gone, closed"),
    DifferenceKind.CHANGED: _("was wrong, corrected"),
}


CHANGES: Final[dict[str, Promise]] = {
    "reservation held": _("a place was held"),
    "reservation reserved": _("a reservation began"),
    "reservation realized": _("the instance was made"),
    "reservation started": _("the container began to run"),
    "reservation terminating": _("the Pod began to end"),
    "reservation released": _("the placement became free"),
    "reservation lapsed": _("a hold ended without a Pod"),
    "node appeared": _("a node appeared"),
    "node changed": _("a node changed"),
    "node gone": _("a node is gone"),
    "gpu appeared": _("a GPU appeared"),
    "gpu changed": _("a GPU changed"),
    "gpu gone": _("a GPU is gone"),
    "blocked appeared": _("memory slices were blocked"),
    "blocked changed": _("the reason of a block changed"),
    "blocked gone": _("memory slices are no longer blocked"),
}


def change_words(entity: str, change: str) -> str:
    """What happened, in words; an unknown change is shown as it is."""
    code = f"{entity} {change}"
    return str(CHANGES.get(code, code))


def alert_words(code: str) -> tuple[str, str]:
    """What an alert means, and what helps; an unknown code is shown as it is."""
    title, mend = ALERTS.get(code, (code, ""))
    return str(title), str(mend)


def cause_words(code: str) -> str:
    """Why the mirror was not equal to the cluster."""
    return str(CAUSES.get(code, code))


def kind_words(code: str) -> str:
    """What a correction did."""
    return str(KINDS.get(code, code))
