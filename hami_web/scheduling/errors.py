"""Why a bind is refused; the text goes to kube-scheduler and from there into the Pod's events."""

from __future__ import annotations

from typing import ClassVar


class BindError(Exception):
    """Base of refused binds, each with a stable code."""

    code: ClassVar[str] = "mig.bind.error"


class NoHold(BindError):
    """Nothing is held for this Pod on this node; ``/filter`` must choose first."""

    code = "mig.bind.no_hold"


class PodChanged(BindError):
    """The Pod is gone, bound elsewhere, or another Pod has its name."""

    code = "mig.bind.pod_changed"


class LockBusy(BindError):
    """The node's lock or the queue for it did not come free in time."""

    code = "mig.bind.lock_busy"


class LockUnreadable(BindError):
    """The node's lock names no holder; a person must look at it."""

    code = "mig.bind.lock_unreadable"


class BindFailed(BindError):
    """The API server did not bind the Pod."""

    code = "mig.bind.failed"


class BindUnsettled(BindError):
    """It is not known yet whether the Pod was bound; hold and lock stay until it is."""

    code = "mig.bind.unsettled"
