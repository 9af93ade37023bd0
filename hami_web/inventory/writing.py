"""The transaction in which the mirror is written: one writer at a time, whoever else tries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import connection, transaction

ADVISORY_KEY: Final = 0x68616D69
"""Of PostgreSQL's advisory lock that the mirror's writers share."""


@contextmanager
def writing() -> Iterator[None]:
    """Write the mirror; ends with a commit, or with nothing written.

    SQLite's IMMEDIATE transactions exclude each other; PostgreSQL is told to.
    """
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [ADVISORY_KEY])
        yield
