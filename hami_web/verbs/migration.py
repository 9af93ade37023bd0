"""Start and cancel a readiness check."""

from __future__ import annotations

from datetime import UTC, datetime

from hami_web.access.audit import Action, Actor, audited
from hami_web.migration import runs
from hami_web.migration.models import MigrationRun


def start_check(actor: Actor, node: str = "") -> MigrationRun:
    """Ask the worker for a check, of one node where it is named, recorded before and after.

    Raises CheckGoesOn, InvalidField, DatabaseError.
    """
    with audited(actor, Action("migration.check", "migration-run", node)) as progress:
        now, request_id = datetime.now(UTC), actor.request_id
        run = runs.request_check(actor.name, now, node, request_id=request_id)
        progress.after = {"run": run.pk}
        return run


def cancel_check(actor: Actor, pk: int) -> MigrationRun:
    """Call a check off, recorded before and after. Raises NotRunning, DoesNotExist."""
    with audited(actor, Action("migration.cancel", "migration-run", str(pk))):
        return runs.cancel_check(pk, actor.name, datetime.now(UTC))
