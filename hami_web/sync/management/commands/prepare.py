"""``manage.py prepare``: the database as this version needs it, and the first admin."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.core.management import call_command
from django.db import DatabaseError, connection

from hami_web.core.faults import Fault
from hami_web.environment import Refused
from hami_web.inventory.standing import database_fault
from hami_web.startup import RoleCommand

LOCK: Final = 0x48414D49
"""Number of the PostgreSQL advisory lock under which one process at a time migrates."""


class Command(RoleCommand):
    """Runs before web and worker; several at once wait for each other."""

    help = "Bring the database up to date, one process at a time, and make the first admin."
    checks_settings = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """The admin's name; the password as for create_admin."""
        parser.add_argument(
            "--admin", metavar="NAME", help="make this admin where there is none, as create_admin"
        )

    def handle(self, *_arguments: Any, **options: Any) -> None:
        """Migrate, then the admin."""
        try:
            with one_at_a_time():
                call_command("migrate", interactive=False, verbosity=options["verbosity"])
                if options["admin"]:
                    call_command("create_admin", options["admin"], if_none=True)
        except DatabaseError as error:
            found = database_fault(with_schema=False)
            fault, text = found or (Fault.DATABASE, f"HAMI_DATABASE_URL: {error}")
            raise Refused(fault, text) from error


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Hold PostgreSQL's lock; a SQLite file is one Pod's, and migrating waits for its writer."""
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
