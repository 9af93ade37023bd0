"""What is deleted when its time is over."""

from __future__ import annotations

from datetime import datetime

from hami_web.access.audit import prune_audit
from hami_web.access.backoff import prune_failures
from hami_web.access.sessions import prune_sessions


def prune_access(now: datetime, *, audit_days: float) -> int:
    """Sessions, failed sign-ins, and audit entries as far as retention says; how many rows."""
    return prune_sessions() + prune_failures(now) + prune_audit(now, audit_days)
