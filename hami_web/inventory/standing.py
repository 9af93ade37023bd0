"""Whether the mirror's database can be used: it answers, has this version's tables, and is written.

A role that needs it is not ready until it can, says why in one line, and goes on by itself.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from hami_web.core.faults import Fault, line
from hami_web.standing import Standing

Found = tuple[Fault, str]

_NOT_WRITABLE: Final = "it cannot be written (missing, read-only, or another user's)"


def watch_database() -> Standing:
    """A watch that is to be started.

    Tables are compared until they were right once: a version that runs goes on while the next one
    brings the database up to date.
    """

    def look() -> str:
        try:
            found = database_fault(with_schema=not watch.was_good)
            return line(*found) if found else ""
        finally:
            connection.close()  # one that is kept would not notice who moved the database

    watch = Standing("the database", look)
    return watch


def database_fault(*, with_schema: bool = True) -> Found | None:
    """Why the database cannot be used now: the word and what is wrong, or None."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return (_schema_fault() if with_schema else None) or _writing_fault()
    except DatabaseError as error:
        folder = _sqlite_folder()
        if folder is not None and not (folder.is_dir() and _may_write(folder)):
            return Fault.VOLUME, f"{folder}: {_NOT_WRITABLE}"
        return Fault.DATABASE, f"HAMI_DATABASE_URL: {error}"


def _schema_fault() -> Found | None:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not missing:
        return None
    # The last one: the text stays the same while they are applied.
    last = missing[-1][0]
    return Fault.SCHEMA, (
        "HAMI_DATABASE_URL: tables are of another version, "
        f"{last.app_label}.{last.name} is missing; hami-web prepare makes them"
    )


def _writing_fault() -> Found | None:
    folder = _sqlite_folder()
    if folder is not None:
        file = Path(str(connection.settings_dict["NAME"]))
        beside = next((path for path in (folder, file) if not _may_write(path)), None)
        return (Fault.VOLUME, f"{beside}: {_NOT_WRITABLE}") if beside is not None else None
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute("SHOW transaction_read_only")
        (answer,) = cursor.fetchone()
    if answer != "on":
        return None
    return Fault.DATABASE, "HAMI_DATABASE_URL: the server takes no writes (a standby?)"


def _sqlite_folder() -> Path | None:
    """Where SQLite keeps its files; its journal needs the folder as well as the file."""
    name = str(connection.settings_dict["NAME"])
    if connection.vendor != "sqlite" or name.startswith((":memory:", "file:")):
        return None
    return Path(name).parent


def _may_write(path: Path) -> bool:
    """Also root cannot write to a volume that is mounted read-only."""
    return os.access(path, os.W_OK)
