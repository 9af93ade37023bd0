"""The database itself keeps audit entries as they are.

A later migration that makes SQLite copy the table must create the triggers again.
"""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

SQLITE = (
    """
    CREATE TRIGGER audit_never_changed BEFORE UPDATE ON access_auditentry
    BEGIN SELECT RAISE(ABORT, 'audit entries are never changed'); END
    """,
    """
    CREATE TRIGGER audit_pruned_only BEFORE DELETE ON access_auditentry
    WHEN NOT EXISTS (SELECT 1 FROM access_auditpruning WHERE before > OLD.at)
    BEGIN SELECT RAISE(ABORT, 'audit entries are deleted by retention only'); END
    """,
)
POSTGRESQL = (
    """
    CREATE FUNCTION audit_guard() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF TG_OP = 'UPDATE' THEN
        RAISE EXCEPTION 'audit entries are never changed' USING ERRCODE = 'integrity_constraint_violation';
      END IF;
      IF TG_OP = 'TRUNCATE' THEN
        IF EXISTS (SELECT 1 FROM access_auditentry) THEN
          RAISE EXCEPTION 'audit entries are deleted by retention only' USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN NULL;
      END IF;
      IF NOT EXISTS (SELECT 1 FROM access_auditpruning WHERE before > OLD.at) THEN
        RAISE EXCEPTION 'audit entries are deleted by retention only' USING ERRCODE = 'integrity_constraint_violation';
      END IF;
      RETURN OLD;
    END $$
    """,
    """
    CREATE TRIGGER audit_guarded BEFORE UPDATE OR DELETE ON access_auditentry
    FOR EACH ROW EXECUTE FUNCTION audit_guard()
    """,
    """
    CREATE TRIGGER audit_not_truncated BEFORE TRUNCATE ON access_auditentry
    FOR EACH STATEMENT EXECUTE FUNCTION audit_guard()
    """,
)
DROPS = {
    "sqlite": ("DROP TRIGGER audit_never_changed", "DROP TRIGGER audit_pruned_only"),
    "postgresql": (
        "DROP TRIGGER audit_guarded ON access_auditentry",
        "DROP TRIGGER audit_not_truncated ON access_auditentry",
        "DROP FUNCTION audit_guard()",
    ),
}


def protect(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for statement in {"sqlite": SQLITE, "postgresql": POSTGRESQL}[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


def release(_apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    for statement in DROPS[schema_editor.connection.vendor]:
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    dependencies = [("access", "0001_initial")]
    operations = [migrations.RunPython(protect, release)]
