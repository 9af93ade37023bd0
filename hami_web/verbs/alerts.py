"""Acknowledge an alert."""

from __future__ import annotations

from hami_web.access.audit import Action, Actor, audited
from hami_web.history import alerts
from hami_web.history.models import Alert


def acknowledge_alert(actor: Actor, alert: Alert, note: str) -> Alert:
    """Store who knows of an alert, and their note, recorded before and after.

    Raises AlertNotOpen when another was first or its condition is over, and DatabaseError.
    """
    action = Action("alert.acknowledge", "alert", str(alert.pk), alert.namespace)
    with audited(actor, action) as progress:
        progress.before, progress.after = {"state": alert.state}, {"note": note}
        return alerts.acknowledge(alert.pk, who=actor.name, note=note)
