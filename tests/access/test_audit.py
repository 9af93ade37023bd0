"""The audit log: what is written, and that nothing of it is ever changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from hami_web.access.audit import SYSTEM, Action, audited, prune_audit, record
from hami_web.access.models import AppendOnly, AuditEntry, AuditPruning, Outcome

pytestmark = pytest.mark.django_db
CORDON = Action("gpu.cordon", "gpu", "GPU-1", before={"cordoned": False}, after={"cordoned": True})


def entries() -> list[tuple[str, str, str]]:
    rows = AuditEntry.objects.order_by("id")
    return list(rows.values_list("verb", "name", "outcome"))


def age(days: float) -> None:
    """Make every entry older, as only someone with the database's own tools could."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT sql FROM sqlite_master WHERE name = 'audit_never_changed'")
            trigger = cursor.fetchone()[0]
            cursor.execute("DROP TRIGGER audit_never_changed")
        else:
            cursor.execute("ALTER TABLE access_auditentry DISABLE TRIGGER audit_guarded")
        at = datetime.now(UTC) - timedelta(days=days)
        cursor.execute("UPDATE access_auditentry SET at = %s", [at])
        if connection.vendor == "sqlite":
            cursor.execute(trigger)
        else:
            cursor.execute("ALTER TABLE access_auditentry ENABLE TRIGGER audit_guarded")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE access_auditentry SET actor = 'someone else'",
        "DELETE FROM access_auditentry",
        "DELETE FROM access_auditentry WHERE verb = 'gpu.cordon'",
    ],
)
def test_the_database_itself_refuses_to_change_an_entry(statement: str) -> None:
    record(SYSTEM, CORDON)
    with pytest.raises(DatabaseError, match="audit entries are"), transaction.atomic():
        connection.cursor().execute(statement)
    assert entries() == [("gpu.cordon", "GPU-1", "done")]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no TRUNCATE")
def test_the_table_cannot_be_emptied_at_once() -> None:
    record(SYSTEM, CORDON)
    with pytest.raises(DatabaseError, match="retention"), transaction.atomic():
        connection.cursor().execute("TRUNCATE access_auditentry")
    assert AuditEntry.objects.count() == 1


def test_entries_are_written_once_by_the_models_too() -> None:
    entry = record(SYSTEM, CORDON)
    entry.actor = "someone else"
    with pytest.raises(AppendOnly):
        entry.save()
    with pytest.raises(AppendOnly):
        entry.delete()
    with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
        AuditEntry.objects.update(actor="someone else")


def test_an_entry_holds_who_what_and_the_values() -> None:
    entry = AuditEntry.objects.get(pk=record(SYSTEM, CORDON, detail="maintenance\0").pk)
    assert (entry.actor, entry.source, entry.kind) == ("hami-web", "command", "gpu")
    assert (entry.before, entry.after) == ({"cordoned": False}, {"cordoned": True})
    assert entry.detail == "maintenance\N{REPLACEMENT CHARACTER}"
    assert abs(entry.at - datetime.now(UTC)) < timedelta(minutes=1)


def test_a_block_is_recorded_before_and_after() -> None:
    with audited(SYSTEM, Action("gpu.cordon", "gpu", "GPU-1")) as progress:
        assert entries() == [("gpu.cordon", "GPU-1", "begun")]
        progress.after = {"cordoned": True}
    assert [outcome for *_, outcome in entries()] == ["begun", "done"]
    assert AuditEntry.objects.latest("id").after == {"cordoned": True}


def test_a_block_that_fails_is_recorded_as_failed_and_goes_on_failing() -> None:
    with pytest.raises(TimeoutError), audited(SYSTEM, CORDON):
        raise TimeoutError("no answer")
    last = AuditEntry.objects.latest("id")
    assert (last.outcome, last.detail) == (Outcome.FAILED, "no answer")


def test_nothing_is_pruned_without_a_retention() -> None:
    record(SYSTEM, CORDON)
    age(days=9000)
    assert prune_audit(datetime.now(UTC), 0) == 0
    assert entries() == [("gpu.cordon", "GPU-1", "done")]


def test_retention_prunes_what_is_older_and_says_so() -> None:
    record(SYSTEM, CORDON)
    age(days=40)
    record(SYSTEM, Action("gpu.uncordon", "gpu", "GPU-1"))
    assert prune_audit(datetime.now(UTC), 30) == 1
    assert [verb for verb, *_ in entries()] == ["gpu.uncordon", "audit.retention", "audit.prune"]
    pruned = AuditEntry.objects.get(verb="audit.prune").after
    assert (pruned["days"], pruned["entries"]) == (30, 1)
    assert not AuditPruning.objects.exists()


def test_a_changed_retention_is_recorded_once() -> None:
    for days in (30, 30, 10, 10, 0):
        prune_audit(datetime.now(UTC), days)
    rows = AuditEntry.objects.filter(verb="audit.retention").order_by("id")
    assert [(row.before["days"], row.after["days"]) for row in rows] == [(0, 30), (30, 10), (10, 0)]
